"""A pasted text without marks of mails and web pages, in blocks of shell text, output and prose.

Lines are emptied, never removed, so that line numbers stay.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from launcher.core.tables import tables_of
from launcher.core.text import inert

Kind = Literal["shell", "output", "prose"]

_ENV = r"(?:\([\w.+-]+\) *)*"
PROMPT = re.compile(
    rf"\s*{_ENV}(?:\[?[\w.-]+@[\w.-]+(?:[: ]\S*?)?\]? ?[$#%] +|[$❯%] +|(?:~|/)?[\w./~-]*\$ +|(?:ba)?sh-[\d.]+[$#] +"
    rf"|➜ +\S+ +(?:git:\(\S+\) +)?(?:✗ +)?|PS [A-Z]:[^>\n]*> +)(?=\S)"
)
_DEEPEST = 5  # quotes of quotes
_FENCE = re.compile(r"\s*(?:(?:[-*]|\d+[.)])\s+)?(`{3,}|~{3,})\s*(.*?)\s*\Z")
_TICK = re.compile(r"\s*`(?!`)")
_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[.,:;?!]*")
_MARKUP = re.compile(
    r"\s*(?:[-*+•] \S|!\[|</?(?:details|summary|img|br|p|div|h\d|code|pre|a|b)\b|\*\*|\d+[.)] [A-Z])"
    r"|[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]"
)
_LABEL = re.compile(r"\s*[A-Z][\w ]{0,40}:\s*\Z")
_OUTPUT = re.compile(
    r"\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d|Error executing job|\([A-Za-z_]\w*[^()]{0,60}pid=\d+"
    r"|\[?\d{4}-\d\d-\d\d[ T]|(?:INFO|WARNING|ERROR|DEBUG) |\[rank\d+\]|ray::|ray init kwargs|wandb: "
    r"|[\w.]+(?:Error|Exception|Interrupt)(?:\(\w+\))?: |\[\d+\] \d+\s*\Z|zsh: |-{4,}\w)"
)
_SAYS = tuple(tables_of(__file__)["commands"])
_CLOSED = re.compile(r"\\.|\$?'[^'\\]*(?:\\.[^'\\]*)*'(?<=')|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")


@dataclass(frozen=True)
class Block:
    """Consecutive lines of one kind; `start` is the index of the first one."""

    kind: Kind
    start: int
    lines: tuple[str, ...]
    fenced: bool = False

    @property
    def text(self) -> str:
        """Its lines after the same number of empty lines as there are lines before it, so that line numbers stay."""
        return "\n" * self.start + "\n".join(self.lines)


def clean_lines(text: str) -> list[str]:
    """The lines of a pasted text without escapes, invisible characters and mail quote marks."""
    lines = inert(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    for _ in range(_DEEPEST):  # `> ` marks quotes, or a shell's continuation after a backslash
        found = list(lines)
        at = 0
        while at < len(lines):
            end = at
            while end < len(lines) and lines[end].lstrip().startswith(">"):
                end += 1
            if end > at and not (at and PROMPT.match(lines[at - 1])):  # a shell's question belongs to its prompt
                found[at:end] = _without_marks(lines[at:end], at > 0 and lines[at - 1].rstrip().endswith("\\"))
            at = end + 1
        if found == lines:
            break
        lines = found
    return lines


def blocks(lines: Sequence[str]) -> list[Block]:
    """The text's blocks, in order."""
    if next((line for line in lines if line.strip()), "").startswith("#!"):
        return [Block("shell", 0, tuple(lines))]  # a script, whatever its here-documents contain
    return [block for fenced, start, part in _fences(list(lines)) for block in _divided(part, start, fenced)]


def without_prose(lines: Sequence[str]) -> list[str]:
    """The lines with fences, and sentences between them, emptied; unchanged without fences: sentences may be output."""
    found = ["" if _FENCE.match(line) else line for line in lines]
    for block in blocks(lines) if found != list(lines) else ():
        if block.kind == "prose":
            found[block.start : block.start + len(block.lines)] = [""] * len(block.lines)
    return found


def is_open(command: str) -> bool:
    """Whether a shell would read another line: after a backslash, in quotes, in a here-document."""
    if re.search(r"(?<!\\)(?:\\\\)*\\\Z", command):
        return True
    if (here := _HEREDOC.search(command)) is not None:
        return not re.search(rf"^\s*{here[2]}\s*$", command[here.end() :], re.MULTILINE)
    left = _CLOSED.sub("", command)
    comment = _COMMENT.search(left)
    return any(sign in (left[: comment.start()] if comment else left) for sign in "'\"")


def _without_marks(lines: list[str], continued: bool) -> list[str]:
    """Lines without a leading `>`; a script's own `> file` after a backslash stays."""
    if len(lines) == 1 and continued and re.match(r"\s*>\s*[^\s=]+(?:\s+(?:2>|&|\|).*)?\Z", lines[0]):
        return lines
    blank = all(re.match(r"\s*>(?: |\Z)", line) for line in lines)
    return [line.lstrip()[1 + (blank and line.lstrip()[1:2] == " ") :] for line in lines]


def _fences(lines: list[str]) -> Iterator[tuple[bool, int, list[str]]]:
    """The parts inside and outside of ```, with the index of their first line; a lone backtick counts as a fence."""
    start, closing = 0, ""
    part: list[str] = []
    for at, line in enumerate(lines):
        fence, rest = _FENCE.match(line), ""
        if closing == "`":
            ends, rest = line.count("`") % 2 == 1, line.replace("`", "")
        elif closing:
            tail = line.rstrip()
            ends = tail.endswith(closing) if fence is None else not fence[2] and fence[1].startswith(closing)
            rest = tail.rstrip(closing[0]) if fence is None else ""
        elif fence is not None:
            yield False, start, part
            closing, start, part = fence[1], at, ["" if re.fullmatch(r"[\w+-]*", fence[2]) else fence[2]]
            if part[0].endswith(closing):
                yield True, start, [part[0].rstrip(closing[0])]
                closing, start, part = "", at + 1, []
            continue
        elif _TICK.match(line) and line.count("`") % 2 and any(other.count("`") % 2 for other in lines[at + 1 :]):
            yield False, start, part
            closing, start, part = "`", at, [line.replace("`", "", 1)]
            continue
        else:
            part.append(line)
            continue
        part.append(rest if ends else line)
        if ends:
            yield True, start, part
            closing, start, part = "", at + 1, []
    yield bool(closing), start, part


def _divided(lines: list[str], start: int, fenced: bool) -> Iterator[Block]:
    """Divides one part into blocks; lines inside an open quote or here-document stay together."""
    kind: Kind = "shell"
    found: list[str] = []
    begin, command = start, ""
    for at, line in enumerate(lines, start):
        if command and is_open(command):
            now, command = kind, f"{command}\n{line}"
        else:
            now = kind if not line.strip() else _kind_of(line, fenced, after=kind)
            command = line if now == "shell" and not line.lstrip().startswith("#") else ""
        if len(command) > 100_000:  # never closed
            command = ""
        if now != kind:
            yield Block(kind, begin, tuple(found), fenced)
            kind, found, begin = now, [], at
        found.append(line)
    yield Block(kind, begin, tuple(found), fenced)


def _kind_of(line: str, fenced: bool, after: Kind) -> Kind:
    if _OUTPUT.match(line):
        return "output"
    if line.lstrip().startswith("#"):  # a comment, or a heading, which is one for a shell
        return "shell" if after == "prose" else after
    if _MARKUP.match(line) or (not fenced and _LABEL.match(line)) or _is_prose(line):
        return "output" if fenced else "prose"
    return "output" if after == "output" and not re.match(r"\s*(?:\S+[$#%] |\$ |\++ )", line) and fenced else "shell"


def _is_prose(line: str) -> bool:
    """Whether a line is a sentence: words without shell characters."""
    words = line.split()
    if len(words) < 3 or words[0].lower() in _SAYS or re.search(r"[=|;<>\\{}$]|&&|\s--?\w", line):
        return False
    return sum(_WORDS.fullmatch(word.strip("\"'()*`")) is not None for word in words) >= max(3, 0.6 * len(words))
