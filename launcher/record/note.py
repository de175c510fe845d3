"""The user's note and tags (note.json), and the time of the last look (cache folder, one file per run)."""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from launcher.core import paths
from launcher.core.files import foreign, make_folder, read_json, write_json
from launcher.record.json import RARE, SCHEMA, Record

_TAG = re.compile(r"(?:^|\s)#(\w[\w.-]*)")


@dataclass(frozen=True, slots=True)
class RunNote(Record):
    """A sentence and tags; either may be empty."""

    text: str = field(default="", metadata=RARE)
    tags: tuple[str, ...] = field(default=(), metadata=RARE)

    @classmethod
    def parse(cls, line: str) -> "RunNote":
        """`baseline for the paper #lr-sweep #paper`: words starting with # are tags."""
        tags = tuple(dict.fromkeys(_TAG.findall(line)))
        return cls(" ".join(_TAG.sub(" ", line).split()), tags)

    def __str__(self) -> str:
        """The line that `parse` reads."""
        return " ".join([*([self.text] if self.text else []), *(f"#{tag}" for tag in self.tags)])


def read_note(path: Path) -> RunNote:
    """The note in note.json; empty without one."""
    return RunNote.read(path) or RunNote()


def is_tag(word: str) -> bool:
    """Whether a word, without its #, can be a tag."""
    return RunNote.parse(f"#{word}") == RunNote(tags=(word,))


def last_look(run_id: str) -> float | None:
    """Unix seconds of the last look at a run; None without one."""
    file = paths.cache_dir() / "seen" / f"{run_id}.json"
    t = None if foreign(file) else read_json(file).get("t")
    return float(t) if isinstance(t, (int, float)) and not isinstance(t, bool) else None


def looked(run_id: str, t: float | None = None) -> None:
    """Records a look at a run at `t` [default: now]. Raises OSError."""
    folder = paths.cache_dir() / "seen"
    make_folder(folder)
    write_json(folder / f"{run_id}.json", {"schema": SCHEMA, "t": time.time() if t is None else t})
