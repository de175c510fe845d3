"""The health rules on the bank of real runs (tests/data/bank): false alarms, share found and delay, by half.

.venv/bin/python bench/health_bank.py [--calibration | --gpu] [--write]

The tables are of the unseen half; `--calibration` shows those of the other, on which limits are chosen, `--gpu` those
of a model of 135M on GPUs. `--write` puts the false alarms into docs/evidence/health.md. `git show
f2aff946:campaigns/cpu-host/bank.py` describes the runs.
"""

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from evidence import interval, per_thousand, table, write

from launcher.health.checklist import Checklist
from launcher.preset.files import load
from launcher.preset.settle import configured
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.verl.config import Ranges

ROOT = Path(__file__).parents[1]
BANK = ROOT / "tests" / "data" / "bank"
HOST_GB, VOCABULARY = 251.6, 296  # of the lent host, without GPUs; of the toy's tokenizer
OF_THE_HOST = frozenset({"THR-1", "MEM-1", "MEM-2", "DISK-1"})  # thirty runs share the host
FIRST = 20  # steps within which a fault should be found
CUT, FELL = 0.5, 0.15  # of a run that went wrong: mean share of cut responses in ten steps, loss of reward at the end


@dataclass(frozen=True)
class BankRun:
    """A run of the bank: the planted fault ("" for healthy ones), its veRL keys, and its steps.

    `before`: for a fork, the steps of its parent up to the fork, which the rules also use in ppo-tui.
    """

    name: str
    fault: str
    strength: str
    config: dict[str, Any]
    vocabulary: int = VOCABULARY
    steps: list[tuple[int, float, dict[str, float]]] = field(default_factory=list)
    before: list[tuple[int, float, dict[str, float]]] = field(default_factory=list)

    @property
    def known(self) -> list[tuple[int, float, dict[str, float]]]:
        """All steps for a program: those before the fork, and the run's own."""
        return self.before + self.steps

    def checklist(self) -> Checklist:
        """The rules, with ppo-tui's knowledge of the run."""
        rows = self.config.get("data.val_max_samples")
        return Checklist(
            self.config,
            host_total_gb=HOST_GB,
            vocabulary=self.vocabulary,
            validation_rows=rows if isinstance(rows, int) and rows > 0 else None,
            clock=False,
            usual=_toy_ranges() if self.vocabulary == VOCABULARY else None,
        )

    @property
    def planted(self) -> int:
        """The step before the first one of the run itself: 0 except for a fork."""
        return self.before[-1][0] if self.before else 0


@cache
def _toy_ranges() -> Ranges:
    """The usual ranges declared in the toy's preset."""
    return configured(load("toy-cpu")).usual


@cache
def _manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BANK / "manifest.json").read_text())
    return found


def about(name: str) -> dict[str, Any]:
    """The manifest's entry for a run."""
    found: dict[str, Any] = _manifest()["runs"][name]
    return found


def runs(half: str) -> list[BankRun]:
    manifest = _manifest()
    bank = {
        name: BankRun(
            name,
            said["fault"],
            said["strength"],
            said["config"] if said.get("alone") else manifest["config"] | said["config"],
            said.get("vocabulary", VOCABULARY),
        )
        for name, said in manifest["runs"].items()
        if said["half"] == half
    }
    for row in pq.read_table(BANK / "metrics.parquet").to_pylist():
        if (run := bank.get(row.pop("run"))) is not None:
            step, t = row.pop("step"), row.pop("t")
            run.steps.append((step, t, {key: value for key, value in row.items() if value is not None}))
    for name, run in bank.items():
        if parent := manifest["runs"][name].get("parent"):
            run.before.extend(step for step in bank[parent].steps if step[0] <= manifest["runs"][name]["at"])
    return list(bank.values())


def raised(run: BankRun) -> Iterator[LevelChange]:
    """Every rise to NOTICE or above in the run itself."""
    judge = run.checklist()
    for number, t, data in run.known:
        changes = judge.step(number, data, t=t)
        yield from (change for change in changes if change.rose and number > run.planted)


def rises(run: BankRun) -> Iterator[tuple[int, str, Level]]:
    """Step, rule and level of each rise."""
    return ((change.step, change.rule, change.after) for change in raised(run))


def alarms(run: BankRun) -> dict[Level, list[tuple[int, str]]]:
    """WARN and CRITICAL: step and rule of each rise to it or above, without those about the host."""
    found = [rise for rise in rises(run) if rise[1] not in OF_THE_HOST]
    return {
        least: [(step, rule) for step, rule, level in found if level >= least] for least in (Level.WARN, Level.CRITICAL)
    }


def gone_wrong(run: BankRun) -> str:
    """The failure of a run without a planted fault, by its outcome; "" for a sound one.

    Half of its responses were truncated for ten steps, or the mean reward of its last 20 steps is 0.15 below that of
    its best 20. Rules are not used.
    """
    limit = run.config.get("data.max_response_length") or math.inf
    cut, scores = list[float](), list[float]()
    for _, _, data in run.steps:
        if (share := data.get("response_length/clip_ratio")) is not None:
            cut.append(share if data.get("response_length/max", limit) >= limit else 0.0)
        if (score := data.get("critic/score/mean")) is not None:
            scores.append(score)
    if (most := max(means(cut, 10), default=0.0)) >= CUT:
        return f"{100 * most:.0f} % of its responses cut for ten steps"
    rewards = means(scores, 20)
    lost = max(rewards) - rewards[-1] if rewards else 0.0
    return f"reward {lost:.2f} below its best in the end" if lost >= FELL else ""


def means(values: Sequence[float], count: int) -> list[float]:
    """The means of consecutive groups of `count` values."""
    return [sum(values[place : place + count]) / count for place in range(len(values) - count + 1)]


def score(run: BankRun) -> str:
    """The mean score of the first and last five steps: whether the fault did harm."""
    scores = [data["critic/score/mean"] for _, _, data in run.steps if "critic/score/mean" in data]
    return " → ".join(f"{sum(part) / len(part):.2f}" for part in (scores[:5], scores[-5:]))


def false_alarms(unplanted: Sequence[BankRun]) -> list[str]:
    """False alarms by rule and level, with the rate's interval; and the flags of runs that failed without a fault."""
    reasons = {run.name: gone_wrong(run) for run in unplanted}
    healthy = [run for run in unplanted if not reasons[run.name]]
    steps, counts = sum(len(run.steps) for run in healthy), Counter[tuple[str, Level]]()
    for run in healthy:
        counts.update((rule, level) for _, rule, level in rises(run))

    def rates(*found: str) -> list[str]:
        """The rates of rules at each level."""
        return [per_thousand(sum(counts[rule, level] for rule in found), steps) for level in levels]

    levels = (Level.CRITICAL, Level.WARN, Level.NOTICE)
    loud = sorted({rule for rule, _ in counts} - OF_THE_HOST)
    rows = [*([rule, *rates(rule)] for rule in loud), ["**all of these**", *rates(*loud)]]
    rows += [[f"{rule} (the shared host)", *rates(rule)] for rule in sorted({rule for rule, _ in counts} & OF_THE_HOST)]
    touched = sum(any(alarms(run)[Level.WARN]) for run in healthy)
    wrong = [
        f"`{run.name}`, {len(run.steps)} steps, has nothing planted and is not counted: {reason}. "
        f"WARN or worse: {', '.join(f'{rule} {step}' for step, rule in alarms(run)[Level.WARN]) or '–'}."
        for run in unplanted
        if (reason := reasons[run.name])
    ]
    return [
        f"{len(healthy)} healthy runs, {steps} steps; {touched} of the runs had a WARN or worse.",
        "",
        *table(("rule", "CRITICAL", "WARN", "NOTICE"), rows),
        *(line for each in wrong for line in (each, "")),
    ]


def faults(faulty: Sequence[BankRun]) -> tuple[list[str], str]:
    """Per fault and strength: the number found, the delay, and the first rule; and a summary sentence."""
    groups = defaultdict[tuple[str, str], list[BankRun]](list)
    for run in faulty:
        groups[run.fault, run.strength].append(run)
    rows, warned, died = list[list[object]](), 0, 0
    for (fault, strength), members in sorted(groups.items()):
        found = [alarms(run) for run in members]
        warns = [each[Level.WARN][0] for each in found if each[Level.WARN]]
        deadly = [each[Level.CRITICAL][0] for each in found if each[Level.CRITICAL]]
        warned, died = warned + len(warns), died + len(deadly)
        rows.append(
            [
                fault,
                strength,
                f"{len(warns)} of {len(members)}",
                ", ".join(f"step {s} ({r})" for s, r in warns) or "–",
                ", ".join(f"step {s} ({r})" for s, r in deadly) or "–",
                ", ".join(f"{len(run.steps)} ({score(run)})" for run in members),
            ]
        )
    low, high = interval(warned, len(faulty))
    return table(("fault", "strength", "found", "first WARN", "first CRITICAL", "steps (reward)"), rows), (
        f"Planted faults found at WARN or worse: {warned} of {len(faulty)} ({100 * warned / len(faulty):.0f} %, 95 % "
        f"interval {100 * low:.0f} to {100 * high:.0f} %); at CRITICAL: {died}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluates the health rules on the bank of real runs.")
    parser.add_argument("--calibration", action="store_true", help="show the other half instead")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/evidence/health.md")
    parser.add_argument("--gpu", action="store_true", help="show the runs of a real model on GPUs instead")
    asked = parser.parse_args()
    found = runs("gpu" if asked.gpu else "calibration" if asked.calibration else "unseen")
    healthy, faulty = [run for run in found if not run.fault], [run for run in found if run.fault]
    rows, found_of = faults(faulty)
    text = "\n".join(["### Healthy runs", "", *false_alarms(healthy), found_of, ""])
    print("\n".join([text, *rows]))
    if asked.write and not (asked.calibration or asked.gpu):
        write("health", "bank", text)


if __name__ == "__main__":
    main()
