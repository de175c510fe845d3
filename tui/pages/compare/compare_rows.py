"""Runs next to each other: one row of results per run, their settings as a table."""

from collections.abc import Sequence

from launcher.compare.comparison import Compared, RunResults, band, groups
from launcher.compare.contrast import Contrast, interval_words, signed, steps_words
from launcher.core.format import SHORT_ID, duration, number
from launcher.core.text import clean
from launcher.metrics.glossary import describe
from launcher.metrics.names import Chart
from launcher.preset.yaml_text import shown
from launcher.runs.watch.run_settings import Difference
from tui.kit.charts.lens import Lens
from tui.kit.charts.view import STEP
from tui.kit.drawing.glyphs import BAR
from tui.kit.drawing.plot import DASHES, Curve, Plot
from tui.kit.drawing.rows import Row, fit, paragraph, shorten, spread
from tui.kit.drawing.rows import width as cells_of
from tui.kit.run_words import STATES, verdict_word

ROLES = ("curve", "curve-2", "curve-3", "curve-4")  # for the runs, in order
_STATE, _VERDICT, _STEP, _FIGURE, _TIME = 11, 12, 9, 6, 8  # cells of the columns of a run
_NAME, _LONGEST = 19, 40  # cells of a name at 80 columns, and at most
_TIME_FROM = 92  # columns from which there is room for the duration
_TITLE, _MEAN, _CHANGE, _INTERVAL = 11, 7, 8, 18  # cells of the columns of a contrast
_RESULTS = {"better": "ok", "faster": "ok", "worse": "warn", "slower": "warn"}  # roles; the others are text
_SETTING = 28  # maximum cells of a setting, of 80


def sign(place: int) -> str:
    """The sign of a group of runs in charts, or of a run in the settings: 1 to 8."""
    return str(place + 1)


def role_of(place: int) -> str:
    """The color of a group or a run."""
    return ROLES[place % len(ROLES)]


def fact_lines(found: Sequence[RunResults], groups: Sequence[int], columns: int) -> list[Row]:
    """A heading, and a line per run with the sign of its group: the legend of the charts."""
    timed = columns >= _TIME_FROM
    name = min(_NAME + max(columns - 80 - (_TIME + 1) * timed, 0), _LONGEST)
    heads = f" {'state':{_STATE}} {'verdict':{_VERDICT}} {'step':{_STEP}}"
    heads += "".join(f" {word:>{_FIGURE}}" for word in ("best", "last", "s/step"))
    heads += f" {'time':>{_TIME}}" if timed else ""
    rows: list[Row] = [[*fit([(" Compare", "title")], 4 + name), (heads, "dim")]]
    for place, fact in zip(groups, found, strict=True):
        ended = fact.outcome or fact.state
        state_sign, state_role = STATES.get(ended, ("?", "dim"))
        level_sign, verdict, level_role = verdict_word(fact.state, fact.verdict)
        short = f" · {fact.run[:SHORT_ID]}"
        step = fact.at if fact.line is not None else f"{'–' if fact.step is None else fact.step}/{fact.total or '–'}"
        row: Row = [(f" {BAR}{sign(place)} ", role_of(place))]
        row += fit([(shorten(clean(fact.name), name - len(short)), "title"), (short, "dim")], name)
        row += [(" ", "text"), *fit([(f"{state_sign} {ended}", state_role)], _STATE)]
        row += [(" ", "text"), *fit([(f"{level_sign} {verdict}", level_role)], _VERDICT)]
        row += [(" ", "text"), *fit([(step, "text")], _STEP)]
        for value in (fact.best_score, fact.last_score, fact.step_seconds):
            row += [(" ", "text"), *spread([], [(number(value), "text")], _FIGURE)]
        if timed:
            row += [(" ", "text"), *spread([], [(duration(fact.duration), "dim")], _TIME)]
        rows.append(row)
    return rows


def contrast_lines(found: Sequence[Contrast], assumptions: Sequence[str], columns: int) -> list[Row]:
    """The groups against the first one: a line per metric, with the requirements of a result; then the assumptions."""
    rows: list[Row] = []
    group = 0
    for each in found:
        if each.second != group:
            group = each.second
            heads = f"{'':>{_MEAN - 1}}{sign(0)} {'':>{_MEAN - 1}}{sign(group - 1)} {'':>{_CHANGE - 1}}Δ"
            heading: Row = [(f" {sign(group - 1)} against {sign(0)}", role_of(group - 1))]
            rows.append(
                [*fit(heading, _TITLE + 2), (f"{heads} {'interval':>{_INTERVAL}}  steps {steps_words(each)}", "dim")]
            )
        row: Row = [(" ", "text"), *fit([(each.metric, "text")], _TITLE)]
        cells = [*zip(map(number, each.values), (_MEAN, _MEAN), strict=True)]
        cells += [(signed(each.difference), _CHANGE), (interval_words(each), _INTERVAL)]
        for words, cell in cells:
            row += [(" ", "text"), *spread([], [(words, "text")], cell)]
        role = _RESULTS.get(each.result, "text" if each.told else "dim")
        row.append((f"  {each.result}", role))
        hint = f": {each.hint}" if each.hint else ""
        beside = cells_of(row) + cells_of([(hint, "dim")]) < columns
        rows.append([*row, (hint, "dim")] if beside else row)
        if not beside:
            rows += paragraph(each.hint, "dim", columns, indent=3)
    rows += [row for note in assumptions for row in paragraph(note, "dim", columns)]
    return [*rows, []] if rows else []


def difference_lines(
    runs: Sequence[Compared], found: Sequence[Difference], notes: Sequence[str], columns: int
) -> list[Row]:
    """The differing settings, one column per run; values equal to the first run's are dim."""
    heading: Row = [(" Settings that differ", "title")]
    longest = max((len(entry.key) for entry in found), default=0)
    name = min(max(longest, 21), max(columns * _SETTING // 80, 8))
    cell = max((columns - name - 2) // len(runs) - 1, 4)
    rows: list[Row] = []
    if found:
        heads: Row = fit(heading, name + 1)
        for place, run in enumerate(runs):
            label = f"{sign(place)} {run.run.id[:SHORT_ID]}"
            heads += [(" ", "text"), *fit([(label, role_of(place))], cell)]
        rows.append(heads)
    elif not notes:
        rows.append([(" No difference in settings or versions", "dim")])
    for entry in found:
        row: Row = [(" ", "text"), *fit([(shorten(clean(entry.key), name), "text")], name)]
        for place, value in enumerate(entry.values):
            words = " ".join(clean(shown(value)).split())
            role = "dim" if place and value == entry.values[0] else "text"
            row += [(" ", "text"), *fit([(shorten(words, cell), role)], cell)]
        rows.append(row)
    return [*rows, *(row for note in notes for row in paragraph(note, "dim", columns))]


def overlay(figure: Chart, runs: Sequence[Compared], lens: Lens, base: Compared, end: int | None) -> Plot:
    """One metric of all runs through the lens; `base`: the run whose steps the view covers, up to `end`.

    Runs that differ only in seeds are one curve: their mean, between minimum and maximum.
    """
    chart, kinds, across = Plot(figure.title), [], lens.view.across
    of_run = groups([run.info for run in runs])
    for group in dict.fromkeys(of_run):
        members = [run for run, its in zip(runs, of_run, strict=True) if its == group]
        logged = [(run, found) for run in members if (found := run.store.first_of(*figure.keys)) is not None]
        if not logged:
            continue
        kinds += [key for _, (key, _) in logged]
        role, all_series = role_of(group), [series for _, (_, series) in logged]
        shown = band(all_series) if len(all_series) > 1 else None
        series = shown.mean if shown else all_series[0]
        axis = lens.axis(logged[0][0].store, across) if across != STEP else None
        if shown:
            chart.curves += [Curve(edge, role="raw", axis=axis) for edge in (shown.low, shown.high)]
        chart.curves.append(Curve(series, role=role, sign=sign(group), axis=axis, dash=DASHES[group % len(DASHES)]))
        chart.headline.append([(f"{sign(group)} {number(series.last)}", role)])
        chart.unit = describe(kinds[0]).unit
    if len(set(kinds)) > 1:
        chart.title += " (different metrics)"
    if not chart.curves:
        chart.note = "not logged by these runs"
    return lens.look(chart, base.store, end)
