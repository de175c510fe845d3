"""One trial: its verdict, its curves next to the control run's, its changes."""

from functools import partial
from typing import NamedTuple

from launcher.compare.isolation import AGAIN, ISOLATED, ISOLATION, OTHER
from launcher.compare.trial_verdicts import DIFFERENT, FIXED, GOING, HARMFUL, NO_EFFECT, PARTLY, REPEATED, Arm, Trials
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.format import number
from launcher.metrics import names
from launcher.metrics.store import SeriesStore
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.watch.steps import steps
from tui.kit.drawing import glyphs
from tui.kit.drawing.plot import Curve, Plot
from tui.kit.drawing.rows import Row, labelled, paragraph, spread
from tui.kit.metric_rows import title
from tui.kit.widgets.inspector import CHARTS, Inspected, Inspection

VERDICTS: dict[str, tuple[str, str]] = {  # verdict -> sign, role
    FIXED: (glyphs.OK, "ok"),
    PARTLY: (glyphs.NOTICE, "notice"),
    NO_EFFECT: (glyphs.WARN, "warn"),
    HARMFUL: (glyphs.CRITICAL, "critical"),
    REPEATED: (glyphs.OK, "dim"),
    DIFFERENT: (glyphs.NOTICE, "notice"),
    GOING: (glyphs.RUNNING, "live"),
    ISOLATED: (glyphs.OK, "ok"),
    AGAIN: (glyphs.WARN, "warn"),
    OTHER: (glyphs.NOTICE, "notice"),
}
_FACT = 9  # column of the texts


class Steps(NamedTuple):
    """The steps of a trial and its control run; `flagged`: metrics of the flagged rule."""

    own: SeriesStore
    control: SeriesStore | None
    flagged: tuple[str, ...]


def inspect_trial(page: Inspected[None], trials: Trials, arm: Arm, columns: int) -> Inspection:
    """The details of a trial; both runs' steps are read when the cursor rests, and after new steps."""
    sign, role = VERDICTS.get(arm.verdict, (glyphs.NONE, "dim"))
    control = next((each for each in trials.arms if not each.changes and each is not arm), None)
    head: list[Row] = [
        spread([(f" {sign} {arm.verdict}", role)], [(f"step {arm.step} of {arm.planned} ", "dim")], columns),
        *paragraph(arm.told, "text", columns),
        [],
    ]
    facts = [
        ("run", arm.run),
        ("changes", " ".join(arm.changes) or "none: this is the control run"),
        *([("flag", f"{trials.rule} {arm.level}")] if trials.rule != ISOLATION else []),
    ]
    if arm.reward is not None:
        facts.append(("reward", f"{'+' * (arm.reward >= 0)}{number(arm.reward)} on average against the control run"))
    rows = [row for name, text in facts for row in labelled([(f" {name}", "dim")], text, "text", _FACT, columns)]
    entry = f"{arm.run} {arm.step} {control.step if control else ''}"
    found = page.read_once(entry, partial(_read, arm.run, control.run if control else None, trials.rule))
    if found is None:
        return Inspection(head, rows=[*rows, [], [(" reading the steps …", "dim")]])
    reward = found.own.first_of(*names.SCORE)
    keys = dict.fromkeys([*([reward[0]] if reward else []), *found.flagged])
    return Inspection(head, [_plot(key, found, trials.step, arm.planned) for key in keys][:CHARTS], rows)


def _read(run: str, control: str | None, rule: str) -> Steps:
    try:
        checks = current(RunDir(paths.runs_dir() / run)).checks
        flagged = next((check.keys for check in checks if check.rule == rule), ())
        return Steps(_store(run), _store(control) if control else None, tuple(flagged))
    except (OSError, UserError):  # deleted, or a file that cannot be read
        return Steps(SeriesStore(), None, ())


def _store(run: str) -> SeriesStore:
    store = SeriesStore()
    for attempt, record in steps(RunDir(paths.runs_dir() / run)):
        store.add(record, attempt)
    return store


def _plot(key: str, found: Steps, first: int, planned: int) -> Plot:
    """One metric from the checkpoint on; the control run's curve is behind the trial's."""
    plot = Plot(title(key), first=first, last=max(planned, first + 1))
    own, control = found.own.get(key), found.control.get(key) if found.control else None
    if control:
        plot.curves.append(Curve(control, role="curve-2", label="control run", sign=glyphs.FILL))
        plot.headline.append([(f"control {number(control.last)}", "dim")])
    if own:
        plot.curves.append(Curve(own, label="this trial" if control else ""))
        plot.headline.insert(0, [(number(own.last), "title")])
    if not plot.curves:
        plot.note = "not logged"
    return plot
