"""A line chart as rows of text: title, curves in braille, axes with short labels.

Stable by design: a live run's step axis ends at a rung of a ladder or at the plan, and the value axis at round numbers,
so that one more step changes few cells. Spikes stay: a column shows its minimum and maximum. Non-finite values leave
gaps.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, groupby
from textwrap import wrap

from launcher.core.format import number
from tui.kit.drawing import scale
from tui.kit.drawing.glyphs import AXIS, BASE, DOT, DOWN, LIMIT, SEAM, UP
from tui.kit.drawing.plot import STEPS, Curve, Limit, Plot
from tui.kit.drawing.rows import TINTED, Row, Span, crop, fit, joined, shorten, spread, width
from tui.kit.drawing.trace import Canvas, Window, spark, trace

GUTTER = scale.LABEL + 1  # label and axis
_LEAST = 8  # columns of curve below which labels give way
_LEAST_NAME = 12  # cells of a name that is cut
_LEGEND = 5  # rows of curve below which the legend gives way
_APART = 12  # minimum columns between two ticks of the x axis
_NEAR = 3  # rows around a curve in which its value at the cursor finds a place
_SPARK = 6  # minimum columns of a curve in one row
_FREE = (" ", LIMIT)  # cells that words may cover


def draw(plot: Plot, columns: int, rows: int, *, tinted: bool = False) -> list[Row]:
    """The chart in exactly `rows` rows of `columns` cells, of any size.

    `tinted`: tints cells beyond a limit, instead of a line at the limit.
    """
    if columns <= 0 or rows <= 0:
        return []
    body = rows - 1
    named = [*_name(plot), *chain(*plot.headline[:1]), *_behind(plot)]
    if body == 0 or plot.note is not None or width(named) + 2 > columns:
        plot = replace(plot, behind=None)
    if body == 0:
        return [_line(plot, columns)]
    if plot.note is not None or not plot.curves:
        return [_title(plot, columns), *_note(plot.note or "", columns, body)]
    legend = _legend(plot, columns) if body > _LEGEND else []
    body -= len(legend)
    labelled = columns >= GUTTER + _LEAST
    gutter = GUTTER if labelled else 0
    based = labelled and body >= 3
    plotted, unseen = _plot(plot, columns - gutter, body - based, gutter, tinted)
    title = _title(plot, columns, plot.unit if not based or len(plot.unit) > scale.LABEL else "", unseen)
    return [title, *legend, *plotted, *([_base(plot, columns - gutter, gutter)] if based else [])]


def _name(plot: Plot) -> Row:
    return [*_flagged(plot), (plot.title, "title")]


def _flagged(plot: Plot) -> Row:
    return [(" ", "text"), *([plot.flag, (" ", "text")] if plot.flag else [])]


def _behind(plot: Plot) -> Row:
    """The name of the background curve, for the end of the title."""
    return [(f" {plot.behind.sign} {plot.behind.label}", plot.behind.role)] if plot.behind else []


def _title(plot: Plot, columns: int, unit: str = "", unseen: Sequence[Limit] = ()) -> Row:
    """The title row, with `unit` and the limits `unseen` that have no place at the axes.

    A name without room for the value and a flag's limit loses its middle.
    """
    said = [(limit.passed, [(limit.label, limit.role if limit.passed else "dim")]) for limit in unseen]
    first = [*plot.headline[:1], *(part for passed, part in said if passed)]
    parts = [*first, *plot.headline[1:], *(part for passed, part in said if not passed)]
    free = columns - width(_flagged(plot)) - 2
    rooms = (free - sum(width(part) + 1 for part in found) for found in (first, first[:1]))
    room = next((room for room in rooms if room >= _LEAST_NAME), columns)
    left = [*_flagged(plot), (shorten(plot.title, room), "title")]
    with_unit: Row = [*left, (f" {unit}", "dim")]
    if unit and width(with_unit) + sum(map(width, plot.headline[:1])) + 2 <= columns:
        left = with_unit
    right: Row = []
    for part in parts:
        candidate: Row = [*right, *([(" ", "text")] if right else []), *part]
        if width(left) + width(candidate) + width(_behind(plot)) + 2 > columns:
            break
        right = candidate
    right += _behind(plot)
    return spread(left, [*right, (" ", "text")] if right else [], columns)


def _line(plot: Plot, columns: int) -> Row:
    """The chart in one row: title, newest value, and the curve between them if it fits."""
    curves = [curve for curve in plot.curves if not curve.points_only and curve.role != "raw"]
    name, value = _name(plot), plot.headline[0] if plot.headline else []
    room = columns - width(name) - width(value) - 3
    if plot.note is not None or len(curves) != 1 or room < _SPARK or plot.axis is not STEPS or plot.first > 0:
        return _title(plot, columns)
    return [*name, (" ", "text"), *spark(curves[0].points, int(plot.last), room), (" ", "text"), *value, (" ", "text")]


def _legend(plot: Plot, columns: int) -> list[Row]:
    """One row of curve names in their colors, if two have a name."""
    named = [curve for curve in plot.curves if curve.label]
    if len(named) < 2:
        return []
    room = max((columns - 1) // len(named) - 2, 1)
    row: Row = [(" ", "text")]
    for curve in named:
        row += [*crop([(f"{curve.sign or BASE} {curve.label}", curve.role)], room), ("  ", "text")]
    return [fit(row, columns)]


def _note(text: str, columns: int, rows: int) -> list[Row]:
    lines = wrap(text, max(columns - 2 * 3, 8))[:rows]
    above = (rows - len(lines)) // 2
    drawn: list[Row] = [[] for _ in range(above)]
    drawn += [[("   " if columns > 12 else "", "text"), (line, "dim")] for line in lines]
    drawn += [[] for _ in range(rows - len(drawn))]
    return [fit(row, columns) for row in drawn]


def _plot(plot: Plot, columns: int, rows: int, gutter: int, tinted: bool) -> tuple[list[Row], list[Limit]]:
    """The rows of the curves, and the limits left to the title."""
    canvas, behind = Canvas(columns, rows), Canvas(columns, rows)  # a raw curve is behind its average
    curves = [*plot.curves, *([plot.behind] if plot.behind else [])]
    traces = [
        trace(curve.points, Window(curve.axis or plot.axis, plot.first, plot.last, canvas.width), positive=plot.log)
        for curve in curves
    ]
    lows = [low for parts in traces[: len(plot.curves)] for part in parts for _, low, _ in part]
    highs = [high for parts in traces[: len(plot.curves)] for part in parts for _, _, high in part]
    if not lows:
        return _note(_empty(plot), columns + gutter, rows), []
    reached = [limit.value for limit in plot.limits if limit.reach]
    if plot.log:
        lows = [low if low > 0 else high for low, high in zip(lows, highs, strict=True)]
        reached = [value for value in reached if value > 0]
    of_values = scale.log_scale if plot.log else scale.value_scale
    low, high, ticks = of_values(min(lows + reached), max(highs + reached), rows)

    def y_of(value: float) -> int:
        return round(scale.share(value, low, high, log=plot.log) * (canvas.height - 1))

    signs, faint = dict[tuple[int, int], Span](), dict[tuple[int, int], Span]()  # by row and column
    for curve, parts in zip(curves, traces, strict=True):
        if curve is plot.behind:  # values out of range leave a gap
            split = (groupby(part, lambda point: low <= point[2] and point[1] <= high) for part in parts)
            parts = [list(points) for groups in split for within, points in groups if within]
        placed = [[(x, y_of(bottom), y_of(top)) for x, bottom, top in part] for part in parts]
        if not curve.points_only:
            under = behind if curve.role == "raw" or curve is plot.behind else canvas
            own = Canvas(columns, rows) if curve.dash else under
            for part in placed:
                _draw(own, part, curve.role)
            if curve.dash:
                under.lay(own, curve.dash)
        _sign(faint if curve is plot.behind else signs, curve, placed)
    texts = [scale.labels([tick])[0] for tick in ticks] if plot.log else scale.labels(ticks)
    label_at = {y_of(tick) // 4: text for tick, text in zip(ticks, texts, strict=True)}
    at = _cursor(plot, columns)
    drawn: list[list[Span]] = []
    for row in range(rows):
        layers = zip(canvas.row(row), behind.row(row), strict=True)
        dots = [
            signs.get((row, column), front or faint.get((row, column), back))
            for column, (front, back) in enumerate(layers)
        ]
        cells = [cell or (" ", "text") for cell in dots]
        if at is not None and cells[at][0] in _FREE:
            cells[at] = (SEAM, "text")
        drawn.append(cells)
    unseen, bands = _limits(plot, drawn, (low, high), lambda value: y_of(value) // 4, tinted)
    if at is not None and plot.cursor is not None:
        for curve in plot.curves:
            value = None if curve.role == "raw" else curve.at(plot.cursor)
            if value is not None and math.isfinite(value) and (value > 0 or not plot.log):
                words = f"{curve.sign} {number(value)}" if curve.sign else number(value)
                _beside(drawn, y_of(value) // 4, at, words, "title" if curve.role == "curve" else curve.role)
    for row in bands:
        drawn[row] = [(text, role + TINTED) for text, role in drawn[row]]
    axes = [f"{label_at.get(row, ''):>{scale.LABEL}}{AXIS}" if gutter else "" for row in range(rows)]
    return [
        [(axis, "axis"), *joined(cells)] if axis else joined(cells) for axis, cells in zip(axes, drawn, strict=True)
    ], unseen


def _limits(
    plot: Plot, drawn: list[list[Span]], ends: tuple[float, float], row_of: Callable[[float], int], tinted: bool
) -> tuple[list[Limit], set[int]]:
    """Draws the limits into the rows. Returns the limits left to the title, and the tinted rows."""
    unseen, bands = list[Limit](), set[int]()
    for limit in reversed(plot.limits):  # the most important covers the others
        row = row_of(limit.value) if ends[0] <= limit.value <= ends[1] else -1
        beyond = range(row - 1, -1, -1) if limit.beyond == ">" else range(row + 1, len(drawn) if limit.beyond else 0)
        if row < 0 or (limit.beyond and not beyond and not limit.passed):
            arrow = "" if math.isnan(limit.value) else f"{UP if limit.value > sum(ends) / 2 else DOWN} "
            unseen += [replace(limit, label=arrow + limit.label)] if limit.beyond else []
            continue
        if tinted and limit.beyond:
            bands.update(beyond or [row])
        else:
            line = [(LIMIT, limit.role) if char in _FREE else (char, role) for char, role in drawn[row]]
            drawn[row] = [*line[:-1], ("!", limit.role)] if limit.beyond else line
        rows = range(len(drawn)) if limit.beyond else [row]
        near = sorted(rows, key=lambda each: (each not in beyond and each != row, abs(each - row)))
        if not any(_label(drawn, each, limit) for each in near) and limit.beyond:
            unseen.append(limit)
    return unseen, bands


def _label(drawn: list[list[Span]], row: int, limit: Limit) -> bool:
    """Writes the label as far right in a row as the curve allows; returns whether it fits."""
    text = f" {limit.label} "
    free = [char in _FREE for char, _ in drawn[row]]
    for start in range(len(free) - len(text) - 1, 0, -1):
        if all(free[start : start + len(text)]):
            drawn[row][start : start + len(text)] = [(char, limit.role) for char in text]
            return True
    return False


def _beside(drawn: list[list[Span]], row: int, at: int, words: str, role: str) -> None:
    """Writes a curve's value next to the cursor, as near to the curve as possible without covering anything."""
    text = f" {words} "
    for near in sorted(range(max(row - _NEAR, 0), min(row + _NEAR + 1, len(drawn))), key=lambda each: abs(each - row)):
        for start in (at + 1, at - len(text)):
            room = drawn[near][start : start + len(text)] if start >= 0 else []
            if len(room) == len(text) and all(char in _FREE for char, _ in room):
                drawn[near][start : start + len(text)] = [(char, role) for char in text]
                return


def _empty(plot: Plot) -> str:
    """Why there is nothing to draw."""
    finite = any(curve.points.span(0, curve.points.steps[-1]) for curve in plot.curves if curve.points.steps)
    if not finite:
        return "no finite value yet"
    return "no value above 0 to show on a log scale" if plot.log else "no value in this range"


def _cursor(plot: Plot, columns: int) -> int | None:
    """The cursor's column of cells."""
    if plot.cursor is None:
        return None
    return Window(plot.axis, plot.first, plot.last, columns).column(plot.cursor)


def _sign(signs: dict[tuple[int, int], Span], curve: Curve, parts: list[list[tuple[int, int, int]]]) -> None:
    """Places a curve's signs: at every point if not joined, otherwise at the newest one."""
    points = [((bottom + top) // 8, x // 2) for part in parts for x, bottom, top in part]
    if curve.points_only:
        signs.update(dict.fromkeys(points, (curve.sign or DOT, curve.role)))
    elif curve.sign and points:
        signs[points[-1]] = (curve.sign, curve.role)


def _draw(canvas: Canvas, part: list[tuple[int, int, int]], role: str) -> None:
    """Draws one part of a curve: vertical strokes from low to high, joined to one another."""
    before: tuple[int, int, int] | None = None
    for x, bottom, top in part:  # y grows downward: top <= bottom
        canvas.upright(x, top, bottom, role)
        if before is not None:
            x0, bottom0, top0 = before
            if bottom < top0:
                canvas.line(x0, top0, x, bottom, role)
            elif top > bottom0:
                canvas.line(x0, bottom0, x, top, role)
            else:  # overlapping: join at a common height
                shared = max(top, top0)
                canvas.line(x0, shared, x, shared, role)
        before = (x, bottom, top)


def _base(plot: Plot, columns: int, gutter: int) -> Row:
    """The x axis with its ends, round values, marks and the cursor; left of it the unit of the y axis."""
    left, right = plot.axis.label(plot.first), plot.axis.label(plot.last)
    if left == right:  # a few minutes after the second day
        right = f"+{plot.axis.label(plot.last - plot.first)}"
    window = Window(plot.axis, plot.first, plot.last, columns)
    first, final = len(left), min(columns - len(right) - 1, window.at(plot.last))  # the last of few steps is wide
    if first > final:
        return fit([], columns + gutter)
    ends = left + BASE * (final + 1 - first) + right
    cells: list[Span] = [(char, "axis") for char in ends.ljust(columns, BASE)]
    for mark in plot.seen:
        cells[min(max(window.at(plot.axis.place(mark.step)), first), final)] = (mark.sign, mark.role)
    stride = plot.axis.stride((plot.last - plot.first) * _APART / columns)
    for count in range(math.floor(plot.first / stride) + 1, math.ceil(plot.last / stride)):
        text = plot.axis.label(count * stride)
        start = window.at(count * stride) - len(text) // 2
        if all(cell == (BASE, "axis") for cell in cells[max(start - 3, 0) : start + len(text) + 3]):
            cells[start : start + len(text)] = [(char, "axis") for char in text]
    if (at := _cursor(plot, columns)) is not None:
        at, text = min(max(at, first), final), plot.axis.label(plot.axis.place(plot.cursor or 0))
        start = at + 1 if at + len(text) <= final else at - len(text)
        if text not in (left, right) and start >= 0:
            cells[start : start + len(text)] = [(char, "title") for char in text]
        cells[at] = (UP, "title")
    unit = plot.unit if len(plot.unit) <= scale.LABEL else ""
    return [(f"{unit:>{scale.LABEL}}".ljust(gutter), "axis"), *joined(cells)]
