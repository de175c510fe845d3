"""Bounds for YAML from elsewhere (size, depth, expansion of aliases), and fixes for invalid YAML.

Most texts pass in microseconds, after counting brackets, indentation and aliases.
"""

import contextlib
import re
from typing import TYPE_CHECKING, Any

from launcher.core.format import number

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

LARGEST = 1 << 17  # characters; the largest shipped preset has 6,000
DEEPEST = 40  # nested mappings and lists
MOST = 20_000  # values, each alias counted as the values that it expands to

_WALL = re.compile(rf"(?:[\[{{]\s*){{{DEEPEST + 1}}}")
_HEAD = re.compile(r"^[ \t?-]*", re.MULTILINE)


def refusal(text: str) -> str | None:
    """Why a YAML text is refused, as a clause; None within bounds, and for invalid YAML."""
    if len(text) > LARGEST:
        return f"has {number(len(text))} characters; at most {LARGEST:,} are read"
    if _WALL.search(text):  # the scanner itself is slow in these
        return f"nested more than {DEEPEST} deep"
    brackets = text.count("[") + text.count("{")
    if brackets + max(len(head) for head in _HEAD.findall(text)) <= DEEPEST and "*" not in text:
        return None
    return _measured(text)


def mending(text: str, error: "MarkedYAMLError") -> str:
    """The fix for invalid YAML, by the open construct where the parser stopped."""
    from ruamel.yaml.constructor import DuplicateKeyError

    mark, at = error.context_mark, _letter(text, error.problem_mark)
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    mark = mark if at or _letter(text, mark) else _unclosed(text)  # the parser names the end of the text alone
    if (opened := _letter(text, mark)) and opened in "[{\"'":
        sign = "quote" if opened in "\"'" else opened
        return f"close the {sign} opened in line {mark.line + 1}"
    if isinstance(error, DuplicateKeyError):
        return f"remove line {line}, or the other one with this name"
    if at == "\t":
        return f"use spaces instead of the tab in line {line}"
    return f"correct line {line}: its indentation, colons and quotes"


def _unclosed(text: str) -> Any:
    """The mark of the innermost unclosed bracket of a text; None without one."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    opened: list[Any] = []
    with contextlib.suppress(YAMLError):
        for token in YAML(typ="safe", pure=True).scan(text):
            if token.id in ("[", "{"):
                opened.append(token.start_mark)
            elif token.id in ("]", "}"):
                opened[-1:] = []
    return opened[-1] if opened else None


def _letter(text: str, mark: Any) -> str:
    return text[mark.index : mark.index + 1] if mark else ""


def _measured(text: str) -> str | None:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

    sizes: dict[str, int | None] = {}  # expanded size per anchor; None while it is read
    opened: list[tuple[str | None, int]] = []
    count = 0
    try:
        for event in YAML(typ="safe").parse(text):
            place = f"line {event.start_mark.line + 1}"
            if isinstance(event, AliasEvent):
                size = sizes.get(event.anchor, 1)
                if size is None:
                    return f"{place}: *{event.anchor} contains itself"
                count += size
            elif isinstance(event, CollectionStartEvent):
                opened.append((event.anchor, count))
                if event.anchor:
                    sizes[event.anchor] = None
                count += 1
            elif isinstance(event, CollectionEndEvent):
                anchor, before = opened.pop()
                if anchor:
                    sizes[anchor] = count - before
            elif isinstance(event, NodeEvent):
                count += 1
                if event.anchor:
                    sizes[event.anchor] = 1
            if len(opened) > DEEPEST:
                return f"{place}: nested more than {DEEPEST} deep"
            if count > MOST:
                return f"{place}: expands to more than {MOST:,} values"
    except (YAMLError, ValueError, RecursionError):
        return None  # its parser reports the error
    return None
