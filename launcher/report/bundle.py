"""Packs the facts that an issue about a run needs into one archive: text files, and an issue text ready to paste."""

from __future__ import annotations

import io
import itertools
import re
import shlex
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from launcher.console.diagnosis import Diagnosis
from launcher.core.errors import UserError, of_writing
from launcher.core.files import write_atomic
from launcher.core.format import counted, gib
from launcher.core.secrets import Redactor
from launcher.core.tail import records
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.levels import Level
from launcher.record.machine import MachineSample
from launcher.record.ray_session import RaySession
from launcher.record.state import RunState
from launcher.report.anonymous import Anonymous
from launcher.runs.watch.check_words import state_word
from launcher.runs.watch.history import stall_report
from launcher.runs.watch.problems import problems
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.run_settings import compared_settings

AROUND = 200  # lines around the first cause
_LINE = 2000  # characters of one
_PART = 256 << 10  # characters of one file
_ISSUE = 60_000  # characters; GitHub takes 65,536
_EXCERPT, _SHORT = 12, 400  # lines of the issue text before and after the cause, and characters of one
_RAY_LINES = 80  # of the console
_LOG_TAIL = 16 << 10  # bytes of each log of Ray
_RAY_LOGS = ("raylet.err", "raylet.out", "gcs_server.err", "gcs_server.out")
_RAY = re.compile(r"raylet|Actor\w*Died|Actor\w*Error|WorkerCrashed|NodeDied|died|placement group|\bGCS\b|OutOfMemory")
_DUMP = re.compile(r"Fatal Python error|(?:Current thread|Thread) 0x[0-9a-f]+|^\S*(?:\([^)]*\) )?Stack \(most recent")
_IN_DUMP = re.compile(
    r"^(?:\([^)]*pid=\d+[^)]*\) ?)?(?:\s+File \"|(?:Current thread|Thread) 0x|\s*$|Extension modules)"
)


@dataclass(frozen=True)
class _Facts:
    """The facts from which the files are made."""

    run: RunDir
    info: RunInfo
    settings: tuple[str, ...]
    state: RunState
    attempt: AttemptDir | None
    machine: MachineSample | None
    found: Diagnosis


def write(run: RunDir, to: Path) -> Path:
    """Writes the archive of a run, replacing the file. Raises UserError."""
    check(to)
    target = to.expanduser()
    try:
        write_atomic(target, packed(parts(run), target.stem))
    except OSError as error:
        raise of_writing(target, error) from None
    return target


def check(to: Path) -> None:
    """Raises UserError for a name that does not end in .zip."""
    if to.suffix != ".zip":
        raise UserError(f"{to}: a bundle is a ZIP file", "use a name that ends in .zip")


def packed(files: Mapping[str, str], folder: str) -> bytes:
    """A ZIP archive with the files in a folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{folder}/{name}", text)
    return out.getvalue()


def parts(run: RunDir) -> dict[str, str]:
    """The files of the archive by name, the issue text first. Raises UserError for a run that cannot be read."""
    facts = _read(run)
    raw = {
        "versions.txt": _versions(facts),
        "config.yaml": _config(facts),
        "console.txt": "\n".join(_around(facts, AROUND // 2, _LINE)),
        "stacks.txt": "\n".join(_stacks(facts)),
        "ray.txt": "\n".join(_ray(facts)),
        "gpus.txt": "\n".join(_gpus(facts.machine)),
    }
    hidden = Anonymous(_users(facts), _hosts(facts), filter(None, [str(facts.info.env.get("HOME") or "")]))
    hidden.learn(raw.values())
    hidden.learn(facts.info.argv)
    files = {name: hidden.text(text)[:_PART] + "\n" for name, text in raw.items() if text.strip()}
    return {"issue.md": hidden.text(_issue(facts, raw, list(files)))[:_ISSUE], **files}


def _read(run: RunDir) -> _Facts:
    reader = RunReader(run.path)
    while reader.poll() - {"log"}:
        pass
    info, settings = compared_settings(run)
    return _Facts(run, info, settings, reader.state, run.last_attempt(), reader.machine.latest, diagnosis(run))


def _issue(facts: _Facts, raw: dict[str, str], files: list[str]) -> str:
    env = Environment(loader=PackageLoader("launcher.report", ""), undefined=StrictUndefined, trim_blocks=True)
    step = f" The last step was {facts.state.step}." if facts.state.step is not None else " No step was finished."
    code = f" The exit code is {facts.found.exit_code}." if facts.found.exit_code is not None else ""
    title = facts.found.title if facts.found.failed else _course(facts)
    return env.get_template("issue.md").render(
        title=f"[Bug] {title}",
        versions=raw["versions.txt"],
        gpus=raw["gpus.txt"],
        command=_command(facts),
        happened=f"{title}. {facts.found.meaning}{step}{code}",
        excerpt="\n".join(_around(facts, _EXCERPT, _SHORT)).replace("```", "'''"),
        files=files,
        version=metadata.version("ppo-tui"),
    )


def _course(facts: _Facts) -> str:
    """The state and the worst flag of a run that has not failed."""
    wrong = [each for each in problems(facts.run, facts.state, None) if each.level >= Level.WARN]
    state = state_word(facts.state.state, facts.state.outcome)
    return f"{facts.info.name or facts.run.id}, {state}" + (f": {wrong[0].head}" if wrong else "")


def _command(facts: _Facts) -> str:
    """The command of the run, an override per line."""
    argv = facts.info.argv or (facts.attempt.read_launch().argv if facts.attempt else ())
    at = next((place + 1 for place, word in enumerate(argv) if word.startswith("verl.")), len(argv))
    lines = [" ".join(map(shlex.quote, argv[:at])), *map(shlex.quote, argv[at:])]
    return " \\\n  ".join(filter(None, lines)) or "# the command is not known"


def _versions(facts: _Facts) -> str:
    """Versions at the start of the run; unknown for a run that was made elsewhere."""
    host = [f"{name}: {facts.info.host[name]}" for name in ("system", "cpus") if facts.info.host.get(name)]
    return "\n".join([*(f"{name}: {version}" for name, version in facts.info.versions.items()), *host])


def _config(facts: _Facts) -> str:
    """The settings of the run, and the configuration that Hydra resolved if veRL came that far."""
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


def _lines(path: Path) -> Iterator[str]:
    keys = Redactor()  # a part of the lines may begin within a private key
    return (keys.without_keys(line.decode(errors="replace")) for line in records(path))


def _around(facts: _Facts, reach: int, longest: int) -> Iterable[str]:
    """The numbered lines around the first cause, which is marked; without a cause, the last lines."""
    if facts.attempt is None:
        return []
    numbered = ((at, line[:longest]) for at, line in enumerate(_lines(facts.attempt.console), 1))
    first = facts.found.evidence[0].line if facts.found.evidence else None
    if first is None:
        return [f"  {at:>6}  {line}" for at, line in deque(numbered, maxlen=2 * reach)]
    kept = itertools.islice(numbered, max(0, first - reach - 1), first + reach)
    return [f"{'>' if at == first else ' '} {at:>6}  {line}" for at, line in kept]


def _stacks(facts: _Facts) -> Iterator[str]:
    """The stall report, and the output of faulthandler in the console."""
    stalled = stall_report(facts.run)
    if stalled is not None:
        yield from stalled[1]
    inside = False
    for line in _lines(facts.attempt.console) if facts.attempt else ():
        began = _DUMP.search(line) is not None
        if began and not inside:
            yield "\n## Printed into the console\n"
        inside = began or (inside and _IN_DUMP.match(line) is not None)
        if inside:
            yield line[:_LINE]


def _ray(facts: _Facts) -> Iterator[str]:
    """Ray's session, its processes in the console, and the ends of its logs if they still exist."""
    if facts.attempt is None:
        return
    session = RaySession.read(facts.attempt.ray)
    yield f"session: {Path(session.path).name if session else 'not recorded'}"
    for line in deque(filter(_RAY.search, _lines(facts.attempt.console)), maxlen=_RAY_LINES):
        yield line[:_LINE]
    for name in _RAY_LOGS if session is not None and session.left else ():
        text = _tail(Path(session.path) / "logs" / name) if session else ""
        if text.strip():
            yield f"\n## {name}\n"
            yield text


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - _LOG_TAIL))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def _gpus(sample: MachineSample | None) -> list[str]:
    if sample is None:
        return ["GPUs: no samples were taken"]
    lines = []
    for gpu in sample.gpus:
        others = [each for each in gpu.holders or () if each.whose != "run"]
        words = [gpu.name or "GPU", f"{gib(gpu.used)} of {gib(gpu.total)} GiB", f"the run's {gib(gpu.run_used)}"]
        words += [counted(len(others), "other process")] if others else []
        lines.append(f"GPU {gpu.index}: {', '.join(words)}")
    lines = lines or [f"GPUs: {sample.missing or 'none'}"]
    return [*lines, f"host memory: {gib(sample.host.used)} of {gib(sample.host.total)} GiB"]


def _users(facts: _Facts) -> list[str]:
    """The user names in the files of a run, except those in paths."""
    env = [str(facts.info.env.get(name) or "") for name in ("USER", "LOGNAME", "SLURM_JOB_USER")]
    gpus = facts.machine.gpus if facts.machine else ()
    return list(filter(None, [*env, *(each.user or "" for gpu in gpus for each in gpu.holders or ())]))


def _hosts(facts: _Facts) -> list[str]:
    launch = facts.attempt.read_launch() if facts.attempt else None
    nodes = [node.name for node in facts.machine.nodes] if facts.machine else []
    return list(filter(None, [str(facts.info.host.get("name") or ""), (launch and launch.host) or "", *nodes]))
