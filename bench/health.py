"""Measures the health rules: false alarms on healthy runs, delay on injected faults, cost of a step.

.venv/bin/python bench/health.py [--write]

`--write` puts the cost and the faults into docs/evidence/health.md. About a minute on one core.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from health_faults import FAULTS, Fault, Step
from health_runs import GPU_GB, HOST_GB, REAL, STRETCH, Run, noisy, real, stretched

from launcher.health.checklist import Checklist
from launcher.health.settings import FACTORS
from launcher.record.levels import Level

DOCUMENT = Path(__file__).parents[1] / "docs" / "evidence" / "health.md"
MARKS = ("<!-- tables -->", "<!-- end of tables -->")
SEEDS = range(1, 6)
WITHIN = 10  # steps


def checklist(run: Run, preset: str = "default") -> Checklist:
    return Checklist(run.config, {"preset": preset}, gpu_total_gb=GPU_GB, host_total_gb=HOST_GB, clock=False)


def onsets(run: Run, preset: str = "default") -> Counter[tuple[Level, str]]:
    """The flags of a run, each by its highest level and its rule."""
    judge, peaks, on = checklist(run, preset), Counter[tuple[Level, str]](), dict[str, Level]()
    for number, step in enumerate(run.steps, start=1):
        for change in judge.step(number, step):
            if change.after > Level.OK:
                on[change.rule] = max(change.after, on.get(change.rule, Level.OK))
            elif change.rule in on:
                peaks[on.pop(change.rule), change.rule] += 1
    for rule, level in on.items():
        peaks[level, rule] += 1
    return peaks


def delay(run: Run, fault: Fault, place: int, preset: str = "default") -> tuple[int | None, int | None] | None:
    """Steps from the first faulty one until a rule is at WARN, and until it is at CRITICAL.

    None if this is undefined: the fault does not fit the run, or one of its rules is already raised.
    """
    start = {**run.steps[place - 1], "limit": float(run.limit)}
    judge = checklist(run, preset)
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


def without(step: Step, key: str) -> Step:
    return {name: value for name, value in step.items() if name != key}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def rate(count: int, steps: int) -> str:
    return f"{count} ({1000 * count / steps:.1f})" if steps else "–"


def alarm_row(name: str, runs: Sequence[Run], preset: str = "default") -> list[object]:
    steps, peaks = sum(len(run.steps) for run in runs), Counter[tuple[Level, str]]()
    for run in runs:
        peaks += onsets(run, preset)
    per_level = [sum(n for (level, _), n in peaks.items() if level == wanted) for wanted in reversed(Level)][:3]
    critical, warn, notice = per_level
    named = ", ".join(f"{rule} {level} ×{n}" for (level, rule), n in sorted(peaks.items(), reverse=True)) or "–"
    return [name, steps, rate(critical, steps), rate(warn + critical, steps), rate(notice, steps), named]


HEAD = ("runs", "steps", "CRITICAL", "WARN or worse", "NOTICE", "rules")


def false_alarms(generated: dict[str, list[Run]]) -> list[str]:
    rows = [alarm_row(f"{name}, as it was", [real(name)]) for name in REAL]
    gpu = [name for name in REAL if name != "cpu-toy"]
    rows.append(alarm_row("**the three GPU runs, as they were**", [real(name) for name in gpu]))
    rows += [alarm_row(f"{name} ×{STRETCH[name]}, {len(SEEDS)} seeds", runs) for name, runs in generated.items()]
    long = [run for name in gpu for run in generated[name]]
    rows.append(alarm_row("**the GPU runs, stretched**", long))
    blind = [replace(run, steps=[without(step, "critic/vf_explained_var") for step in run.steps]) for run in long]
    rows.append(alarm_row("the same without explained variance", blind))
    for level in (1.0, 2.0, 4.0):
        rows.append(alarm_row(f"that with extra noise {level:g}", [noisy(run, level, 1) for run in blind]))
    return ["### Flags on healthy runs", "", "Onsets, in brackets per 1,000 steps.", "", *table(HEAD, rows)]


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


def presets(bases: Sequence[Run], generated: dict[str, list[Run]]) -> list[str]:
    runs = [run for name, found in generated.items() if name != "cpu-toy" for run in found]
    rows = []
    for preset, k in FACTORS.items():
        delays = [
            found[0]
            for fault in FAULTS
            if fault.critical
            for run in bases
            for place in places(run)[1:2]
            if (found := delay(run, fault, place, preset)) is not None
        ]
        quick = sum(warn is not None and warn <= WITHIN for warn in delays)
        rows.append([preset, k, *alarm_row("", runs, preset)[1:5], f"{quick} of {len(delays)}"])
    head = ("preset", "k", *HEAD[1:5], f"critical faults in {WITHIN} steps (one place a run)")
    return ["### Presets", "", *table(head, rows)]


def cost() -> list[str]:
    """CPU time of a step after the warm-up of the rules."""
    run = stretched("learning", 40, 1)
    judge = Checklist(run.config, gpu_total_gb=GPU_GB, host_total_gb=HOST_GB)
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
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    write = parser.parse_args().write
    generated = {name: [stretched(name, factor, seed) for seed in SEEDS] for name, factor in STRETCH.items()}
    bases = [real("cpu-toy"), *(runs[0] for runs in generated.values())]
    text = "\n".join([*cost(), *detection(bases)])
    print("\n".join([text, *false_alarms(generated), *presets(bases, generated)]))
    if write:
        before, _, rest = DOCUMENT.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        DOCUMENT.write_text(f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
