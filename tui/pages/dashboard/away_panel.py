"""What happened while nobody looked, until it is dismissed."""

from textual.geometry import Size

from launcher.core.format import duration
from launcher.core.text import clean
from launcher.runs.watch.history import Missed
from tui.kit.drawing.rows import Row, spread
from tui.kit.run_words import STATES, level_sign
from tui.kit.widgets.painted import HIDDEN, Painted

FEW, MANY = 2, 5  # flags that get a row of their own, in a low terminal and in a high one
_HIGH = 36  # rows


class AwayPanel(Painted):
    """Hidden when nothing was missed."""

    missed: Missed | None = None
    now = 0.0

    def show(self, missed: Missed | None, now: float) -> None:
        self.missed, self.now = missed, now
        self.set_class(missed is None, HIDDEN)
        self.refresh(layout=True)

    @property
    def open(self) -> bool:
        return self.missed is not None

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.draw(width, 1 + (MANY if viewport.height >= _HIGH else FEW)))

    def draw(self, columns: int, rows: int) -> list[Row]:
        missed = self.missed
        if missed is None:
            return []
        count = len(missed.rises)
        title: Row = [(f" while you were away ({duration(self.now - missed.since)}): ", "title")]
        if count:
            title.append((f"{count} flag{'s' if count > 1 else ''}{', ' if missed.end else ''}", "text"))
        if missed.end:
            sign, role = STATES.get(missed.end, ("", "dim"))
            title.append((f"{sign} {missed.end}", role))
        drawn = [spread(title, [("enter events · esc close ", "dim")], columns)]
        for change in missed.rises[: rows - 1]:
            sign, role = level_sign(change.after)
            words = f"  step {change.step}  {change.message}"
            drawn.append([(f" {sign} {change.after!s:<9} {clean(change.rule):<8}", role), (clean(words), "text")])
        return drawn
