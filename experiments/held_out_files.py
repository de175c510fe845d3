"""The files that tests/data/preflight/held_out.yaml names below HELD: rows, reward functions, classes, tools."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import held_out_files_4

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
    "more_scores.py": """
import numpy as np


def score_as_text(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": "1.0"}


def numpy64(data_source, solution_str, ground_truth, extra_info=None):
    return np.float64(0.5)


def tensor(data_source, solution_str, ground_truth, extra_info=None):
    import torch

    return torch.tensor(0.5)


def with_list(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 0.5, "parts": [0.25, 0.25]}


def with_none(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 0.5, "parsed": None}


class Scorer:
    def score(self, data_source, solution_str, ground_truth, extra_info=None):
        return 0.5


def keywords(*, data_source, solution_str, ground_truth, extra_info=None):
    return 0.5
""",
    "more_rows.py": """
from verl.utils.dataset.rl_dataset import RLHFDataset


class NoPrompt(RLHFDataset):
    def __getitem__(self, item):
        row = super().__getitem__(item)
        row.pop("raw_prompt", None)
        return row
""",
    "manager.py": """
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager


class Mine(NaiveRewardManager):
    pass
""",
    "tools-schema.yaml": """
tools:
  - class_name: verl.tools.gsm8k_tool.Gsm8kTool
    config: {type: native}
""",
    "syntax.py": "def score(data_source, solution_str, ground_truth, extra_info=None)\n    return 1.0\n",
    "imports.py": "import nosuch_package\n\n\ndef score(**_):\n    return 1.0\n",
    "third_scores.py": """
def divides(data_source, solution_str, ground_truth, extra_info=None):
    return 1 / (len(ground_truth) - len(ground_truth))


def score_none(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": None}


def nan(data_source, solution_str, ground_truth, extra_info=None):
    return float("nan")


short = lambda **given: float(len(given["solution_str"]) < 8)  # noqa: E731


def whole(data_source, solution_str, ground_truth, extra_info=None):
    return int(ground_truth in solution_str)
""",
    "loops-dict.yaml": "my_loop: {_target_: verl.experimental.agent_loop.single_turn_agent_loop.SingleTurnAgentLoop}\n",
    "untyped.py": """
from verl.tools.function_tool import function_tool


@function_tool()
def add(a, b):
    return a + b
""",
    "bad.jsonl": '{"prompt": [{"role": "user", "content": "1 + 1 ="}]\n',
    "template-bad.jinja": "{% for m in messages %}{{ m.content }{% endfor %}",
    "rows.csv": "prompt,answer\n1+1,2\n",
}


def make(folder: Path, toy: Path) -> None:
    """Fills the folder; `toy`: the toy task's own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    source, model = toy / "data" / "train.parquet", toy / "model"
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
        "system": [{**row, "prompt": [{"role": "system", "content": "Add."}, *row["prompt"]]} for row in rows],
        "int-truth": [
            {**row, "reward_model": {"style": "rule", "ground_truth": int(row["reward_model"]["ground_truth"])}}
            for row in rows
        ],
        "other-source": [{**row, "data_source": "mine/sums"} for row in rows],
        "null-prompt": [{**row, "prompt": [row["prompt"], None][i % 2]} for i, row in enumerate(rows)],
        "messages": [{**_without(row, "prompt"), "messages": row["prompt"]} for row in rows],
        "info-null": [_without(row, "extra_info") for row in rows],
    }
    for name, made in tables.items():
        pq.write_table(pa.Table.from_pylist(made), folder / f"{name}.parquet")
    pq.write_table(pq.read_table(source).slice(0, 0), folder / "empty.parquet")
    for name in ("rows.jsonl", "val.json"):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "cut.parquet").write_bytes(source.read_bytes()[:3000])
    config = json.loads((model / "config.json").read_text("utf-8"))
    for name, changed in (("config", {}), ("no-weights", {}), ("unknown-type", {"model_type": "quen9"})):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config | changed))
        if name != "config":
            for file in model.glob("*token*"):
                shutil.copy(file, folder / name)
    (folder / "tokenizer-half").mkdir()
    shutil.copy(model / "tokenizer_config.json", folder / "tokenizer-half")
    held_out_files_4.make(folder, model, rows)


def _without(row: Row, key: str) -> Row:
    return {name: value for name, value in row.items() if name != key}
