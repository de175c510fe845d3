"""What health has to say on a chart: the worst flag, and where flags rose."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from launcher.metrics.store import SeriesStore
from tui import glyphs
from tui.drawing.plot import Mark
from tui.drawing.rows import Span
from tui.words.run import LEVELS, ORDER, level_sign

Concerns = Callable[[str], bool]  # whether the rule of this id is about the chart
Event = Mapping[str, Any]


def flag(concerns: Concerns, state: Mapping[str, Any]) -> Span | None:
    """The sign of the worst check about a chart; None while all is fine."""
    levels = [str(check.get("level")) for check in state.get("checks") or [] if concerns(str(check.get("rule")))]
    worst = max(levels, key=lambda level: ORDER.get(level, 0), default="OK")
    return level_sign(worst) if ORDER.get(worst, 0) >= ORDER["NOTICE"] else None


def marks(concerns: Concerns, store: SeriesStore, rises: Sequence[Event]) -> list[Mark]:
    """Where attempts began, and where a flag about a chart rose; the worse sign covers the milder."""
    found = [Mark(step, glyphs.SEAM, "text") for step in store.seams]
    mine = [event for event in rises if concerns(str(event.get("rule")))]
    for event in sorted(mine, key=lambda event: ORDER[str(event["to"])]):
        sign, _, role = LEVELS[str(event["to"])]
        found.append(Mark(event["step"], sign, role))
    return found


def rises(events: Iterable[Event]) -> list[Event]:
    """The events of flags that rose."""
    return [event for event in events if event.get("kind") == "health" and rose(event)]


def rose(event: Event) -> bool:
    """Whether an event about a flag says that it rose, and at which step."""
    before, after = (ORDER.get(str(event.get(side)), 0) for side in ("from", "to"))
    return isinstance(event.get("step"), int) and after > max(before, ORDER["OK"])
