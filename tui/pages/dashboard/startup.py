"""The start of a run as a checklist: a row per stage, with its time, the usual one, and its place in the whole."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType

from launcher.console.phases import PHASES
from launcher.core.format import duration, roughly
from launcher.record.state import Rollout
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.startup import (
    DONE,
    ENDED,
    NAMES,
    RUNNING,
    UNREACHED,
    WAITING,
    Stage,
    Startup,
    origin_words,
    usual_words,
)
from tui.kit.drawing import glyphs
from tui.kit.drawing.rows import Row, Span, crop, paragraph, put
from tui.kit.widgets.painted import Painted

SIGNS = {  # sign, role
    DONE: (glyphs.FINISHED, "ok"),
    RUNNING: (glyphs.WAITING, "live"),
    WAITING: (glyphs.NONE, "dim"),
    ENDED: (glyphs.FAILED, "critical"),
    UNREACHED: (glyphs.NONE, "dim"),
}
_SLOW = "longer than usual"
_NAME, _STATE, _TIME, _USUAL = 21, 40, 49, 64  # columns before which the parts of a row end
_BARS, _LEAST_BARS = _USUAL + 2, 8
_HEAD = 4  # rows besides the stages from which there is a head


def startup_rows(
    found: Startup,
    rollout: Rollout | None,
    columns: int,
    rows: int,
    *,
    on_cpu: bool,
    fixes: Mapping[str, str] = MappingProxyType({}),
) -> list[Row]:
    """The checklist in at most `rows` rows: completed stages share one if there is little room.

    `fixes`: settings that shorten a stage, shown while it runs.
    """
    origin = origin_words(found, on_cpu=on_cpu)
    why: list[Row] = [[(f"   {NAMES[stage.stage]}: {stage.why}", "notice")] for stage in found.stages if stage.why]
    notes, at = list(why), next((stage.stage for stage in found.stages if stage.state == RUNNING), "")
    if at in fixes:
        notes += paragraph(f"shorter next time: {fixes[at]}", "dim", columns, indent=3)
    notes += [[(f"   usual times: {origin}", "dim")]] if origin else []
    airy = rows >= 2 * len(found.stages) + len(notes) + _HEAD
    headed = rows >= len(found.stages) + len(notes) + _HEAD
    head: list[Row] = [_row("stage", "", "time", "usually" if origin else "", columns, "dim")] if headed else []
    listed: list[Row] = []
    over = list(takewhile(lambda stage: stage.state == DONE, found.stages))
    folded = [] if rows >= len(found.stages) else over
    if folded:
        listed.append(_together(folded, glyphs.FINISHED, "ok", columns))
    for stage in found.stages[len(folded) :]:
        listed.append(_stage(stage, found, columns))
        if airy:
            listed.append([(f"   {_doing(stage, rollout)}", "dim")] if stage.begun is not None else [])
    if len(listed) > rows:
        later = found.stages[len(folded) + rows - 1 - bool(folded) :]
        listed[rows - 1 :] = [_together(later, glyphs.NONE, "dim", columns)]
    if len(head) + len(listed) + len(notes) + 1 > rows:
        return [*head, *listed, *why][:rows]
    return [*head, *([[]] if airy else []), *listed, *([] if airy else [[]]), *notes]


def _together(stages: Sequence[Stage], sign: str, role: str, columns: int) -> Row:
    names = ", ".join(NAMES[stage.stage] for stage in stages)
    return [(f" {sign} ", role), *crop([(names, "dim")], max(columns - 3, 1))]


def _doing(stage: Stage, rollout: Rollout | None) -> str:
    if stage.state == DONE:
        return ""
    done = f", {rollout.finished}/{rollout.total} responses" if rollout is not None and rollout.total else ""
    return f"{PHASES[stage.stage].label}{done}"


def _stage(stage: Stage, found: Startup, columns: int) -> Row:
    late = stage.slow and stage.state in (RUNNING, DONE)
    sign, role = (glyphs.NOTICE, "notice") if late else SIGNS[stage.state]
    word = _SLOW if stage.slow and stage.state == RUNNING else stage.state
    seconds = duration(stage.seconds) if stage.seconds is not None else ""
    plain = "dim" if stage.begun is None else "text"
    row = _row(NAMES[stage.stage], word, seconds, usual_words(stage.usual), columns, plain, (f" {sign} ", role))
    if columns >= _BARS + _LEAST_BARS:
        row = put(row, _BARS, _bar(stage, found, columns - _BARS - 1))
    return row


def _row(name: str, word: str, time: str, usual: str, columns: int, role: str, sign: Span = ("   ", "text")) -> Row:
    """The parts in columns, times to the right; a narrow screen shows only the first columns."""
    row = [sign, (name, role)]
    for text, end, before in ((word, _STATE, _NAME), (time, _TIME, 0), (usual, _USUAL, 0)):
        if columns >= end and text:
            row = put(row, before or end - len(text), [(text, "dim" if text == usual else role)])
    return row


def _bar(stage: Stage, found: Startup, columns: int) -> Row:
    """A bar that shows the position of the stage in the whole start; for a later stage, its expected position."""
    at, places = found.seconds or 0.0, dict[str, tuple[float, float]]()
    for each in found.stages:
        usual = sum(each.usual) / 2 if each.usual else 0.0
        if each.begun is not None:
            places[each.stage] = each.begun, each.begun + (each.seconds or 0.0)
            at = max(at, each.begun + usual) if each.state == RUNNING else at
        else:
            places[each.stage] = at, at + usual
            at += usual
    begun, end = (round(each / (at or 1.0) * columns) for each in places[stage.stage])
    if stage.begun is None:
        return [(" " * begun, "text"), (glyphs.BAR_REST * (end - begun), "bar-rest")]
    return [(" " * min(begun, columns - 1), "text"), (glyphs.BAR * max(end - begun, 1), "bar")]


def startup_sentence(found: Startup, phase: str) -> Row:
    """`loading the models  1m 05s of about 1m 50s`, or the stage where it ended. The first step has phases."""
    at = next((stage for stage in found.stages if stage.state in (RUNNING, ENDED)), None)
    if at is None:
        return [(" starting", "text")]
    taken = f" after {duration(found.seconds)}" if found.seconds is not None else ""
    if at.state == ENDED:
        return [(f" ended while {PHASES[at.stage].label}{taken}, before the first step", "dim")]
    so_far = "of about" if (found.seconds or 0) <= (found.usual or 0) else "· usually"  # no total that is over
    usual = f" {so_far} {roughly(found.usual)}" if found.usual is not None else ""
    row: Row = [(f" {PHASES[phase if at is found.stages[-1] and phase in PHASES else at.stage].label}", "text")]
    row += [(f"  {duration(found.seconds)}", "title")] if found.seconds is not None else []
    return [*row, (usual, "dim")]


class StartupList(Painted):
    """A row per stage: sign, name, state, time and usual time."""

    found: Startup | None = None
    rollout: Rollout | None = None
    on_cpu = False
    fixes: Mapping[str, str] = MappingProxyType({})

    def show(self, found: Startup | None, reader: RunReader) -> None:
        if found is not None and found != self.found:
            from launcher.timing.advice import advise_start

            self.fixes = {each.stage: each.offers[0].text for each in advise_start({}, reader.config)}
        self.found, self.rollout, self.on_cpu = found, reader.state.rollout, reader.head.on_cpu
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if self.found is None:
            return []
        return startup_rows(self.found, self.rollout, columns, rows, on_cpu=self.on_cpu, fixes=self.fixes)
