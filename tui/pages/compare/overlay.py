"""One figure of several runs in one chart."""

from collections.abc import Sequence

from launcher.compare.comparison import Compared, band, groups
from launcher.core.format import number
from tui.kit.charts.figures import Figure
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import STEP
from tui.kit.drawing.plot import Curve, Plot
from tui.pages.compare.rows import role_of, sign


def overlay(figure: Figure, runs: Sequence[Compared], lens: Lens, base: Compared) -> Plot:
    """One figure of all runs, as the lens shows it; `base` is the run whose steps the view moves over.

    Runs that differ in seeds alone are one curve: their mean, between the lowest and the highest value.
    """
    chart, kinds, across = Plot(figure.title), [], lens.view.across
    of_run = groups([run.info for run in runs])
    for group in dict.fromkeys(of_run):
        members = [run for run, its in zip(runs, of_run, strict=True) if its == group]
        logged = [(run, found) for run in members if (found := run.store.first_of(*figure.keys)) is not None]
        if not logged:
            continue
        kinds += [key for _, (key, _) in logged]
        role, all_series = role_of(group), [series for _, (_, series) in logged]
        shown = band(all_series) if len(all_series) > 1 else None
        series = shown.mean if shown else all_series[0]
        axis = lens.axis(logged[0][0].store, across) if across != STEP else None
        if shown:
            chart.curves += [Curve(edge, role="raw", axis=axis) for edge in (shown.low, shown.high)]
        chart.curves.append(Curve(series, role=role, sign=sign(group), axis=axis))
        chart.headline.append([(f"{sign(group)} {number(series.last)}", role)])
    if len(set(kinds)) > 1:
        chart.title += " (different metrics)"
    if not chart.curves:
        chart.note = "not logged by these runs"
    return lens.look(chart, base.store, None)
