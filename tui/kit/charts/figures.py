"""The charts of the dashboard: their metrics, and the words next to them."""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from launcher.core.format import counted, number
from launcher.health.keys import SAVING_TIME
from launcher.metrics import names
from launcher.metrics.glossary import describe
from launcher.metrics.names import FEW, REWARD, Chart, charts
from launcher.metrics.store import Series, SeriesStore
from launcher.record.check import Bound
from launcher.record.events import LevelChange
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.watch.check_words import line_value, line_words
from launcher.runs.watch.proof import nearest, passed
from launcher.runs.watch.steps import validation
from tui.kit.charts.axes import TOKENS_KEY, plan
from tui.kit.drawing import glyphs
from tui.kit.drawing.glyphs import WAITING
from tui.kit.drawing.plot import FLAG, Curve, Limit, Mark, Plot
from tui.kit.drawing.rows import Row, Span
from tui.kit.drawing.scale import step_limit
from tui.kit.run_words import level_sign

_MARKS = glyphs.signs("mark")
RECENT = 20  # values that "usual" is the median of


Context = tuple[str, float | None]
_BEST, _USUAL, _START = "best", "usual", "start"


def _usual(values: Sequence[float], _: SeriesStore) -> Context:
    before = values[-RECENT - 1 : -1]
    return (_USUAL, statistics.median(before)) if before else ("", None)


def _start(values: Sequence[float], _: SeriesStore) -> Context:
    return _START, values[0]


def _gpu_count(values: Sequence[float], store: SeriesStore) -> Context:
    """The number of GPUs, if several, as veRL's throughput is per GPU. The line above shows the pace."""
    found = store.first_of("perf/time_per_step", "timing_s/step")
    seconds = finite(found[1].values[-1:]) if found else []
    gpus = _gpus(store, seconds[0]) if seconds else 0
    return (f"× {counted(gpus, 'GPU')}", None) if gpus > 1 else _usual(values, store)


def _gpus(store: SeriesStore, seconds: float) -> int:
    """The number of GPUs at the newest step: its tokens over one GPU's throughput in its time; 0 if not logged."""
    tokens, rate = (store.get(key) for key in (TOKENS_KEY, *names.THROUGHPUT))
    last = [series.last or 0.0 if series else 0.0 for series in (tokens, rate)]
    counted = last[0] / (seconds * last[1]) if seconds * last[1] > 0 else 0.0
    return round(counted) if math.isfinite(counted) else 0


def _longest(_: Sequence[float], store: SeriesStore) -> Context:
    """A note that the share counts responses of maximum length, which are truncated only if that is the limit."""
    last = [store.get(f"response_length/{name}") for name in ("max", "clip_ratio")]
    found = [value for series in last if series for value in finite(series.values[-1:])]
    if len(found) < 2:
        return "", None
    percent = 100 * found[1]
    return f"longest {number(found[0])} ({f'{percent:.0f}' if percent >= 10 else number(percent)} %)", None


_OTHERS: Mapping[str, Callable[[Sequence[float], SeriesStore], Context]] = {
    "best": lambda values, _: (_BEST, max(values)),
    "usual": _usual,
    "start": _start,
    "gpus": _gpu_count,
    "longest": _longest,
}


def plot(
    figure: Chart,
    store: SeriesStore,
    state: RunState,
    rises: Sequence[LevelChange],
    *,
    figures: Sequence[Chart] = charts()[:FEW],
    bounds: Mapping[str, Sequence[Bound]] = MappingProxyType({}),
    kept: Collection[int] | None = None,
) -> Plot:
    """The chart of one metric now.

    `rises`: events of new flags. Flags about none of the `figures` on the screen are marked at the reward, which they
    put at risk. `bounds`: limits by metric.
    """
    found = store.first_of(*figure.keys)
    chart = Plot(figure.title, last=step_limit(store.last_step or 0, plan(state, store.last_step)))
    if found is None:
        trained = store.first_of("actor/pg_loss", *names.SCORE, *names.ENTROPY)
        missing = figure.missing or f"this run logs no {figure.title} ({figure.keys[0]})"
        chart.note = missing if trained else "no step yet" if state.live else "no step finished"
        return chart
    key, series = found
    chart.unit = describe(key).unit
    chart.curves = [Curve(series)]
    known = (check.usual for check in state.checks if check.usual is not None and check.keys[:1] == (key,))
    chart.headline = headline(figure, series, store, next(known, None))
    chart.limits = limit_lines(nearest(bounds.get(key, ()), series), series)
    chart.flag = flag(lambda rule: _concerns(figure, rule), state)
    if figure.proves:
        sign, role = chart.flag or ("", "dim")
        chart.flag = f"{sign} {figure.proves}".strip(), role
    chart.marks = marks(lambda rule: figure == _place(figures, rule), store, rises)
    if figure == REWARD:
        chart.marks = [*milestones(store, kept), *chart.marks]
        _add_validation(chart, store, series)
    return chart


def _add_validation(chart: Plot, store: SeriesStore, reward: Series) -> None:
    """Adds the validations to the reward: as points if they have its scale, the last one in words."""
    scores = validation(store)
    if scores is None:
        return
    if points := validation_points(scores, reward):
        chart.curves.append(points)
    if (last := next(filter(math.isfinite, reversed(scores.values)), None)) is not None:
        chart.headline.append([(f"{WAITING} val {number(last)}", "point")])


def headline(figure: Chart, series: Series, store: SeriesStore, past: float | None = None) -> list[Row]:
    """The last value and one reference: `0.412 ↑`, `best 0.431`. `past`: the usual or starting value of its rule."""
    last = series.last
    if last is None:
        return []
    recent = series.values[-2 * RECENT :]
    good = finite(series.values)
    words, other = _OTHERS[figure.other](good, store) if good else ("", None)
    if past is not None and words in (_USUAL, _START):
        other = past
    value: Row = [(number(last), "title")]
    if not math.isfinite(last):
        value = [(f"{glyphs.CRITICAL} {number(last)}", "critical")]
    else:
        value.append((f" {_agreeing(trend(finite(recent)), last, words, other) or ' '}", "dim"))
    context = words if other is None else f"{words} {number(other)}"
    return [value, [(context, "dim")]] if context else [value]


def _agreeing(arrow: str, last: float, words: str, other: float | None) -> str:
    """The arrow if it agrees with the number next to the value, which may rise below its best."""
    if other is None or not arrow or (words == _BEST and arrow == glyphs.UP):
        return arrow
    apart = number(last) != number(other) and (arrow == glyphs.UP) is (last > other)
    return arrow if apart else ""


def finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def trend(values: Sequence[float]) -> str:
    """An arrow if the mean of the newest values (at most ten) differs from the mean of as many earlier ones by two
    standard errors of independent noise.

    The noise is estimated from differences of neighbors: their median is 0.95 of its standard deviation.
    """
    count = min(len(values) // 2, RECENT // 2)
    if count < 3:
        return ""
    now, before = statistics.fmean(values[-count:]), statistics.fmean(values[-2 * count : -count])
    noise = statistics.median(abs(b - a) for a, b in pairwise(values[-2 * count :])) / 0.95
    if abs(now - before) <= max(2 * noise * math.sqrt(2 / count), 0.002 * abs(before)):
        return ""
    return glyphs.UP if now > before else glyphs.DOWN


def _concerns(figure: Chart, rule: str) -> bool:
    return figure.proves == rule or rule.rpartition("-")[0] in figure.rules


def _place(figures: Sequence[Chart], rule: str) -> Chart:
    """The chart for a rule's marks."""
    proof = [each for each in figures if each.proves == rule]
    return next(iter([*proof, *(each for each in figures if _concerns(each, rule))]), REWARD)


Concerns = Callable[[str], bool]  # whether a rule, by id, concerns the chart


def flag(concerns: Concerns, state: RunState) -> Span | None:
    """The sign of the worst check about a chart; None without a flag."""
    worst = max((check.level for check in state.checks if concerns(check.rule)), default=Level.OK)
    return level_sign(worst) if worst > Level.OK else None


def marks(concerns: Concerns, store: SeriesStore, rises: Sequence[LevelChange]) -> list[Mark]:
    """Marks at starts of attempts and at new flags about a chart; the worse sign covers the milder."""
    found = seams(store.seams)
    for change in sorted((each for each in rises if concerns(each.rule)), key=lambda each: each.after):
        found.append(Mark(change.step, *level_sign(change.after)))
    return found


def seams(steps: Iterable[int]) -> list[Mark]:
    """Marks at starts of attempts."""
    return [Mark(step, *_MARKS["attempt"], "attempt") for step in steps]


def milestones(store: SeriesStore, kept: Collection[int] | None) -> list[Mark]:
    """Marks at validations and checkpoints (`kept`: existing ones, if known)."""
    validated, saved = validation(store), store.first_of(*SAVING_TIME)
    there = [step for step in (saved[1].steps if saved else ()) if kept is None or step in kept]
    steps = {"validation": validated.steps if validated else (), "checkpoint": there}
    return [Mark(step, *_MARKS[what], what) for what, found in steps.items() for step in found]


def legend(marks: Iterable[Mark]) -> Row:
    """`▲✖ flag ┊ attempt`: the marks in the charts with their words."""
    words: dict[str, dict[Span, None]] = {}
    for mark in marks:
        words.setdefault(mark.what, {})[mark.sign, mark.role] = None
    row: Row = []
    for what in (FLAG, *_MARKS):
        if what in words:
            row += [*words[what], (f" {what}  ", "dim")]
    return row


NEAR = 1.0  # distance in heights of the curve at which a limit is still on its chart; the title has farther ones


def limit_lines(bounds: Sequence[Bound], series: Series, *, all_near: bool = False) -> list[Limit]:
    """The limits as lines. The chart's range includes those near its curve, of flags only or `all_near`."""
    whole = series.span(series.steps[0], series.steps[-1]) if bounds else None
    if whole is None:
        return []
    room = NEAR * max(whole.high - whole.low, 0.1 * max(abs(whole.high), abs(whole.low)))
    lines = []
    for bound in bounds:
        value = line_value(bound)
        near = (all_near or passed(bound)) and whole.low - room <= value <= whole.high + room
        role = level_sign(bound.level)[1]
        lines.append(Limit(value, role, line_words(bound), near, bound.side[0], passed(bound)))
    return lines


_FAR = 3.0  # maximum height of both together, in heights of the reward's curve


def validation_points(scores: Series, reward: Series) -> Curve | None:
    """The scores as points if they are on the reward's scale; otherwise they would flatten its curve."""
    ours, theirs = (series.span(0, series.steps[-1]) for series in (scores, reward))
    if ours is None or theirs is None:
        return None
    low, high = min(ours.low, theirs.low), max(ours.high, theirs.high)
    shares = low >= 0 and high <= 1
    if not shares and high - low > _FAR * (theirs.high - theirs.low):
        return None
    return Curve(scores, "point", sign=WAITING, points_only=True)
