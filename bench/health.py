"""Measures the health rules: delay on injected faults, cost of a step.

.venv/bin/python bench/health.py [--write]

`--write` puts both into docs/evidence/health.md. About a minute on one core.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from evidence import table, write
from health_faults import FAULTS, Fault, Step
from health_runs import GPU_GB, HOST_GB, STRETCH, Run, real, stretched

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

WITHIN = 10  # steps


def checklist(run: Run, *, clock: bool = False) -> Checklist:
    return Checklist(run.config, gpu_total_gb=GPU_GB, host_total_gb=HOST_GB, clock=clock)


def delay(run: Run, fault: Fault, place: int) -> tuple[int | None, int | None] | None:
    """Steps from the first faulty one until a rule is at WARN, and until it is at CRITICAL.

    None if undefined: the fault does not fit the run, or one of its rules is already raised.
    """
    start = {**run.steps[place - 1], "limit": float(run.limit)}
    judge = checklist(run)
    for number in range(place):
        judge.step(number + 1, run.steps[number])
    if not fault.fits(start) or reached(judge, fault.rules) >= Level.WARN:
        return None
    found: dict[Level, int] = {}
    for n in range(min(len(run.steps) - place, 120 if fault.slow else 60)):
        step: Step = dict(run.steps[place + n])
        fault.change(step, n, start)
        judge.step(place + n + 1, step)
        for level in (Level.WARN, Level.CRITICAL):
            if level not in found and reached(judge, fault.rules) >= level:
                found[level] = n
    return found.get(Level.WARN), found.get(Level.CRITICAL)


def reached(judge: Checklist, rules: Sequence[str]) -> Level:
    return max(check.level for check in judge.checks() if check.rule in rules)


def places(run: Run) -> list[int]:
    """Three steps for a fault, late enough for the warm-up of the rules and early enough for the fault to show."""
    last = len(run.steps) - 25
    return [35, (35 + last) // 2, last]


def detection(bases: Sequence[Run]) -> list[str]:
    rows: list[list[object]] = []
    critical, quick = 0, 0
    for fault in FAULTS:
        results = [delay(run, fault, place) for run in bases for place in places(run)]
        judged = [result for result in results if result is not None]
        warned = [warn for warn, _ in judged if warn is not None]
        deadly = [found for _, found in judged if found is not None]
        if fault.critical:
            critical += len(judged)
            quick += sum(warn <= WITHIN for warn in warned)
        rows.append(
            [
                fault.name,
                " / ".join(fault.rules),
                f"{len(warned)}/{len(judged)}",
                len(results) - len(judged),
                f"{statistics.median(warned):g}" if warned else "–",
                max(warned) if warned else "–",
                f"{statistics.median(deadly):g}" if deadly else "–",
                "yes" if fault.critical else "",
            ]
        )
    head = ("fault", "rule", "found", "left out", "median delay", "worst", "CRITICAL in", "critical fault")
    share = (
        f"Critical faults at WARN or higher within {WITHIN} steps: **{quick} of {critical}** "
        f"({100 * quick / critical:.1f} %)."
    )
    return ["### Injected faults", "", *table(head, rows), share, ""]


def cost() -> list[str]:
    """CPU time per step after the warm-up of the rules."""
    run = stretched("learning", 40, 1)
    judge = checklist(run, clock=True)
    times = []
    for number, step in enumerate(run.steps, start=1):
        before = time.process_time()
        judge.step(number, step, t=15.0 * number)
        times.append(time.process_time() - before)
    late = sorted(times[200:])
    keys = round(statistics.mean(len(step) for step in run.steps))
    middle, slow = 1e3 * late[len(late) // 2], 1e3 * late[int(0.95 * len(late))]
    return [
        "### Cost",
        "",
        f"{middle:.2f} ms per step (median; 95 % below {slow:.2f} ms): {keys} keys, {len(judge.checks())} rules.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluates the health rules.")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/evidence/health.md")
    asked = parser.parse_args()
    bases = [real("cpu-toy"), *(stretched(name, factor, 1) for name, factor in STRETCH.items())]
    text = "\n".join([*cost(), *detection(bases)])
    print(text)
    if asked.write:
        write("health", "tables", text)


if __name__ == "__main__":
    main()
