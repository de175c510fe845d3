"""Looks into data files; a script for the interpreter that has pyarrow and transformers.

Asked with {"file", "prompt_key", "tokenizer", "template", "trust"} on stdin. Answers {"rows", "columns",
"sources", "measured", "unshaped", "untrue", "examples", "lengths"}, or {"problem"}, or {"missing"}: the
package that is not there. Of more than SAMPLE rows one in so many is looked at. `lengths` is {tokens: rows}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

SAMPLE = 2000
EXAMPLES = 8
WHOLE = 300_000  # rows; of a larger file only the first ones are read


def main() -> None:
    request = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not the answer
    try:
        answer = look(request)
    except ImportError as error:
        answer = {"missing": error.name or str(error)}
    except Exception as error:
        answer = {"problem": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"}
    json.dump(answer, out, default=str)


def look(request: dict[str, Any]) -> dict[str, Any]:
    path, key = request["file"], request["prompt_key"]
    count, columns, rows, sources = table(path, key)
    step = max(1, len(rows) // SAMPLE)
    sample = rows[::step]
    shaped = [row[key] for row in sample if is_chat(row.get(key))]
    answer = {
        "rows": count,
        "columns": columns,
        "sources": sources,
        "measured": len(sample),
        "unshaped": len(sample) - len(shaped),
        "untrue": sum(not has_truth(row.get("reward_model")) for row in sample),
        "examples": [
            {name: row.get(name) for name in ("data_source", "reward_model", "extra_info", key)}
            for row in sample[:: max(1, len(sample) // EXAMPLES)][:EXAMPLES]
        ],
    }
    if request.get("tokenizer") and shaped:
        answer.update(measure(shaped, request))
    return answer


def table(path: str, key: str) -> tuple[int, dict[str, str], list[dict[str, Any]], dict[str, int]]:
    """Rows in the file, its columns with their types, the wanted columns of its rows, its data sources."""
    wanted = (key, "data_source", "reward_model", "extra_info")
    if not path.endswith(".parquet"):
        with Path(path).open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
        columns = {name: type(value).__name__ for row in rows[:1] for name, value in row.items()}
        sources: dict[str, int] = {}
        for row in rows:
            sources[str(row.get("data_source"))] = sources.get(str(row.get("data_source")), 0) + 1
        return len(rows), columns, rows, sources
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(path)
    schema = file.schema_arrow
    columns = {field.name: str(field.type) for field in schema}
    names = [name for name in wanted if name in columns]
    rows, sources = [], {}
    for batch in file.iter_batches(columns=names, batch_size=20_000):
        if "data_source" in names:
            for each in batch.column("data_source").value_counts().to_pylist():
                sources[str(each["values"])] = sources.get(str(each["values"]), 0) + each["counts"]
        rows += batch.to_pylist()
        if len(rows) >= WHOLE:
            break
    return file.metadata.num_rows, columns, rows, sources


def is_chat(prompt: object) -> bool:
    return (
        isinstance(prompt, list)
        and len(prompt) > 0
        and all(isinstance(turn, dict) and turn.get("role") and turn.get("content") is not None
                for turn in prompt)
    )  # fmt: skip


def has_truth(reward: object) -> bool:
    return isinstance(reward, dict) and reward.get("ground_truth") is not None


def measure(chats: list[Any], request: dict[str, Any]) -> dict[str, Any]:
    """Lengths in tokens as veRL counts them: the chat template with the opening of an answer."""
    from transformers import AutoTokenizer

    trust, template = bool(request.get("trust")), request["template"]
    tokenizer = AutoTokenizer.from_pretrained(request["tokenizer"], trust_remote_code=trust)
    try:
        texts = [
            tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False, **template)
            for chat in chats
        ]
    except Exception as error:
        return {"template_problem": f"{type(error).__name__}: {str(error).partition('.')[0][:200]}"}
    lengths: dict[int, int] = {}
    for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]:
        lengths[len(ids)] = lengths.get(len(ids), 0) + 1
    return {"lengths": lengths}


if __name__ == "__main__":
    main()
