"""Fills the folder HELD of tests/data/preflight/held_out*.yaml: files of held_out_files.toml, rows, models."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables

TEXTS = Path(__file__).parents[1] / "tests/data/preflight/held_out_files.toml"
Row = dict[str, Any]


def make(folder: Path, toy: Path) -> None:
    """Fills the folder; `toy` is the folder of the toy task."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, text in read_tables(TEXTS).items():
        (folder / name).write_text(text)
    source, model = toy / "data" / "train.parquet", toy / "model"
    rows: list[Row] = pq.read_table(source).to_pylist()[:200]
    shot = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "#### 2"}]
    tables: dict[str, list[Row]] = {
        "question": [{**_without(row, "prompt"), "question": row["prompt"]} for row in rows],
        "source": [{**row, "source": row["data_source"]} for row in rows],
        "no-truth": [{**row, "reward_model": {"style": "rule"}} for row in rows],
        "string": [{**row, "prompt": row["prompt"][0]["content"]} for row in rows],
        "extra": [{**row, "difficulty": [None, 0.5][i % 2], "tags": ["a"] * (i % 3)} for i, row in enumerate(rows)],
        "half-a": rows[:100],
        "half-b": rows[100:],
        "few": rows[:10],
        "no-role": [{**row, "prompt": [{"text": message["content"]} for message in row["prompt"]]} for row in rows],
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
        "no-reward-model": [_without(row, "reward_model") for row in rows],
        "no-source": [_without(row, "data_source") for row in rows],
        "info-text": [{**row, "extra_info": json.dumps(row["extra_info"])} for row in rows],
        "images": [{**row, "images": [{"path": "a.png"}]} for row in rows],
        "no-images": [{**row, "images": []} for row in rows],
        "few-shot": [{**row, "prompt": [*shot, *row["prompt"]]} for row in rows],
        "one-long": [{**row, "prompt": [_lengthen(row, i)]} for i, row in enumerate(rows)],
        "more-columns": [{**row, "difficulty": 0.5, "topic": "sums"} for row in rows],
        "agent-good": [{**row, "agent_name": "single_turn_agent"} for row in rows],
    }
    for name, table in tables.items():
        pq.write_table(pa.Table.from_pylist(table), folder / f"{name}.parquet")
    pq.write_table(pq.read_table(source).slice(0, 0), folder / "empty.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("rows.jsonl", "val.json"):
        (folder / name).write_text(lines)
    with gzip.open(folder / "rows.jsonl.gz", "wt") as out:
        out.write(lines)
    (folder / "array.json").write_text(json.dumps(rows))
    mixed = [{**row, "extra_info": {"index": i if i % 2 else {"row": i}}} for i, row in enumerate(rows)]
    (folder / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
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
    _copy_models(folder, model)


def _copy_models(folder: Path, model: Path) -> None:
    """Copies the toy model several times, each with one change."""
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


def _lengthen(row: Row, i: int) -> Row:
    message: Row = row["prompt"][0]
    return {**message, "content": message["content"] * (400 if i == 7 else 1)}


def _without(row: Row, key: str) -> Row:
    return {name: value for name, value in row.items() if name != key}
