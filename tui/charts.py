"""The four charts of the dashboard: which figures they show, and what is said beside them."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from launcher.format import number
from launcher.metrics import names
from launcher.metrics.store import Series, SeriesStore
from tui import glyphs
from tui.drawing.plot import Curve, Mark, Plot
from tui.drawing.rows import Row, Span
from tui.drawing.scale import step_limit
from tui.run_words import LEVELS, ORDER, is_live, level_sign

RECENT = 20  # values that "usual" is the median of


@dataclass(frozen=True)
class Figure:
    """A figure a chart shows: veRL's names for it, and the families of health rules about it.

    `missing` is what the chart says when a run never logs it; `context` is what stands beside the value.
    """

    title: str
    keys: tuple[str, ...]
    rules: tuple[str, ...]
    missing: str
    context: Callable[[Sequence[float], SeriesStore], str]
    unit: str = ""


def _best(values: Sequence[float], _: SeriesStore) -> str:
    return f"best {number(max(values))}"


def _usual(values: Sequence[float], _: SeriesStore) -> str:
    before = values[-RECENT - 1 : -1]
    return f"usual {number(statistics.median(before))}" if before else ""


def _start(values: Sequence[float], _: SeriesStore) -> str:
    return f"from {number(statistics.median(values[:3]))}"


def _pace(_: Sequence[float], store: SeriesStore) -> str:
    found = store.first_of("perf/time_per_step", "timing_s/step")
    seconds = finite(found[1].values[-1:]) if found else []
    return f"{number(seconds[0])} s/step" if seconds else ""


REWARD = Figure(
    "reward",
    names.SCORE,
    ("REW", "SIG", "HACK", "VAL"),
    "this run logs no reward: veRL calls it critic/score/mean",
    _best,
)
KL = Figure(
    "KL to reference",
    names.KL,
    ("KL", "CLIP"),
    "no KL in this run: algorithm.use_kl_in_reward=True or actor_rollout_ref.actor.use_kl_loss=True"
    " would show how far the model drifts",
    _usual,
)
ENTROPY = Figure(
    "entropy",
    names.ENTROPY,
    ("ENT",),
    "this run logs no entropy: veRL calls it actor/entropy",
    _start,
)
THROUGHPUT = Figure(
    "throughput",
    names.THROUGHPUT,
    ("THR", "STALL"),
    "this run logs no throughput: veRL calls it perf/throughput",
    _pace,
    " tok/s",
)
FIGURES = (REWARD, KL, ENTROPY, THROUGHPUT)


def plot(
    figure: Figure, store: SeriesStore, state: Mapping[str, Any], events: Sequence[Mapping[str, Any]]
) -> Plot:
    """What the chart of one figure shows now."""
    found = store.first_of(*figure.keys)
    chart = Plot(figure.title, last=step_limit(store.last_step or 0, _total(state)))
    if found is None:
        trained = store.first_of("actor/pg_loss", *names.SCORE, *names.ENTROPY)
        chart.note = figure.missing if trained else _waiting(state)
        return chart
    series = found[1]
    chart.curves = [Curve(series)]
    chart.headline = headline(figure, series, store)
    chart.flag = _flag(figure, state)
    chart.marks = _marks(figure, store, events)
    return chart


def headline(figure: Figure, series: Series, store: SeriesStore) -> list[Row]:
    """`0.412 ↑`, `best 0.431`."""
    last = series.last
    if last is None:
        return []
    recent = series.values[-2 * RECENT :]
    good = finite(series.values)
    value: Row = [(number(last) + (figure.unit if math.isfinite(last) else ""), "title")]
    if not math.isfinite(last):
        value = [(f"{glyphs.CRITICAL} {number(last)}", "critical")]
    else:
        value.append((f" {trend(finite(recent)) or ' '}", "dim"))
    context = figure.context(good, store) if good else ""
    return [value, [(context, "dim")]] if context else [value]


def finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def trend(values: Sequence[float]) -> str:
    """An arrow when the mean of the newest values (ten at most) has left the mean of as many before them.

    It must have left by two standard errors of independent noise, which is judged by the steps between
    neighbours: their median is 0.95 of the noise's standard deviation.
    """
    count = min(len(values) // 2, RECENT // 2)
    if count < 3:
        return ""
    now, before = statistics.fmean(values[-count:]), statistics.fmean(values[-2 * count : -count])
    noise = statistics.median(abs(b - a) for a, b in pairwise(values[-2 * count :])) / 0.95
    if abs(now - before) <= max(2 * noise * math.sqrt(2 / count), 0.002 * abs(before)):
        return ""
    return glyphs.UP if now > before else glyphs.DOWN


def _total(state: Mapping[str, Any]) -> int | None:
    total = state.get("total")
    return total if isinstance(total, int) else None


def _waiting(state: Mapping[str, Any]) -> str:
    return "no step yet" if is_live(state) else "no step was reached"


def _concerns(figure: Figure, rule: object) -> bool:
    return str(rule).rpartition("-")[0] in figure.rules


def _chart_of(rule: object) -> Figure:
    return next((figure for figure in FIGURES if _concerns(figure, rule)), REWARD)


def _flag(figure: Figure, state: Mapping[str, Any]) -> Span | None:
    levels = [
        str(check.get("level")) for check in state.get("checks") or [] if _concerns(figure, check.get("rule"))
    ]
    worst = max(levels, key=lambda level: ORDER.get(level, 0), default="OK")
    return level_sign(worst) if ORDER.get(worst, 0) >= ORDER["NOTICE"] else None


def _marks(figure: Figure, store: SeriesStore, events: Sequence[Mapping[str, Any]]) -> list[Mark]:
    """Where attempts began, and where a flag about this figure rose; the worse sign covers the milder.

    Flags about none of the figures are marked at the reward: that is what they put at risk.
    """
    marks = [Mark(step, glyphs.SEAM, "text") for step in store.seams]
    rises = [event for event in events if event.get("kind") == "health" and _rose(event)]
    rises = [event for event in rises if figure is _chart_of(event.get("rule"))]
    for event in sorted(rises, key=lambda event: ORDER[str(event["to"])]):
        sign, _, role = LEVELS[str(event["to"])]
        marks.append(Mark(event["step"], sign, role))
    return marks


def _rose(event: Mapping[str, Any]) -> bool:
    before, after = (ORDER.get(str(event.get(side)), 0) for side in ("from", "to"))
    return isinstance(event.get("step"), int) and after > max(before, ORDER["OK"])
