"""The error rates of the health rules in one table, to compare two versions of them.

.venv/bin/python bench/health_rates.py [--unseen] [--public FOLDER]

Without `--unseen`, it reads the half of the bank on which limits are chosen, and the GPU runs. A planted fault is
*harmful* by its outcome, without any rule: in its last five steps the reward is 0.1 below its start (of a fork: the
last 20 steps of its parent) or below 0.05, half of the responses are cut, or half of the last ten steps have equal
rewards.

FOLDER has consoles of other people's runs, which stay outside of this repository, and judgement.jsonl, a line for each:
{"file": "owner__repo/run.log", "verdict": "healthy", "broken_from": null}. The verdict, `healthy`, `broken` or
`unclear`, comes from a person who read the metrics and not our rules; `broken_from` is the first step at which they see
a problem.
"""

import argparse
import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence import per_thousand, table
from health_bank import OF_THE_HOST, BankRun, alarms, gone_wrong, runs

from launcher.health import keys
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import resolve
from launcher.runs.watch.steps import steps

Flags = dict[Level, list[tuple[int, str]]]
LOST, NOTHING, HALF = 0.1, 0.05, 0.5


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def harmful(run: BankRun) -> bool:
    """Whether the planted fault did harm, by the metrics alone."""

    def last(key: str, count: int) -> list[float]:
        return [data[key] for _, _, data in run.steps[-count:] if key in data]

    before = [data["critic/score/mean"] for _, _, data in run.before[-20:] if "critic/score/mean" in data]
    start = mean(before or [data.get("critic/score/mean", 0.0) for _, _, data in run.steps[:5]])
    limit = run.config.get("data.max_response_length") or math.inf
    reached = max(last("response_length/max", 5), default=0.0) >= limit
    flat = [
        high - low < 1e-9 for high, low in zip(last("critic/score/max", 10), last("critic/score/min", 10), strict=True)
    ]
    score = mean(last("critic/score/mean", 5))
    cut = reached and mean(last("response_length/clip_ratio", 5)) >= HALF
    return score < start - LOST or score < NOTHING or cut or sum(flat) >= HALF * len(flat) > 0


def bank_rows(name: str, found: Sequence[BankRun]) -> list[list[object]]:
    healthy = [run for run in found if not run.fault and not gone_wrong(run)]
    faulty = [run for run in found if run.fault]
    bad = [run for run in faulty if harmful(run)]
    flags = [alarms(run) for run in healthy]
    first = {run.name: alarms(run) for run in faulty}
    delays = [first[run.name][Level.WARN][0][0] - run.planted - 1 for run in bad if first[run.name][Level.WARN]]
    missed = [run.name for run in bad if not first[run.name][Level.WARN]]
    return [
        rate_row(name, sum(len(run.steps) for run in healthy), flags),
        [f"{name}: all planted", f"{sum(bool(flag[Level.WARN]) for flag in first.values())} of {len(faulty)}", "", ""],
        [f"{name}: harmful", f"{len(delays)} of {len(bad)}", delay(delays), ", ".join(missed) or "–"],
    ]


def delay(delays: Sequence[int]) -> str:
    return f"median {statistics.median(delays):g}, within ten {sum(d <= 10 for d in delays)}" if delays else "–"


def rate_row(name: str, steps: int, flags: Sequence[Flags]) -> list[object]:
    critical = Counter(rule for flag in flags for _, rule in flag[Level.CRITICAL])
    warn = Counter(rule for flag in flags for _, rule in flag[Level.WARN])
    return [
        f"{name}: {steps} healthy steps",
        f"CRITICAL {per_thousand(critical.total(), steps)}",
        f"WARN or worse {per_thousand(warn.total(), steps)}",
        ", ".join(f"{rule} ×{count}" for rule, count in warn.most_common()) or "–",
    ]


@dataclass(frozen=True)
class PublicRun:
    """A stranger's log: its verdict, the number of training steps, and each rise to WARN or above."""

    verdict: str
    broken_from: int | None
    steps: int
    alarms: list[LevelChange]


def public_runs(folder: Path) -> list[PublicRun]:
    """The logs of a folder, without speed and memory, because the machine is unknown."""
    found = []
    for line in (folder / "judgement.jsonl").read_text().splitlines():
        said = json.loads(line)
        source = resolve(str(folder / said["file"]))
        result = judged(source, [])
        alarms = [
            each for each in result.changes if each.rose and each.after >= Level.WARN and each.rule not in OF_THE_HOST
        ]
        trained = sum(any(map(keys.is_training, record.data)) for _, record in steps(source))
        found.append(PublicRun(said["verdict"], said.get("broken_from"), trained, alarms))
    return found


def public_rows(folder: Path) -> list[list[object]]:
    found = public_runs(folder)
    healthy = [run for run in found if run.verdict == "healthy"]
    flags: list[Flags] = [
        {
            least: [(each.step, each.rule) for each in run.alarms if each.after >= least]
            for least in (Level.WARN, Level.CRITICAL)
        }
        for run in healthy
    ]
    broken = [run for run in found if run.verdict == "broken"]
    late = [run.alarms[0].step - (run.broken_from or 0) for run in broken if run.alarms]
    return [
        rate_row("public", sum(run.steps for run in healthy), flags),
        ["public: broken", f"{len(late)} of {len(broken)}", f"to the verdict: {delay(late)}", ""],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the error rates of the health rules.")
    parser.add_argument("--unseen", action="store_true", help="the other half of the bank")
    parser.add_argument("--public", type=Path, help="a folder of public logs")
    asked = parser.parse_args()
    rows = bank_rows("unseen", runs("unseen")) if asked.unseen else bank_rows("calibration", runs("calibration"))
    rows += bank_rows("GPU", runs("gpu"))
    rows += public_rows(asked.public) if asked.public else []
    print("\n".join(table(("set", "CRITICAL, or found", "WARN or worse, or delay", "rules, or missed"), rows)))


if __name__ == "__main__":
    main()
