"""Charts as a picture: reward, drift, entropy and throughput over the steps, or one chart per chosen metric.

Spikes stay: with more steps than pixels, a column shows its minimum and maximum. A non-finite value leaves a gap; a
dashed line marks the first step of a resumed attempt.
"""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from launcher.metrics import names
from launcher.metrics.glossary import describe
from launcher.metrics.store import Series, SeriesStore

_ACROSS, _WIDTH, _HEIGHT = 2, 480, 280  # charts in a row; pixels of a chart with its margins
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 36, 28  # margins: room for labels and title
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_LEVELS = 4  # heights of the words at flags, so that neighbors do not touch
_HEAD = 32  # pixels of the picture's own title
_HUGE, _TINY = 1e300, 1e-300  # limits for finite and positive distances
_STYLE = (
    "text{font:12px sans-serif;fill:#444}.title{font-weight:bold;fill:#111}.end{text-anchor:end}"
    ".mid{text-anchor:middle}.grid{stroke:#e4e4e4}.axis{stroke:#888}.seam{stroke:#888;stroke-dasharray:3 3}"
    ".curve{fill:none;stroke:#1f6fb4;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}"
)

Part = list[tuple[float, float]]  # pixels; the points of a stretch of curve without a gap


def render(name: str, store: SeriesStore, keys: Sequence[str]) -> bytes:
    """A picture on white without external style sheets or scripts: one chart per key [default: the main charts]."""
    charts = [(key, (key,)) for key in keys] or main_charts(store, names.FEW)
    width = _ACROSS * _WIDTH
    height = _HEAD + math.ceil(len(charts) / _ACROSS) * _HEIGHT
    title = escape(name)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{title}</title><style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="22">{title}, {store.unit}s {store.steps[0]} to {store.steps[-1]}</text>',
    ]
    for index, (heading, keys) in enumerate(charts):
        row, column = divmod(index, _ACROSS)
        drawn.append(f'<g transform="translate({column * _WIDTH},{_HEAD + row * _HEIGHT})">')
        drawn += _chart(heading, store, keys)
        drawn.append("</g>")
    return "\n".join([*drawn, "</svg>", ""]).encode()


def main_charts(store: SeriesStore, count: int) -> list[tuple[str, tuple[str, ...]]]:
    """Titles with units, and keys, of the main metrics."""
    units = {each: describe(each.keys[0]).unit for each in names.charts(store)[:count]}
    return [(f"{each.title}, {unit}" if unit else each.title, each.keys) for each, unit in units.items()]


class Marks(NamedTuple):
    """Additions to a chart's curve: values at steps, and steps with a word each."""

    points: Sequence[tuple[int, float]] = ()
    flags: Sequence[tuple[int, str]] = ()


_UNMARKED = Marks()


def chart(heading: str, store: SeriesStore, keys: Sequence[str], marks: Marks) -> str:
    """One chart as an element of a page, whose style sheet has the classes of `_STYLE` and `point`, `flag`."""
    text = escape(f"{heading} over the {store.unit}s of the run")
    return "\n".join(
        [
            f'<svg role="img" aria-label="{text}" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
            *_chart(heading, store, keys, marks),
            "</svg>",
        ]
    )


def _chart(heading: str, store: SeriesStore, keys: Sequence[str], marks: Marks = _UNMARKED) -> list[str]:
    found = store.first_of(*keys)
    drawn = [f'<text class="title" x="{_LEFT}" y="20">{escape(heading)}</text>']
    if found is None:
        return [*drawn, _note("not logged in this run")]
    key, series = found
    last = max(store.steps[-1], 1)
    drawn.append(
        f'<text class="end" x="{_WIDTH - _RIGHT}" y="20">'
        f"{escape(key) + ' ' if key != heading else ''}{series.last:.4g}</text>"
    )
    span = series.span(0, last)
    if span is None:
        return [*drawn, _note("no finite value")]
    points = [(step, value) for step, value in marks.points if math.isfinite(value) and step <= last]
    shown = [value for _, value in points]
    low, high, ticks = _scale(min([span.low, *shown]), max([span.high, *shown]))

    def x_of(step: float) -> float:
        return _LEFT + _PLOT_WIDTH * step / last

    def y_of(value: float) -> float:
        share = (high - min(max(value, low), high)) / (high - low)
        return _TOP + _PLOT_HEIGHT * share

    drawn += _frame(ticks, store.seams, last, x_of, y_of)
    if len(series) <= _PLOT_WIDTH:
        entries = [
            [(x_of(step), y_of(value))] if math.isfinite(value) else []
            for step, value in zip(series.steps, series.values, strict=True)
        ]
    else:
        entries = _columns(series, last, y_of)
    for place, (step, word) in enumerate(marks.flags):
        x, y = x_of(step), _TOP + 10 + 12 * (place % _LEVELS)
        drawn.append(_line("flag", x, _TOP, x, _TOP + _PLOT_HEIGHT))
        drawn.append(f'<text class="flag" x="{x + 3:.1f}" y="{y}">{escape(word)}</text>')
    dots = [f'<circle class="point" cx="{x_of(step):.1f}" cy="{y_of(value):.1f}" r="3.5"/>' for step, value in points]
    return [*drawn, *(_curve(part) for part in _parts(entries)), *dots]


def _frame(
    ticks: Sequence[float],
    seams: Sequence[int],
    last: int,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
) -> list[str]:
    """Grid, axes, labels, and the lines at starts of attempts."""
    drawn = []
    for tick in ticks:
        y = y_of(tick)
        drawn.append(_line("grid", _LEFT, y, _WIDTH - _RIGHT, y))
        drawn.append(f'<text class="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{tick:.6g}</text>')
    for seam in seams:
        drawn.append(_line("seam", x_of(seam), _TOP, x_of(seam), _TOP + _PLOT_HEIGHT))
    drawn.append(_line("axis", _LEFT, _TOP, _LEFT, _TOP + _PLOT_HEIGHT))
    drawn.append(_line("axis", _LEFT, _TOP + _PLOT_HEIGHT, _WIDTH - _RIGHT, _TOP + _PLOT_HEIGHT))
    for step in sorted({0, last // 2, last}):
        side = "end" if step == last else "mid"
        drawn.append(f'<text class="{side}" x="{x_of(step):.1f}" y="{_HEIGHT - 10}">{step}</text>')
    return drawn


def _columns(series: Series, last: int, y_of: Callable[[float], float]) -> list[Part]:
    """One vertical stroke per pixel, from the minimum to the maximum of its steps."""
    return [
        [(_LEFT + x + 0.5, y_of(span.low)), (_LEFT + x + 0.5, y_of(span.high))] if span else []
        for x, span in enumerate(series.columns(0, last, _PLOT_WIDTH))
    ]


def _parts(entries: Sequence[Part]) -> list[Part]:
    """Points joined until an empty entry, which is a gap."""
    parts: list[Part] = [[]]
    for entry in entries:
        if entry:
            parts[-1] += entry
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _curve(part: Part) -> str:
    """A part of the curve; a single point becomes a dot: a stroke of length 0 with a round end."""
    points = part if len(part) > 1 else part * 2
    return '<path class="curve" d="M' + "L".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _note(text: str) -> str:
    return f'<text class="mid" x="{_LEFT + _PLOT_WIDTH / 2}" y="{_TOP + _PLOT_HEIGHT / 2}">{text}</text>'


def _scale(low: float, high: float) -> tuple[float, float, list[float]]:
    """A round range around two values, and its two to seven round ticks, distinct in six digits."""
    low, high = (max(-_HUGE, min(value, _HUGE)) for value in (low, high))
    size = max(abs(low), abs(high))
    if high - low <= max(1e-9 * size, _TINY):  # a single value: a range around it
        around = 0.1 * size if 0.1 * size > _TINY else 0.5
        low, high = low - around, high + around
    rough = max((high - low) / 4 * 0.999, 1e-4 * size)
    power = 10.0 ** math.floor(math.log10(rough))
    tick = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / tick + 1e-9), math.ceil(high / tick - 1e-9)
    ticks = [index * tick for index in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks
