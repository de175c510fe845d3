"""The first line of a page: the run, its state, its verdict."""

from textwrap import wrap

from launcher.core.format import SHORT_ID
from launcher.core.text import clean
from launcher.record.state import RunState
from launcher.runs.watch.reader import RunReader
from tui.kit.drawing.rows import Row, crop, put, spread, width
from tui.kit.run_words import state_words, uptime, verdict_words
from tui.kit.widgets.painted import Painted

READING = "reading the run …"
WIDE = 100  # columns that leave room for how long a phase takes


class HeaderLine(Painted):
    """`Checks name · id ● running · rollout 96/128 ▲ WARN KL-4 up 52m`.

    A narrow terminal first drops the name, then the page and the uptime; state and verdict stay. In a terminal with
    only this line, it also shows a sentence.
    """

    state: RunState | None = None  # None until read
    page = ""  # empty on the dashboard
    run_name = ""
    run_id = ""
    now: float | None = None
    read_only = False

    def show(self, name: str, run_id: str, state: RunState, now: float | None) -> None:
        self.run_name, self.run_id, self.state, self.now = clean(name), clean(run_id), state, now
        self.redraw()

    def follow(self, reader: RunReader) -> None:
        """Shows a run without its times, which change every second."""
        self.show(reader.name, reader.id, reader.state, None)

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.state is None:
            return [[(f" {READING}", "dim")]]
        if rows > 1:
            return [[(line, "text")] for line in wrap(self._sentence(self.state), max(columns, 1))]
        now = self.now if columns >= WIDE else None
        state, verdict = state_words(self.state, now), verdict_words(self.state)
        page: Row = [(f"{self.page}  ", "title")] if self.page else []
        run_role = "text" if self.page else "title"
        name: Row = [(" ", "text"), *page, (self.run_name, run_role), (f" · {self.run_id[:SHORT_ID]}", "dim")]
        right: Row = [("watching  ", "notice")] if self.read_only else []
        right += [(f"{uptime(self.state, self.now)} ", "dim")]
        left = put(put(name, columns * 3 // 10, state, 2), columns * 3 // 5, verdict, 2)
        if width(left) + width(right) >= columns:
            room = columns - width(state) - width(verdict) - width(right) - 7
            left = [
                (" ", "text"),
                *([*crop(name[1:], room), ("  ", "text")] if room >= 6 else []),
                *state,
                ("  ", "text"),
                *verdict,
            ]
        if width(left) + width(right) >= columns:
            left, right = [(" ", "text"), state[0], ("  ", "text"), *verdict], []
        return [spread(left, right, columns)]

    def _sentence(self, state: RunState) -> str:
        def said(row: Row) -> str:
            return "".join(text for text, _ in row)

        at = "" if state.step is None else f", {'step ' if state.numbering.every else ''}{state.at}"
        return f"{said(state_words(state)[:1])}{at}, {said(verdict_words(state))}; {self.run_name}"
