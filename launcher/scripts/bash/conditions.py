"""`[ ... ]`, `test` and `[[ ... ]]`: true, false, or None if unknown without running the script."""

import operator
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from launcher.scripts.bash import marks, patterns
from launcher.scripts.bash.scanning import end_of_word
from launcher.scripts.bash.words import Words

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_FILES: dict[str, Callable[[str], bool]] = {
    "-e": os.path.exists,
    "-f": os.path.isfile,
    "-d": os.path.isdir,
    "-r": os.path.exists,
    "-s": lambda path: Path(path).is_file() and Path(path).stat().st_size > 0,
    "-x": lambda path: os.access(path, os.X_OK),
    "-L": os.path.islink,
    "-h": os.path.islink,
}
_UNARY = {*_FILES, "-z", "-n", "-v", "-t", "-w", "-p", "-S"}
_BINARY = {*_NUMBERS, "=", "==", "!=", "<", ">", "=~", "-nt", "-ot", "-ef"}
_SLOW = re.compile(r"[)}*+?][*+{]|\\\d")  # an expression that could take very long, or refers back


@dataclass(frozen=True)
class _Operand:
    """A word as written, expanded on demand; an unquoted one can be an operator."""

    raw: str
    value: Callable[[], str]


class Conditions:
    """Evaluates the tests of a script with its variables."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._operands: list[_Operand] = []
        self._at = 0
        self._double = False

    def single(self, words: list[str]) -> bool | None:
        """`[ words ]`, already expanded."""
        if not words:
            return False
        self._operands = [_Operand(word, lambda word=word: word) for word in words]  # type: ignore[misc]
        self._at, self._double = 0, False
        if len(words) == 1:
            return _filled(words[0])
        if len(words) == 3 and words[1] in _BINARY:
            return self._compared(words[1], self._operands[0], self._operands[2])
        return self._either()

    def double(self, text: str) -> bool | None:
        """`[[ text ]]`."""
        self._operands = [
            _Operand(raw, lambda raw=raw: self._words.one(raw))  # type: ignore[misc]
            for raw in _split(text)
        ]
        self._at, self._double = 0, True
        return self._either() if self._operands else False

    def _peek(self) -> str:
        return self._operands[self._at].raw if self._at < len(self._operands) else ""

    def _take(self, *signs: str) -> bool:
        if self._peek() and self._peek() in signs:
            self._at += 1
            return True
        return False

    def _either(self) -> bool | None:
        found = self._both()
        while self._take("||" if self._double else "-o"):
            other = self._both()
            found = True if found or other else None if None in (found, other) else False
        return found

    def _both(self) -> bool | None:
        found = self._one()
        while self._take("&&" if self._double else "-a"):
            other = self._one()
            found = False if False in (found, other) else None if None in (found, other) else True
        return found

    def _one(self) -> bool | None:
        with self._words.budget:
            if self._take("!"):
                found = self._one()
                return None if found is None else not found
            if self._take("("):
                found = self._either()
                self._take(")")
                return found
        left = self._next()
        if left.raw in _UNARY and self._at < len(self._operands) and self._peek() not in ("&&", "||", "-a", "-o", ")"):
            return self._unary(left.raw, self._next())
        if self._peek() in _BINARY:
            sign = self._next().raw
            return self._compared(sign, left, self._next())
        return _filled(left.value())

    def _next(self) -> _Operand:
        if self._at >= len(self._operands):
            return _Operand("", lambda: "")
        self._at += 1
        return self._operands[self._at - 1]

    def _unary(self, sign: str, operand: _Operand) -> bool | None:
        value = operand.value()
        if sign == "-v":
            state = self._words.state
            return marks.plain(value) in state.variables or marks.plain(value) in state.arrays
        if sign in ("-z", "-n"):
            filled = _filled(value)
            return filled if filled is None or sign == "-n" else not filled
        if sign not in _FILES or marks.is_unknown(value) or marks.is_unknown(self._words.state.folder):
            return None
        path = marks.plain(value)
        try:
            return _FILES[sign](os.path.join(self._words.state.folder, path)) if path else False  # noqa: PTH118
        except (OSError, ValueError):
            return False

    def _compared(self, sign: str, left: _Operand, right: _Operand) -> bool | None:
        one = left.value()
        if self._double and sign in ("=", "==", "!="):
            other = self._words.one(right.raw)
            if marks.is_unknown(one) or marks.is_unknown(other):
                return None
            same = patterns.matches(self._words.pattern(right.raw), marks.plain(one), self._words.budget)
            return same if sign != "!=" else not same
        if sign in _NUMBERS:
            first, second = self._words.number(_literal(one)), self._words.number(_literal(right.value()))
            return None if first is None or second is None else _NUMBERS[sign](first, second)
        other = right.value()
        if marks.is_unknown(one) or marks.is_unknown(other) or sign in ("-nt", "-ot", "-ef"):
            return None
        one, other = marks.plain(one), marks.plain(other)
        if sign == "=~":
            return self._searched(other, one)
        return {"=": one == other, "==": one == other, "!=": one != other, "<": one < other, ">": one > other}[sign]

    def _searched(self, expression: str, text: str) -> bool | None:
        repeats = sum(map(expression.count, "*+{"))
        if _SLOW.search(expression) or repeats > 3 or max(len(text), len(expression)) > 200:
            return None
        expression = expression.replace("[[:space:]]", r"\s").replace("[[:digit:]]", r"\d")
        try:
            found = re.search(expression, text)
        except (re.error, RecursionError):
            return None
        if found:
            groups = [found[0], *(part or "" for part in found.groups())]
            self._words.state.arrays["BASH_REMATCH"] = {str(i): part for i, part in enumerate(groups)}
        return found is not None


def _literal(value: str) -> str:
    """A value for arithmetic; an unset one is 0 in tests."""
    return value.replace("$", "").replace("`", "")


def _filled(value: str) -> bool | None:
    if marks.is_unknown(value):
        return True if marks.plain(value) else None
    return bool(marks.plain(value))


def _split(text: str) -> list[str]:
    """The words and operators of `[[ text ]]`."""
    found, at = [], 0
    while at < len(text):
        if text[at] in " \t\n":
            at += 1
        elif text.startswith(("&&", "||"), at):
            found.append(text[at : at + 2])
            at += 2
        elif text[at] in "()" and not (found and found[-1] == "=~"):
            found.append(text[at])
            at += 1
        elif found and found[-1] == "=~":
            end = end_of_word(text, at, " \t\n")
            found.append(text[at:end])
            at = end
        else:
            end = max(end_of_word(text, at, " \t\n&|()"), at + 1)
            found.append(text[at:end])
            at = end
    return found
