"""What one entry of the failure catalogue says."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How close to the root an entry is; the lowest level that matches wins."""

    ROOT = 0  # explains itself
    GENERAL = 1  # right only when nothing more precise matches
    SYMPTOM = 2  # a consequence: the cause stands elsewhere in the log


@dataclass(frozen=True)
class Cause:
    """A way for a run to end, how to recognise it in the console, and what to do about it.

    `raised` is searched in an exception's line (`ValueError: text`, `ValueError("text")`), `line` is matched
    at the start of any line. Both see the text without the prefixes of Ray and of loggers, and never the
    answers that veRL prints as samples. Their named groups fill `{name}` in title, meaning and fixes.

    `where` must be found in the line or in what surrounds it: the frames
    (`verl/workers/engine/fsdp/transformer_impl.py:forward_step`), the worker methods
    (`WorkerDict.actor_rollout_ref_update_actor`), the code line, `full_key: ...`, the source of the line and
    whether the run had reached its steps (`from vLLMHttpServer stepping`, `from driver starting`).
    """

    id: str
    title: str
    meaning: str
    fixes: tuple[str, ...]
    raised: str = ""
    line: str = ""
    where: str = ""
    level: Level = Level.ROOT
    cause_in: str = ""
    """Of a symptom: the sources (regular expression) in whose lines the real cause stands."""
    fatal: bool = False
    """Of `line`: written by the driver or the shell, it proves by itself that the run is over."""
    hangs: bool = False
    """After it the run stands still instead of ending."""
    waits: bool = False
    """Ray waits for what it will not get; the run stands still in its start-up."""
    explains: str = ""
    """Ids (regular expression) of entries that explain themselves, but not when this one came before them."""
    announced: bool = False
    """A batch system says that it ends the run; the signal that it sends says less."""
