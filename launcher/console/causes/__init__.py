"""The catalog of failures: one entry per cause, in the TOML files of this folder, by subject.

A pattern is a regular expression or a list of alternatives. `(?&NAME)` inserts a pattern of the file's [patterns];
`{use = "NAME"}` among the fixes inserts the file's [fixes] of this name.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables, record
from launcher.record.fix import Fix, fixes_of

FAMILIES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.toml")))
_VERLS = re.compile(r"(?<![a-z])verl|main_ppo|actor_rollout_ref|ActorRollout|WorkerDict|TaskRunner|full_key")
_NAMED = re.compile(r"\(\?&([\w-]+)\)")

UNSEEN = {
    "checkpoint": "`check` does not read checkpoints",
    "code": "your own code causes it, and only a run calls that code",
    "generation": "`check` does not read generation_config.json",
    "machines": "it arises on machines, disks and networks during a run",
    "megatron": "`check` does not judge Megatron's settings",
    "other-gpus": "`check` examines only NVIDIA GPUs",
    "older": "it affects only veRL before 0.5",
    "packages": "the code of installed packages causes it",
    "pictures": "`check` does not open the images of the data",
    "rows": "`check` reads only the first rows of a file",
    "running": "it arises from the values that the run computes",
    "upload": "`check` does not pack the folder that Ray uploads",
}
"""Reasons why no finding shows a cause before the start."""


class Level(IntEnum):
    """The order of explanation: errors of the lowest level win, and within a level the first line."""

    ROOT = 0  # the cause itself
    GENERAL = 1  # right only when nothing more precise matches
    # Consequences, whose cause is elsewhere in the log, each of those before it:
    BREAKDOWN = 2  # a collective operation, a GPU or a wait with a limit ended
    ABORT = 3  # a process ended itself, often because of a breakdown
    WRAPPER = 4  # an exception that replaces another one
    DEATH = 5  # a process is gone

    @property
    def symptom(self) -> bool:
        """Whether errors of this level are symptoms of another error."""
        return self >= Level.BREAKDOWN


@dataclass(frozen=True)
class Sample:
    """A failure that shows a cause; a test writes its console and expects the cause, with this text as evidence.

    `form`: its form in the console (`tests/unit/test_diagnose_samples.py`), which decides on the other fields: the
    remote `method`, the `source` of the line, the `frames` before it (`PATH:FUNCTION`), Hydra's `target` and `key`, the
    lines `before` it, the exception raised from it (`then`), `steps` done before.
    """

    text: str
    """The exception or other decisive line, and the following lines."""
    form: str = "trainer"
    method: str | None = None
    source: str = ""
    frames: tuple[str, ...] = ()
    target: str = ""
    key: str = ""
    before: tuple[str, ...] = ()
    then: str = ""
    steps: int = 0
    exit_code: int = 1
    oom_killed: int | None = None
    """Processes ended by the kernel's out-of-memory killer during the run, by its counter."""
    disk_free: int | None = None
    """Free bytes on the run's disk at the end."""
    first: str = ""
    """A part of the first line of evidence, if different from the first line of `text`."""
    told: str = ""
    """A part of the second line of evidence."""
    words: str = ""
    """A part of the title, filled in from the message."""
    thread: str = ""
    """The URL of the public thread behind the entry."""
    seen: str = ""
    """The place where it was seen, if not in a thread."""


@dataclass(frozen=True)
class Cause:
    """A reason for the end of a run, its marks in the console, and its fixes.

    `raised` is searched in an exception's line (`ValueError: text`, `ValueError("text")`), `line` is matched at the
    start of any line. Both apply to the text without prefixes of Ray and loggers, and never to the responses that veRL
    prints as samples. Their named groups fill `{name}` in title, meaning and fixes, and so do `name2` and `name3` of
    other alternatives.

    `where` must match in the line or its context: frames (`verl/workers/engine/fsdp/transformer_impl.py:forward_step`),
    worker methods (`WorkerDict.actor_rollout_ref_update_actor`), the code line, `full_key: ...`, the source of the line
    and whether the run had reached its steps (`from vLLMHttpServer stepping`, `from driver starting`), and the owner of
    the code that raised an exception (`from driver starting in user code`, `verl`, `library`).
    """

    id: str
    title: str
    meaning: str
    fixes: tuple[Fix, ...]
    samples: tuple[Sample, ...] = ()
    raised: str = ""
    line: str = ""
    where: str = ""
    unless: str = ""
    """Must not match in the line or its context, which includes `device amd` and `device npu`."""
    level: Level = Level.ROOT
    several: bool = False
    """Whether it has several possible reasons, or its message several places: the log does not decide."""
    rank: int = 0
    """Among matching entries of one level, the lower rank wins."""
    cause_in: str = ""
    """For a symptom: the sources (regular expression) whose lines contain the real cause."""
    fatal: bool = False
    """For `line`: from the driver or the shell, it proves that the run is over."""
    hangs: bool = False
    """Whether the run then hangs instead of ending."""
    waits: bool = False
    """Ray waits for resources that never become free; the run hangs in its start-up."""
    explains: str = ""
    """Ids (regular expression) of entries that this one explains if it came first."""
    swallowed: bool = False
    """Whether veRL then ends the run as if it were complete."""
    announced: bool = False
    """Whether a batch system announces the end of the run; its signal is less specific."""
    check: str = ""
    """The findings of `ppo-tui check` that show it beforehand (`P1, P3`), or one of UNSEEN; none for a symptom."""
    place: int = 0
    """Its index in the catalog, in the order of ranks."""

    @property
    def findings(self) -> tuple[str, ...]:
        """The ids of the findings in `check`."""
        return () if self.check in UNSEEN else tuple(filter(None, self.check.split(", ")))

    @property
    def of_verl(self) -> bool:
        """Whether only veRL can cause it: its marks are veRL's code, workers or keys."""
        return _VERLS.search(f"{self.raised}\n{self.line}\n{self.where}") is not None


@functools.cache
def catalogue() -> tuple[Cause, ...]:
    """All causes, cached."""
    causes = (cause for family in FAMILIES for cause in read_causes(Path(__file__).with_name(f"{family}.toml")))
    ranked = sorted(causes, key=lambda cause: cause.rank)
    return tuple(replace(cause, place=place) for place, cause in enumerate(ranked))


@functools.cache
def cause_of(id: str) -> Cause:
    """The cause with this id."""
    return next(cause for cause in catalogue() if cause.id == id)


def read_causes(path: Path) -> Iterator[Cause]:
    """Reads one file of the catalog. Raises TypeError with the entry for a wrong or missing name."""
    tables = read_tables(path)
    for table in tables["cause"]:
        try:
            yield _cause(table, tables.get("patterns", {}), tables.get("fixes", {}))
        except (KeyError, TypeError) as error:
            raise TypeError(f"{path.name}: {table.get('id')}: {error}") from error


def _cause(table: Mapping[str, Any], patterns: Mapping[str, Any], fixes: Mapping[str, Any]) -> Cause:
    return record(
        Cause,
        table,
        meaning=" ".join(table["meaning"].split()),
        fixes=tuple(fixes_of(table["fixes"], fixes)),
        samples=tuple(record(Sample, sample) for sample in table["samples"]),
        level=Level[table.get("level", "root").upper()],
        **{name: _pattern(table[name], patterns) for name in ("raised", "line", "where", "unless") if name in table},
    )


def _pattern(written: str | Sequence[str], named: Mapping[str, str | Sequence[str]]) -> str:
    """One regular expression from the alternatives, with named patterns inserted."""
    whole = written if isinstance(written, str) else "|".join(written)
    return _NAMED.sub(lambda name: f"(?:{_pattern(named[name[1]], named)})", whole)
