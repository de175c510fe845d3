"""The gate before a run: the preflight, and what happens when it finds an error."""

from collections.abc import Callable, Sequence

from launcher.check.checks import quick, slow
from launcher.check.finding import Finding, in_order
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.preset.files import LoadedPreset
from launcher.record.info import Preflight

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
    """The whole preflight of a preset on this machine; what run.yaml keeps of it.

    `prepare` makes what the slower checks look at; it is not called for a preset that is refused before.
    Raises Refused for one that would fail, unless it is forced.
    """
    what = subject(loaded)
    findings = quick(what)
    _refuse(loaded.name, findings, force)
    prepare()
    findings = in_order([*findings, *slow(what, lambda title: narrate(f"checking: {title}"), lambda: False)])
    _refuse(loaded.name, findings, force)
    kept = [finding for finding in findings if finding.level != "info"]
    forced = any(finding.level == "error" for finding in kept)
    return Preflight(forced, tuple(finding.as_json() for finding in kept))


def _refuse(name: str, findings: Sequence[Finding], force: bool) -> None:
    if not force and any(finding.level == "error" for finding in findings):
        raise Refused(name, [finding for finding in findings if finding.level != "info"])
