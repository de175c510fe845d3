"""Explains a pasted text: why its run ended, the preset of its command, and its versions next to the installed ones."""

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from launcher.console.diagnose import diagnose, errors_so_far
from launcher.console.diagnosis import Diagnosis
from launcher.core.errors import UserError
from launcher.core.secrets import redact
from launcher.metrics.frameworks import Framework
from launcher.preset.effective import of_draft
from launcher.preset.files import load_text
from launcher.preset.settle import of_log, offers, settings_of
from launcher.record.fix import Offer
from launcher.runs.watch.log import recognized
from launcher.runs.watch.run_diagnosis import Explanation
from launcher.scripts import pasted
from launcher.scripts.importer import Imported, from_script
from launcher.scripts.pasted import Pasted
from launcher.scripts.verl_command import Source
from launcher.verl import env as verl_env


@dataclass(frozen=True)
class Version:
    """A package version in the text, and the installed one as found by `doctor`; None if missing."""

    package: str
    pasted: str
    here: str | None


@dataclass(frozen=True)
class PastedReading:
    """The parts of a pasted text; `log` and `diagnosis` are empty without veRL output, `command` without a command.

    `offers`: fixes of the diagnosis that change the command.
    """

    log: str
    diagnosis: Diagnosis | None
    command: Imported | None
    versions: tuple[Version, ...]
    offers: tuple[Offer, ...] = ()

    def to_json(self) -> Mapping[str, object]:
        """The JSON of `diagnose -`: the diagnosis, the preset of the command, the versions."""
        nothing: Mapping[str, object] = {
            "cause": None,
            "title": "no output of veRL in the text",
            "evidence": [],
            "fixes": [],
        }
        return {
            **(Explanation(self.diagnosis, self.offers).to_json() if self.diagnosis else nothing),
            "preset": self.command.text if self.command else None,
            "notes": list(self.command.notes) if self.command else [],
            "settings": [list(settings_of(each.edits)) for each in self.offers],
            "versions": [asdict(each) for each in self.versions],
        }


def explain(text: str) -> PastedReading:
    """Reads a pasted text. Raises UserError for a text that is too large or has no veRL output."""
    parts = pasted.read(text)
    command = refused = None
    try:
        command = from_script(Source(text, Path.cwd()), "pasted", lossy=True)
    except UserError as error:
        refused = error
    text, framework = log_in(text, parts)
    if not text:
        if refused is not None:
            raise refused
        return PastedReading("", None, command, compared(parts.versions))
    log = [text.encode()]
    found = diagnose(log, framework=framework)
    if found.cause == "running":  # people paste the part of a log with the error, not the end
        found = errors_so_far(log, framework) or found
    config = of_log(found.settings)
    with contextlib.suppress(UserError):  # a value that no preset can have
        if command is not None:
            config = of_draft(load_text(Path("pasted.yaml"), command.text).layer)
    return PastedReading(text, found, command, compared(parts.versions), offers(found.fixes, config, imported=True))


def log_in(text: str, parts: Pasted) -> tuple[str, Framework | None]:
    """The log in a pasted text, without secrets, and its framework, if not veRL; empty without one."""
    log = parts.log or redact(text)
    with tempfile.TemporaryDirectory(prefix="ppo-tui-pasted-") as folder:
        path = Path(folder) / "pasted.log"
        path.write_text(log, "utf-8")
        with contextlib.suppress(UserError):
            return log, recognized(path, text=True).framework
    return parts.log, None


def compared(stated: dict[str, str]) -> tuple[Version, ...]:
    """The versions in a text next to the installed ones."""
    here: dict[str, str] = {}
    with contextlib.suppress(UserError):
        if stated:
            env = verl_env.of(None)
            here = env.packages | {"Python": env.python_version}
    return tuple(Version(name, version, here.get(name)) for name, version in stated.items())
