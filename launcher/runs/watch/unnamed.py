"""Files of unknown metrics: what they look like, and a table for --names that the user completes."""

import functools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from launcher.console.forms import numbers
from launcher.core.about import documentation
from launcher.core.errors import UserError
from launcher.core.format import number
from launcher.core.tail import lines_of
from launcher.core.text import clean
from launcher.metrics.frameworks import frameworks

SHOWN = f"as '{documentation('howto/frameworks')}' shows"
_ROWS = 200  # that are looked at
_FORM = r"""(?P<name>[A-Za-z_][\w/.-]{0,60})["\x27]?[ =:|]{1,4}(?P<value>[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?![\w.:])"""
_PAIR = re.compile(_FORM)
_COUNTED = ("step", "steps", "global_step", "iter", "iteration", "epoch", "episode", "update")


class Unnamed(UserError):
    """A file with metrics of unknown names; `table` is one for --names, in TOML."""

    def __init__(self, what: str, table: str) -> None:
        super().__init__(what, f"complete this table, {SHOWN}: 'ppo-tui health LOG --names FILE'")
        self.table = table


def of_lines(read: Iterable[bytes]) -> tuple[int, str, str] | None:
    """The first of two lines with a step number and two other numbers under equal names: its number, its text, and the
    table for such lines.
    """
    seen: dict[frozenset[str], tuple[int, str, list[Mapping[str, float]]]] = {}
    for at, raw in enumerate(lines_of(read), 1):
        line = clean(raw[:2000].decode(errors="replace"))
        row = {name: float(value) for name, value in _PAIR.findall(line)}
        kind = frozenset(map(str.lower, row))
        if len(row) < 3 or kind.isdisjoint(_COUNTED):
            continue
        rows = seen.setdefault(kind, (at, line, []))[2]
        rows.append(row)
        if len(seen) >= _ROWS or len(rows) >= _ROWS:
            break
    first, line, rows = max(seen.values(), key=lambda each: len(each[2]), default=(0, "", []))
    if len(rows) < 2:
        return None
    step = next(name for name in rows[0] if name.lower() in _COUNTED)
    match = rf"^(?=.*?\b{step}\W{{1,4}}(?P<step>\d+)\b)(?P<body>.*)"
    form = ["[[lines]]", f"hint = {json.dumps(step)}", f"match = '{match}'", f"pair = '{_FORM}'"]
    return first, line, "\n".join([*_named(rows, step), *form])


def of_rows(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """The table for rows with a name that grows by whole numbers, such as that of the step; None for others."""
    found = [numbers(row) for row in islice(rows, _ROWS)]
    names = list(dict.fromkeys(name for row in found for name in row))
    step = next((name for name in names if _grows([row[name] for row in found if name in row])), "")
    return "\n".join([f"steps = [{json.dumps(step)}]", *_named(found, step)]) if step and len(names) > 2 else None


def _grows(values: Sequence[float]) -> bool:
    return len(values) > 1 and all(x.is_integer() for x in values) and all(a < b for a, b in pairwise(values))


def _named(rows: Sequence[Mapping[str, float]], step: str) -> Iterable[str]:
    """The metrics of a table, each with its range and as a comment."""
    yield "# Remove the # before each row whose meaning is right; `ours` is a name of veRL."
    yield "metrics = ["
    for name in dict.fromkeys(name for row in rows for name in row if name != step):
        values = [row[name] for row in rows if name in row and math.isfinite(row[name])]
        span = f"{number(min(values))} to {number(max(values))}" if values else "not finite"
        yield f"  # {{theirs = [{json.dumps(name)}], ours = {json.dumps(_guess(name))}}},  # {span}"
    yield "]"


def _guess(name: str) -> str:
    """Our name for one that a framework uses; empty without one."""
    return _ours().get(_plain(name)) or _ours().get(_plain(name.rpartition("/")[2]), "")


@functools.cache
def _ours() -> Mapping[str, str]:
    rows = [row for each in frameworks().values() for row in each.metrics if row.ours and "{" not in row.ours]
    return {_plain(name): row.ours for row in reversed(rows) for name in (*row.theirs, row.ours)}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
