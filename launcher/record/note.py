"""note.json: what the user says about a run, with tags that lists find and group it by."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from launcher.record.json import RARE, Record

_TAG = re.compile(r"(?:^|\s)#(\w[\w.-]*)")


@dataclass(frozen=True, slots=True)
class RunNote(Record):
    """A sentence and tags; both empty where the user said nothing."""

    text: str = field(default="", metadata=RARE)
    tags: tuple[str, ...] = field(default=(), metadata=RARE)

    @classmethod
    def parse(cls, line: str) -> "RunNote":
        """`baseline for the paper #lr-sweep #paper`: words that begin with # are tags."""
        tags = tuple(dict.fromkeys(_TAG.findall(line)))
        return cls(" ".join(_TAG.sub(" ", line).split()), tags)

    def __str__(self) -> str:
        """The line that `parse` reads."""
        return " ".join([*([self.text] if self.text else []), *(f"#{tag}" for tag in self.tags)])


def read_note(path: Path) -> RunNote:
    """The note in note.json; an empty one where there is none."""
    return RunNote.read(path) or RunNote()


def is_tag(word: str) -> bool:
    """Whether a word, without its #, can be a tag."""
    return RunNote.parse(f"#{word}") == RunNote(tags=(word,))
