"""The health rules on the runs that a reader had judged before any rule ran: false alarms, share found and delay.

.venv/bin/python bench/health_judged.py [--write]

The runs are those of tests/gpu/judged.py, in the bank as `judged`; campaigns/judged_runs.py describes the verdicts in
tests/data/bank/verdicts.toml. The first and usual runs of 2026-11-27 are `first`, with verdicts in first_runs.toml.
`--write` puts the table of both into docs/evidence/health.md.

A *harmful* run has the verdict `harmed` or `meaningless`. In one that is `faulty-harmless`, a flag is neither right nor
wrong. The delay counts from the step of the verdict, and is negative for a flag before it.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tomllib
from evidence import interval, per_thousand, table, write
from health_bank import BANK, OF_THE_HOST, BankRun, about, alarms, runs

from launcher.health.verdict import sort
from launcher.record.levels import Level

VERDICTS = {"judged": "verdicts.toml", "first": "first_runs.toml"}
HEAD = (
    "set",
    "healthy steps",
    "false CRITICAL",
    "false WARN or worse",
    "harmful, in ten steps",
    "ruined",
    "cause first",
)
SOON = 10  # steps after the verdict within which a harmful run should be found
Kind = Literal["healthy", "harmed", "meaningless", "faulty-harmless"]
HARMFUL = ("harmed", "meaningless")


@dataclass(frozen=True)
class Judgement:
    """A run, its verdict, and its flags per level or above."""

    run: BankRun
    verdict: Kind
    step: int | None
    flags: Mapping[Level, Sequence[tuple[int, str]]]
    ruined: bool = False  # at its end

    @property
    def harmful(self) -> bool:
        return self.verdict in HARMFUL

    def delay(self, least: Level = Level.WARN) -> int | None:
        """Steps from the verdict's step to the first flag."""
        flags = self.flags[least]
        return flags[0][0] - (self.step or 0) if flags else None


def judgements(half: str = "judged") -> list[Judgement]:
    """All judged runs of this half of the bank. Raises KeyError for one without a verdict."""
    verdicts = tomllib.loads((BANK / VERDICTS[half]).read_text())
    found = []
    for run in runs(half):
        said = verdicts[about(run.name)["id"]]
        if said["verdict"] == "healthy" and run.fault:
            said = {"verdict": "faulty-harmless"}
        found.append(Judgement(run, said["verdict"], said.get("step"), alarms(run), said.get("ruined", False)))
    return found


def named(each: Judgement) -> str:
    """The leading cause or rule of the first flag, ten steps after the verdict or at the end; "" without one."""
    judge = each.run.checklist()
    for number, t, data in each.run.known:
        if number > (each.step or 0) + SOON:
            break
        judge.step(number, data, t=t)
    flags = (check for check in sort(judge.checks()) if check.level >= Level.WARN and check.rule not in OF_THE_HOST)
    return next((check.lead.cause if check.lead else check.rule for check in flags), "")


def of_causes(all_runs: Sequence[Judgement]) -> list[tuple[str, ...]]:
    """For harmful runs with a planted fault: the fault, the expected rules, and the first flag."""
    planted = [each for each in all_runs if each.harmful and about(each.run.name).get("rules")]
    return [
        (each.run.name, about(each.run.name)["fault"], ", ".join(about(each.run.name)["rules"]), named(each) or "none")
        for each in planted
    ]


def summary(half: str, all_runs: Sequence[Judgement]) -> list[object]:
    """Both kinds of error in one row."""
    healthy, harmful = ([each for each in all_runs if each.verdict in kinds] for kinds in (("healthy",), HARMFUL))
    steps = sum(len(each.run.steps) for each in healthy)
    false = (sum(len(each.flags[level]) for each in healthy) for level in (Level.CRITICAL, Level.WARN))
    soon = sum(delay <= SOON for each in harmful if (delay := each.delay()) is not None)
    ruined = [bool(each.flags[Level.CRITICAL]) for each in all_runs if each.ruined]
    causes = [first in rules.split(", ") for _, _, rules, first in of_causes(all_runs)]
    return [
        f"`{half}`, after",
        steps,
        *(per_thousand(count, steps) for count in false),
        f"{soon} of {len(harmful)} ({_share(soon, len(harmful))})",
        *(f"{sum(each)} of {len(each)}" if each else "not asked" for each in (ruined, causes)),
    ]


def of_healthy(all_runs: Sequence[Judgement]) -> list[str]:
    """False alarms by rule and level."""
    healthy = [each for each in all_runs if each.verdict == "healthy"]
    steps = sum(len(each.run.steps) for each in healthy)
    counts = {
        level: Counter(rule for each in healthy for _, rule in each.flags[level])
        for level in (Level.CRITICAL, Level.WARN)
    }

    rows: list[list[object]] = [
        [rule, *(per_thousand(counts[level][rule], steps) for level in counts)] for rule in sorted(counts[Level.WARN])
    ]
    rows.append(["**all rules**", *(per_thousand(counts[level].total(), steps) for level in counts)])
    touched = sum(bool(each.flags[Level.WARN]) for each in healthy)
    return [
        f"{len(healthy)} runs that the reader found healthy, {steps} steps; {touched} of them had a WARN or worse.",
        "",
        *table(("rule", "CRITICAL", "WARN or worse"), rows),
    ]


def of_harmful(all_runs: Sequence[Judgement]) -> list[str]:
    """The number found, and the delay."""
    harmful = [each for each in all_runs if each.harmful]
    if not harmful:
        return ["No run was harmful.", ""]
    delays = [delay for each in harmful if (delay := each.delay()) is not None]
    critical = [delay for each in harmful if (delay := each.delay(Level.CRITICAL)) is not None]
    soon = sum(delay <= SOON for delay in delays)
    found = [
        ("found at WARN or worse", len(delays)),
        (f"at most {SOON} steps after the verdict's step", soon),
        ("found at CRITICAL", len(critical)),
    ]
    rows = [(what, f"{count} of {len(harmful)} ({_share(count, len(harmful))})") for what, count in found]
    for what, those in (("WARN", delays), ("CRITICAL", critical)):
        if those:
            rows.append(
                (
                    f"delay to {what}, median (least to most)",
                    f"{statistics.median(those):g} ({min(those)} to {max(those)})",
                )
            )
    return [f"{len(harmful)} harmful runs.", "", *table(("harmful runs", "result"), rows)]


def _share(count: int, of: int) -> str:
    low, high = interval(count, of)
    return f"{100 * count / of:.0f} %, 95 % interval {100 * low:.0f} to {100 * high:.0f} %"


def each_run(all_runs: Sequence[Judgement]) -> list[str]:
    """A line per run."""
    rows = []
    for each in sorted(all_runs, key=lambda each: (each.verdict, each.run.name)):
        planted = about(each.run.name)
        delay = each.delay() if each.harmful else None
        rows.append(
            (
                each.run.name.split(" ", 1)[1],
                planted["fault"] or f"healthy: {planted['odd']}",
                len(each.run.steps),
                each.verdict + (f" from step {each.step}" if each.step else ""),
                *(_first(each.flags[level]) for level in (Level.WARN, Level.CRITICAL)),
                "–" if delay is None else f"{delay:+d}",
            )
        )
    return table(("run", "planted", "steps", "verdict", "first WARN", "first CRITICAL", "delay"), rows)


def _first(flags: Sequence[tuple[int, str]]) -> str:
    return f"step {flags[0][0]} ({flags[0][1]})" if flags else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the health rules with a reader's verdicts.")
    parser.add_argument("--write", action="store_true", help="put the table of both sets into docs/evidence/health.md")
    asked: Any = parser.parse_args()
    rows = []
    for half in VERDICTS:
        found = judgements(half)
        rows.append(summary(half, found))
        causes = table(("run", "planted", "rules that name it", "first flag"), of_causes(found))
        print("\n".join([f"## {half}", "", *of_healthy(found), *of_harmful(found), *causes, *each_run(found)]))
    text = "\n".join(table(HEAD, rows))
    print(text)
    if asked.write:
        write("health", "judged", text)


if __name__ == "__main__":
    main()
