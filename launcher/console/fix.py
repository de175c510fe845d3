"""Fixes of a cause: settings to change and the words around them, rendered as a sentence here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Literal, get_args

Operation = Literal["set", "lower", "raise", "remove", "choose"]

OPERATIONS: tuple[Operation, ...] = get_args(Operation)
UNKNOWN = "..."  # the part of a value that the user has to fill in
_ARROWS = {"lower": "↓", "raise": "↑"}
_VARIABLE = "env."


@dataclass(frozen=True)
class Change:
    """One setting to change: a veRL key, a preset field, or an environment variable (`env.NAME`)."""

    key: str
    operation: Operation
    values: tuple[str, ...] = ()
    """Of "set": the values to choose from, the usual one first; of "lower" and "raise": examples in their order."""
    words: str = ""
    """Of "choose": the value in words."""


@dataclass(frozen=True)
class Fix:
    """A suggestion; without `changes` it does not concern a preset."""

    do: str = ""
    changes: tuple[Change, ...] = ()
    when: str = ""
    """When it helps, as words before the settings."""
    why: str = ""
    """The end of the sentence: a reason or a limit."""
    alternative: bool = False
    """It replaces the fix before it."""

    @property
    def text(self) -> str:
        """The fix as a sentence: `or with dynamic batches, KEY ↓ (e.g. 8, then 1) to ...`."""
        verb = "" if self.do else "set "
        groups = groupby(self.changes, lambda change: (change.operation, change.key.startswith(_VARIABLE)))
        changes = ", ".join(_phrase(operation, tuple(group), verb) for (operation, _), group in groups)
        lead = ("or " if self.alternative else "") + (f"{self.when}, " if self.when else "")
        end = self.why if self.why.startswith((",", ":")) or not self.why else f" {self.why}"
        return lead + ": ".join(filter(None, (self.do, changes))) + end

    def filled(self, fill: Callable[[str], str]) -> "Fix":
        """Passes every text through `fill`."""
        changes = (
            Change(fill(change.key), change.operation, tuple(map(fill, change.values)), fill(change.words))
            for change in self.changes
        )
        return replace(self, do=fill(self.do), changes=tuple(changes), when=fill(self.when), why=fill(self.why))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fix_of(written: str | Mapping[str, Any]) -> Fix:
    """Reads a fix of a data file: words, or a table with an operation per name and its settings below.

    `{set = {KEY = "8"}, why = "..."}`, `{or = true, when = "...", lower = {KEY = ["8", "1"]}}`,
    `{choose = {KEY = "an absolute path"}}`, `{remove = ["KEY"]}`.
    """
    if isinstance(written, str):
        return Fix(written)
    changes = tuple(
        change for operation in written if operation in OPERATIONS for change in _changes(operation, written[operation])
    )
    words = {name: value for name, value in written.items() if name not in (*OPERATIONS, "or")}
    return Fix(changes=changes, alternative=written.get("or", False), **words)


def _changes(operation: Operation, settings: Mapping[str, Any] | Sequence[str]) -> Iterator[Change]:
    if not isinstance(settings, Mapping):
        yield from (Change(key, operation) for key in settings)
        return
    for key, value in settings.items():
        if operation == "choose":
            yield Change(key, operation, words=value)
        else:
            yield Change(key, operation, (value,) if isinstance(value, str) else tuple(value))


def _phrase(operation: Operation, changes: Sequence[Change], verb: str) -> str:
    """The changes of one operation, either settings or environment variables."""
    variables = changes[0].key.startswith(_VARIABLE)
    verb = "env: " if variables else verb
    named = [(change.key.removeprefix(_VARIABLE), change) for change in changes]
    match operation:
        case "set":
            return verb + " ".join(f"{name}={_any_of(change.values)}" for name, change in named)
        case "remove":
            return "remove " + " ".join(name for name, _ in named)
        case "choose" if changes[0].words:
            to = "=" if variables else ""
            same = groupby(named, lambda pair: pair[1].words)
            choices = [(" and ".join(f"{name}{to}" for name, _ in group), words) for words, group in same]
            return verb + " and ".join(f"{names}{'' if variables else ' to'} {words}" for names, words in choices)
        case "choose":
            return " ".join(name for name, _ in named)
        case _:
            return ", ".join(f"{name} {_ARROWS[operation]}{_examples(change.values)}" for name, change in named)


def _any_of(values: Sequence[str]) -> str:
    """`kl, abs or mse`."""
    *others, last = values
    return f"{', '.join(others)} or {last}" if others else last


def _examples(values: Sequence[str]) -> str:
    return f" (e.g. {', then '.join(values)})" if values else ""
