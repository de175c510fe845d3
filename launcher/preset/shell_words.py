"""A shell's words: quotes, comments, continued lines, and the variables in them."""

import ast
import operator
import re
from collections.abc import Iterator

from launcher.preset.shell_expansions import OPERATION, changed, operands, printed

_PARAMETER = re.compile(r"(\w+|[@*#?$!-])(?:\[([^\]]*)\])?(?:(:?[-=+?])(.*))?", re.DOTALL)
_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=\(")
_NAME = re.compile(r"\w+|[@*#?$!-]")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_REDIRECTION = re.compile(r"\d*(?:>>?|<)(?:&\d?-?)?|&>>?")
_BLANK = " \t\u00a0"  # a page's unbreakable blank is one, however a shell sees it
_TORN = re.compile(rf"\\[{_BLANK}]+(?:#[^\n]*)?\n")  # a shell ends the command here, and nobody means that
_ARITHMETIC = re.compile(r"[\d\s()+\-*/%]+")
_SUMS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
}
_DEEPEST = 8  # commands within commands
_SPLIT = "\0"  # in an expanded word: here the shell would begin a new one


class Expander:
    """The variables of a script while it is read; `notes` tells what could not be known.

    `folder` is where the script would be run.
    """

    def __init__(self, folder: str) -> None:
        self.variables: dict[str, str] = {"HOME": "~", "PWD": folder}
        self.variables["0"] = f"{folder}/script.sh"
        self.arrays: dict[str, list[str]] = {"BASH_SOURCE": [self.variables["0"]]}
        self.notes: list[str] = []
        self._depth = 0

    def parameter(self, inside: str, *, quoted: bool) -> str:
        """The value of `${inside}`; an array's items are parted by the mark of a new word."""
        match = _PARAMETER.fullmatch(inside)
        if match is None and (found := OPERATION.fullmatch(inside)) is not None:
            name, operation, pattern = found.groups()
            parts = operands(pattern) if operation[0] == "/" else (pattern, "")
            whole = self.parameter(name, quoted=True)
            new = changed(whole, operation, *(self.expand(part, quoted=False) for part in parts))
            return new if quoted else _parted(new)
        if match is None:
            self.notes.append(
                f"${{{inside}}} is left out; only ${{NAME}}, ${{NAME:-default}}, ${{NAME%end}} etc. are supported"
            )
            return ""
        name, index, mode, default = match.groups()
        if index in ("@", "*"):
            return _SPLIT.join(self.arrays.get(name, []))
        if index is not None and name in self.arrays:
            items = self.arrays[name]
            return items[int(index)] if index.isdigit() and int(index) < len(items) else ""
        value = self.variables.get(name)
        if mode and (value is None or (mode.startswith(":") and not value)):
            value = "" if mode.endswith(("+", "?")) else self.expand(default, quoted=quoted)
            if mode.endswith("="):
                self.variables[name] = value
        elif mode and mode.endswith("+"):
            value = self.expand(default, quoted=quoted)
        if value is None:
            if name[0].isalpha() or name[0] == "_":
                self.notes.append(f"${name} is not set in the script; an empty value is used")
            return ""
        return value if quoted else _parted(value)

    def expand(self, text: str, *, quoted: bool) -> str:
        """The word after `:-`; between double quotes (`quoted`) only further double quotes go."""
        return _Reader(text, self).quoted(end="", drop='"') if quoted else _Reader(text, self).text_of_word("")[0]

    def command(self, text: str) -> str:
        """`$(text)`, which is not run; what asks for a part of a path is known all the same."""
        before, self._depth = len(self.notes), self._depth + 1
        output = printed(read(text, self), self.variables["PWD"]) if self._depth <= _DEEPEST else None
        self._depth -= 1
        if output is None:
            self.notes[before:] = [f"$({text}) is left out; the script is read, not run"]
        return output or ""

    def arithmetic(self, text: str) -> str:
        """`$((text))`: whole numbers and variables with + - * / %."""
        named = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda found: self.variables.get(found[1], "") or "0", text)
        try:
            if not _ARITHMETIC.fullmatch(named):
                raise ValueError(named)
            return str(_sum(ast.parse(named.strip(), mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
            self.notes.append(f"$(({text})) is left out; only whole numbers with + - * / % are supported")
            return ""


def _parted(value: str) -> str:
    """A value without quotes around it: its blanks begin new words."""
    return _SPLIT.join(value.split()) if " " in value.strip() else value


def read(text: str, shell: Expander) -> Iterator[list[str]]:
    """The commands of a script, each as its words; arrays go to `shell` and are no command."""
    reader = _Reader(text.replace("\r\n", "\n"), shell)
    while not reader.at_end():
        words = reader.command()
        if words:
            yield words


class _Reader:
    def __init__(self, text: str, shell: Expander) -> None:
        self.text, self.shell, self.at = text, shell, 0
        self.heredocs: list[str] = []

    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def command(self) -> list[str]:
        """The words up to the end of a command, which is passed."""
        words: list[str] = []
        while not self.at_end():
            self._blanks()
            if self.at_end():
                break
            letter = self.text[self.at]
            if letter == "\n":
                self.at += 1
                self._skip_heredocs()
                break
            if found := _HEREDOC.match(self.text, self.at):
                self.heredocs.append(found[2])
                self.at = found.end()
            elif found := _REDIRECTION.match(self.text, self.at):
                self.at = found.end()
                if not found[0].endswith(("1", "2", "-")):
                    self._blanks()
                    self.word()  # the file
            elif letter in ";&|()":
                self.at += 1
                break
            elif found := _ARRAY.match(self.text, self.at):
                self._array(found)
            else:
                words += self.word()
        return words

    def word(self) -> list[str]:
        """The words that one word of the text becomes: none, one, or those of an array."""
        parts, given = self.text_of_word(f"{_BLANK}\n;&|()<>")
        return parts.split(_SPLIT) if parts or given else []

    def text_of_word(self, ends: str) -> tuple[str, bool]:
        """Up to one of the characters in `ends`, quotes removed; whether it is a word even if empty."""
        parts, given = "", False
        while not self.at_end() and (letter := self.text[self.at]) not in ends:
            if letter == "\\":
                if _TORN.match(self.text, self.at):
                    break
                if self.text[self.at + 1 : self.at + 2] != "\n":
                    parts += self.text[self.at + 1 : self.at + 2]
                self.at += 2
            elif letter == "'":
                end = self._find("'", self.at + 1)
                parts, given = parts + self.text[self.at + 1 : end], True
                self.at = end + 1
            elif letter == '"':
                self.at += 1
                start = self.at
                inside = self.quoted('"')
                # "$@" and "${EMPTY[@]}" are no word at all, "" and "$EMPTY" are one.
                source = self.text[start : self.at - 1]
                given = given or not (source in ("$@", "${@}") or source.endswith("[@]}"))
                parts += inside
            elif letter == "$":
                parts += self._dollar(quoted=False)
            elif letter == "`":
                end = self._find("`", self.at + 1)
                parts += self.shell.command(self.text[self.at + 1 : end])
                self.at = end + 1
            else:
                parts += letter
                self.at += 1
        return parts, given

    def quoted(self, end: str, drop: str = "") -> str:
        """Up to the closing double quote, which is passed, or to the end of the text; without `drop`."""
        parts = ""
        while not self.at_end():
            letter = self.text[self.at]
            if letter == end:
                self.at += 1
                break
            if letter == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                parts += self.text[self.at + 1].strip("\n")
                self.at += 2
            elif letter == drop:
                self.at += 1
            elif letter == "$":
                parts += self._dollar(quoted=True)
            elif letter == "`":
                stop = self._find("`", self.at + 1)
                parts += self.shell.command(self.text[self.at + 1 : stop])
                self.at = stop + 1
            else:
                parts += letter
                self.at += 1
        return parts

    def _dollar(self, *, quoted: bool) -> str:
        for opening, closing, meaning in (
            ("$((", "))", self.shell.arithmetic),
            ("$(", ")", self.shell.command),
            ("${", "}", lambda inside: self.shell.parameter(inside, quoted=quoted)),
        ):
            if self.text.startswith(opening, self.at):
                start = self.at + len(opening)
                end = self._closing(start, opening[1], closing[0])
                inside = self.text[start:end]
                self.at = end + len(closing)
                return meaning(inside)
        if found := _NAME.match(self.text, self.at + 1):
            self.at = found.end()
            return self.shell.parameter(found[0], quoted=quoted)
        self.at += 1
        return "" if self.text[self.at : self.at + 1] == "'" else "$"

    def _closing(self, start: int, opening: str, closing: str) -> int:
        depth = 0
        for place in range(start, len(self.text)):
            if self.text[place] == closing:
                if depth == 0:
                    return place
                depth -= 1
            elif self.text[place] == opening:
                depth += 1
        return len(self.text)

    def _array(self, found: re.Match[str]) -> None:
        self.at = found.end()
        items = list(self.shell.arrays.get(found[1], [])) if found[2] else []
        while not self.at_end() and self.text[self.at] != ")":
            if self.text[self.at] in f"{_BLANK}\n#" or self.text.startswith("\\\n", self.at):
                self._blanks(lines=True)
            else:
                before = self.at
                items += self.word()
                self.at += self.at == before  # what is no part of a word here
        self.at += 1
        self.shell.arrays[found[1]] = items

    def _blanks(self, *, lines: bool = False) -> None:
        """Passes blanks, continued lines and comments; with `lines` their ends, too."""
        while not self.at_end():
            letter = self.text[self.at]
            if letter in _BLANK or (lines and letter == "\n"):
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif found := _TORN.match(self.text, self.at):
                self.shell.notes.append(
                    "a backslash is followed by blanks or a comment; the next line is imported, "
                    "although a shell would end the command there"
                )
                self.at = found.end()
            elif letter == "#":
                self.at = self._find("\n", self.at)
            else:
                break

    def _skip_heredocs(self) -> None:
        for mark in self.heredocs:
            end = re.compile(rf"^\s*{re.escape(mark)}$", re.MULTILINE).search(self.text, self.at)
            self.at = end.end() if end else len(self.text)
        self.heredocs.clear()

    def _find(self, mark: str, start: int) -> int:
        found = self.text.find(mark, start)
        return len(self.text) if found < 0 else found


def _sum(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_sum(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        return int(_SUMS[type(node.op)](_sum(node.left), _sum(node.right)))
    raise ValueError(node)
