"""Reads the text of a YAML file, and changes one value in it; all other lines stay the same, byte for byte.

A round trip through ruamel keeps comments, but changes the layout. So a value is replaced at its place in the text.
Unusual layouts (anchors, several lines in braces) are detected by reading the result, and changed by ruamel.
"""

import contextlib
import copy
import functools
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError, of_file
from launcher.core.format import yaml_number
from launcher.core.text import clean
from launcher.core.yaml_bounds import mending, refusal

Where = tuple[str, ...]
"""A path of a value: ("actor", "lr"), ("env", "NAME"), ("overrides", key), ("health", "rules", ...)."""

Place = Callable[[tuple[Any, ...]], str]
"""Gives the place of a path in a file, such as `my.yaml, line 3`."""

_COMMENT = re.compile(r"([ \t]+)(#[^\n]*)")
_LINE_COMMENT = re.compile(r"^[ \t]*#", re.MULTILINE)


def text_of(value: Any) -> str:
    """`value` on one line of YAML, valid inside braces and brackets: `1e-6`, `'null'`, `[a, b]`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, float):
        return yaml_number(value)
    if not isinstance(value, str):
        return json.dumps(value)
    if not value.isprintable():
        escaped = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in value)
        return '"' + "".join(escaped) + '"'
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.allow_unicode, yaml.width = True, True, 1 << 24
    text = io.StringIO()
    yaml.dump([value], text)  # in brackets, so that special characters get quotes
    return text.getvalue().strip()[1:-1]


def shown(value: Any) -> str:
    """A value as typed by users: text without quotes, `–` for None."""
    return "–" if value is None else value if isinstance(value, str) and value else text_of(value)


def read(text: str) -> Any:
    """The content of a YAML 1.2 text, like presets. Raises YAMLError."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def value_of(text: str) -> Any:
    """The value of a typed `text`: YAML if it is valid, otherwise the text itself."""
    from ruamel.yaml.error import YAMLError

    try:
        return read(text) if text.strip() else ""
    except (YAMLError, ValueError):
        return text


def parse(path: Path, text: str | None = None) -> tuple[dict[Any, Any], Place]:
    """The file's mapping in Python types, and a function that gives the place of a path in it.

    `text` replaces the file's content. Raises UserError.
    """
    try:
        document = _document(path, path.read_text(encoding="utf-8") if text is None else text)
    except ValueError:
        raise UserError("not UTF-8 text", "save the file as UTF-8", str(path)) from None
    except OSError as error:
        raise of_file(f"cannot read {path}", error) from None
    return _plain(document), functools.partial(_place, path, document)


@functools.lru_cache(maxsize=64)  # presets extend one another, and a list reads all; documents are never changed
def _document(path: Path, text: str) -> Mapping[Any, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if (why := refusal(text)) is not None:
        raise UserError(why, "a preset needs at most a few hundred values", str(path))
    try:
        # Round trip: it alone knows the lines. A reader of its own each time, because they keep state.
        document = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = _first_line(error.problem or error)
        raise UserError(f"{path}{line}: not valid YAML: {problem}", mending(text, error)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid YAML: {_first_line(error)}", "correct the file") from None
    if not isinstance(document, Mapping | None):
        raise UserError("a preset must be a mapping of names and values", "write NAME: VALUE lines", str(path))
    return document or {}


def _place(path: Path, document: Any, place: tuple[Any, ...]) -> str:
    node, line = document, None
    for name in place:
        try:
            line = node.lc.key(name)[0]
            node = node[name]
        except (AttributeError, KeyError, TypeError):
            break
    return str(path) if line is None else f"{path}, line {line + 1}"


def _plain(value: Any) -> Any:
    """Converts ruamel's values to Python types, so that other code does not depend on ruamel."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return str(value)  # a date is text to us


def _key(key: Any) -> Any:
    """A valid Python key; YAML also allows lists and mappings as keys."""
    plain = _plain(key)
    return str(plain) if isinstance(plain, (dict, list)) else plain


def _first_line(problem: object) -> str:
    return clean(str(problem)).partition("\n")[0]


def put(text: str, path: Where, value: Any, order: Sequence[str] = ()) -> str:
    """The text with `value` at `path`, last in its group; a new group follows its last predecessor in `order`.

    An existing value keeps its spelling.
    """
    data = read(text) or {}
    _change(wanted := copy.deepcopy(data), path, value)
    if repr(wanted) == repr(data):
        return text
    try:
        changed = _Text(text).put(path, value, order)
    except _Unusual:
        return _by_ruamel(text, path, value)
    return changed if _says(changed, wanted) else _by_ruamel(text, path, value)


def drop(text: str, path: Where) -> str:
    """The text without the value at `path`; a group is removed with its last value, unless it has comments."""
    data = read(text) or {}
    if not _has(data, path):
        return text
    for names in dict.fromkeys((_emptied(data, path), path)):
        with contextlib.suppress(_Unusual):
            changed, wanted = _Text(text).drop(names), copy.deepcopy(data)
            _change(wanted, names, drop=True)
            if _says(changed, wanted):
                return changed
    return _by_ruamel(text, path, None, drop=True)


class _Text:
    """A text with the places of its values."""

    def __init__(self, text: str) -> None:
        from ruamel.yaml import YAML

        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.root = YAML(typ="rt", pure=True).compose(text)

    def put(self, path: Where, value: Any, order: Sequence[str]) -> str:
        holder, key, node, rest = self._find(path)
        if node is not None and not rest:
            return self._replace(key, node, value)
        if node is not None and node.tag.endswith(":null"):  # `env:` with nothing below it
            inner = self._nested(rest, value, " " * (key.start_mark.column + 2))
            return self._insert(self._line_end(self._colon(key)), inner)
        if node is not None:
            raise _Unusual
        if holder is None:  # nothing but comments
            before = self.text if not self.text or self.text.endswith("\n") else self.text + self.newline
            return before + self._nested(rest, value, "") + self.newline
        if holder.flow_style:
            close = holder.end_mark.index - 1
            comma = ", " if holder.value else ""
            for name in reversed(rest[1:]):
                value = {name: value}
            return f"{self.text[:close]}{comma}{text_of(rest[0])}: {text_of(value)}{self.text[close:]}"
        at, blank = self._place(holder, rest[0], order)
        indent = " " * holder.value[0][0].start_mark.column
        lead = self.newline if blank and len(rest) > 1 else ""
        return self._insert(at, lead + self._nested(rest, value, indent))

    def drop(self, path: Where) -> str:
        holder, key, node, rest = self._find(path)
        if rest or holder is None:
            raise _Unusual
        index = next(i for i, (each, _) in enumerate(holder.value) if each is key)
        if holder.flow_style:
            if index + 1 < len(holder.value):
                begin, end = key.start_mark.index, holder.value[index + 1][0].start_mark.index
            elif index:
                begin, end = holder.value[index - 1][1].end_mark.index, node.end_mark.index
            else:
                begin, end = key.start_mark.index, node.end_mark.index
            return self.text[:begin] + self.text[end:]
        begin = self.text.rfind("\n", 0, key.start_mark.index) + 1
        end = self._line_end(self._end(key, node))
        if _LINE_COMMENT.search(self.text, begin, end):
            raise _Unusual
        return self.text[:begin] + self.text[end:].removeprefix("\r").removeprefix("\n")

    def _find(self, path: Where) -> tuple[Any, Any, Any, Where]:
        """The deepest existing mapping on the path, the key and node found in it, and the missing names."""
        holder, key, node = None, None, self.root
        for depth, name in enumerate(path):
            if node is None or node.id != "mapping":
                return holder, key, node, path[depth:]
            holder, key = node, None
            pairs = [(each, value) for each, value in node.value if str(each.value) == name]
            if not pairs:
                return holder, None, None, path[depth:]
            key, node = pairs[-1]
        return holder, key, node, ()

    def _replace(self, key: Any, node: Any, value: Any) -> str:
        colon = self._colon(key)
        empty = node.tag.endswith(":null") and not node.value
        end = colon if empty else self._end(key, node)
        begin = colon if empty else node.start_mark.index
        new = text_of(value)
        between = self.text[colon:begin]
        if "\n" in between:  # the value began on a line of its own
            comment = between.partition("\n")[0].rstrip("\r")
            return self.text[:colon] + f" {new}" + comment + self.text[end:]
        rest = self.text[end:]
        if empty:
            new = f" {new}"
        elif found := _COMMENT.match(rest):  # the comment keeps its column
            gap = max(len(found[1]) + (end - begin) - len(new), 1)
            rest = " " * gap + rest[len(found[1]) :]
        return self.text[:begin] + new + rest

    def _place(self, holder: Any, name: str, order: Sequence[str]) -> tuple[int, bool]:
        """The place of a new entry, and whether a blank line precedes groups here."""
        blank = holder is self.root and self._blanks()
        entries = holder.value
        if holder is self.root and name in order:
            before = set(order[: order.index(name)])
            earlier = [entry for entry in entries if str(entry[0].value) in before]
            if not earlier:
                return self.text.rfind("\n", 0, entries[0][0].start_mark.index), False
            entries = earlier
        return self._line_end(self._end(*entries[-1])), blank

    def _blanks(self) -> bool:
        starts = [key.start_mark.index for key, value in self.root.value[1:] if value.id == "mapping"]
        return any(re.search(r"\n[ \t\r]*\n(?:[ \t]*#[^\n]*\n)*$", self.text[:start]) is not None for start in starts)

    def _end(self, key: Any, node: Any) -> int:
        """The place after the last character of a value; ruamel's end of a block mapping is the next token's."""
        if getattr(node, "flow_style", True) is False and node.value:
            last = node.value[-1]
            return self._end(*last) if isinstance(last, tuple) else self._end(key, last)
        if node.id == "scalar" and getattr(node, "style", None) in ("|", ">"):
            return len(self.text[: node.end_mark.index].rstrip())
        if node.tag.endswith(":null") and not node.value:
            return self._colon(key)
        return int(node.end_mark.index)

    def _colon(self, key: Any) -> int:
        return self.text.index(":", key.end_mark.index) + 1

    def _line_end(self, index: int) -> int:
        found = self.text.find("\n", index)
        end = len(self.text) if found < 0 else found
        return end - 1 if end > index and self.text[end - 1] == "\r" else end

    def _insert(self, at: int, lines: str) -> str:
        """Inserts `lines` after the line that ends at `at`; -1: at the beginning."""
        if at < 0:
            return lines + self.newline + self.text
        return self.text[:at] + self.newline + lines + self.text[at:]

    def _nested(self, names: Where, value: Any, indent: str) -> str:
        lines = [f"{indent}{'  ' * depth}{text_of(name)}:" for depth, name in enumerate(names)]
        return self.newline.join(lines) + f" {text_of(value)}"


class _Unusual(Exception):
    """An unusual layout, left to ruamel."""


def _says(text: str, wanted: Any) -> bool:
    """Whether the text has the wanted content. NaN equals itself here, and 1 is not true."""
    from ruamel.yaml.error import YAMLError

    try:
        return repr(_sorted(read(text))) == repr(_sorted(wanted))
    except (YAMLError, ValueError):
        return False


def _by_ruamel(text: str, path: Where, value: Any, *, drop: bool = False) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 1 << 24
    document = yaml.load(text)
    if document is None:
        document = CommentedMap()
    _change(document, path, value, drop=drop)
    written = io.StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def _change(document: Any, path: Where, value: Any = None, *, drop: bool = False) -> None:
    """Sets the value at `path` of nested mappings, or removes it."""
    node = document
    for name in path[:-1]:
        if not isinstance(node.get(name), dict):
            node[name] = type(document)()
        node = node[name]
    if drop:
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value


def _has(data: Any, path: Where) -> bool:
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return True


def _emptied(data: Any, path: Where) -> Where:
    """The path of the outermost mapping that would be empty without `path`."""
    while len(path) > 1:
        holder = data
        for name in path[:-1]:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or set(holder) - {path[-1]}:
            break
        path = path[:-1]
    return path


def _sorted(data: Any) -> Any:
    """Sorts mappings by name and drops empty ones."""
    if isinstance(data, dict):
        return {key: _sorted(data[key]) for key in sorted(data, key=str)} or None
    return data
