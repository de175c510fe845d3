"""The tables of docs/evidence/advice.md, from the results of `make cure`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from cure_faults import FAULTS, Fault, read
from page_words import table

from launcher.compare.trial_verdicts import BROKE, HEALED, NOTHING, PARTLY, REPEATED

NOTES = {  # of faults that nothing healed
    "entropy coefficient below 0": (
        "At -20 the first gradients were about 15 times as large as usual: a WARN in the planted run, a NOTICE in its "
        "control run. The reward still rose to 0.90 and 0.82. Values of -0.2, -1 and -5 raised no flag. The toy "
        "learns the answer soon and needs no entropy, so nothing was harmed. `check` warns before the start (VALUE-5)."
    )
}


def _known() -> list[tuple[Fault, dict[str, Any]]]:
    found = read()
    return [(fault, found[fault.name]) for fault in FAULTS if fault.name in found]


def _flagged() -> list[tuple[Fault, dict[str, Any]]]:
    return [(fault, row) for fault, row in _known() if row.get("trials")]


def _counts() -> str:
    flagged = _flagged()
    repeated = sum(_twin(row) == REPEATED for _, row in flagged)
    first = sum(_place(fault, row) == 1 for fault, row in flagged)
    advised = sum(bool(_healed(fault, row)) for fault, row in flagged)
    return (
        f"**{len(flagged)} of {len(_known())} planted faults were flagged, and the control run repeated the flag in"
        f" {repeated}. Undoing the fault ranked first in {first}. Without that trial, a fix that the rule advises would"
        f" have resolved {advised}.**\n"
    )


def _faults() -> str:
    head = ("fault", "planted", "flag", "control run", "rank of undoing it", "advice that resolved it")
    found = read()
    return table(head, [_line(fault, found.get(fault.name)) for fault in FAULTS])


def _advice() -> str:
    return table(
        ("advised fix", "trials", *(_code([verdict]) for verdict in (HEALED, PARTLY, NOTHING, BROKE))),
        _by_key(_flagged()),
    )


def _left() -> str:
    return "\n".join(f"* {_not_healed(fault, row)}" for fault, row in _known() if _place(fault, row) is None) or "None."


def _by_key(flagged: Sequence[tuple[Fault, dict[str, Any]]]) -> list[list[str]]:
    """The verdicts of the trials of each advised fix, without those that undid the fault."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for fault, row in flagged:
        for arm in _fixes(row):
            if not _undoes(fault, row, arm):
                found[" ".join(change.partition("=")[0] for change in arm["changes"])][arm["verdict"]] += 1
    ranked = sorted(found.items(), key=lambda pair: (-pair[1][HEALED], pair[0]))
    verdicts = (HEALED, PARTLY, NOTHING, BROKE)
    return [[_code([key]), str(each.total()), *(str(each[verdict]) for verdict in verdicts)] for key, each in ranked]


def _tested(row: dict[str, Any]) -> dict[str, Any] | None:
    """The first flagged strength, which was tried."""
    return next((each for each in row["strengths"] if each.get("rule")), None)


def _twin(row: dict[str, Any]) -> str:
    return next((arm["verdict"] for arm in row.get("trials", []) if not arm["changes"]), "not run")


def _fixes(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [arm for arm in row.get("trials", []) if arm["changes"]]


def _undoes(fault: Fault, row: dict[str, Any], arm: dict[str, Any]) -> bool:
    """Whether a trial undoes the fault: marked as such, or in older rows as the fix of its keys."""
    if any(each.get("undoes") for each in row["trials"]):
        return bool(arm.get("undoes"))
    return {change.partition("=")[0] for change in arm["changes"]} >= set(fault.undo)


def _healed(fault: Fault, row: dict[str, Any]) -> list[str]:
    return [
        " ".join(arm["changes"]) for arm in _fixes(row) if arm["verdict"] == HEALED and not _undoes(fault, row, arm)
    ]


def _place(fault: Fault, row: dict[str, Any]) -> int | None:
    """The rank, from 1, of a trial that undid the fault and had no flag."""
    found = enumerate(_fixes(row), 1)
    return next((place for place, arm in found if _undoes(fault, row, arm) and arm["verdict"] == HEALED), None)


def _line(fault: Fault, row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return [fault.name, "", "not run", "", "", ""]
    tested = _tested(row)
    if tested is None:
        planted = "<br>".join(_code(each["settings"]) for each in row["strengths"])
        return [fault.name, planted, "none", "", "", ""]
    flag = f"{tested['rule']} {tested['level']}, step {tested['rose']}"
    healed = "<br>".join(f"`{each}`" for each in _healed(fault, row)) or "nothing"
    return [fault.name, _code(tested["settings"]), flag, _twin(row), str(_place(fault, row) or "–"), healed]


def _not_healed(fault: Fault, row: dict[str, Any]) -> str:
    note = NOTES.get(fault.name, "")
    if not _tested(row):
        most = max(len(each["score"]) for each in row["strengths"])
        return f"**{fault.name}** raises no flag in {most} steps from step {row['from']} on. {note}".strip()
    tried = ", ".join(f"{_code(_shown(arm['changes']))} ({arm['why'] or arm['verdict']})" for arm in _fixes(row))
    return f"**{fault.name}**. Tried: {tried or row.get('refused', 'nothing')}. {note}".strip()


def _shown(changes: Sequence[str]) -> list[str]:
    """The settings, without those that only accompany others."""
    return [each for each in changes if not each.startswith("reward.path") and "micro_batch" not in each]


def _code(settings: Sequence[str]) -> str:
    return " ".join(f"`{each}`" for each in settings)


PARTS: dict[str, Callable[[], str]] = {"counts": _counts, "faults": _faults, "fixes": _advice, "left": _left}
