"""Checks drafts while they are edited, in a separate process: `python -m launcher.check.live`.

Reads one JSON object per line (`path`, `text` of the preset) and sends two replies: at once `command`, `rows` of the
training files and `error`; within a second `findings`, `memory`, `machine`, and version and folder of `verl`. Ends with
its input. The screen stays small and fast, regardless of the checks' imports.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from launcher.core.errors import UserError
from launcher.core.format import gib
from launcher.preset.files import LoadedPreset

_RUN = Path("/RUN")  # stands for the folder of the run that there is not yet


def replies(path: Path, text: str) -> Iterator[Mapping[str, object]]:
    """The two replies about a preset file `path` with this text."""
    from launcher.check import checks
    from launcher.preset.draft import Draft
    from launcher.preset.files import load_text
    from launcher.preset.flow import rows_of

    try:
        loaded = load_text(path, text)
    except UserError as refused:
        yield {"error": str(refused), "command": None, "rows": None}
        findings = [each.as_json() for each in checks.refusals(Draft(path, text, on_disk=None), refused)]
        yield {"findings": findings, "memory": None, "machine": ""}
        return
    command, error = _command(loaded)
    yield {"command": command, "error": error, "rows": rows_of(loaded.preset.data.train)}
    yield _checked(loaded)


def _command(loaded: LoadedPreset) -> tuple[str | None, str | None]:
    from launcher.preset.translate import RunFolders, build, command_line
    from launcher.verl import env as verl_env
    from launcher.verl.defaults import NEWEST

    try:
        env = verl_env.of(loaded.preset.python, loaded.preset.own_verl)
        where = RunFolders.below(_RUN)
        return command_line(build(loaded, version=env.verl or NEWEST, python=env.python, folders=where)), None
    except UserError as error:
        return None, str(error)


def _checked(loaded: LoadedPreset) -> Mapping[str, object]:
    from launcher.check import checks
    from launcher.check.subject import subject
    from launcher.estimate import memory
    from launcher.machine import capacity
    from launcher.preset.library import needs_of

    here = capacity.here()
    needs = None if here.gpus else needs_of(loaded.preset.needs)
    where = capacity.assumed(f"{needs.gpus}x{needs.memory // 10**9}") if needs else here
    try:
        checked = subject(loaded, on=where)
        found = memory.estimate(checked)
        findings = checks.quick(checked)
    except UserError as error:
        return {"findings": [checks.refused(error).as_json()], "memory": None, "machine": ""}
    return {
        "findings": [finding.as_json() for finding in findings],
        "memory": found.as_json() if found else None,
        "machine": _words(where),
        "verl": [checked.version, str(checked.verl) if checked.verl else None],
    }


def _words(where: Any) -> str:
    if not where.gpus:
        return "no GPU here"
    size = f"{len(where.gpus)} x {gib(where.gpus[0].total)} GiB"
    return f"{size}, assumed from the preset's needs" if where.assumed else f"{where.gpus[0].name}, {size}"


def main() -> None:
    for line in sys.stdin.buffer:
        request: Mapping[str, Any] = orjson.loads(line)
        for reply in replies(Path(request["path"]), request["text"]):
            sys.stdout.buffer.write(orjson.dumps(reply) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
