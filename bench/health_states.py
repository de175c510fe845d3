"""Writes the judgements of the health rules on all recorded runs in tests/data, to compare two versions of the rules.

    .venv/bin/python bench/health_states.py before.jsonl     # then change the rules
    .venv/bin/python bench/health_states.py after.jsonl && cmp before.jsonl after.jsonl

One line per run and `health:` preset: every change of a level, and all checks after every 20th step and at the end.
"""

import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from health_bank import HOST_GB, ROOT, runs

from launcher.core.errors import UserError
from launcher.health.checklist import Checklist
from launcher.health.settings import FACTORS
from launcher.record.events import LevelChange
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.source import resolve

DATA = ROOT / "tests" / "data"
EVERY = 20  # steps


def bank(preset: str) -> Iterator[dict[str, Any]]:
    """The runs of the bank, step by step."""
    for half in ("calibration", "unseen", "gpu"):
        for run in runs(half):
            judge = Checklist(
                run.config, {"preset": preset}, host_total_gb=HOST_GB, vocabulary=run.vocabulary, clock=False
            )
            changes, states = [], []
            for count, (number, t, data) in enumerate(run.known):
                changes += judge.step(number, data, t=t)
                if count % EVERY == 0:
                    states.append(checks(judge))
            yield {"run": run.name, "preset": preset, "changes": listed(changes), "states": [*states, checks(judge)]}


def logs(folder: Path) -> Iterator[dict[str, Any]]:
    """The logs and the run directories, in the form that `ppo-tui health` reads."""
    for name in ("gpu/runs.tar.xz", "runs-0.1.tar.xz"):
        with tarfile.open(DATA / name) as archive:
            archive.extractall(folder / Path(name).parent, filter="data")
    found = [*DATA.glob("logs/*.gz"), *DATA.glob("failures/*.gz"), *(path.parent for path in folder.rglob("run.yaml"))]
    for path in sorted(found, key=lambda path: path.name):
        for config in ([], ["gpu_total_gb=80", "host_total_gb=256"]):
            try:
                result = judged(resolve(str(path)), config)
            except UserError as error:
                yield {"run": path.name, "error": str(error).replace(str(folder), "")}
                continue
            yield {
                "run": path.name,
                "config": config,
                "changes": listed(result.changes),
                "states": [checks(result.checklist)],
            }


def checks(judge: Checklist) -> list[Any]:
    return [judge.sentence(), [check.to_json() for check in judge.checks()]]


def listed(changes: Sequence[LevelChange]) -> list[list[Any]]:
    return [[change.step, change.rule, str(change.before), str(change.after), change.message] for change in changes]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Path(sys.argv[1]).open("wb") as out:
        for preset in FACTORS:
            for line in bank(preset):
                out.write(orjson.dumps(line) + b"\n")
        for line in logs(Path(folder)):
            out.write(orjson.dumps(line) + b"\n")


if __name__ == "__main__":
    main()
