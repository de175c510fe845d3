"""Packs a run's facts for an issue into one archive: text files, and an issue text for pasting."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from launcher.core.errors import UserError, of_writing
from launcher.core.files import write_atomic
from launcher.core.tail import last_text
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.ray_session import RaySession
from launcher.report.case import case_of
from launcher.report.facts import LINE, Facts
from launcher.runs.watch.check_words import state_word
from launcher.runs.watch.problems import problems

AROUND = 200  # lines around the first cause
_PART = 256 << 10  # characters of one file
_ISSUE = 60_000  # characters; GitHub takes 65,536
_EXCERPT, _SHORT = 12, 400  # lines of the issue text before and after the cause, and characters of one
_RAY_LINES = 80  # lines of the console
_LOG_TAIL = 16 << 10  # bytes of each log of Ray
_RAY_LOGS = ("raylet.err", "raylet.out", "gcs_server.err", "gcs_server.out")
_RAY = re.compile(r"raylet|Actor\w*Died|Actor\w*Error|WorkerCrashed|NodeDied|died|placement group|\bGCS\b|OutOfMemory")


def write(run: RunDir, to: Path, *, answers: bool = False) -> Path:
    """Writes the archive of a run, replacing the file. Raises UserError."""
    check(to)
    target = to.expanduser()
    try:
        write_atomic(target, packed(parts(run, answers=answers), target.stem))
    except OSError as error:
        raise of_writing(target, error) from None
    return target


def check(to: Path) -> None:
    """Raises UserError for a name without `.zip`."""
    if to.suffix != ".zip":
        raise UserError(f"{to}: a bundle is a ZIP file", "use a name that ends in .zip")


def packed(files: Mapping[str, str], folder: str) -> bytes:
    """A ZIP archive with the files in a folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{folder}/{name}", text)
    return out.getvalue()


def parts(run: RunDir, *, answers: bool = False) -> dict[str, str]:
    """The files of the archive by name, the issue text first; on request, the `answers` of an assistant.

    Raises UserError for an unreadable run.
    """
    facts = Facts.read(run)
    raw = {
        "versions.txt": "\n".join(facts.versions()),
        "config.yaml": _config(facts),
        "console.txt": "\n".join(_around(facts, AROUND // 2, LINE)),
        "stacks.txt": "\n".join(facts.stacks()),
        "ray.txt": "\n".join(_ray(facts)),
        "gpus.txt": "\n".join(facts.devices()),
        "answers.md": run.answers.read_text("utf-8", "replace") if answers and run.answers.exists() else "",
    }
    hidden = facts.anonymous(raw.values())
    files = {name: hidden.text(text)[:_PART] + "\n" for name, text in raw.items() if text.strip()}
    files["case.md"] = case_of(run, facts=facts).text
    return {"issue.md": hidden.text(_issue(run, facts, raw, list(files)))[:_ISSUE], **files}


def _issue(run: RunDir, facts: Facts, raw: dict[str, str], files: list[str]) -> str:
    env = Environment(loader=PackageLoader("launcher.report", ""), undefined=StrictUndefined, trim_blocks=True)
    step = (
        f" The last {facts.state.numbering.unit} was {facts.state.step}."
        if facts.state.step is not None
        else " No step was finished."
    )
    code = f" The exit code is {facts.diagnosis.exit_code}." if facts.diagnosis.exit_code is not None else ""
    title = facts.diagnosis.title if facts.diagnosis.failed else _course(run, facts)
    return env.get_template("issue.md").render(
        title=f"[Bug] {title}",
        versions=raw["versions.txt"],
        gpus=raw["gpus.txt"],
        command=_command(facts),
        happened=f"{title}. {facts.diagnosis.meaning}{step}{code}",
        excerpt="\n".join(_around(facts, _EXCERPT, _SHORT)).replace("```", "'''"),
        files=files,
        version=metadata.version("ppo-tui"),
    )


def _course(run: RunDir, facts: Facts) -> str:
    """The state and worst flag of a run without a failure."""
    wrong = [each for each in problems(run, facts.state, None) if each.level >= Level.WARN]
    state = state_word(facts.state.state, facts.state.outcome)
    return f"{facts.info.name or run.id}, {state}" + (f": {wrong[0].head}" if wrong else "")


def _command(facts: Facts) -> str:
    """The command of the run, one override per line."""
    argv = facts.info.argv or (facts.attempt.read_launch().argv if facts.attempt else ())
    at = next((place + 1 for place, word in enumerate(argv) if word.startswith("verl.")), len(argv))
    lines = [" ".join(map(shlex.quote, argv[:at])), *map(shlex.quote, argv[at:])]
    return " \\\n  ".join(filter(None, lines)) or "# the command is unknown"


def _config(facts: Facts) -> str:
    """The settings of the run, and Hydra's resolved configuration if veRL got that far."""
    from ruamel.yaml import YAML

    resolved = facts.attempt.hydra / "config" / "config.yaml" if facts.attempt else None
    out = io.StringIO()
    YAML().dump(
        {"preset": facts.info.preset, "settings": [*facts.info.overrides, *facts.settings], "env": facts.info.env}, out
    )
    try:
        text = resolved.read_text("utf-8", "replace") if resolved else ""
    except OSError:
        text = ""
    return f"# The settings of the run\n{out.getvalue()}" + (
        f"\n# The configuration that Hydra resolved\n{text}" if text else ""
    )


def _around(facts: Facts, reach: int, longest: int) -> Iterable[str]:
    """The numbered lines around the first cause, which is marked; without a cause, the last lines."""
    if facts.attempt is None:
        return []
    numbered = ((at, line[:longest]) for at, line in enumerate(facts.lines(), 1))
    first = facts.diagnosis.evidence[0].line if facts.diagnosis.evidence else None
    if first is None:
        return [f"  {at:>6}  {line}" for at, line in deque(numbered, maxlen=2 * reach)]
    kept = itertools.islice(numbered, max(0, first - reach - 1), first + reach)
    return [f"{'>' if at == first else ' '} {at:>6}  {line}" for at, line in kept]


def _ray(facts: Facts) -> Iterator[str]:
    """Ray's session, its processes in the console, and the ends of its remaining logs."""
    if facts.attempt is None:
        return
    session = RaySession.read(facts.attempt.ray)
    yield f"session: {Path(session.path).name if session else 'not recorded'}"
    for line in deque(filter(_RAY.search, facts.lines()), maxlen=_RAY_LINES):
        yield line[:LINE]
    if session is None or not session.left:
        return
    for name in _RAY_LOGS:
        with contextlib.suppress(OSError):
            if (text := last_text(Path(session.path) / "logs" / name, _LOG_TAIL)).strip():
                yield from (f"\n## {name}\n", text)
