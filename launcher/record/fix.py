"""A fix for a problem: settings to change, and words. Every part that gives advice produces fixes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from launcher.record.info import Edit
from launcher.record.json import RARE, Record

OPERATIONS = ("set", "lower", "raise", "remove", "rename", "choose", "check")
FITS = ("any", "critic", "kl in reward", "kl in loss", "groups", "gpu", "own run", "steps left")
"""The runs that a fix applies to; "own run": started by ppo-tui; "steps left": can also be resumed."""
UNSET = "null"
UNKNOWN = "..."
"""The part of a value that the user must fill in."""
Names = Callable[[str], str]
Moves = Mapping[str, tuple[str, str]]
"""Key -> its value in a run and the new one, as text."""


@dataclass(frozen=True, slots=True)
class Change(Record):
    """One setting to change: a veRL key, a preset field, or an environment variable (`env.NAME`)."""

    key: str
    operation: str
    values: tuple[Any, ...] = field(default=(), metadata=RARE)
    """For "set": possible values, the usual one first; for "lower" and "raise": examples in order."""
    words: str = field(default="", metadata=RARE)
    """For "choose" and "check": the value in words."""


@dataclass(frozen=True, slots=True)
class Fix(Record):
    """A suggestion; without `changes` it does not concern a preset.

    `do` comes first; `when`: the condition under which it helps; `why`: the end of the sentence, a reason or limit.
    `alternative`: it replaces the previous fix. `fits`: the runs that it applies to. `isolates`: not a fix, but a short
    run that shows whether a failure depends on the settings. `needs`: log pattern that it requires, as in
    `launcher.console.entry`.
    """

    do: str = field(default="", metadata=RARE)
    changes: tuple[Change, ...] = ()
    when: str = field(default="", metadata=RARE)
    why: str = field(default="", metadata=RARE)
    alternative: bool = field(default=False, metadata=RARE)
    fits: str = field(default="any", metadata=RARE)
    isolates: bool = field(default=False, metadata=RARE)
    needs: str = field(default="", metadata=RARE)

    @property
    def key(self) -> str | None:
        """The first setting that it changes."""
        return self.changes[0].key if self.changes else None

    @property
    def text(self) -> str:
        """The fix as a sentence with unchanged keys, without a run's values."""
        return self.sentence()

    def sentence(self, name: Names = str, moves: Moves | None = None, mark: str = "") -> str:
        """`or with dynamic batches: lower KEY from 16 to 8`; `name` formats a key, `mark` is put around code."""
        groups = groupby(self.changes, lambda change: change.operation)
        changes = " and ".join(_phrase(operation, tuple(group), name, moves or {}, mark) for operation, group in groups)
        body = ": ".join(filter(None, (self.do, changes)))
        joint = "" if not body or not self.why or self.why.startswith((",", ":", ";")) else " "
        lead = ("or " if self.alternative else "") + (f"{self.when}: " if self.when else "")
        return f"{lead}{body}{joint}{self.why}"

    def filled(self, fill: Names) -> "Fix":
        """Passes every text through `fill`."""
        changes = (
            replace(
                each,
                key=fill(each.key),
                values=tuple(fill(value) if isinstance(value, str) else value for value in each.values),
                words=fill(each.words),
            )
            for each in self.changes
        )
        return replace(self, do=fill(self.do), changes=tuple(changes), when=fill(self.when), why=fill(self.why))

    def to_json(self) -> dict[str, Any]:
        """The record, with `key` and `text` as in version 0.2."""
        return {"key": self.key, "text": self.text, **super(Fix, self).to_json()}

    @classmethod
    def from_json(cls, value: object) -> "Fix":
        """Reads a record; from version 0.2, its key and its sentence."""
        if isinstance(value, Mapping) and "changes" not in value and "text" in value:
            key, text = value.get("key"), value["text"]
            value = {"do": text, "changes": [{"key": key, "operation": "named"}] if key else []}
        return super(Fix, cls).from_json(value)


@dataclass(frozen=True)
class Offer:
    """A fix that changes something in a run: its sentence with the run's values, and the settings.

    `field`: where the editor opens; None if the fix does not concern the preset. `edits`: empty if the user must choose
    the value.
    """

    fix: Fix
    text: str
    field: str | None = None
    edits: tuple[Edit, ...] = ()


def fix_of(written: str | Mapping[str, Any]) -> Fix:
    """Reads a fix from a data file: words, or a table with one name per operation and its settings.

    `{set = {KEY = "8"}, why = "..."}`, `{or = true, when = "...", lower = {KEY = ["8", "1"]}}`, `{choose = {KEY = "an
    absolute path"}}`, `{remove = ["KEY"]}`, `{lower = "KEY"}`.
    """
    if isinstance(written, str):
        return Fix(written)
    changes = tuple(
        change for operation in written if operation in OPERATIONS for change in _changes(operation, written[operation])
    )
    words = {name: value for name, value in written.items() if name not in (*OPERATIONS, "or")}
    return Fix(changes=changes, alternative=written.get("or", False), **words)


def fixes_of(written: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Fix]:
    """Reads a list of fixes; `{use = "NAME", ...}` inserts the named ones, with its own words."""
    for each in written:
        if isinstance(each, Mapping) and "use" in each:
            shared, own = named[each["use"]], {name: words for name, words in each.items() if name != "use"}
            found = fixes_of(shared if isinstance(shared, list) else [shared], named)
            yield from (replace(fix, **own) for fix in found)
        else:
            yield fix_of(each)


def _changes(operation: str, settings: str | Mapping[str, Any] | Sequence[str]) -> Iterator[Change]:
    if not isinstance(settings, Mapping):
        yield from (Change(key, operation) for key in ([settings] if isinstance(settings, str) else settings))
        return
    for key, value in settings.items():
        if operation in ("rename", "choose", "check"):
            yield Change(key, operation, words=value)
        else:
            yield Change(key, operation, tuple(value) if isinstance(value, list) else (value,))


def _phrase(operation: str, changes: Sequence[Change], plain: Names, moves: Moves, mark: str) -> str:
    """The changes of one operation."""

    def name(key: str) -> str:
        return f"{mark}{plain(key)}{mark}"

    match operation:
        case "set":
            return "set " + " and ".join(_setting(each, plain(each.key), moves, mark) for each in changes)
        case "remove":
            return "remove " + " and ".join(name(each.key) for each in changes)
        case "rename":
            return "rename " + " and ".join(f"{name(each.key)} to {name(each.words)}" for each in changes)
        case "choose" if changes[0].words:
            same = groupby(changes, lambda each: each.words)
            choices = [(" and ".join(name(each.key) for each in group), words) for words, group in same]
            return "set " + " and ".join(f"{names} to {words}" for names, words in choices)
        case "choose":
            return " ".join(name(each.key) for each in changes)
        case "check":
            return " and ".join(f"check {name(each.key)}{each.words and f', which {each.words}'}" for each in changes)
        case "lower" | "raise":
            return f"{operation} " + " and ".join(_moved(each, name, moves) for each in changes)
    return ""


def _setting(change: Change, name: str, moves: Moves, mark: str) -> str:
    """`KEY=kl, abs or mse`; in a run `KEY=kl (now k3)`."""
    if change.key in moves:
        now, wanted = moves[change.key]
        return f"{mark}{name}={wanted}{mark}{'' if now == UNSET else f' (now {now})'}"
    first, *others = list(map(_plain, change.values)) or [UNKNOWN]
    more = f"{', '.join(['', *others[:-1]])} or {others[-1]}" if others else ""
    return f"{mark}{name}={first}{mark}{more}"


def _moved(change: Change, name: Names, moves: Moves) -> str:
    """`KEY (for example to 8, then 1)`; in a run `KEY from 16 to 8`."""
    if change.key in moves:
        now, wanted = moves[change.key]
        return f"{name(change.key)}{'' if now == UNSET else f' from {now}'} to {wanted}"
    examples = f" (for example to {', then '.join(map(_plain, change.values))})" if change.values else ""
    return f"{name(change.key)}{examples}"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_plain, value))}]"
    if isinstance(value, float):
        return str(value).replace("e-0", "e-")  # 5e-6, as a preset has it
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
