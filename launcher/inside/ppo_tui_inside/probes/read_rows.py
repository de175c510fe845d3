"""Inspects data files; a script for an interpreter with pyarrow and transformers.

Request on stdin: {"file", "prompt_key", "tokenizer", "chat_template", "template", "trust", "media"}. Reply: {"rows",
"columns", "types", "sources", "agents", "measured", "unshaped", "untrue", "unmapped", "media", "null", "unlike",
"alike", "examples", "lengths", "cut", "cut_one"}, or {"problem"}, or {"missing"}: a missing package. Above SAMPLE rows,
evenly spaced ones are measured. `unmapped`: rows whose extra_info is not a mapping. `untrue`: without a ground truth.
`null`: with an empty one. `unlike` (`unlike_one`): with one that GSM8K's scorer never finds in an answer. `media`: the
column with pictures or the like. `lengths`: {tokens: rows}. `alike`: rows with the most frequent prompt. `cut`
(`cut_one`): prompts of which the chat template omits a part.
"""

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import Request, answer, described

Render = Callable[[Any, dict[str, object]], str]
Count = Callable[[list[str]], list[int]]

SAMPLE = 2000
NUMBER = re.compile(r"-?[0-9.]+")
EXAMPLES = 8
WHOLE = 300_000  # rows; of a larger file only the first ones are read


def reply(request: Request) -> Request:
    try:
        return look(request)
    except ImportError as error:
        return {"missing": error.name or str(error)}
    except BadRow as error:
        return {"problem": str(error)}
    except Exception as error:
        return {"problem": described(error)}


class BadRow(Exception):
    """An unreadable row; names it."""


def look(request: Request) -> Request:
    path, key = request["file"], request["prompt_key"]
    count, columns, rows, sources = table(path, key)
    types = leaves(path) if path.endswith(".parquet") else {}
    step = max(1, len(rows) // SAMPLE)
    sample = rows[::step]
    shaped = [row[key] for row in sample if is_chat(row.get(key))]
    facts = {
        "rows": count,
        "columns": columns,
        "types": types,
        "sources": sources,
        "agents": sorted({str(row["agent_name"]) for row in rows if row.get("agent_name") is not None}),
        "measured": len(sample),
        "unshaped": len(sample) - len(shaped),
        "untrue": sum(not has_truth(row.get("reward_model")) for row in sample),
        "unmapped": sum(not isinstance(row.get("extra_info") or {}, dict) for row in sample),
        "media": next((name for name in request.get("media", ()) if name in columns and has_media(path, name)), None),
        "null": sum(has_truth(row.get("reward_model")) and truth(row) is None for row in sample),
        "unlike": sum(map(is_unlike, sample)),
        "unlike_one": next((str(truth(row))[:60] for row in sample if is_unlike(row)), ""),
        "alike": max(Counter(json.dumps(chat, default=str) for chat in shaped).values(), default=0),
        "examples": [
            {name: row.get(name) for name in ("data_source", "reward_model", "extra_info", key)}
            for row in sample[:: max(1, len(sample) // EXAMPLES)][:EXAMPLES]
        ],
    }
    if request.get("tokenizer") and shaped:
        facts.update(measure(shaped, request))
    return facts


def table(path: str, key: str) -> tuple[int, dict[str, str], list[dict[str, object]], dict[str, int]]:
    """Number of rows, columns with their types, the wanted columns of the rows, data sources."""
    wanted = (key, "data_source", "reward_model", "extra_info", "agent_name")
    if not path.endswith(".parquet"):
        rows = json_rows(Path(path).read_text(encoding="utf-8"))
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


def has_media(path: str, name: str) -> bool:
    """Whether the first rows of a parquet file have values in this column."""
    if not path.endswith(".parquet"):
        return False
    import pyarrow.parquet as parquet

    first = next(parquet.ParquetFile(path).iter_batches(batch_size=8, columns=[name]), None)
    return first is not None and any(first.column(0).to_pylist())


def leaves(path: str) -> dict[str, str]:
    """The types of a parquet file's columns; for structures, of their fields: `reward_model.ground_truth`."""
    import pyarrow.parquet as parquet

    found: dict[str, str] = {}

    def walk(name: str, kind: Any) -> None:
        if hasattr(kind, "num_fields") and str(kind).startswith("struct<"):
            for index in range(kind.num_fields):
                walk(f"{name}.{kind.field(index).name}", kind.field(index).type)
        elif str(kind) != "null":
            found[name] = str(kind)

    for field in parquet.read_schema(path):
        walk(field.name, field.type)
    return found


def json_rows(text: str) -> list[dict[str, object]]:
    """The rows of a file with one object per line, or with a list of objects."""
    rows: list[dict[str, object]] = []
    if text.lstrip().startswith("["):
        try:
            numbered = list(enumerate(json.loads(text), 1))
        except ValueError as error:
            raise BadRow(f"it starts like a JSON list but is not valid: {error}") from None
        place = "row"
    else:
        numbered, place = [], "line"
        for number, line in enumerate(text.split("\n"), 1):
            try:
                numbered += [(number, json.loads(line))] if line.strip() else []
            except ValueError as error:
                where = f", column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
                raise BadRow(f"line {number}{where}") from None
    for number, row in numbered:
        if not isinstance(row, dict):
            raise BadRow(f"{place} {number} is not an object with the columns as keys")
        rows.append(row)
    return rows


def is_chat(prompt: object) -> bool:
    return (
        isinstance(prompt, list)
        and len(prompt) > 0
        and all(isinstance(turn, dict) and turn.get("role") and turn.get("content") is not None for turn in prompt)
    )


def has_truth(reward: object) -> bool:
    return isinstance(reward, dict) and "ground_truth" in reward


def truth(row: Mapping[str, Any]) -> Any:
    return row["reward_model"]["ground_truth"]


def is_unlike(row: dict[str, object]) -> bool:
    """Whether veRL's GSM8K scorer can never match this ground truth: it compares the text of a number."""
    if row.get("data_source") != "openai/gsm8k" or not has_truth(row.get("reward_model")):
        return False
    wanted = truth(row)
    return wanted is not None and not (isinstance(wanted, str) and NUMBER.fullmatch(wanted))


def measure(chats: list[Any], request: Request) -> Request:
    """Lengths in tokens as veRL counts them: the chat template with the start of an answer.

    Transformers decides if the fast way fails.
    """
    folder, trust = Path(request["tokenizer"]), bool(request.get("trust"))
    problem: Exception | None = None
    for ways in (full,) if trust else (light, full):
        try:
            render, count = ways(folder, trust, request.get("chat_template"))
            texts = [render(chat, request["template"]) for chat in chats]
        except ImportError:
            continue
        except Exception as error:
            problem = error
            continue
        lengths: dict[int, int] = {}
        for length in count(texts):
            lengths[length] = lengths.get(length, 0) + 1
        cut = [said for chat, text in zip(chats, texts) if (said := left_out(chat, text)) is not None]  # noqa: B905
        printed = [one for chat, text in zip(chats, texts) if (one := structure(chat, text))]  # noqa: B905
        return {
            "lengths": lengths,
            **{"cut": len(cut), "cut_one": cut[0][:80] if cut else ""},
            **{"printed": len(printed), "printed_one": printed[0][:80] if printed else ""},
        }
    if problem is None:
        return {}
    return {"template_problem": described(problem).partition(". ")[0]}


def left_out(chat: Any, text: str) -> str | None:
    """The first message that a template omits or truncates; None if all are complete. Spaces do not count."""
    whole = "".join(text.split())
    contents = [turn["content"] for turn in chat if isinstance(turn["content"], str)]
    return next((content for content in contents if "".join(content.split()) not in whole), None)


def structure(chat: Any, text: str) -> str | None:
    """A message, or its list of parts, that a template printed as a Python object; None without one."""
    parts = [str(part) for turn in chat for part in (turn, turn["content"]) if not isinstance(part, str)]
    return next((part for part in parts if part in text), None)


def light(folder: Path, _: bool, own: str | None) -> tuple[Render, Count]:
    """The template by jinja and the tokens by tokenizers: equal to transformers, without its slow start."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from tokenizers import Tokenizer

    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    text = own or template_of(folder, config)
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda value, **named: json.dumps(value, ensure_ascii=False, indent=named.get("indent"))
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    template = env.from_string(text) if text else None
    marks = {
        name: mark.get("content") if isinstance(mark, dict) else mark
        for name, mark in config.items()
        if name.endswith("_token") and mark
    }
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def render(chat: Any, more: Mapping[str, object]) -> str:
        if template is None:
            raise ValueError("tokenizer.chat_template is not set")
        return str(template.render(messages=chat, tools=None, add_generation_prompt=True, **marks, **more))

    def count(texts: list[str]) -> list[int]:
        return [len(each.ids) for each in tokenizer.encode_batch(texts, add_special_tokens=False)]

    return render, count


def template_of(folder: Path, config: Mapping[str, object]) -> str | None:
    """The chat template where transformers looks for it: its own file, then the configuration."""
    beside = folder / "chat_template.jinja"
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    found = config.get("chat_template")
    if isinstance(found, list):  # several by name
        found = next((each["template"] for each in found if each.get("name") == "default"), None)
    return found if isinstance(found, str) else None


def refuse(text: str) -> None:
    raise ValueError(text)


def full(folder: Path, trust: bool, own: str | None) -> tuple[Render, Count]:
    """Functions that render and count prompts by transformers, for tokenizers without a fast version."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
    tokenizer.chat_template = own or tokenizer.chat_template

    def render(chat: Any, more: Mapping[str, object]) -> str:
        return str(tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False, **more))

    def count(texts: list[str]) -> list[int]:
        return [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]

    return render, count


if __name__ == "__main__":
    answer(reply)
