"""The charts of the machine page: memory and utilization of one device over the steps."""

import math
import statistics
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from launcher.core.format import GIB, number
from launcher.metrics.store import Series, SeriesStore, Span
from launcher.record.state import RunState
from launcher.runs.watch.machine_history import MachineHistory
from tui.kit.charts.figures import seams
from tui.kit.charts.lens import Lens, cursor_headline
from tui.kit.charts.memory_axis import SampleAxis, SpentSamples
from tui.kit.drawing import glyphs
from tui.kit.drawing.plot import DASHES, Curve, Limit, Plot
from tui.kit.drawing.scale import step_limit
from tui.kit.memory_rows import HOST, Device, device_name, is_host

_TRAINERS = ("actor/perf/max_memory_reserved_gb", "perf/max_memory_reserved_gb")
_HOSTS = ("actor/perf/cpu_memory_used_gb", "perf/cpu_memory_used_gb")


_MEAN = 15  # samples of a moving mean
_FEW = 20  # maximum number of steps for which a chart shows changes within steps
_WINDOWS, _OVERLAP = 15, 4  # windows side by side across a chart; points in each of them


def over_steps(samples: Series, axis: SampleAxis, steps: int, pick: Callable[[Sequence[float]], float]) -> Series:
    """Combines the samples of each `steps` steps by `pick` into one value at the last of them.

    Memory and utilization vary within each step, so all samples of many steps would look like a barcode.
    """
    found = Series()
    places = [bisect_left(samples.steps, end) for end in axis.ends()]
    stride = max(steps // _OVERLAP, 1)
    for at in range((len(places) - 1) % stride, len(places), stride):  # the newest step is one of them
        begin, end = places[at - steps] if at >= steps else 0, places[at]
        values = [value for value in samples.values[begin:end] if math.isfinite(value)]
        if values and (not found.steps or samples.steps[end - 1] > found.steps[-1]):
            found.append(samples.steps[end - 1], pick(values))
    return found


class Held:
    """A series of samples whose values hold until the next one: a column without samples is not a gap."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.steps, self.values = series.steps, series.values

    def span(self, first: int, last: int) -> Span | None:
        """Lowest and highest value of samples `first` to `last`; without any, the previous value."""
        if self.steps and last < first <= self.steps[-1]:
            first = last
        return self.series.span(first, last)

    def columns(self, first: int, last: int, count: int) -> list[Span | None]:
        return self.series.columns(first, last, count)


def memory_plot(history: MachineHistory, store: SeriesStore, state: RunState, device: Device | None) -> Plot:
    """Used memory and the run's part of it, in GiB. Without samples: veRL's own metrics."""
    if device is None:
        return _logged(store)
    index, host = device.index, device.index == HOST
    plot = _plot(f"{device_name(device)} memory, GiB", history, store, state)
    used = history.series("host") if host else history.series("used", index)
    run = history.series("rss") if host else history.series("run_used", index)
    if used is not None:
        plot.curves.append(Curve(Held(used), label="used"))
        plot.headline.append([(f"{number(used.last)} used", "title")])
        peak = used.span(0, len(history.times))
        if peak is not None:
            plot.headline.append([(f"peak {number(peak.high)}", "dim")])
    if run is not None:
        plot.curves.append(Curve(Held(run), role="curve-2", label="this run", sign=glyphs.FILL, dash=DASHES[1]))
    if total := device.total:
        plot.limits.append(Limit(total / GIB, label=f"{total / GIB:.0f} GiB"))
    if not plot.curves:
        plot.note = "this device does not report its memory"
    return plot


def util_plot(history: MachineHistory, store: SeriesStore, state: RunState, device: Device) -> Plot | None:
    """Utilization of a GPU or of the host's CPUs in %; None if not measured."""
    series = history.series("util", device.index)
    if series is None:
        return None
    what = "CPUs" if is_host(device) else "utilization"
    plot = _plot(f"{device_name(device)} {what}, %", history, store, state)
    plot.limits = [Limit(0, "axis", reach=True), Limit(100, "axis", reach=True)]
    minute = bisect_left(history.times, history.times[-1] - 60)
    recent = series.values[bisect_left(series.steps, minute) :]
    if (mean := math.fsum(recent) / max(len(recent), 1)) >= 0:  # neither nan
        plot.headline.append([(f"last minute {mean:.0f} %", "title")])
    plot.curves.append(Curve(Held(series)))
    return plot


def look(plot: Plot, lens: Lens, store: SeriesStore, total: int | None) -> Plot:
    """A plot of this page in the view of the run's other charts: range, x axis, cursor, scale.

    If everything is shown, it has room for the current step, whose samples come before its metrics.
    """
    samples = plot.axis
    if not isinstance(samples, SampleAxis):
        return lens.look(plot, store, total)
    if store.last_step is None:  # x is then the time since the start
        return plot
    view, reached = lens.view, int(plot.last)
    spent = lens.frame(plot, store, total)
    first, last = view.shown(lens.whole(store, total))
    raw = plot.curves
    if last - first > _FEW:
        steps = int(last - first) // _WINDOWS
        plot.curves = [curve for each in raw for curve in _banded(each, samples, steps)]
    else:
        begin, end = samples.step_at(first - 1), samples.step_at(last + 1)
        plot.curves = [averaged(each, begin, end) for each in raw]
    plot.axis = SpentSamples(samples, spent) if spent else samples
    if spent is None and view.window is None and not view.fitted:
        planned = total if total is not None and total >= (store.last_step or 0) else None  # a run can pass its plan
        plot.last = max(plot.last, step_limit(min(reached, planned or reached), planned))
    step = view.cursor
    if step is not None and (sample := samples.sample_of(step)) is not None:
        if sample and plot.axis.place(sample) > plot.last:  # taken a moment after the last step of the window
            sample -= 1
        plot.cursor = sample
        plot.headline = cursor_headline(raw, sample, step)
    return plot


def averaged(curve: Curve, begin: int, end: int) -> Curve:
    """The moving mean of the samples `begin` to `end`, whose values jump within a step."""
    assert isinstance(curve.points, Held)
    series, recent, mean = curve.points.series, deque[float](maxlen=_MEAN), Series()
    for at in range(bisect_left(series.steps, begin), bisect_left(series.steps, end)):
        recent.append(series.values[at])
        known = [value for value in recent if math.isfinite(value)]
        mean.append(series.steps[at], statistics.fmean(known) if known else math.nan)
    return replace(curve, points=Held(mean))


def _banded(curve: Curve, samples: SampleAxis, steps: int) -> list[Curve]:
    """For memory, two curves of the highest and lowest samples; for other values, their mean."""
    assert isinstance(curve.points, Held)
    series = curve.points.series

    def of(pick: Callable[[Sequence[float]], float]) -> Held:
        return Held(over_steps(series, samples, steps, pick))

    if not curve.label:
        return [replace(curve, points=of(statistics.fmean))]
    least = [] if curve.sign else [replace(curve, points=of(min), role="raw", label="least", sign=glyphs.FILL_REST)]
    return [*least, replace(curve, points=of(max))]


def _plot(title: str, history: MachineHistory, store: SeriesStore, state: RunState) -> Plot:
    last = store.last_step
    if last is None:
        seconds = int(history.times[-1] - history.times[0]) + 1 if history.times else 1
        axis, end = SampleAxis(history.times, [], []), step_limit(seconds, None)
        return Plot(f"{title}, since the start", last=end, axis=axis)
    live = state.live
    axis = SampleAxis(history.times, store.steps, store.times, math.inf if live else max(last, 1))
    found = (axis.sample_of(seam) for seam in store.seams)  # indices on the axis of samples
    marks = seams(sample for sample in found if sample is not None)
    return Plot(title, last=last + 1 if live else max(last, 1), axis=axis, marks=marks)


def _logged(store: SeriesStore) -> Plot:
    """Memory from veRL's own metrics: peaks of the training process, and the host."""
    plot = Plot("memory logged by veRL, GiB", last=step_limit(store.last_step or 0, None))
    for keys, label, role, sign in ((_TRAINERS, "trainer peak", "curve", ""), (_HOSTS, "host", "curve-2", glyphs.FILL)):
        if found := store.first_of(*keys):
            plot.curves.append(Curve(found[1], role=role, label=label, sign=sign))
            plot.headline.append([(f"{label} {number(found[1].last)}", "title")])
    if not plot.curves:
        plot.note = "veRL also logged no memory metrics"
    return plot
