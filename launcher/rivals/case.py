"""Differential diagnosis: the facts about a failure or flag support some causes and exclude others."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from launcher.record.problem import Evidence, Rival
from launcher.rivals.rows import Row
from launcher.verl.code_settings import Condition, default_of

_WHOLE = 8  # minimum settings of a veRL run with a known configuration: missing keys have defaults
_NAMED = ("setting", "numbers")  # evidence that can be named where it is missing
_KIND = re.compile(r"([a-z]+): (.+)", re.DOTALL)
_COMPARED = re.compile(r"(.+?) (=|!=|<|>|~) (.+)")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">": "<="}


class Judged(NamedTuple):
    """A cause with its evidence. It `leads` if a clue supports it and all its needs are known to hold."""

    row: Row
    rival: Rival
    leads: bool


class Case:
    """One failure or flag. `words`: its numbers and names. `settings`: the run's as text, of `verl` or not.

    Subclasses judge their own KINDs of clues.
    """

    def __init__(self, words: Mapping[str, str], settings: Mapping[str, str], *, verl: bool) -> None:
        self.words, self.settings = words, settings
        self._whole = verl and len(settings) >= _WHOLE

    def seen(self, kind: str, pattern: str) -> tuple[bool | None, Evidence]:
        """Whether a clue of a KIND holds (None if unknown), and the record that shows it."""
        raise NotImplementedError(kind)

    def named(self, word: str) -> str:
        """The name of a word in evidence."""
        return word

    def title(self, row: Row) -> str:
        """The title of a cause."""
        return self.fill(row.title)

    def matched(self, row: Row) -> bool:
        """Whether it is the cause that is named without a clue."""
        return False

    def judged(self, rows: Iterable[Row]) -> tuple[list[Judged], list[Judged]]:
        """The possible causes, leading ones first; and the excluded ones."""
        judged = [self._judged(row) for row in rows]
        left = [each for each in judged if not each.rival.excluded_by]
        return sorted(left, key=lambda each: not each.leads), [each for each in judged if each.rival.excluded_by]

    def fill(self, text: str) -> str:
        """Replaces `{name}` by the word, metric or setting."""
        return re.sub(r"\{([\w./-]+)\}", lambda name: self._plain(name[1]) or "…", text)

    def _plain(self, name: str) -> str:
        return self.words.get(name) or self.settings.get(name) or ""

    def _judged(self, row: Row) -> Judged:
        needs, more = ([self._judge(clue) for clue in clues] for clues in (row.needs, row.supports))
        supports = [shown for holds, shown in (*needs, *more) if holds]
        excluded = [shown for holds, shown in needs if holds is False]
        excluded += [shown for holds, shown in map(self._judge, row.excludes) if holds]
        unknown = tuple(shown.text for holds, shown in (*needs, *more) if holds is None and shown.name in _NAMED)
        rival = Rival(row.cause, self.title(row), tuple(supports), tuple(excluded), unknown, self.fill(row.decides))
        return Judged(row, rival, self.matched(row) or (bool(supports) and all(holds for holds, _ in needs)))

    def _judge(self, clue: str) -> tuple[bool | None, Evidence]:
        if (written := _KIND.fullmatch(clue)) is not None:
            return self.seen(written[1], written[2])
        if (written := _COMPARED.fullmatch(clue)) is None:
            value = self._value(clue)
            shown = Evidence(f"{clue}={value}" if value is not None else clue, name="setting")
            return (None if value is None else Condition(clue).holds(value)), shown
        left, sign, right = written.groups()
        if sign == "~":
            value = self._value(left)
            holds = None if value is None else re.search(right, value) is not None
            return holds, Evidence(f"{left}={value}" if value is not None else left, name="setting")
        (first, words), (second, others) = self._number(left), self._number(right)
        if first is not None and second is not None:
            holds = _SIGNS[sign](first, second)
            return holds, Evidence(f"{words} {sign if holds else _OPPOSITE[sign]} {others}", name="numbers")
        value = self._value(left)
        if value is None or sign not in ("=", "!="):
            return None, Evidence(clue, name="setting")
        same = value.lower() in right.lower().split("|")
        return same == (sign == "="), Evidence(f"{left}={value}", name="setting")

    def _value(self, name: str) -> str | None:
        """A word or a setting; its default if the known configuration lacks it."""
        if name in self.words:
            return self.words[name]
        if name in self.settings:
            return self.settings[name].strip("'\"")
        return default_of(name) if "." in name and self._whole else None

    def _number(self, written: str) -> tuple[float | None, str]:
        """The product of numbers, words and settings (None if one is unknown), and its text."""
        product, words = 1.0, list[str]()
        for part in written.split(" * "):
            value = part if re.fullmatch(r"[\d.]+", part) else self._value(part)
            try:
                product *= float((value or "").replace(",", ""))
            except ValueError:
                return None, written
            shown = f"{float(value):.6g}" if value and "." in value else str(value)
            words.append(
                f"{self.named(part)}={shown}" if re.search("[a-z]", part) and ("." in part or "/" in part) else shown
            )
        return product, " * ".join(words)
