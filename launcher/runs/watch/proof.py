"""The evidence for a flag: the metric to draw, and its limits."""

from collections.abc import Iterable, Sequence

from launcher.metrics.names import THROUGHPUT, Chart
from launcher.metrics.store import Series, SeriesStore
from launcher.record.check import Bound, Check
from launcher.record.levels import WARN, crossed
from launcher.runs.watch.check_words import line_value, uncovered

_STAYS = 10  # steps for which the proof of a flag stays after it has cleared


def proven(charts: Sequence[Chart], store: SeriesStore, checks: Sequence[Check]) -> Sequence[Chart]:
    """The charts with the metric of the first flag whose curve is not among them instead of throughput.

    Throughput stays while it is the metric of a worse flag.
    """
    shown = {found[0] for chart in charts if (found := store.first_of(*chart.keys))}
    for check, key in flagged(store, checks):
        if key in THROUGHPUT:
            break
        if key not in shown:
            return [_chart(key, check.rule) if chart.keys == THROUGHPUT else chart for chart in charts]
    return charts


def flagged(store: SeriesStore, checks: Iterable[Check]) -> list[tuple[Check, str]]:
    """The flags in the order of the list, each with the logged metric that shows it."""
    found = ((check, _judged(check, store)) for check in _flagged(checks, store.last_step or 0))
    return [(check, key) for check, key in found if key is not None]


def _chart(key: str, rule: str) -> Chart:
    return Chart(key, key, (key,), (), "usual", proves=rule)


def _flagged(checks: Iterable[Check], step: int) -> list[Check]:
    """The flags in the order of the list; without one, the flag that cleared last."""
    heard = [check for check in checks if not check.muted]
    cleared = [check for check in heard if check.cleared is not None and step - check.cleared < _STAYS]
    return [check for check in heard if check.on] or sorted(cleared, key=lambda check: -(check.cleared or 0))[:1]


def _judged(check: Check, store: SeriesStore) -> str | None:
    """The metric whose limit is crossed, otherwise the first one that the rule judges; None if it is not logged."""
    beyond = [bound.series for bound in check.bounds if passed(bound)]
    keys = [check.keys[at] for at in beyond if 0 <= at < len(check.keys)] or check.keys
    return next((key for key in keys if store.get(key)), None)


def nearest(bounds: Iterable[Bound], series: Series) -> list[Bound]:
    """Per side, the upper one first: the worst limit that is crossed, otherwise the first to be crossed; no NOTICE.

    A limit that moves with the run and has been passed without a flag is left out.
    """
    found, span = list[Bound](), series.span(0, series.steps[-1]) if len(series) else None
    for side in "><":
        limits = [bound for bound in strictest(bounds) if bound.level >= WARN and bound.side[0] == side]
        over = [bound for bound in limits if passed(bound)]
        free = [bound for bound in limits if bound.fixed or not (span and (bound.on(span.low) or bound.on(span.high)))]
        found += over[-1:] or free[:1]
    return found


def passed(bound: Bound) -> bool:
    """Whether the run is beyond the limit, or was and has not cleared."""
    return bound.holds or bound.crossed


def strictest(bounds: Iterable[Bound]) -> list[Bound]:
    """The first bound to be crossed, per level and side; the mildest level first."""
    found = dict[tuple[int, str], Bound]()
    for bound in bounds:
        known = found.get((bound.level, bound.side[0]))
        if known is None or crossed(line_value(known), bound.side[0], line_value(bound)):
            found[bound.level, bound.side[0]] = bound
    return uncovered(sorted(found.values(), key=lambda bound: (bound.level, bound.side)))
