"""One figure of several runs in one chart."""

from collections.abc import Sequence

from launcher.format import number
from launcher.run.reading.compare import Compared
from tui.charts.figures import Figure
from tui.charts.lens import Lens
from tui.charts.view import STEP
from tui.content.compare import ROLES, sign
from tui.drawing.plot import Curve, Plot


def overlay(figure: Figure, runs: Sequence[Compared], lens: Lens, base: Compared) -> Plot:
    """One figure of all runs, as the lens shows it; `base` is the run whose steps the view moves over."""
    chart, kinds = Plot(figure.title), []
    for place, run in enumerate(runs):
        found = run.store.first_of(*figure.keys)
        if found is None:
            continue
        kinds.append(found[0])
        series, role, across = found[1], ROLES[place], lens.view.across
        axis = lens.axis(run.store, across) if across != STEP else None
        chart.curves.append(Curve(series, role=role, sign=sign(place), axis=axis))
        chart.headline.append([(f"{sign(place)} {number(series.last)}", role)])
    if len(set(kinds)) > 1:
        chart.title += " (different metrics)"
    if not chart.curves:
        chart.note = "not logged by these runs"
    return lens.look(chart, base.store, None)
