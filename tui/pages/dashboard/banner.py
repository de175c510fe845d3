"""How a run ended, or why it stands still, in a sentence over its charts."""

from textwrap import wrap

from textual.geometry import Size

from launcher.core.text import clean
from launcher.record.state import RunState
from tui.kit.drawing.rows import Row
from tui.kit.run_words import notice, state_words
from tui.kit.widgets.painted import HIDDEN, Painted

MOST = 3  # lines


class Banner(Painted):
    """Hidden while all goes on; else as many lines as its sentence takes, three at most."""

    state: RunState | None = None  # until it is read

    def show(self, state: RunState) -> None:
        changed = self.state is None or notice(state) != notice(self.state)
        self.state = state
        self.set_class(notice(state) is None, HIDDEN)
        if changed:
            self.refresh(layout=True)
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.draw(width, MOST))

    def draw(self, columns: int, rows: int) -> list[Row]:
        closing = notice(self.state) if self.state else None
        if closing is None or self.state is None:
            return []
        role, sentence = closing
        sign = "".join(text for text, _ in state_words(self.state)).split()[0]
        text = clean(f"{sign} {sentence}").replace("\n", " ")
        lines = wrap(text, max(columns - 2, 8), max_lines=MOST, placeholder=" …")
        return [[(f" {line}", role)] for line in lines]
