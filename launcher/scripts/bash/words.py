"""Expands a word of a script into the words for a program: quotes, variables, arrays, substitutions."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.scripts.bash import marks, patterns
from launcher.scripts.bash.arithmetic import Arithmetic, NotANumber
from launcher.scripts.bash.marks import Budget
from launcher.scripts.bash.scanning import end_of_part, past_double, words_of
from launcher.scripts.bash.state import State

_NAME = re.compile(r"\w+|[@*#?$!-]")
_PARAMETER = re.compile(r"(!?)(#?)(\w+|[@*#?$!-])(?:\[((?:[^\[\]]|\[[^\]]*\])*)\])?(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\033", "0": ""}


@dataclass(frozen=True)
class _Piece:
    """Text and its kind: "quoted", "given" (literal text), "value" (cut at blanks), "next" (between two words)."""

    text: str
    kind: str


_NEXT = _Piece("", "next")
_EMPTY = _Piece("", "quoted")


class Words:
    """Expands words with the variables of `state`; `run` gives the output of a command substitution."""

    def __init__(self, state: State, budget: Budget, run: Callable[[str], str]) -> None:
        self.state, self.budget, self._run = state, budget, run
        self._unset: dict[str, None] = {}  # variables that arithmetic took for 0
        self.lacking: dict[str, None] = {}  # all that had no value where they were used

    def fields(self, raw: str) -> list[str]:
        """The words that a word expands to."""
        return [found for each in words_of(raw) for found in self._fields(each)]

    def one(self, raw: str) -> str:
        """The word expanded without splitting at blanks, as on the right side of an assignment."""
        text = "".join(" " if piece is _NEXT else piece.text for piece in self._pieces(raw))
        return self.budget.made(text)

    def pattern(self, raw: str) -> patterns.Pattern:
        """The word as a pattern; quoted parts match literally."""
        return patterns.compiled((marks.plain(piece.text), piece.kind == "quoted") for piece in self._pieces(raw))

    def text(self, raw: str) -> str:
        """The text of a here-document or of arithmetic: as between double quotes, which stay."""
        return self.budget.made("".join(piece.text for piece in self._double(raw, ends=False)))

    def number(self, raw: str) -> int | None:
        """The value of an arithmetic expression; None if unknown."""
        text = self.text(raw)
        if marks.is_unknown(text):
            return None
        self._unset |= dict.fromkeys(marks.unset_names(text))
        seen: list[str] = []

        def get(name: str) -> str:
            base, _, index = name.partition("[")
            value = self._element(base, index.rstrip("]")) if index else self.state.variables.get(base)
            if value is None or marks.is_unknown(value):
                seen.append(value or "")
            self._unset |= dict.fromkeys([name] if value is None else marks.unset_names(value))
            return marks.plain(value or "")

        try:
            found = Arithmetic(marks.plain(text), get, self.assign).value()
        except (NotANumber, RecursionError):
            return None
        return None if any(map(marks.is_unknown, seen)) else found

    def assign(self, name: str, value: str) -> None:
        """Sets a variable or one element of an array (`name[index]`)."""
        base, bracket, index = name.partition("[")
        if bracket:
            self.state.arrays.setdefault(base, {})[self._index(base, index.rstrip("]"))] = value
        elif base not in self.state.fixed or not marks.is_unknown(value):
            self.state.variables[base] = self.budget.made(value)

    def _index(self, name: str, raw: str) -> str:
        held = self.state.arrays.get(name, {})
        word = marks.plain(self.one(raw))
        if word in held or any(not key.isdigit() for key in held):
            return word
        number = self.number(raw) if not word.isdigit() else int(word[:9])
        return word if number is None else str(number % max(1, len(held)) if number < 0 else number)

    def _element(self, name: str, raw: str) -> str | None:
        if name not in self.state.arrays:
            return self.state.variables.get(name) if raw == "0" else None
        return self.state.arrays[name].get(self._index(name, raw))

    def _fields(self, raw: str) -> list[str]:
        found: list[str] = []
        open_, text = False, ""
        separators = marks.plain(self.state.variables.get("IFS", " \t\n"))
        for piece in self._pieces(raw):
            if piece is _NEXT:
                found += [text] if open_ else []
                open_, text = False, ""
            elif piece.kind == "value":
                parts = re.split(f"[{re.escape(separators)}]+", piece.text) if separators else [piece.text]
                for place, part in enumerate(parts):
                    if place:
                        found += [text] if open_ else []
                        open_, text = False, ""
                    if part:
                        open_, text = True, text + part
            else:
                open_, text = True, text + piece.text
        found += [text] if open_ else []
        for each in found:
            self.budget.made(each)
        # a word that only unset variables make up is none
        return found if '"' in raw or "'" in raw else [each for each in found if marks.without_unset(each)]

    def _pieces(self, raw: str) -> Iterator[_Piece]:
        self.budget.step(4 * len(raw))
        at = 0
        if raw.startswith("~") and (len(raw) == 1 or raw[1] == "/"):
            yield _Piece(self.state.variables.get("HOME", "~"), "quoted")
            at = 1
        while at < len(raw):
            letter = raw[at]
            if letter == "\\":
                if raw[at + 1 : at + 2] != "\n":
                    yield _Piece(raw[at + 1 : at + 2], "quoted")
                at += 2
                continue
            if letter not in "'\"$`" and not raw.startswith(("<(", ">("), at):
                end = next((i for i in range(at + 1, len(raw)) if raw[i] in "\\'\"$`"), len(raw))
                yield _Piece(raw[at:end], "given")
                at = end
                continue
            if letter == '"' or raw.startswith('$"', at):
                start = at + 1 + (letter == "$")
                at = past_double(raw, start)
                yield from self._quoted(raw[start : at - 1] if raw[at - 1 : at] == '"' and at > start else raw[start:])
                continue
            end = end_of_part(raw, at)
            if letter == "'":
                yield _Piece(raw[at + 1 : end - 1] if raw.endswith("'", at + 1, end) else raw[at + 1 : end], "quoted")
            elif raw.startswith("$'", at):
                yield _Piece(
                    re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), raw[at + 2 : end - 1]), "quoted"
                )
            elif letter in "$`":
                end, pieces = self._dollar(raw, at, quoted=False)
                yield from pieces
            else:
                yield _Piece(marks.unknown(raw[at:end]), "quoted")
            at = end

    def _quoted(self, inside: str) -> Iterator[_Piece]:
        pieces = list(self._double(inside))
        # "$@" and "${EMPTY[@]}" are no word at all, "" and "$EMPTY" are one
        if pieces or not re.fullmatch(r"\$@|\$\{@[^}]*\}|\$\{\w+\[@\][^}]*\}", inside):
            yield _EMPTY
        yield from pieces

    def _double(self, inside: str, *, ends: bool = True) -> Iterator[_Piece]:
        """Expands text up to the closing double quote; `ends=False`: the whole text, quotes included."""
        at = 0
        while at < len(inside):
            letter = inside[at]
            if letter == "\\" and inside[at + 1 : at + 2] in ("$", "`", "\\", "\n", '"' if ends else "$"):
                yield _Piece(inside[at + 1].strip("\n"), "quoted")
                at += 2
            elif letter in "$`":
                at, pieces = self._dollar(inside, at, quoted=True)
                yield from pieces
            else:
                end = next((i for i in range(at + 1, len(inside)) if inside[i] in "\\$`"), len(inside))
                yield _Piece(inside[at:end], "quoted")
                at = end

    def _dollar(self, raw: str, at: int, *, quoted: bool) -> tuple[int, list[_Piece]]:
        """The place after an expansion, and its value."""
        kind = "quoted" if quoted else "value"
        if raw.startswith("$((", at) and raw.startswith("))", (end := end_of_part(raw, at)) - 2):
            text = raw[at + 3 : end - 2]
            self._unset.clear()
            number = self.number(text)
            left = "".join(map(marks.unset, self._unset))
            return end, [_Piece(marks.unknown(f"$(({text}))") if number is None else f"{number}{left}", kind)]
        if raw[at] == "`" or raw.startswith("$(", at):
            end = end_of_part(raw, at)
            text = raw[at + 1 : end - 1].replace("\\`", "`") if raw[at] == "`" else raw[at + 2 : end - 1]
            with self.budget:
                return end, [_Piece(self._run(text).rstrip("\n"), kind)]
        if raw.startswith("${", at):
            end = end_of_part(raw, at)
            with self.budget:
                return end, list(self._parameter(raw[at + 2 : end - 1], kind))
        found = _NAME.match(raw, at + 1)
        if found is None:
            return at + 1, [_Piece("$", "quoted")]
        name = found[0][:1] if found[0][:1].isdigit() else found[0]
        return at + 1 + len(name), list(self._parameter(name, kind))

    def _parameter(self, inside: str, kind: str) -> Iterator[_Piece]:
        match = _PARAMETER.fullmatch(inside)
        if match is None:
            yield _Piece(marks.unknown(f"${{{inside}}}"), kind)
            return
        indirect, count, name, index, rest = match.groups()
        if inside == "#":
            indirect, count, name, rest = "", "", "#", ""
        if indirect and index in ("@", "*"):
            yield from _joined(list(self.state.arrays.get(name, {})), kind, index, " ")
            return
        if indirect:
            name = marks.plain(self.state.variables.get(name, ""))
        if index in ("@", "*") or (name in ("@", "*") and not index):
            which = index or name
            yield from self._all(name, which, count, rest, kind)
            return
        value = self._value(name, index)
        if count:
            value = value or ""
            yield _Piece(marks.derived(value) if marks.is_unknown(value) else str(len(marks.plain(value))), kind)
            return
        yield from self._changed(name, index, value, rest, kind)

    def _all(self, name: str, which: str, count: str, rest: str, kind: str) -> Iterator[_Piece]:
        array = self.state.arrays.get(name)
        items = self.state.args if name in ("@", "*") else list(array.values()) if array is not None else []
        if array is None and name in self.state.variables:
            items = [self.state.variables[name]]
        if count:
            yield _Piece(marks.derived(*items) if any(map(marks.is_unknown, items)) else str(len(items)), kind)
            return
        if rest.startswith((":-", "-", ":+", "+")):
            plus = rest.lstrip(":")[0] == "+"
            if bool(items) == plus:
                yield from self._word(rest.lstrip(":")[1:], kind)
                return
            items = [] if plus else items
        elif rest.startswith(":"):
            whole = [self.state.variables.get("0", ""), *items] if name in ("@", "*") else items
            sliced = self._slice(whole, rest[1:])
            items = sliced if sliced is not None else [marks.unknown(f"${{{name}{rest}}}")]
        elif rest:
            items = [self._operated(item, rest) or "" for item in items]
        separator = self.state.variables.get("IFS", " ")[:1]
        yield from _joined(list(items), kind, which, separator)

    def _value(self, name: str, index: str | None) -> str | None:
        state = self.state
        if name == "#":
            return str(len(state.args))
        if name == "?":
            return {True: "0", False: "1", None: marks.unknown("$?")}[state.status]
        if name in ("$", "!", "-", "RANDOM", "SECONDS", "EPOCHSECONDS"):
            return marks.unknown(f"${name}")
        if name == "PWD":
            return state.folder
        if name.isdigit() and name != "0":
            place = int(name[:6]) - 1
            return state.args[place] if place < len(state.args) else None
        if index is not None:
            return self._element(name, index)
        if name in state.arrays:
            return state.arrays[name].get("0")
        return state.variables.get(name)

    def _changed(self, name: str, index: str | None, value: str | None, rest: str, kind: str) -> Iterator[_Piece]:
        if (match := re.match(r"(:?)([-=+?])", rest)) is not None:
            empty = value is None or (match[1] == ":" and not marks.without_unset(value))
            if match[2] == "+":
                if not empty:
                    yield from self._word(rest[match.end() :], kind)
                elif kind == "quoted":
                    yield _EMPTY
                return
            if empty and match[2] in "-=":
                pieces = list(self._word(rest[match.end() :], kind))
                if match[2] == "=":
                    text = "".join(piece.text for piece in pieces)
                    self.assign(name if index is None else f"{name}[{index}]", text)
                yield from pieces
                return
            rest = ""
        if value is None:
            self.lacking[name] = None
            yield _Piece(marks.unset(name), kind)
            return
        found = self._operated(value, rest) if rest else value
        yield _Piece(marks.unknown(f"${{{name}{rest}}}") if found is None else found, kind)

    def _word(self, raw: str, kind: str) -> Iterator[_Piece]:
        """The word after `:-`; between double quotes, only inner double quotes are removed."""
        if kind == "quoted":
            yield from self._double(re.sub(r'(?<!\\)"', "", raw))
            return
        for piece in self._pieces(raw):
            yield _Piece(piece.text, "value") if piece.kind == "given" else piece

    def _operated(self, value: str, rest: str) -> str | None:
        """`#`, `%` (removes beginning or end), `/` (replaces), `^`, `,` (upper or lower case), `:` (a part)."""
        if marks.is_unknown(value):
            return marks.derived(value)
        if left := marks.kept(value):
            found = self._operated(marks.plain(value), rest)
            return None if found is None else found + left
        match = re.match(r"##?|%%?|//|/#|/%|/|\^\^?|,,?|:", rest)
        if match is None:
            return None
        operator, word = match[0], rest[match.end() :]
        if operator == ":":
            letters = self._slice(list(value), word)
            return None if letters is None else "".join(letters)
        if operator[0] in "^,":
            change = str.upper if operator[0] == "^" else str.lower
            return change(value) if len(operator) > 1 else change(value[:1]) + value[1:]
        if operator[0] in "#%":
            return patterns.cut(value, operator, self.pattern(word), self.budget)
        old, new = _operands(word)
        return patterns.replaced(value, operator, self.pattern(old), self.one(new), self.budget)

    def _slice(self, items: list[str], text: str) -> list[str] | None:
        start_text, colon, length_text = text.partition(":")
        start, length = self.number(start_text), self.number(length_text) if colon else len(items)
        if start is None or length is None:
            return None
        start = max(0, len(items) + start) if start < 0 else start
        return items[start : start + length] if length >= 0 else items[start : len(items) + length]


def _joined(items: list[str], kind: str, which: str, separator: str) -> Iterator[_Piece]:
    if which == "*" and kind == "quoted":
        yield _Piece(separator.join(items), "quoted")
        return
    for place, item in enumerate(items):
        if place:
            yield _NEXT
        if kind == "quoted":
            yield _EMPTY
        yield _Piece(item, kind)


def _operands(word: str) -> tuple[str, str]:
    """Pattern and replacement of `${NAME/pattern/replacement}`."""
    at = 0
    while at < len(word):
        if word[at] == "/":
            return word[:at], word[at + 1 :]
        at = at + 2 if word[at] == "\\" else end_of_part(word, at) if word[at] in "'\"$`" else at + 1
    return word, ""
