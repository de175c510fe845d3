"""The files that tests/data/preflight/held_out_4.yaml names below HELD, beside those of held_out_files.py."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SCORES = """
import functools
from decimal import Decimal

import numpy as np


class Grader:
    def __call__(self, data_source, solution_str, ground_truth, extra_info=None):
        return 1.0


class Waiting:
    async def __call__(self, data_source, solution_str, ground_truth, extra_info=None):
        return 1.0


async_judge = Waiting()


def decimal(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": Decimal("0.5")}


def trl(completions, **kwargs):
    return [1.0 for _ in completions]


@functools.lru_cache
def cached(data_source, solution_str, ground_truth, extra_info=None):
    return 1.0


@functools.lru_cache
def _parsed(text):
    return text.split("####")[-1].strip()


def cached_part(data_source, solution_str, ground_truth, extra_info=None):
    return float(_parsed(solution_str) == ground_truth)


def late_import(data_source, solution_str, ground_truth, extra_info=None):
    from nosuch_math_verify import verify

    return verify(solution_str, ground_truth)


def steps(data_source, solution_str, ground_truth, extra_info=None):
    yield 0.5


def np_bool(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": np.bool_(True), "acc": np.bool_(True)}


async def _waits(data_source, solution_str, ground_truth, extra_info=None, by=1.0):
    return by


async_partial = functools.partial(_waits, by=0.5)


def nested(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 1.0, "parts": {"format": 0.5, "answer": 0.5}}
"""
TEXTS = {
    "fourth_scores.py": SCORES,
    "reads_file.py": """
import json

ANSWERS = json.load(open("data/answers.json"))


def score(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str in ANSWERS)
""",
    "main_guard.py": """
if __name__ == "__main__":

    def score(data_source, solution_str, ground_truth, extra_info=None):
        return 1.0
""",
    "score": "def score(data_source, solution_str, ground_truth, extra_info=None):\n    return 1.0\n",
    "var_tools.py": '''
from verl.tools.function_tool import function_tool


@function_tool()
def search(query: str, **options) -> str:
    """Searches.

    Args:
        query: what
    """
    return query
''',
    "twice_tools.py": '''
from verl.tools.function_tool import function_tool


@function_tool("add")
def add(a: int) -> str:
    """Adds one.

    Args:
        a: a number
    """
    return str(a + 1)


@function_tool("add")
def add_two(a: int) -> str:
    """Adds two.

    Args:
        a: a number
    """
    return str(a + 2)
''',
    "tools-mcp.yaml": """
tools:
  - class_name: verl.tools.base_tool.BaseTool
    config: {type: mcp}
    mcp: {mcp_servers_config_path: ./mcp_server.json}
""",
    "tools-base.yaml": """
tools:
  - class_name: verl.tools.base_tool.BaseTool
    config: {type: native}
    tool_schema:
      type: function
      function: {name: f, description: d, parameters: {type: object, properties: {}, required: []}}
""",
    "loops-wrong.yaml": "- name: my_loop\n  _target_: json.JSONDecoder\n",
    "loops-override.yaml": """
- name: single_turn_agent
  _target_: verl.experimental.agent_loop.single_turn_agent_loop.SingleTurnAgentLoop
""",
    "fourth_rows.py": """
import datasets
from torch.utils.data import IterableDataset

from verl.utils.dataset.rl_dataset import RLHFDataset


class Stream(IterableDataset):
    def __init__(self, data_files, tokenizer, config, processor=None, max_samples=-1):
        self.rows = datasets.load_dataset("parquet", data_files=data_files)["train"]

    def __iter__(self):
        return iter(self.rows)


class Half(RLHFDataset):
    def _read_files_and_tokenize(self):
        super()._read_files_and_tokenize()
        self.dataframe = self.dataframe.select(range(len(self.dataframe) // 2))
""",
}


def make(folder: Path, model: Path, rows: list[Row]) -> None:
    """Fills the folder; `model`: the toy task's own, `rows`: some of its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    shot = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "#### 2"}]
    tables: dict[str, list[Row]] = {
        "no-reward-model": [_without(row, "reward_model") for row in rows],
        "no-source": [_without(row, "data_source") for row in rows],
        "info-text": [{**row, "extra_info": json.dumps(row["extra_info"])} for row in rows],
        "images": [{**row, "images": [{"path": "a.png"}]} for row in rows],
        "no-images": [{**row, "images": []} for row in rows],
        "few-shot": [{**row, "prompt": [*shot, *row["prompt"]]} for row in rows],
        "one-long": [{**row, "prompt": [_long(row, i)]} for i, row in enumerate(rows)],
        "more-columns": [{**row, "difficulty": 0.5, "topic": "sums"} for row in rows],
        "agent-good": [{**row, "agent_name": "single_turn_agent"} for row in rows],
    }
    for name, made in tables.items():
        pq.write_table(pa.Table.from_pylist(made), folder / f"{name}.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    with gzip.open(folder / "rows.jsonl.gz", "wt") as out:
        out.write(lines)
    (folder / "array.json").write_text(json.dumps(rows))
    mixed = [{**row, "extra_info": {"index": i if i % 2 else {"row": i}}} for i, row in enumerate(rows)]
    (folder / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    _models(folder, model)


def _models(folder: Path, model: Path) -> None:
    """Copies of the toy model, each with one thing changed."""
    import torch
    from safetensors.torch import load_file, save_file

    def copied(name: str, **config: Any) -> Path:
        shutil.copytree(model, folder / name)
        file = folder / name / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | config))
        return folder / name

    copied("two-archs", architectures=["Qwen2ForCausalLM", "Qwen2Model"])
    copied("half-config", dtype="bfloat16")
    (copied("no-template") / "chat_template.jinja").unlink()
    weights = copied("cut-weights") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200_000])
    tensors = load_file(model / "model.safetensors")
    (copied("bin-weights") / "model.safetensors").unlink()
    torch.save(tensors, folder / "bin-weights" / "pytorch_model.bin")
    shards = copied("missing-shard")
    (shards / "model.safetensors").unlink()
    names = sorted(tensors)
    first, second = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))
    half = len(names) // 2
    save_file({name: tensors[name] for name in names[:half]}, shards / first, metadata={"format": "pt"})
    index = {name: first if i < half else second for i, name in enumerate(names)}
    whole = {"metadata": {"total_size": 451_000}, "weight_map": index}
    (shards / "model.safetensors.index.json").write_text(json.dumps(whole))
    (folder / "adapter").mkdir()
    adapter = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(adapter))


def _long(row: Row, i: int) -> Row:
    message: Row = row["prompt"][0]
    return {**message, "content": message["content"] * (400 if i == 7 else 1)}


def _without(row: Row, key: str) -> Row:
    return {name: value for name, value in row.items() if name != key}
