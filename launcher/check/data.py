"""The data files: do they exist, and do they contain what veRL reads?"""

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson

from launcher.check import model, row_rules, worker
from launcher.check.config.agents import TEMPLATE_ARGUMENTS
from launcher.check.finding import Finding, of_data
from launcher.check.row_rules import Rows
from launcher.check.subject import Subject
from launcher.core import paths
from launcher.core.files import beside, read_json, write_atomic
from launcher.core.text import clean, did_you_mean
from launcher.estimate import models
from launcher.verl.config import MODEL_PATH

FILES = {"train": "data.train_files", "val": "data.val_files"}
PROCESSOR = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")
"""Files by which transformers finds a processor: veRL's `verl/utils/tokenizer: hf_processor`."""
TIMEOUT = 180.0  # seconds for one file


def checks(subject: Subject) -> Iterable[Finding]:
    """Everything about the data files."""
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
    """The files under a key, which takes one or a list, and patterns."""
    value = subject.get(key) or []
    named = [str(each) for each in (value if isinstance(value, list) else [value])]
    return [file for name in named for file in (_matching(name) or [name])]


def _matching(name: str) -> list[str]:
    """The files that match a pattern (`train-*.parquet`)."""
    return sorted(glob.glob(name)) if glob.has_magic(name) and "://" not in name else []  # noqa: PTH207


def look(subject: Subject, file: str, *, measured: bool = False) -> Rows:
    """The reply of read_rows about a file, with the lengths of its prompts if `measured`.

    Cached until the file or the tokenizer changes.
    """
    tokenizer, arguments = _tokenizer(subject) if measured else None, subject.below(TEMPLATE_ARGUMENTS)
    template = arguments.pop("chat_template", None) or subject.get(model.TEMPLATE)
    if tokenizer and not (model.has_tokenizer(tokenizer) and (template or model.has_chat_template(tokenizer))):
        tokenizer = None  # what is missing there is reported with the model
    trusted = bool(subject.get("actor_rollout_ref.model.trust_remote_code", False))
    if trusted and subject.static:
        tokenizer, trusted = None, False
    request = {
        "with": "agents",
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
    cache = paths.cache_dir() / "preflight" / f"rows-{mark}.json"
    answer = read_json(cache)
    if not answer:
        env = {"HF_HUB_OFFLINE": "1", "USE_TORCH": "0", "TOKENIZERS_PARALLELISM": "false"}
        answer = worker.ask(subject.python, "read_rows", request, timeout=TIMEOUT, env=env)
        if "rows" in answer:
            cache.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(cache, orjson.dumps(answer))
    return Rows.from_json(answer)


def _tokenizer(subject: Subject) -> Path | None:
    """The folder of the tokenizer, if it is on this machine."""
    name = subject.get("actor_rollout_ref.model.tokenizer_path") or subject.get(MODEL_PATH)
    return models.folder_of(str(name), subject.env)


def _file(subject: Subject, key: str, file: str) -> Finding | None:
    """Checks that the file exists, is readable, and has a name that veRL opens."""
    path = Path(file)
    if models.is_toy(file) and not path.exists():
        made = f"{path.name} of the toy task is built on the first start"
        return of_data.info("DATA-0", made, "run `ppo-tui data toy` to build it now", (key,))
    problem = _unreadable(subject, key, file, path)
    return of_data.error("P28", *problem, (key,)) if problem else None


def _unreadable(subject: Subject, key: str, file: str, path: Path) -> tuple[str, str] | None:
    """P28: why veRL cannot open a file, and what to do."""
    suffixes = (".parquet", ".json", ".jsonl") if subject.at_least("0.7.0") else (".parquet",)
    if path.is_dir():
        files = f"list its files: [a.parquet,b.parquet], or {file.rstrip('/')}/*.parquet"
        return f"{file} is a folder; veRL expects files", files
    if path.is_file() and glob.has_magic(file) and not _matching(file):
        return f"{file}: veRL reads *, ? and [ in a name as a pattern, which matches no file", "rename the file"
    if not path.is_file() and "," in file:
        parts = [part.strip() for part in str(subject.get(key)).split(",")]
        return f"file not found: {file}: a comma does not separate files", f"use a list: [{','.join(parts)}]"
    if not path.is_file():
        siblings = beside(path)
        hint = did_you_mean(path.name, siblings) if siblings else f" (the folder {path.parent} does not exist)"
        command = "ppo-tui data gsm8k" if "gsm8k" in file.lower() else "ppo-tui data"
        return f"file not found: {file}{hint}", f"correct the path, or write the file with `{command}`"
    if path.suffix not in suffixes:
        fix = "convert JSON lines or CSV to parquet with `ppo-tui data jsonl`"
        if path.suffix.lower() in suffixes:
            fix = f"rename it to {path.with_suffix(path.suffix.lower()).name}"
        return f"{file}: veRL reads {', '.join(suffixes)}, not '{path.suffix}'", fix
    if not os.access(path, os.R_OK):
        return f"no permission to read {file}", f"run `chmod u+r {file}`"
    return None


def _content(subject: Subject, key: str, file: str, found: Rows) -> Iterator[Finding]:
    """P29: columns and shapes."""
    prompt = subject.get("data.prompt_key", "prompt")
    if found.missing is not None:
        message = f"{file} was not checked: the package {found.missing} is not installed for {subject.python}"
        fix = f"run `{subject.python} -m pip install {found.missing}`, or install veRL there"
        yield of_data.info("DATA-1", message, fix, (key,))
        return
    if found.failed is not None:
        fix = "try again, or run `ppo-tui doctor` to see which packages are missing"
        yield of_data.warning("DATA-1", f"{file} was not checked: {clean(found.failed)}", fix, (key,))
        return
    if found.problem is not None:
        message = f"{file} cannot be read: {clean(found.problem)}"
        yield of_data.error("P28", message, "write it again, for example with `ppo-tui data`", (key,))
        return
    if not found.rows:
        yield of_data.error("P6", f"{file} has no rows", "write it again, or use another file", (key,))
        return
    columns = found.columns
    for name in (prompt, "data_source", "reward_model"):
        if name not in columns:
            hint = did_you_mean(name, columns) or f"; its columns are {', '.join(columns)}"
            message = f"{file} has no column '{name}'{clean(hint)}"
            fix = "write it with `ppo-tui data`; veRL reads the columns prompt, data_source, reward_model"
            yield of_data.error("P29", message, fix, ("data.prompt_key",) if name == prompt else (key,))
    if prompt in columns and found.unshaped:
        message = (
            f"{file}: in {found.unshaped} of {found.measured} rows, '{prompt}' is not a list of messages with "
            f"role and content (its type is {clean(columns[prompt])})"
        )
        fix = 'write prompts as [{"role": "user", "content": "..."}], for example with `ppo-tui data jsonl`'
        yield of_data.error("P29", message, fix, ("data.prompt_key",))
    if found.unmapped:
        message = (
            f"{file}: in {found.unmapped} of {found.measured} rows, extra_info is not a mapping (its type is "
            f"{clean(columns.get('extra_info', ''))}): veRL fails when it reads them"
        )
        yield of_data.error("P29", message, 'write extra_info as {"index": 0, ...}, or leave it out', (key,))
    tokenizer = _tokenizer(subject)
    if found.media and tokenizer and not any((tokenizer / name).is_file() for name in PROCESSOR):
        message = f"{file} has {clean(found.media)}, and the model has no processor for them: veRL fails on its rows"
        yield of_data.error("P29", message, "use a model that takes them, or remove the column", (key, MODEL_PATH))
    if "reward_model" in columns and found.untrue:
        message = f"{file}: {found.untrue} of {found.measured} rows have no reward_model.ground_truth"
        yield of_data.error("P29", message, 'write reward_model as {"style": "rule", "ground_truth": "..."}', (key,))
    yield from row_rules.truths(subject, key, file, found)


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_size, status.st_mtime_ns
