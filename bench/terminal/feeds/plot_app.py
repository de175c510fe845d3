"""Four charts of these metrics with textual-plot, in its own environment, without other widgets."""

import sys
import threading
from pathlib import Path

from figures import FOUR, HISTORY, paced
from textual.app import App, ComposeResult
from textual.containers import Grid
from textual_plot import HiResMode, PlotWidget


class Plots(App[None]):
    CSS = "Grid { grid-size: 2 2; } PlotWidget { width: 1fr; height: 1fr; }"

    def compose(self) -> ComposeResult:
        with Grid():
            for index, _ in enumerate(FOUR):
                yield PlotWidget(id=f"plot-{index}")

    def on_mount(self) -> None:
        self.steps: list[int] = []
        self.values: list[list[float]] = [[] for _ in FOUR]
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self) -> None:
        for number, data in paced(Path(sys.argv[1])):
            self.steps.append(number)
            for values, key in zip(self.values, FOUR, strict=True):
                values.append(data[key])
            if number >= HISTORY:
                self.call_from_thread(self.draw)

    def draw(self) -> None:
        for index, values in enumerate(self.values):
            plot = self.query_one(f"#plot-{index}", PlotWidget)
            plot.clear()
            plot.plot(self.steps, values, hires_mode=HiResMode.BRAILLE)
            plot.set_xlabel(FOUR[index])


Plots().run()
