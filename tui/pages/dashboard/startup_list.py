"""The stages of a run's start, until it has made its first step."""

from launcher.record.state import Rollout
from launcher.runs.watch.startup import Startup
from tui.kit.drawing.rows import Row
from tui.kit.widgets.painted import Painted
from tui.pages.dashboard.startup_words import startup_rows


class StartupList(Painted):
    """A row for each stage: sign, name, state, time and the usual time."""

    found: Startup | None = None
    rollout: Rollout | None = None
    on_cpu = False

    def show(self, found: Startup | None, rollout: Rollout | None, *, on_cpu: bool) -> None:
        self.found, self.rollout, self.on_cpu = found, rollout, on_cpu
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.found is None:
            return []
        return startup_rows(self.found, self.rollout, columns, rows, on_cpu=self.on_cpu)
