"""What health adds to a chart: the worst flag, where flags rose, and the limits of the rules."""

from collections.abc import Callable, Iterable, Sequence

from launcher.health.verdict import bound_words
from launcher.metrics.store import SeriesStore
from launcher.record.check import Bound
from launcher.record.events import Event, LevelChange
from launcher.record.levels import Level
from launcher.record.state import RunState
from tui.kit.drawing import glyphs
from tui.kit.drawing.plot import Limit, Mark
from tui.kit.drawing.rows import Span
from tui.kit.run_words import level_sign, strictest

Concerns = Callable[[str], bool]  # whether the rule of this id is about the chart


def flag(concerns: Concerns, state: RunState) -> Span | None:
    """The sign of the worst check about a chart; None while all is fine."""
    worst = max((check.level for check in state.checks if concerns(check.rule)), default=Level.OK)
    return level_sign(worst) if worst > Level.OK else None


def marks(concerns: Concerns, store: SeriesStore, rises: Sequence[LevelChange]) -> list[Mark]:
    """Where attempts began, and where a flag about a chart rose; the worse sign covers the milder."""
    found = [Mark(step, glyphs.SEAM, "text") for step in store.seams]
    for change in sorted((each for each in rises if concerns(each.rule)), key=lambda each: each.after):
        found.append(Mark(change.step, *level_sign(change.after)))
    return found


def rises(events: Iterable[Event]) -> list[LevelChange]:
    """The flags that rose."""
    return [event.what for event in events if isinstance(event.what, LevelChange) and event.what.rose]


def limit_lines(bounds: Sequence[Bound]) -> list[Limit]:
    """The limits as lines where the curve comes near them, the worst first."""
    return [Limit(bound.value, level_sign(bound.level)[1], bound_words(bound)) for bound in reversed(strictest(bounds))]
