"""Data files for tests of the preflight: rows, tables, and their findings."""

from pathlib import Path
from typing import Any

from launcher.check import data
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.data import schema
from launcher.preset.files import load


def rows(count: int, *, words: int = 1, source: str = "openai/gsm8k") -> list[schema.Row]:
    return [
        schema.row(
            source,
            question=f"What is 2 + 3? {'and again ' * words}",
            instruction="Say it.",
            answer="#### 5",
            ground_truth="5",
            split="train",
            index=index,
        )
        for index in range(count)
    ]


def judged(tmp_path: Path, *settings: str, **files: Any) -> list[Finding]:
    """The findings of a preset with these rows, or paths, as its train and val files."""
    named = []
    for split in ("train", "val"):
        content = files.get(split, rows(64))
        path = content if isinstance(content, Path) else tmp_path / f"{split}.parquet"
        if not isinstance(content, Path):
            schema.write(path, content)
        named.append(f"data.{split}={path}")
    return [each for each in data.checks(what(tmp_path, *named, *settings)) if each.id not in ("DATA-3", "DATA-5")]


def what(tmp_path: Path, *settings: str) -> Subject:
    given = [each.partition("=")[0] for each in settings]
    defaults = [
        f"data.train={tmp_path}/train.parquet",
        f"data.val={tmp_path}/val.parquet",
        f"model.path={tmp_path}/model",
    ]
    mine = [each for each in defaults if each.partition("=")[0] not in given]
    return subject(load("toy-cpu", [*mine, *settings]))
