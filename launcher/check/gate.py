"""The gate before a run: the preflight, and its errors.

A queued run passes it in two parts: `admit_ahead` on adding, while others use the machine, and `admit_waiting` at its
start, which takes a second.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher.check.checks import quick, slow
from launcher.check.finding import Finding, in_order
from launcher.check.subject import Subject, subject
from launcher.core.errors import UserError
from launcher.machine.capacity import here
from launcher.preset.files import LoadedPreset
from launcher.record.info import Preflight
from launcher.record.queued import Checked

_MOST = 64  # files of a model
FORCE = "use --force to start it anyway"


class Refused(UserError):
    """A preset that would fail; `findings` are its errors and warnings."""

    def __init__(self, name: str, findings: Sequence[Finding]) -> None:
        errors = [finding for finding in findings if finding.level == "error"]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{name} would fail: {errors[0].message}{more}", f"{errors[0].fix}; {FORCE}")
        self.findings = list(findings)


def admit(
    loaded: LoadedPreset, *, force: bool, narrate: Callable[[str], None], prepare: Callable[[], object]
) -> Preflight:
    """Makes the whole preflight of a preset on this machine; returns the part for run.yaml.

    `prepare` makes files for the slower checks, unless the preset was refused before. `narrate` gets warnings, and the
    errors of a forced start. Raises Refused for a preset that would fail, unless forced.
    """
    what = subject(loaded)
    findings = quick(what)
    _refuse(loaded.name, findings, force)
    prepare()
    findings = in_order([*findings, *slow(what, _titles(narrate))])
    _refuse(loaded.name, findings, force)
    for finding in findings:
        if finding.level != "info":
            narrate(f"{finding.level} {finding.id}: {finding.message}; {finding.fix}")
    return _preflight([finding.as_json() for finding in findings])


def admit_ahead(
    loaded: LoadedPreset, *, force: bool, narrate: Callable[[str], None], prepare: Callable[[], object]
) -> Checked:
    """The preflight of a run that will start later, on an otherwise idle machine. Raises as `admit` does."""
    what = subject(loaded, on=here({**os.environ, **loaded.preset.env}).emptied())
    _refuse(loaded.name, quick(what), force)
    prepare()
    files = stamps(what)
    lasting = in_order(slow(what, _titles(narrate), passing=False))
    _refuse(loaded.name, lasting, force)
    return Checked(findings=tuple(finding.as_json() for finding in lasting), files=files)


def admit_waiting(loaded: LoadedPreset, ahead: Checked, *, force: bool) -> Preflight | None:
    """The remaining preflight of a starting run; None if changed files require all checks. Raises as `admit`."""
    what = subject(loaded)
    if stamps(what) != ahead.files:
        return None
    now = [*quick(what), *slow(what, lambda _: None, passing=True)]
    _refuse(loaded.name, in_order(now), force)
    return _preflight([*(finding.as_json() for finding in now), *ahead.findings])


def stamps(what: Subject) -> dict[str, object]:
    """Each local path in the settings, with time and size of the file or of a model's files.

    Other folders are omitted, because they may change at any time.
    """
    found: dict[str, object] = {}
    for path in (Path(text) for setting in what.settings.values() for text in _paths(setting.value)):
        with contextlib.suppress(OSError, ValueError):  # missing, or not a valid path
            model = (path / "config.json").is_file()
            files = sorted(path.iterdir())[:_MOST] if model else [] if path.is_dir() else [path]
            found[str(path)] = [[each.stat().st_mtime_ns, each.stat().st_size] for each in files]
    return found


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("/"):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _paths(each)


def _titles(narrate: Callable[[str], None]) -> Callable[[str], None]:
    return lambda title: narrate(f"checking: {title}")


def _preflight(findings: Sequence[dict[str, object]]) -> Preflight:
    kept = [each for each in findings if each["level"] != "info"]
    kept.sort(key=lambda each: each["level"] != "error")
    return Preflight(any(each["level"] == "error" for each in kept), tuple(kept))


def _refuse(name: str, findings: Sequence[Finding], force: bool) -> None:
    if not force and any(finding.level == "error" for finding in findings):
        raise Refused(name, [finding for finding in findings if finding.level != "info"])
