"""The plots of one run: its figures, its metrics, with what health says about them, through a lens."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from launcher.errors import UserError
from launcher.files import read_json
from launcher.health.levels import Bound
from launcher.run.reader import RunReader
from tui.charts import marks as chart_marks
from tui.charts.check import check_plot
from tui.charts.figures import Figure, plot
from tui.charts.lens import Lens
from tui.drawing.plot import Plot


class RunCharts:
    """Makes plots from what a reader has read; cheap to ask again.

    Without `load_rules` they lack the limits of the rules, and metrics their flags.
    """

    def __init__(self, reader: RunReader, lens: Lens) -> None:
        self.reader, self.lens = reader, lens
        self._bounds: Mapping[str, Sequence[Bound]] = {}
        self._rules_about: Callable[[str], frozenset[str]] = lambda key: frozenset()
        self._rises: list[chart_marks.Event] = []
        self._seen = -1  # events that the rises were found in

    def load_rules(self) -> None:
        """Learns which rules and limits there are, with the settings of the run."""
        from launcher.health.about import lasting_bounds, rules_about

        reader = self.reader
        attempt, preset = reader.dir.last_attempt(), reader.info.get("preset")
        config = read_json(attempt.launch).get("keys") if attempt else None
        self._rules_about = rules_about
        with suppress(UserError):  # an old run may have settings that are unknown now
            self._bounds = lasting_bounds(config, preset.get("health") if isinstance(preset, dict) else None)

    def figure(self, figure: Figure, figures: Sequence[Figure]) -> Plot:
        """One of the figures on the screen."""
        reader = self.reader
        drawn = plot(figure, reader.series, reader.state, self._risen(), figures=figures, bounds=self._bounds)
        return self._look(drawn)

    def metric(self, key: str, *, large: bool) -> Plot:
        """Any metric. A `large` chart reaches for limits near its curve, a small one only shows them."""
        reader = self.reader
        rules, bounds = self._rules_about(key), self._bounds.get(key, ())
        drawn = check_plot(key, reader.series, reader.state.get("total"), bounds if large else (), ())
        if not large:
            drawn.limits = chart_marks.limit_lines(bounds)
        drawn.flag = chart_marks.flag(rules.__contains__, reader.state)
        drawn.marks = chart_marks.marks(rules.__contains__, reader.series, self._risen())
        return self._look(drawn)

    def _look(self, drawn: Plot) -> Plot:
        return self.lens.look(drawn, self.reader.series, self.reader.state.get("total"))

    def _risen(self) -> list[chart_marks.Event]:
        if self._seen != self.reader.event_count:
            self._seen = self.reader.event_count
            self._rises = chart_marks.rises(self.reader.events)
        return self._rises
