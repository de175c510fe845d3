"""The data files: whether they exist and contain the columns that veRL reads."""

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson

from launcher.check import model, row_rules, worker
from launcher.check.config.agents import TEMPLATE_ARGUMENTS
from launcher.check.finding import Finding, Words, found
from launcher.check.row_rules import Rows
from launcher.check.subject import Subject
from launcher.core import paths
from launcher.core.files import cache, foreign, near_file, read_json
from launcher.core.text import clean, did_you_mean, perhaps
from launcher.estimate import models
from launcher.verl.config import MODEL_PATH

FILES = {"train": "data.train_files", "val": "data.val_files"}
PROCESSOR = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")
"""Files that identify a processor to transformers: veRL's `verl/utils/tokenizer: hf_processor`."""
TIMEOUT = 180.0  # seconds for one file


def checks(subject: Subject) -> Iterable[Finding]:
    """All findings about the data files."""
    rows: dict[str, list[Rows]] = {"train": [], "val": []}
    drops = row_rules.drops(subject)
    for split, key in FILES.items():
        for file in files(subject, key):
            if "://" in file:
                continue  # veRL fetches it
            problem = _file(subject, key, file)
            if problem is not None:
                yield problem
                continue
            found = look(subject, file, measured=split == "train" or drops)
            yield from _content(subject, key, file, found)
            if found.rows:
                rows[split].append(replace(found, file=file))
        yield from row_rules.alike(key, rows[split])
    yield from row_rules.sources(subject, rows["train"], rows["val"])
    for split, key in FILES.items():
        yield from row_rules.loops(subject, key, rows[split])
    if rows["train"]:
        yield from row_rules.agents(subject, rows["train"])
    yield from row_rules.prompts(subject, rows["train"])
    yield from row_rules.lengths(subject, rows["train"], _tokenizer(subject) is not None)
    yield from row_rules.validation(subject, rows["val"])
    if rows["train"] and len(rows["train"]) == len(files(subject, FILES["train"])):
        yield from row_rules.batches(subject, rows["train"])


def files(subject: Subject, key: str) -> list[str]:
    """The files under a key, which accepts a file, a list, and patterns."""
    value = subject.get(key) or []
    named = [str(each) for each in (value if isinstance(value, list) else [value])]
    return [file for name in named for file in (_matching(name) or [name])]


def _matching(name: str) -> list[str]:
    """The files that match a pattern (`train-*.parquet`)."""
    return sorted(glob.glob(name)) if glob.has_magic(name) and "://" not in name else []  # noqa: PTH207


def look(subject: Subject, file: str, *, measured: bool = False) -> Rows:
    """The reply of read_rows, with prompt lengths if `measured`; cached until the file or the tokenizer changes."""
    tokenizer, arguments = _tokenizer(subject) if measured else None, subject.below(TEMPLATE_ARGUMENTS)
    template = arguments.pop("chat_template", None) or subject.get(model.TEMPLATE)
    if tokenizer and not (model.has_tokenizer(tokenizer) and (template or model.has_chat_template(tokenizer))):
        tokenizer = None  # the model's check reports missing files
    trusted = bool(subject.get("actor_rollout_ref.model.trust_remote_code", False))
    if trusted and subject.static:
        tokenizer, trusted = None, False
    request = {
        "with": "structures",
        "file": file,
        "prompt_key": subject.get("data.prompt_key", "prompt"),
        "tokenizer": str(tokenizer) if tokenizer else None,
        "chat_template": template,
        "template": arguments,
        "media": [str(subject.get(f"data.{kind}_key", f"{kind}s")) for kind in ("image", "video", "audio")],
        "trust": trusted,
    }
    watched = [Path(file), *(sorted(tokenizer.glob("*token*")) if tokenizer else [])]
    stamps = [_stamp(each) for each in watched]
    mark = hashlib.sha256(orjson.dumps([request, stamps])).hexdigest()[:16]
    known = paths.cache_dir() / "preflight" / f"rows-{mark}.json"
    answer = {} if foreign(known) else read_json(known)
    if not answer:
        env = {"HF_HUB_OFFLINE": "1", "USE_TORCH": "0", "TOKENIZERS_PARALLELISM": "false"}
        answer = worker.ask(subject.python, "read_rows", request, timeout=TIMEOUT, env=env)
        if "rows" in answer:
            cache(known, orjson.dumps(answer))
    return Rows.from_json(answer)


def _tokenizer(subject: Subject) -> Path | None:
    """The folder of the tokenizer, if it is on this machine."""
    name = subject.get("actor_rollout_ref.model.tokenizer_path") or subject.get(MODEL_PATH)
    return models.folder_of(str(name), subject.env)


def _file(subject: Subject, key: str, file: str) -> Finding | None:
    """P28: why veRL cannot open a file."""
    path = Path(file)
    if models.is_toy(file) and not path.exists():
        return found("DATA-0", name=path.name, key=key)
    suffixes = (".parquet", ".json", ".jsonl") if subject.at_least("0.7.0") else (".parquet",)
    if path.is_dir():
        return found("P28.folder", file=file, key=key, folder=file.rstrip("/"))
    if path.is_file() and glob.has_magic(file) and not _matching(file):
        return found("P28.pattern", file=file, key=key)
    if not path.is_file() and "," in file:
        parts = [part.strip() for part in str(subject.get(key)).split(",")]
        return found("P28.comma", file=file, key=key, parts=",".join(parts))
    if not path.is_file():
        hint = perhaps(near_file(path)) if path.parent.is_dir() else f" (the folder {path.parent} does not exist)"
        command = "ppo-tui data gsm8k" if "gsm8k" in file.lower() else "ppo-tui data"
        return found("P28.missing", file=file, key=key, hint=hint, command=command)
    if path.suffix not in suffixes:
        words: Words = {"file": file, "key": key, "suffixes": suffixes, "suffix": path.suffix}
        lower = path.with_suffix(path.suffix.lower())
        return found("P28.case" if lower.suffix in suffixes else "P28.kind", **words, lower=lower.name)
    return None if os.access(path, os.R_OK) else found("P28.permission", file=file, key=key)


def _content(subject: Subject, key: str, file: str, rows: Rows) -> Iterator[Finding]:
    """P29: columns and shapes."""
    prompt = subject.get("data.prompt_key", "prompt")
    if rows.missing is not None:
        yield found("DATA-1.package", file=file, missing=rows.missing, python=subject.python, key=key)
        return
    if rows.failed is not None:
        yield found("DATA-1.failed", file=file, failed=clean(rows.failed), key=key)
        return
    if rows.problem is not None:
        yield found("P28.unreadable", file=file, problem=clean(rows.problem), key=key)
        return
    if not rows.rows:
        yield found("P6.empty", file=file, key=key)
        return
    columns = rows.columns
    for name in (prompt, "data_source", "reward_model"):
        if name not in columns:
            hint = did_you_mean(name, columns) or f"; its columns are {', '.join(columns)}"
            yield found(
                "P29.column",
                file=file,
                name=name,
                hint=clean(hint),
                keys=("data.prompt_key",) if name == prompt else (key,),
            )
    if prompt in columns and rows.unshaped:
        yield found(
            "P29.messages",
            file=file,
            unshaped=rows.unshaped,
            measured=rows.measured,
            prompt=prompt,
            kind=clean(columns[prompt]),
        )
    if rows.unmapped:
        yield found(
            "P29.extra-info",
            file=file,
            unmapped=rows.unmapped,
            measured=rows.measured,
            kind=clean(columns.get("extra_info", "")),
            key=key,
        )
    tokenizer = _tokenizer(subject)
    if rows.media and tokenizer and not any((tokenizer / name).is_file() for name in PROCESSOR):
        yield found("P29.media", file=file, media=clean(rows.media), key=key)
    if "reward_model" in columns and rows.untrue:
        yield found("P29.truth", file=file, untrue=rows.untrue, measured=rows.measured, key=key)
    yield from row_rules.truths(subject, key, file, rows)


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_size, status.st_mtime_ns
