"""docs/cure.md, from the results of `make cure`."""

from collections.abc import Sequence
from typing import Any

from cure_faults import FAULTS, FORK, HEALTHY, ROOT, STEPS, Fault, read

from launcher.run.reading.trials import DIFFERENT, HEALED, REPEATED, UNTOLD

PAGE = ROOT / "docs" / "cure.md"


def text() -> str:
    """The page, from the results."""
    found = read()
    rows = [_line(fault, found.get(fault.name)) for fault in FAULTS]
    head = ("fault", "planted", "flag", "twin", "healed by", "place of the fix that undoes it")
    table = "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))
    known = [(fault, found[fault.name]) for fault in FAULTS if fault.name in found]
    flagged = [(fault, row) for fault, row in known if row.get("trials")]
    repeated = sum(_twin(row) == REPEATED for _, row in flagged)
    curable = [(fault, row) for fault, row in flagged if fault.undo]
    first = sum(_place(fault, row) == 1 for fault, row in curable)
    counts = (
        f"{len(flagged)} of {len(known)} faults were flagged, the twin repeated {repeated} of these. The fix that"
        f" undoes the fault ranks first in {first} of the {len(curable)} that a setting can undo."
    )
    not_healed = [_not_healed(fault, row) for fault, row in known if not _healed(row)]
    return PAGE_TEXT.format(
        table=table,
        counts=counts,
        unhealed="\n".join(f"* {each}" for each in not_healed) or "Nothing.",
        trials="\n\n".join(_details(fault, row) for fault, row in known),
        healthy=_sound(found.get(HEALTHY)),
        fork=FORK,
        steps=STEPS,
    )


def _tested(row: dict[str, Any]) -> dict[str, Any] | None:
    """The strength that was flagged first and tried."""
    return next((each for each in row["strengths"] if each.get("rule")), None)


def _twin(row: dict[str, Any]) -> str:
    return next((arm["verdict"] for arm in row.get("trials", []) if not arm["changes"]), "not run")


def _fixes(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [arm for arm in row.get("trials", []) if arm["changes"]]


def _healed(row: dict[str, Any]) -> list[str]:
    return [" ".join(arm["changes"]) for arm in _fixes(row) if arm["verdict"] == HEALED]


def _place(fault: Fault, row: dict[str, Any]) -> int | None:
    """The rank, from 1, of a trial that healed by undoing the fault."""
    for place, arm in enumerate(_fixes(row), 1):
        undoes = any(change.partition("=")[0] in fault.undo for change in arm["changes"])
        if undoes and arm["verdict"] == HEALED:
            return place
    return None


def _line(fault: Fault, row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return [fault.name, "", "not run", "", "", ""]
    tested = _tested(row)
    if tested is None:
        planted = "<br>".join(_code(each["settings"]) for each in row["strengths"])
        return [fault.name, planted, "none", "", "", ""]
    flag = f"{tested['rule']} {tested['level']}, step {tested['rose']}"
    healed = "<br>".join(f"`{each}`" for each in _healed(row)) or "nothing"
    place = str(_place(fault, row) or "–") if fault.undo else "none can"
    return [fault.name, _code(tested["settings"]), flag, _twin(row), healed, place]


def _not_healed(fault: Fault, row: dict[str, Any]) -> str:
    if not _tested(row):
        return f"**{fault.name}** raises no flag in {STEPS} steps."
    tried = ", ".join(f"`{' '.join(arm['changes'])}` ({arm['why'] or arm['verdict']})" for arm in _fixes(row))
    reason = f": {fault.why}" if fault.why else ""
    return f"**{fault.name}**{reason}. Tried: {tried or row.get('refused', 'nothing')}."


def _details(fault: Fault, row: dict[str, Any]) -> str:
    lines = [f"**{fault.name}**", ""]
    for each in row["strengths"]:
        flag = f"{each['rule']} {each['level']} at step {each['rose']}" if each.get("rule") else "no flag"
        others = f" ({' '.join(each['others'])} too)" if each.get("others") else ""
        lines.append(f"* {_code(each['settings'])}: {flag}{others}; reward {_reward_words(each['score'])}")
    for arm in row.get("trials", []):
        change = _code(arm["changes"]) or "twin"
        why = f" ({arm['why']})" if arm["why"] else ""
        lines.append(f"* {change}: {arm['verdict']}{why}; reward {_reward_words(arm['score'])}")
    return "\n".join(lines)


def _sound(row: dict[str, Any] | None) -> str:
    if row is None:
        return "Not run."
    arms = [f"{_code(arm['changes']) or 'the twin'}: {arm['verdict']}" for arm in row["trials"]]
    broke = not all(arm["verdict"] in (DIFFERENT, UNTOLD) for arm in row["trials"])
    flag = row.get("rule") or "no flag"
    refusal = row.get("refused", "").partition("try: ")[2]
    end = "They broke something." if broke else "Nothing is said to heal, and nothing to break."
    return (
        f"The same {STEPS} steps without a fault: {flag}. `ppo-tui try` says: {refusal!r}. Trials of the advice of"
        f" KL-1, made all the same: {'; '.join(arms)}. {end}"
    )


def _code(settings: Sequence[str]) -> str:
    return " ".join(f"`{each}`" for each in settings)


def _reward_words(scores: Sequence[float]) -> str:
    """The mean of the first and of the last three steps."""
    if not scores:
        return "–"
    first, last = (sum(part) / len(part) for part in (scores[:3], scores[-3:]))
    return f"{first:.2f} → {last:.2f}"


PAGE_TEXT = """# Does the advice cure?

`make cure` plants faults in a healthy run, waits for a flag, and lets `ppo-tui try` work on it: an untouched twin and
up to four fixes that the rule advises, from the checkpoint before the flag. All of it runs on the CPU toy (`toy-cpu`,
veRL 0.9.1, a model of 111,000 parameters) through the product. The healthy run trains for {fork} steps and saves a
checkpoint; `ppo-tui fork` continues it with the fault for up to {steps} steps. tests/support/cure.py writes this page
from tests/data/cure.json.

{table}

{counts} Steps are counted from the fault on. What heals more than once is ranked by its reward in the second half of
its steps.

**What this shows, and what not.** The advice names a key; the table shows whether it is the right one. The value is the
one from before the fork, for `try` takes that first where it lies in the advised direction; of a run that was never
forked it would be a fifth or half of the present one ([fork.md](fork.md)). There is one run each, of a tiny task: the
next seed may differ.

## What could not be healed

{unhealed}

## A healthy run

{healthy}

## All trials

{trials}
"""
