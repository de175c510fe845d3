"""Feeds the same logs to ppo-tui and to other programs that judge training runs.

.venv/bin/python bench/rivals.py [--scratch FOLDER] [--write]

The others are installed from the package index into a scratch environment and run with their defaults; their code is
not stored here. The logs: the unseen half and the GPU runs of tests/data/bank, and all other recorded runs of
tests/data; none is left out. `--write` puts the tables into docs/evidence/health.md.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from health_bank import DOCUMENT, OF_THE_HOST, ROOT, BankRun, interval, raised, runs, table
from health_runs import LOGS

from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.source import resolve

MARKS = ("<!-- rivals -->", "<!-- end of rivals -->")
PACKAGES = {"rl-doctor": "rl-doctor", "rlwatch": "rlwatch[monitoring]", "runmedic": "runmedic"}
LEVELS = {"warning": Level.WARN, "critical": Level.CRITICAL}
SPEED = OF_THE_HOST | {"input_bound", "slow_steps", "slowdown", "memory_growth"}  # runs of the bank share a machine

LOGGED = {  # rlwatch's way for any loop, `log_step`; its own names for veRL's metrics are those of another veRL
    "entropy": ("actor/entropy",),
    "kl_divergence": ("actor/kl_loss", "actor/reward_kl_penalty"),
    "reward_mean": ("critic/score/mean",),
    "loss": ("actor/pg_loss",),
    "learning_rate": ("actor/lr",),
    "clip_fraction": ("actor/pg_clipfrac",),
    "grad_norm": ("actor/grad_norm",),
}
WATCH = """
import json, sys, rlwatch
from rlwatch.integrations.verl_tracking import RLWatchVerLTracker
for line in sys.stdin:
    monitor, found = rlwatch.attach(framework="manual"), []
    log = monitor.log_step
    monitor.log_step = lambda step, **values: found.extend(log(step, **values))
    tracker = RLWatchVerLTracker(monitor)
    for step, data, named in json.loads(line):
        tracker.log(data, step) if sys.argv[1] == "tracker" else monitor.log_step(step, **named)
    said = [dict(severity=each.severity, step=each.step, check=each.detector, title=each.message) for each in found]
    print(json.dumps(said))
"""
TRUTH = {  # recorded runs that are not healthy (docs/evidence/health.md, docs/evidence/gpus.md)
    "nan": "NaN gradients in step 1",
    "kl-blowup": "learning rate 1e-4",
    "07dc01": "learning rate 1e-4",
    "d3d9b9": "learning rate 2e-5, entropy 2.3 to 0.1",
    "6d93da": "random weights, no reward ever",
    "dfd502": "random weights, the tokenizer of another model",
}


@dataclass(frozen=True)
class Said:
    """A new judgement at WARN or above; `what` is the rule or check, `words` the program's own sentence."""

    level: Level
    step: int
    what: str
    words: str


Tool = Callable[[Sequence[BankRun]], list[list[Said]]]
"""The judgements of a program on each run."""


def recorded(scratch: Path) -> Iterator[BankRun]:
    """The runs of tests/data/logs, and those of tests/data/gpu that are not in the bank."""
    for path in sorted(LOGS.glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        yield _recorded(f"log {name}", path, f"data.max_response_length={8 if name == 'cpu-toy' else 256}")
    with tarfile.open(ROOT / "tests/data/gpu/runs.tar.xz") as archive:
        archive.extractall(scratch, filter="data")
    for start in ("07dc01", "674db1", "6d93da", "a58df9", "d3d9b9", "dfd502"):
        yield _recorded(f"H200 {start}", next((scratch / "runs").glob(f"{start}*")))


def _recorded(name: str, path: Path, *config: str) -> BankRun:
    result = judged(resolve(str(path)), config)
    steps = [(step.step, step.t, step.data) for step in result.in_order if step.step > 0]
    return BankRun(name, TRUTH.get(name.split()[1], ""), "", dict(result.keys), 49152, steps)


def ours(about: Sequence[BankRun]) -> list[list[Said]]:
    return [
        [Said(rise.after, rise.step, rise.rule, rise.message) for rise in raised(run) if rise.after >= Level.WARN]
        for run in about
    ]


def rlwatch(python: Path, how: str, about: Sequence[BankRun]) -> list[list[Said]]:
    """Feeds rlwatch through `log_step` with the metrics that it needs (`how`: named), or through its own adapter for
    veRL (tracker).
    """
    lines = []
    for run in about:
        steps = []
        for step, _, data in run.known:
            named = {name: next((data[key] for key in keys if key in data), None) for name, keys in LOGGED.items()}
            steps.append([step, data, {name: value for name, value in named.items() if value is not None}])
        lines.append(json.dumps(steps))
    with tempfile.TemporaryDirectory() as folder:  # it writes a data base into its working directory
        done = subprocess.run(
            [python, "-c", WATCH, how], input="\n".join(lines), capture_output=True, text=True, check=True, cwd=folder
        )
    return [_said(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[{") or line == "[]"]


def runmedic(python: Path, about: Sequence[BankRun]) -> list[list[Said]]:
    """Feeds runmedic by `runmedic diagnose FILE.jsonl --json`; one line per step, one column per metric."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for run in about:
            file = Path(folder) / "metrics.jsonl"
            file.write_text("\n".join(json.dumps({"step": step, **data}) for step, _, data in run.known))
            asked = [python, "-m", "runmedic", "diagnose", file, "--json"]
            answer = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
            runs_read = answer if isinstance(answer, list) else [answer]
            answers.append(_said([finding for run_read in runs_read for finding in run_read["findings"]]))
    return answers


def _said(findings: Sequence[dict[str, object]]) -> list[Said]:
    """A finding without a step is about the last one: -1."""
    said = []
    for finding in findings:
        if (level := LEVELS.get(str(finding["severity"]))) is not None:
            step = -1 if finding["step"] is None else int(float(str(finding["step"])))
            said.append(Said(level, step, str(finding["check"]), str(finding["title"])))
    return sorted(said, key=lambda one: (one.step < 0, one.step))


def installed(scratch: Path) -> tuple[dict[str, Tool], list[str]]:
    """The other programs, and a sentence about each that cannot be installed."""
    python = scratch / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    tools, missing = dict[str, Tool](), []
    ways: dict[str, dict[str, Tool]] = {
        "rlwatch": {"": partial(rlwatch, python, "named"), " (own adapter)": partial(rlwatch, python, "tracker")},
        "runmedic": {"": partial(runmedic, python)},
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for name, package in PACKAGES.items():
        pip = [python, "-m", "pip"]
        done = subprocess.run([*pip, "install", "-q", package], capture_output=True, text=True, env=environment)
        if done.returncode:
            why = [line for line in done.stderr.splitlines() if line.startswith("ERROR")][-1:]
            missing.append(f"{name} cannot be installed here: `{''.join(why).removeprefix('ERROR: ')}`.")
            continue
        shown = subprocess.run([*pip, "show", name], capture_output=True, text=True, check=True, env=environment).stdout
        version = re.search(r"^Version: (.+)$", shown, re.M)
        for way, tool in ways.get(name, {}).items():
            tools[f"{name} {version[1] if version else ''}{way}"] = tool
    return tools, missing


def of_the_run(said: Said, run: BankRun) -> bool:
    """The judgements without those about the parent's steps before the fork, which every program has read."""
    return said.step < 0 or not run.before or said.step > run.planted


def cell(said: Sequence[Said]) -> str:
    """A program's result on a run: each check with the first step of each of its levels, if it has one."""
    first = dict[str, dict[Level, str]]()
    for each in said:
        first.setdefault(each.what, {}).setdefault(each.level, "" if each.step < 0 else f" {each.step}")
    shown = (f"{what} " + ", ".join(f"{level.name}{step}" for level, step in at.items()) for what, at in first.items())
    return "<br>".join(shown) or "–"


def totals(answers: dict[str, dict[str, list[Said]]], about: Sequence[BankRun]) -> list[str]:
    """False alarms, faults found, and when."""
    rows = []
    steps = sum(len(run.steps) for run in about if not run.fault)
    for tool, said in answers.items():
        alarms = [said[run.name] for run in about if not run.fault]
        faulty = [run for run in about if run.fault]
        faults = [said[run.name] for run in faulty]
        found = [each[0].step - run.planted for run, each in zip(faulty, faults, strict=True) if each]
        low, high = interval(len(found), len(faults))
        when = [step for step in found if step >= 0]
        rows.append(
            [
                tool,
                f"{sum(map(bool, alarms))} of {len(alarms)}",
                f"{sum(map(len, alarms))} ({1000 * sum(map(len, alarms)) / steps:.1f})",
                f"{len(found)} of {len(faults)} ({100 * low:.0f} to {100 * high:.0f} %)",
                f"{statistics.median(when):g}" if when else "–",
            ]
        )
    head = ("program", "healthy runs with an alarm", "alarms (per 1,000 steps)", "faulty runs found", "median delay")
    return table(head, rows)


def rules(answers: dict[str, dict[str, list[Said]]], about: Sequence[BankRun]) -> list[str]:
    """By program and check: the number of healthy and faulty runs with an alarm, and one of its sentences."""
    rows = []
    for tool, said in answers.items():
        counts = Counter((bool(run.fault), what) for run in about for what in {each.what for each in said[run.name]})
        words = {each.what: each.words for run in about for each in said[run.name]}
        for what in sorted(words):
            sentence = " ".join(words[what].split()).replace("|", "\\|")
            rows.append([tool, what, counts[False, what], counts[True, what], sentence])
    return table(("program", "check", "healthy runs", "faulty runs", "its words, once"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares the health rules with other programs on the same logs.")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "ppo-tui-rivals")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    asked = parser.parse_args()
    asked.scratch.mkdir(exist_ok=True)
    others, missing = installed(asked.scratch)
    about = [*runs("unseen"), *runs("gpu"), *recorded(asked.scratch)]
    tools: dict[str, Tool] = {"ppo-tui": ours, **others}
    answers = {
        name: {
            run.name: [each for each in said if each.what not in SPEED and of_the_run(each, run)]
            for run, said in zip(about, tool(about), strict=True)
        }
        for name, tool in tools.items()
    }
    unseen = [run for run in about if not run.name.startswith(("log ", "H200 ", "gpu "))]
    lines = [*missing, "", "The unseen half of the bank:", "", *totals(answers, unseen)]
    lines += ["All runs:", "", *totals(answers, about), *rules(answers, about)]
    text = "\n".join(lines)
    print(text)
    for healthy, group in groupby(sorted(about, key=lambda run: bool(run.fault)), key=lambda run: not run.fault):
        rows = [
            [run.name, *([] if healthy else [f"{run.fault} {run.strength}".strip()]), len(run.steps)]
            + [cell(answers[name][run.name]) for name in tools]
            for run in group
        ]
        head = ("run", *(() if healthy else ("fault",)), "steps", *tools)
        print("\n".join([f"#### {'Healthy' if healthy else 'Faulty'} runs", "", *table(head, rows)]))  # not on the page
    if asked.write:
        before, _, rest = DOCUMENT.read_text().partition(MARKS[0])
        DOCUMENT.write_text(f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


if __name__ == "__main__":
    main()
