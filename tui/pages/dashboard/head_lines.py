"""A sentence above the charts: how a run ended, or why it hangs."""

import math

from textual.geometry import Size

from launcher.core.format import counted, duration, remaining
from launcher.core.text import clean
from launcher.record.state import RunState, TrackedRun
from launcher.runs.watch.history import Missed
from launcher.runs.watch.startup import Startup
from tui.kit.drawing.glyphs import BAR, BAR_HALF, BAR_REST
from tui.kit.drawing.rows import Row, crop, paragraph, spread, width
from tui.kit.keys import LETTERS, MENU
from tui.kit.page import HIDDEN
from tui.kit.run_words import level_sign, notice, state_words
from tui.kit.widgets.painted import Grown, Painted
from tui.pages.dashboard.startup import startup_sentence

_LEAST_BAR = 6
_COPIES = f"{LETTERS['actions']} {MENU['dashboard.tracker']} copies it"


class ProgressLine(Painted):
    """`step 212/1160 18 % 14.2 s/step ETA 3h 44m, done 18:12 ━━━╸──────`; during the start, its progress."""

    state: RunState | None = None  # None until read
    startup: Startup | None = None

    def show(self, state: RunState, startup: Startup | None) -> None:
        self.state, self.startup = state, startup
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        state = self.state
        if state is None:
            return []
        step, total = state.step, state.total
        if self.startup is not None:
            return [startup_sentence(self.startup, state.phase or "")]
        if step is None:
            return [[(" ended before the first step" if state.has_ended else " waiting for the first step", "dim")]]
        if total is None or total <= 0:
            return [[(f" {state.numbering.unit} {step}", "title"), *_pace(state, eta=False)]]
        share = min(step / total, 1.0)
        left: Row = [(f" step {step}/{total}", "title"), (f"  {math.floor(share * 100)} %", "dim")]
        for pace in (_pace(state, eta=True, done=True), _pace(state, eta=True), _pace(state, eta=False), []):
            bar = columns - width(left) - width(pace) - 3
            if bar >= _LEAST_BAR:
                return [[*left, *pace, ("  ", "dim"), *_bar(share, bar)]]
        return [left]


def _pace(state: RunState, eta: bool, done: bool = False) -> Row:
    words = ""
    seconds, left = state.step_seconds, state.eta
    if seconds is not None:
        words += f"  {seconds:.1f} s/{'step' if state.numbering.every == 1 else 'line'}"
    if eta and state.live and left is not None:
        words += f"  {remaining(left, state.done if done else None)}"
    return [(words, "dim")]


def _bar(share: float, columns: int) -> Row:
    halves = round(share * columns * 2)
    full, half = divmod(halves, 2)
    return [(BAR * full + BAR_HALF * half, "bar"), (BAR_REST * (columns - full - half), "bar-rest")]


FEW, MANY = 2, 5  # flags that get a row of their own, in a low terminal and in a high one
_HIGH = 36  # rows


class AwayPanel(Painted):
    """Hidden without missed events."""

    missed: Missed | None = None
    now = 0.0

    def show(self, missed: Missed | None, now: float) -> None:
        self.missed, self.now = missed, now
        self.set_class(missed is None, HIDDEN)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.draw(width, 1 + (MANY if viewport.height >= _HIGH else FEW)))

    def draw(self, columns: int, rows: int) -> list[Row]:
        missed = self.missed
        if missed is None:
            return []
        count = len(missed.rises)
        title: Row = [(f" while you were away ({duration(self.now - missed.since)}): ", "title")]
        title.append((counted(count, "flag") if count else f"{missed.end}, no new flag", "text"))
        drawn = [spread(title, [("enter lists them · esc closes ", "dim")], columns)]
        for change in missed.rises[: rows - 1]:
            sign, role = level_sign(change.after)
            words = f"  {missed.numbering.at(change.step)}  {change.message}"
            drawn.append([(f" {sign} {change.after!s:<9} {clean(change.rule):<8}", role), (clean(words), "text")])
        return drawn


class TrackerLine(Grown):
    """The trackers of the run, one line each: an address or a command; the keys that copy the first, and the number of
    others. Hidden without a tracker, and on a low screen.
    """

    trackers: tuple[TrackedRun, ...] = ()

    def show(self, trackers: tuple[TrackedRun, ...]) -> None:
        self.trackers = trackers
        self.set_class(not trackers, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        drawn = [crop([(f" {clean(each.words)}", "dim")], columns) for each in self.trackers[:rows]]
        if drawn:
            more = len(self.trackers) - len(drawn)
            drawn[0] = spread(drawn[0], [(f"{_COPIES}{f' · +{more}' if more else ''} ", "dim")], columns)
        return drawn


class DemoLine(Grown):
    """The next key in the recording of `ppo-tui demo`. Hidden on other runs."""

    text = ""

    def show(self, text: str | None) -> None:
        self.text = text or ""
        self.set_class(not text, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        return paragraph(self.text, "live", columns, most=min(rows, 2)) if self.text else []


MOST = 3  # lines


class Banner(Grown):
    """How the run ended or why it hangs, in up to three lines. Hidden while the run continues."""

    state: RunState | None = None  # None until read

    def show(self, state: RunState) -> None:
        self.state = state
        self.set_class(notice(state, place=False) is None, HIDDEN)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        closing = notice(self.state, place=False) if self.state else None
        if closing is None or self.state is None:
            return []
        role, sentence = closing
        sign = "".join(text for text, _ in state_words(self.state)).split()[0]
        return paragraph(f"{sign} {sentence}".replace("\n", " "), role, columns, most=MOST)
