"""Logs of other frameworks: which framework wrote a file, and the steps of files with a row per step."""

import csv
import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from launcher.console.forms import FormStep, Joiner, names_in, numbers
from launcher.console.lines import PREFIX, PieceSplitter, clean_text
from launcher.core.tail import lines_of
from launcher.core.text import clean
from launcher.metrics.frameworks import Framework, frameworks, of_names, recognized
from launcher.metrics.records import is_step, parse_object
from launcher.runs.watch.unnamed import Unnamed, of_rows

_STEPS = ("step", "global_step", "train/global_step", "_step", "iteration")  # names in rows of unknown origin
_VERL = re.compile(rb"(?:^|[\n)] ?)(?:\x1b\[[0-9;]{0,20}m ?)*step:[0-9]{1,15} - [\w-]+/")
_CODE = re.compile(rb"[/ \"'](?=([a-z_]{3,12})/(?:[a-z_]{1,40}/){0,6}[a-z_]{1,40}\.py\b)")  # a file of a package
_LOOKED = 20_000  # lines that may be of a form, until which a framework is found
_STEP_COLUMN = re.compile(rb"^.{0,4000}\bstep\b.{0,4000}$|\A.*", re.MULTILINE | re.IGNORECASE)
_ROWS = 200  # rows for recognizing a file's framework
_HISTORY = b'"log_history"'  # in trainer_state.json


def recognize(read: Iterable[bytes], names: Framework | None = None) -> Framework | None:
    """The framework of a console, by its lines and their names; None for veRL and unknown ones.

    `names`: a user's table, which wins; without line forms, it uses the forms of the framework that the console
    matches.
    """
    tables = {"": names} if names is not None and names.lines else frameworks()
    hints = {form.hint.encode() for framework in tables.values() for form in framework.lines}
    seen: dict[str, set[str]] = {}
    alone: set[str] = set()
    looked, rest = 0, b""
    for chunk in chain(read, (b"\n",)):
        whole, _, rest = (rest + chunk).rpartition(b"\n")
        verl = None if names else _VERL.search(whole)
        for line in (whole[: verl.start()] if verl else whole).split(b"\n"):
            if not any(hint in line for hint in hints):
                continue
            looked += 1
            for _, _, raw, _ in PieceSplitter().feed(line + b"\n"):
                prefix = PREFIX.match(raw)
                text = clean_text(raw, prefix.end() if prefix else 0)
                for name, form, row in names_in(text, tables):
                    if name in seen or form.numbers not in (
                        "part",
                        "ahead",
                    ):  # these follow the line that begins a step
                        seen.setdefault(name, set()).update(row)
                        alone |= {name} if form.alone and re.search(form.alone, text) else set()
            if found := _of_user(seen, tables, names) if names else recognized(seen, alone):
                return found
        if verl or looked > _LOOKED:
            return None
        rest = rest[-(1 << 20) :]
    return None


def without_steps(start: bytes) -> Framework | None:
    """The framework whose code the start of a log mentions, unless it mentions veRL's."""
    packages = set() if b"verl" in start else {match[1].decode() for match in _CODE.finditer(start)}
    return next((each for each in frameworks().values() if each.module in packages), None)


def _of_user(seen: Mapping[str, set[str]], tables: Mapping[str, Framework], names: Framework) -> Framework | None:
    """The user's table with the line forms in which one of its names was seen."""
    name = next((name for name in seen if names.known(seen[name])), None)
    if name is None:
        return None
    form = tables[name]
    # without numbers, each line that has a metric is a step
    counted = any(line.numbers == "each" for line in form.lines) and seen[name].isdisjoint(names.steps)
    ends = tuple(name for row in names.metrics for name in row.theirs) if counted else ()
    return dataclasses.replace(names, lines=form.lines, lag=max(form.lag, names.lag), ends=names.ends or ends)


def recognize_rows(
    path: Path, read: Iterable[bytes], names: Framework | None = None, *, text: bool = False
) -> Framework | None:
    """The framework of a file with a row per step, by the names in its first rows; None for another file.

    Raises UserError for rows with a step but without any name in `names` (the user's table) or another table.
    """
    seen: Counter[str] = Counter()
    numbered = False
    chunks = iter(read)
    start = next(chunks, b"")
    first = [*islice(rows(chain((start,), chunks), names.steps if names else ()), _ROWS)]
    for row in first:
        seen.update(numbers(row))
        numbered = numbered or _step(row, _STEPS) is not None
    alone = {"transformers"} if seen and _is_state(start.lstrip()) else set[str]()
    found = of_names(seen, alone) if names is None else names if names.known(seen) else None
    if found is None and numbered and not text:
        shown = ", ".join(clean(name)[:40] for name, _ in seen.most_common(8) if name not in _STEPS)
        known = "a known framework" if names is None else "--names"
        raise Unnamed(f"{path} has a row per step, but too few metric names of {known}: {shown}", of_rows(first) or "")
    return found


def row_steps(read: Iterable[Mapping[str, Any]], framework: Framework, *, whole: bool = True) -> Iterator[FormStep]:
    """The steps of numbered rows, with their time if they have `_timestamp`."""
    join = Joiner(framework)
    for row in read:
        own, update = _step(row, framework.steps), _step(row, framework.mini)
        names = _metrics(tuple(row))
        data = numbers({name: row[name] for name in names if row[name] is not None or not framework.null})
        t = row.get("_timestamp")
        if own is None and update is None:
            own = _step(row, _STEPS)
        number, kind = (update, "updates") if own is None and update is not None else (own, "step")
        yield from join.add(data, number, kind, (0, 0), t if isinstance(t, float) else 0.0)
    if whole:
        yield from join.close()


def iterations(read: Iterable[Mapping[str, Any]], framework: Framework) -> Iterator[Mapping[str, Any]]:
    """Rows that a tracker numbers by environment steps, joined per iteration; others in between are averaged."""
    number, values = 0, dict[str, list[float]]()
    for row in read:
        for name in _metrics(tuple(row)):
            values.setdefault(name, []).append(row[name])
        if framework.iteration in map(framework.short, row):
            number += 1
            means = {name: sum(each) / len(each) for name, each in values.items()}
            yield {**means, framework.environment: row["_step"], "_step": number, "_timestamp": row["_timestamp"]}
            values = {}


@functools.lru_cache(maxsize=64)
def _metrics(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names in a row, without step names."""
    return tuple(name for name in names if name not in _STEPS and name[:1] != "_")


def _step(row: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """The step number of a row."""
    for name in names:
        if name not in row:
            continue
        try:
            number = int(float(str(row[name]).partition("/")[0]))  # "12/800" of ms-swift
        except (TypeError, ValueError, OverflowError):
            continue
        if is_step(number):
            return number
    return None


def rows(read: Iterable[bytes], steps: Iterable[str] | None = ()) -> Iterator[Mapping[str, Any]]:
    """The rows of JSON lines, trainer_state.json, and CSV with a step column, or one of `steps`; none for other files.

    Without `steps` (None) any table of numbers has rows.
    """
    chunks = iter(read)
    start = next(chunks, b"").lstrip()
    head = start.partition(b"\n")[0]
    if _is_state(start):
        yield from _history(b"".join((start, *chunks)))[0]
    elif head.startswith(b"{"):
        yield from filter(None, map(parse_object, lines_of(chain((start,), chunks))))
    else:
        at, sign = _table(start, steps)
        lines = lines_of(chain((start[at:],), chunks))
        yield from _cells((line.decode(errors="replace").replace("\0", "") for line in lines), sign) if sign else ()


def _table(start: bytes, steps: Iterable[str] | None) -> tuple[int, str]:
    """Offset and separator of a table with a step column; the separator is empty without one.

    The table starts at the file's first line or, as notebooks show it, at the first line with a framework's names.
    """
    for line in _STEP_COLUMN.finditer(start):
        text = line[0].decode(errors="replace")
        for sign in ",\t;|" if not line.start() else "\t|":
            names = _names(text.strip("|").split(sign))
            known = not _numbers_of_steps().isdisjoint(names) or not {*(steps or ())}.isdisjoint(names)
            known = known if steps is not None else _has_numbers(start[line.end() :], sign, len(names))
            if len(names) > 1 and known and (not line.start() or of_names(names)):
                return line.start(), sign
    return 0, ""


def _has_numbers(rest: bytes, sign: str, count: int) -> bool:
    """Whether the next line has so many cells, and a number in the first one."""
    cells = rest.lstrip(b"\r\n").partition(b"\n")[0].decode(errors="replace").split(sign)
    return len(cells) == count and bool(numbers({"": cells[0]}))


@functools.cache
def _numbers_of_steps() -> frozenset[str]:
    return frozenset((*_STEPS, *(name for each in frameworks().values() for name in each.steps)))


def _names(cells: Iterable[str]) -> list[str]:
    """The names in the first row; notebooks write `rewards / x` for `rewards/x`, and `Step`."""
    names = [cell.strip(' "\r\n').replace(" / ", "/") for cell in cells]
    return [name.lower() if name.lower() in _STEPS else name for name in names]


def _cells(lines: Iterable[str], sign: str) -> Iterator[Mapping[str, str]]:
    """The rows of a table by its first row; damaged ones are omitted."""
    split = (line.strip(" |\r\n").split("|") for line in lines)
    reader: Iterator[list[str]] = split if sign == "|" else csv.reader(lines, delimiter=sign)
    names: list[str] = []
    while True:
        try:
            cells = next(reader)
        except csv.Error:
            continue
        except StopIteration:
            return
        if not names:
            names = _names(cells)
        elif cells and (sign != "|" or len(cells) == len(names)):
            yield dict(zip(names, cells, strict=False))


def rows_of_cut(read: Iterable[bytes]) -> int | None:
    """The number of complete rows in a truncated trainer_state.json; None for other files."""
    chunks = iter(read)
    start = next(chunks, b"").lstrip()
    rows, whole = _history(b"".join((start, *chunks))) if _is_state(start) else ([], True)
    return None if whole else len(rows)


def _is_state(start: bytes) -> bool:
    """Whether a file with this beginning is one JSON object, not one per line."""
    return re.match(rb'\{\s*"', start) is not None and parse_object(start.partition(b"\n")[0]) is None


def _history(text: bytes) -> tuple[list[Mapping[str, Any]], bool]:
    """The complete rows of a trainer_state.json, and whether the file is complete."""
    state = parse_object(text)
    whole = state is not None
    if state is None and (begin := text.find(_HISTORY)) >= 0:
        rows = text[begin + len(_HISTORY) : text.rfind(b"}") + 1].lstrip(b": \n")
        state = parse_object(b'{"log_history": ' + rows + b"]}")
    rows_ = (state or {}).get("log_history")
    return [row for row in rows_ if isinstance(row, dict)] if isinstance(rows_, list) else [], whole
