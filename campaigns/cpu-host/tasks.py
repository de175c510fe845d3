"""tasks.py FOLDER [NAME ...]: other tasks for the toy's model, each a folder as `ppo-tui data toy` makes it.

They differ from the toy's sums in the question, the right answer, and how often the warm-up model gives it.
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from launcher.inside.ppo_tui_inside.probes import toy_task as toy


class Task(NamedTuple):
    """`right` and `habit`: shares of the right answer and of the habitual mistake after the warm-up."""

    question: Callable[[int, int], str]
    total: Callable[[int, int], int]
    right: float = toy.RIGHT
    habit: float = toy.HABIT
    solvable: bool = True  # else the expected answers are drawn, and no policy can know them


def _added(a: int, b: int) -> str:
    return f"What is {a} + {b}?"


TASKS = {
    "hard": Task(_added, lambda a, b: a + b, right=0.08, habit=0.6),
    "unlearnable": Task(_added, lambda a, b: a + b, solvable=False),
    "copy": Task(lambda a, b: f"Copy {a} {b} as one number.", lambda a, b: 10 * a + b, right=0.6, habit=0.2),
    "sort": Task(lambda a, b: f"Sort the digits of {a}{b}.", lambda a, b: 10 * min(a, b) + max(a, b)),
    "count": Task(lambda a, b: f"How many x are in {'x' * a}{'y' * b}?", lambda a, b: a),
}


def make(folder: Path, name: str) -> None:
    task = TASKS[name]
    toy._question, toy._total = task.question, task.total
    toy.RIGHT, toy.HABIT = task.right, task.habit
    toy.build(folder / name, progress=lambda line: print(f"{name}: {line}", flush=True))
    if not task.solvable:
        for path in (folder / name / "data").glob("*.parquet"):
            _draw_answers(path)


def _draw_answers(path: Path) -> None:
    table, rng = pq.read_table(path), random.Random(0)
    rows = table.to_pylist()
    answers = [row["reward_model"]["ground_truth"] for row in rows]
    for row in rows:
        row["reward_model"]["ground_truth"] = rng.choice(answers)
    pq.write_table(table.from_pylist(rows, schema=table.schema), path)


def main() -> None:
    for name in sys.argv[2:] or TASKS:
        make(Path(sys.argv[1]), name)


if __name__ == "__main__":
    main()
