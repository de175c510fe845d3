"""failures.json: what failed inside the supervisor of a run, each distinct failure once."""

from dataclasses import dataclass, field

from launcher.record.json import RARE, Record


@dataclass(frozen=True, slots=True)
class Failure(Record):
    """An error of ppo-tui in one part of a supervisor, its place in the code, and how often it was raised.

    Times are unix seconds. `traceback` is that of the first time; state.json repeats the record without it.
    """

    part: str
    error: str
    place: str
    attempt: int | None = None
    times: int = 1
    first: float | None = None
    last: float | None = None
    traceback: str = field(default="", metadata=RARE)

    def __str__(self) -> str:
        """`failures.json: steps: KeyError: 'x' (12 times)`, in the form of `record.damage`."""
        times = f" ({self.times} times)" if self.times > 1 else ""
        return f"failures.json: {self.part}: {self.error}{times}"


@dataclass(frozen=True, slots=True)
class Failures(Record):
    """All of a run, the oldest first."""

    failures: tuple[Failure, ...] = ()
