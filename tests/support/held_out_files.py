"""The files that tests/data/preflight/held_out.yaml names below HELD: rows, reward functions, classes, tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SCORES = """
import functools
import numpy as np


def two(solution, truth):
    return 1.0


def dicts(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 1.0, "said": solution_str[:3], "acc": True}


def no_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"reward": 1.0}


async def waits(data_source, solution_str, ground_truth, extra_info=None, **kw):
    return 0.5


def nothing(data_source, solution_str, ground_truth, extra_info=None):
    print(solution_str)


def numpy32(data_source, solution_str, ground_truth, extra_info=None):
    return np.float32(0.5)


def pair(data_source, solution_str, ground_truth, extra_info=None):
    return [0.5, 1.0]


def truth(data_source, solution_str, ground_truth, extra_info=None):
    return ground_truth in solution_str


def uneven(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 1.0, "why": "right"} if ground_truth in solution_str else {"score": 0.0}


def keywords(*, data_source, solution_str, ground_truth, extra_info=None, weight=1.0):
    return weight


def first_word(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str.split()[0] == "x")


def text(data_source, solution_str, ground_truth, extra_info=None):
    return "0.5"


def _scaled(data_source, solution_str, ground_truth, extra_info=None, by=1.0):
    return by


partial = functools.partial(_scaled, by=0.5)


class Judge:
    def __call__(self, data_source, solution_str, ground_truth, extra_info=None):
        return 1.0


judge = Judge()


def index(data_source, solution_str, ground_truth, extra_info=None):
    return float(extra_info["index"] >= 0)


def difficulty(data_source, solution_str, ground_truth, extra_info=None):
    return float(extra_info["difficulty"])
"""
TEXTS = {
    "scores.py": SCORES,
    "needs_gpu.py": """
import torch
model = torch.zeros(1, device="cuda")


def score(data_source, solution_str, ground_truth, extra_info=None):
    return 1.0
""",
    "relative.py": "from .helpers import score\n",
    "rows_cls.py": """
from verl.utils.dataset.rl_dataset import RLHFDataset


class Good(RLHFDataset):
    def __getitem__(self, item):
        row = super().__getitem__(item)
        row["mine"] = 1
        return row


class NoInit(RLHFDataset):
    def __init__(self, files):
        super().__init__(files, None, None)


class Plain:
    pass
""",
    "sampler.py": """
from verl.experimental.dataset.sampler import AbstractSampler


class Backwards(AbstractSampler):
    def __init__(self, data_source, data_config):
        self.n = len(data_source)

    def __iter__(self):
        return iter(range(self.n - 1, -1, -1))

    def __len__(self):
        return self.n
""",
    "tools.yaml": """
tools:
  - class_name: nosuch.module.Tool
    config: {type: native}
    tool_schema:
      type: function
      function: {name: f, description: d, parameters: {type: object, properties: {}, required: []}}
""",
    "loops.yaml": "- name: my_loop\n  _target_: nosuch.loops.MyLoop\n",
    "loops-good.yaml": """
- name: my_loop
  _target_: verl.experimental.agent_loop.single_turn_agent_loop.SingleTurnAgentLoop
""",
    "function_tools.py": '''
from verl.tools.function_tool import function_tool


@function_tool()
def add(a: int, b: int) -> str:
    """Adds.

    Args:
        a: one
        b: other
    """
    return str(a + b)
''',
    "template-bad.jinja": "{% for m in messages %}{{ m.content }{% endfor %}",
    "rows.csv": "prompt,answer\n1+1,2\n",
}


def make(folder: Path, source: Path) -> None:
    """Fills the folder; `source`: the training rows of the toy task."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    rows: list[Row] = pq.read_table(source).to_pylist()[:200]
    tables: dict[str, list[Row]] = {
        "question": [{**_without(row, "prompt"), "question": row["prompt"]} for row in rows],
        "source": [{**row, "source": row["data_source"]} for row in rows],
        "no-truth": [{**row, "reward_model": {"style": "rule"}} for row in rows],
        "string": [{**row, "prompt": row["prompt"][0]["content"]} for row in rows],
        "extra": [{**row, "difficulty": [None, 0.5][i % 2], "tags": ["a"] * (i % 3)} for i, row in enumerate(rows)],
        "half-a": rows[:100],
        "half-b": rows[100:],
        "few": rows[:10],
        "no-role": [{**row, "prompt": [{"text": each["content"]} for each in row["prompt"]]} for row in rows],
        "agent": [{**row, "agent_name": "no_such_agent"} for row in rows],
        "info-null": [_without(row, "extra_info") for row in rows],
    }
    for name, made in tables.items():
        pq.write_table(pa.Table.from_pylist(made), folder / f"{name}.parquet")
    pq.write_table(pq.read_table(source).slice(0, 0), folder / "empty.parquet")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _without(row: Row, key: str) -> Row:
    return {name: value for name, value in row.items() if name != key}
