"""The tables of docs/evidence/gpus.md, from the results of run.sh.

PYTHONPATH=tests/support python tests/gpu/report.py RESULTS
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from campaign import GROUPS, SHIPPED, SHORT
from experiments import HOST
from tuned import COURSE

GIB = 2**30
COMMON = {*HOST, *SHORT, *SHIPPED, *GROUPS}
WATCHING = (
    "steps of",
    "watched",
    "alone",
    "tok/s watched",
    "alone",
    "steps differ by",
    "difference",
    "95 % interval",
    "a core's CPU: supervisor, screen",
)

KILLED = ("run", "killed", "at step", "failed after", "cause", "adopted or retried", "GPU MiB, processes left")
HUNG = ("run", "hang", "reason", "title", "noticed after", "moved again", "stop", "GPU MiB, processes left")
TUNED = ("run", "settings", "tok/s", "peak GiB", "end")
SLOW = ("run", "s/step", "advice", "share", "proof: before, after", "saved (interval)", "side by side")


def main(folder: Path) -> None:
    files = sorted(folder.glob("*.json"))
    results = [found for path in files if isinstance(found := json.loads(path.read_text()), dict)]
    runs = [result for result in results if "preset" in result]
    print("## Runs\n")
    head = ("run", "preset and what differs", "GPUs", "first step", "s/step", "tok/s", "steps", "end", "cause")
    table(head, map(_run, runs))
    print("\n## Flags\n")
    table(("run", "first flags: step, rule, level"), map(_flags, runs))
    print("\n## Memory: estimate and measured peak, GiB\n")
    table(("run", "estimate by phase", "most held by phase (NVML)", "veRL's own"), map(_memory, runs))
    print("\n## Stop\n")
    table(
        ("run", "stop", "GPU free after", "MiB before, during, after", "processes during, after"),
        (_stop(run) for run in runs if "stop_seconds" in run),
    )
    print("\n## What watching costs\n")
    measured = [each for each in results if "watching" in each and all(each["watching"]["rates"].values())]
    table(WATCHING, map(watching, measured))
    print("\n## Killed on purpose\n")
    table(KILLED, (_killed(run) for run in runs if "killed" in run))
    print("\n## Tried\n")
    table(("run", "seconds", "what came of it"), (_tried(run) for run in runs if "try" in run))
    print("\n## Hung on purpose\n")
    table(HUNG, chain.from_iterable(_hung(run) for run in runs if "hung" in run))
    print("\n## Slow on purpose\n")
    table(SLOW, (_slow(run) for run in runs if "time" in run))
    print("\n## Tuned\n")
    tuned = [run for run in runs if run["name"].startswith(("grid-", "tuned-"))]
    table(
        TUNED,
        chain(*(map(_probe, each["tune"].get("probes", ())) for each in results if "tune" in each), map(_point, tuned)),
    )
    print("\n## Queue\n")
    queued = [run for run in runs if {"waited", "skipped", "not_reached"} & run.keys()]
    table(("run", "GPUs", "begun", "ended", "skipped"), map(_queued, queued))
    print("\n" + "; ".join([*gaps(queued), *idle(queued, folder / "memory.csv")]))
    for run in runs:
        if "resume" in run:
            print(f"\n## Resume ({run['name']})\n\n{_resume(run['resume'])}")


def _probe(probe: dict[str, Any]) -> Sequence[object]:
    speed = probe["tokens_per_second"]
    return probe["run"], "of `tune`", speed and round(speed), round((probe["peak"] or 0) / GIB, 1), probe["failed"]


def _point(run: dict[str, Any]) -> Sequence[object]:
    figures = run.get("figures", {})
    settings = " ".join(each for each in run["settings"] if each not in COURSE)
    most = max(figures.get("peaks", {}).values(), default=None)
    return run["name"], settings, figures.get("tokens_per_second"), most, run.get("diagnosis", {}).get("cause")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a Markdown table."""
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join("–" if cell in (None, "") else str(cell) for cell in row) + " |")


def _run(run: dict[str, Any]) -> tuple[object, ...]:
    found, state = run.get("figures", {}), run.get("state", {})
    own = ", ".join(setting for setting in run["settings"] if setting not in COMMON and "/" not in setting)
    end = state.get("state", f"exit {run.get('exit')}")
    first = found.get("first_step_seconds")
    return (
        run["name"],
        f"{run['preset']}: {own}",
        ",".join(map(str, run["gpus"])),
        f"{first} s" if first else None,
        found.get("seconds_per_step"),
        found.get("tokens_per_second"),
        found.get("last_step"),
        end,
        run.get("diagnosis", {}).get("cause"),
    )


def _flags(run: dict[str, Any]) -> tuple[object, ...]:
    flags = run.get("figures", {}).get("flags", [])
    return run["name"], "; ".join(f"{flag['step']} {flag['rule']} {flag['to']}" for flag in flags[:8])


def _memory(run: dict[str, Any]) -> tuple[object, ...]:
    estimate = (run.get("check", {}).get("memory") or {}).get("phases", [])
    words = ", ".join(f"{phase['name']} {phase['gpu'] / GIB:.1f}–{phase['gpu_high'] / GIB:.1f}" for phase in estimate)
    found = run.get("figures", {})
    peaks = ", ".join(f"{name} {value}" for name, value in found.get("peaks", {}).items())
    own = found.get("verl_peaks", {})
    return run["name"], words, peaks, ", ".join(f"{name} {value}" for name, value in own.items())


def _stop(run: dict[str, Any]) -> tuple[object, ...]:
    memory = f"{run.get('memory_before')} {run.get('memory_during')} {run.get('memory_after')}"
    counts = f"{len(run.get('processes_during', []))}, {len(run.get('processes_after', []))}"
    return run["name"], f"{run['stop_seconds']} s", f"{run['memory_free_seconds']} s", memory, counts


def watching(result: dict[str, Any]) -> tuple[object, ...]:
    """A row of WATCHING: what steps got done with a supervisor and a screen, and with both standing still."""
    found = result["watching"]
    with_them, alone = found["rates"]["watched"], found["rates"]["alone"]
    rates = [list(chain(*blocks)) for blocks in (with_them, alone)]
    ours, others = map(statistics.fmean, rates)
    low, high = interval(with_them, alone)
    return (
        result["name"],
        *map(len, rates),
        f"{ours:,.0f}",
        f"{others:,.0f}",
        f"{100 * statistics.stdev(rates[1]) / others:.1f} %",
        f"{100 * (ours / others - 1):+.2f} %",
        f"{low:+.2f} to {high:+.2f} %",
        f"{found['supervisor_cpu_percent']} %, {found['screen_cpu_percent']} %",
    )


def interval(ours: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Bootstrap interval of the difference of the means, in per cent.

    Blocks are drawn, not steps, as neighbours resemble each other.
    """
    draw = random.Random(0)

    def mean(blocks: Sequence[Sequence[float]]) -> float:
        return statistics.fmean(chain(*draw.choices(blocks, k=len(blocks))))

    ratios = sorted(mean(ours) / mean(others) for _ in range(4000))
    return 100 * (ratios[100] - 1), 100 * (ratios[3899] - 1)


def _killed(run: dict[str, Any]) -> tuple[object, ...]:
    """A row of KILLED."""
    found = run["killed"]
    retried = found.get("retried")
    again = f"attempt {retried['attempt']}, step {retried['step']} after {retried['seconds']} s" if retried else None
    if "adopted_after" in found:
        again = f"adopted after {found['adopted_after']} s; every step once: {found.get('every_step_once')}"
    failed = found.get("failed_after")
    left = f"{found.get('memory_after')}, {len(found['processes_after'])}" if "processes_after" in found else None
    return run["name"], found["what"], found["step"], failed and f"{failed} s", found.get("cause"), again, left


def _tried(run: dict[str, Any]) -> tuple[object, ...]:
    told = run["try"]["told"]
    arms = [arm for each in (told if isinstance(told, list) else [told]) for arm in each.get("trials", [])]
    words = [
        f"{' '.join(arm['changes']) or 'control run'}: {arm['verdict']} at {arm['step']}/{arm['planned']}"
        for arm in arms
    ]
    return run["name"], run["try"]["seconds"], "; ".join(words)


def _hung(run: dict[str, Any]) -> Iterable[tuple[object, ...]]:
    """Rows of HUNG. `noticed` and `planted` are unix seconds of the same host."""
    for found in run["hung"]:
        why, moved = found.get("standstill") or {}, found.get("moved", {})
        after = round(why["noticed"] - found["planted"], 1) if why else None
        again = f"step {moved['step']} after {moved['seconds']} s" if moved else None
        left = None if moved else f"{run.get('memory_after')}, {len(run.get('processes_after', []))}"
        stop = None if moved else f"{run.get('stop_seconds')} s"
        yield run["name"], found["kind"], why.get("reason"), why.get("title"), after, again, stop, left


def _slow(run: dict[str, Any]) -> tuple[object, ...]:
    """A row of SLOW."""
    advice = next(iter(run["time"].get("advice") or ()), {})
    proof = next(iter(run.get("faster", {}).get("told", [])), {})
    words = f"{advice['share']:.2f}" if advice else None
    gained = f"{proof['saved']:.2f} ({proof['low']:.2f} to {proof['high']:.2f})" if proof else None
    pair = f"{proof['before']:.2f}, {proof['after']:.2f}" if proof else None
    pace = run.get("figures", {}).get("seconds_per_step")
    return run["name"], pace, advice.get("setting"), words, pair, gained, run.get("faster", {}).get("seconds")


def idle(runs: Sequence[dict[str, Any]], watched: Path) -> list[str]:
    """For each GPU, the seconds from its last use (1 GiB, four times a second) to the next launch of the queue."""
    used: dict[int, list[float]] = {}
    for line in watched.read_text().splitlines() if watched.exists() else []:
        words = line.split(", ")
        if len(words) == 4 and int(words[2]) >= 1024:
            whole, _, part = words[0].partition(".")
            at = time.mktime(time.strptime(whole, "%Y/%m/%d %H:%M:%S")) + float(f"0.{part or 0}")
            used.setdefault(int(words[1]), []).append(at)
    found = []
    for gpu in sorted({gpu for run in runs for gpu in run["gpus"]}):
        launched = sorted(run["launched"] for run in runs if "launched" in run and gpu in run["gpus"])
        times = used.get(gpu, [])
        between = [
            round(now - max(before, *(at for at in times if at < now), before), 1) for before, now in pairwise(launched)
        ]
        found.append(f"GPU {gpu}: seconds from its last use to the next launch {between}")
    return found


def _queued(run: dict[str, Any]) -> tuple[object, ...]:
    begun = run["begun"] + run["waited"] if "waited" in run else None
    skipped = run.get("skipped") or ("not reached" if "not_reached" in run else None)
    return run["name"], ",".join(map(str, run["gpus"])), begun, run.get("ended"), skipped


def gaps(runs: Sequence[dict[str, Any]]) -> list[str]:
    """For each GPU, the seconds between the end of a queued run and the start of the next one."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for run in runs:
        for gpu in run["gpus"] if "waited" in run and "ended" in run else ():
            spans.setdefault(gpu, []).append((run["begun"] + run["waited"], run["ended"]))
    found = []
    for gpu, each in sorted(spans.items()):
        each.sort()
        between = [begun - ended for (_, ended), (begun, _) in pairwise(each)]
        found.append(f"GPU {gpu}: {len(each)} runs, seconds between them {between}")
    return found


def _resume(found: dict[str, Any]) -> str:
    figures = found.get("figures", {})
    said = (found["said"].strip().splitlines() or [""])[-1]
    return (
        f"Stopped after step {found['stopped_at']}; `{said}`. "
        f"State {found.get('state')} at step {found.get('step')}; first step of the new attempt after "
        f"{figures.get('first_step_seconds')} s."
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
