"""docs/cure.md, from the results of `make cure`."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from cure_faults import EARLY, FAULTS, FORK, HEALTHY, ROOT, STEPS, Fault, read

from launcher.runs.watch.trials import BROKE, DIFFERENT, HEALED, NOTHING, PARTLY, REPEATED, UNTOLD

NOTES = {  # of faults that nothing healed
    "entropy coefficient below 0": (
        "At -20 the first updates after the fork have gradients about 15 times as large as usual. That was a WARN "
        "in the planted run and a NOTICE in its twin, and no harm in either: the reward went on to 0.90 and 0.82. "
        "Earlier runs at -0.2, -1 and -5, 14 steps from step 24 on, and at -1, 11 steps from step 8 on, raised no "
        "flag and learned as without it. The toy soon knows the answer and needs no entropy, so it shows no harm "
        "to heal; `check` warns before the start (VALUE-5)."
    )
}
PAGE = ROOT / "docs" / "cure.md"


def text() -> str:
    """The page, from the results."""
    found = read()
    rows = [_line(fault, found.get(fault.name)) for fault in FAULTS]
    head = ("fault", "planted", "flag", "twin", "place of what undoes it", "healed by advice")
    known = [(fault, found[fault.name]) for fault in FAULTS if fault.name in found]
    flagged = [(fault, row) for fault, row in known if row.get("trials")]
    repeated = sum(_twin(row) == REPEATED for _, row in flagged)
    first = sum(_place(fault, row) == 1 for fault, row in flagged)
    advised = sum(bool(_healed(fault, row)) for fault, row in flagged)
    counts = (
        f"{len(flagged)} of {len(known)} faults were flagged, and the twin repeated {repeated} of these. The trial that"
        f" undoes the fault ranks first in {first}.\nWithout it, some advised fix would have healed {advised}."
    )
    not_healed = [_not_healed(fault, row) for fault, row in known if _place(fault, row) is None]
    return PAGE_TEXT.format(
        table=_table(head, rows),
        counts=counts,
        advice=_table(("advised fix", "trials", "healed", "partly", "nothing", "broke"), _by_key(flagged)),
        unhealed="\n".join(f"* {each}" for each in not_healed) or "Nothing.",
        trials="\n\n".join(_details(fault, row) for fault, row in known),
        healthy=_sound(found.get(HEALTHY)),
        fork=FORK,
        early=EARLY,
        steps=STEPS,
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def _by_key(flagged: Sequence[tuple[Fault, dict[str, Any]]]) -> list[list[str]]:
    """What came of the trials of each advised fix, apart from those that undid the fault."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for fault, row in flagged:
        for arm in _fixes(row):
            if not _undoes(fault, row, arm):
                found[" ".join(change.partition("=")[0] for change in arm["changes"])][arm["verdict"]] += 1
    ranked = sorted(found.items(), key=lambda pair: (-pair[1][HEALED], pair[0]))
    verdicts = (HEALED, PARTLY, NOTHING, BROKE)
    return [[_code([key]), str(each.total()), *(str(each[verdict]) for verdict in verdicts)] for key, each in ranked]


def _tested(row: dict[str, Any]) -> dict[str, Any] | None:
    """The strength that was flagged first and tried."""
    return next((each for each in row["strengths"] if each.get("rule")), None)


def _twin(row: dict[str, Any]) -> str:
    return next((arm["verdict"] for arm in row.get("trials", []) if not arm["changes"]), "not run")


def _fixes(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [arm for arm in row.get("trials", []) if arm["changes"]]


def _undoes(fault: Fault, row: dict[str, Any], arm: dict[str, Any]) -> bool:
    """Whether a trial undoes the fault: as such, or in rows from before there was such one, as the fix of its keys."""
    if any(each.get("undoes") for each in row["trials"]):
        return bool(arm.get("undoes"))
    return {change.partition("=")[0] for change in arm["changes"]} >= set(fault.undo)


def _healed(fault: Fault, row: dict[str, Any]) -> list[str]:
    return [
        " ".join(arm["changes"]) for arm in _fixes(row) if arm["verdict"] == HEALED and not _undoes(fault, row, arm)
    ]


def _place(fault: Fault, row: dict[str, Any]) -> int | None:
    """The rank, from 1, of a trial that healed by undoing the fault."""
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
    """Without the settings that only go with others."""
    return [each for each in changes if not each.startswith("reward.path") and "micro_batch" not in each]


def _details(fault: Fault, row: dict[str, Any]) -> str:
    lines = [f"**{fault.name}** ({row['taken']}, from step {row['from']} on)", ""]
    for each in row["strengths"]:
        flag = f"{each['rule']} {each['level']} at step {each['rose']}" if each.get("rule") else "no flag"
        others = f" ({' '.join(each['others'])} too)" if each.get("others") else ""
        lines.append(f"* {_code(each['settings'])}: {flag}{others}; reward {_reward_words(each['score'])}")
    for arm in row.get("trials", []):
        undoes = arm.get("undoes") and f"undoes {arm['undoes']}"
        change = _code(_shown(arm["changes"])) or "twin"
        why = "; ".join(filter(None, (undoes, arm["why"], arm.get("taken"))))
        lines.append(f"* {change}: {arm['verdict']}{f' ({why})' if why else ''}; reward {_reward_words(arm['score'])}")
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

`make cure` plants faults in a healthy run, waits for a flag, and lets `ppo-tui try` work on it: an untouched twin,
the undoing of the fork's own change, and fixes that the rule advises, all from the checkpoint before the flag. It
runs on the CPU toy (`toy-cpu`, veRL 0.9.1, a model of 111,000 parameters), through the product. The healthy run
trains for {fork} steps; `ppo-tui fork` continues its last checkpoint with the fault for {steps} steps or more, or
that of step {early} where a fault only harms what still learns. experiments/cure.py writes this page from
tests/data/cure.json; `make cure ARGS="temperature"` runs one row anew.

{table}

{counts} Steps are counted from the fault on. Of several trials
that heal, one with a better reward is first where the noise allows to tell, else the undoing.

**What this shows, and what not.** Each run is a fork, so ppo-tui knows what was changed: that it undoes this first is
[a rule of trials](fork.md) and no merit of the advice. What the advice is worth without it is in the last column and
in the next table. Rows taken on 32 cores are from before that rule (the value from before the fork was tried where
the advice named its key); their runs were judged anew. In rows taken on 2 cores, fixes marked "32 cores" come from
another run with the same fault. Where the advice names the undoing itself (`advantage.gamma`), it is one trial and
counts as undoing. The healthy run of "wrong gamma" and "batch of one" had a WARN of KL-1 at step 8 that was gone at
step 15; the planted run with the wrong gamma was ended by hand after five steps. There is one run each, of a tiny
task: the next seed may differ.

## What the advice did

{advice}

A KL coefficient five times as large never healed: at 0.001 it weighs nothing against a reward of 1, and only the
coefficient of 5 that one run had been forked with held its policy. KL-1 and KL-4 therefore name it last, and for what
it is good. A larger mini-batch heals updates that are too large (KL-2) but no drift, so KL-1 does not name it any
more. A larger batch does nothing when all rewards are equal, and broke a run whose mini-batch stayed at one. Raised
together with its mini-batch, as a trial does now, it healed the same fault; SIG-1 says where it helps.

## What could not be healed

{unhealed}

## A healthy run

{healthy}

## All trials

{trials}
"""
