"""The command that shows the time per step and stage."""

from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.diagnosing import put_without_step
from launcher.cli.output import Every, Json, Names, Source, put, put_json, put_problems, put_table, resolved, say
from launcher.core.errors import UserError
from launcher.core.format import number
from launcher.core.text import allowed_steps
from launcher.record.state import current

if TYPE_CHECKING:
    from launcher.metrics.store import SeriesStore
    from launcher.record.layout import RunDir
    from launcher.record.machine import GpuSample
    from launcher.runs.watch.log import Log
    from launcher.timing.report import Report, Timing


def time(
    source: Source,
    step: Annotated[int | None, typer.Option(help="Step to show [default: the newest].")] = None,
    names: Names = None,
    every: Every = None,
    json: Json = False,
) -> None:
    """Show how long each stage of a step, and of the start, takes."""
    from launcher.record.layout import RunDir
    from launcher.runs.watch.steps import numbering_of

    origin = resolved(source, names, every=every)
    if put_without_step(origin, json):
        return
    timing, series, gpu = _of_run(origin) if isinstance(origin, RunDir) else _of_log(origin)
    report = timing.report(series, step, gpu)
    name = origin.id if isinstance(origin, RunDir) else source
    if report is None:
        known = timing.steps(series)
        if step is None or not known:
            of_run = isinstance(origin, RunDir)
            where = f"'ppo-tui status {name}' shows its state" if of_run else "name a log with steps"
            raise UserError(f"{name} has no times of a step yet", where)
        raise UserError(f"--step {step}: no times of this step", allowed_steps(known, "--step"))
    if json:
        put_json({"run": name, **report.to_json()})
        return
    _put(report, numbering_of(origin).at(report.step))


def _of_run(run: "RunDir") -> "tuple[Timing, SeriesStore, GpuSample | None]":
    from launcher.runs.watch.reader import RunReader
    from launcher.timing.report import Timing

    reader = RunReader(run.path)
    reader.poll()
    timing = Timing(run, whole=True)
    timing.poll(current(run, checks=False).going)
    return timing, reader.series, reader.machine.gpu


def _of_log(log: "Log") -> "tuple[Timing, SeriesStore, None]":
    """The timing of an external log: the trainer's timers, without spans."""
    from launcher.metrics.store import SeriesStore
    from launcher.runs.watch.steps import shown_steps
    from launcher.timing.report import Timing

    series = SeriesStore()
    for attempt, record in shown_steps(log)[1]:
        series.add(record, attempt)
    return Timing(None, framework=log.framework, console=log.text()), series, None


def _put(report: "Report", at: str) -> None:
    from launcher.runs.watch.startup import start_words
    from launcher.timing.stages import OTHER, STAGES
    from launcher.timing.words import host_words, limit_line, no_advice, problems, start_problems

    put(f"{at}: {number(report.seconds)} s" + (", running" if report.running else ""))
    if report.rough:
        say(f"note: {report.rough}")
    rows = [("STAGE", "SECONDS", "SHARE", "USUAL", "WHAT")]
    for name, seconds in sorted(report.stages.items(), key=lambda item: -item[1]):
        usual = report.usual.get(name)
        share = f"{100 * seconds / report.seconds:.0f} %" if report.seconds else "–"
        what = STAGES[name].words if report.of_verl or name != OTHER else "time not recorded in the log"
        rows.append((name, number(seconds), share, number(usual), what))
    put_table(rows)
    if report.time:
        put("")
        idle = report.time.idle()
        lanes = [("LANE", "BUSY", "IDLE")]
        for lane in report.time.lanes:
            rest = f"{100 * idle[lane.number]:.0f} %" if lane.kind == "rank" else "–"
            lanes.append((lane.name, f"{number(lane.busy)} s", rest))
        put_table(lanes)
    put("")
    put(f"{'speed':<8} {limit_line(report.limits)}")
    if host := host_words(report):
        put(f"{'host':<8} {host}")
    if start := start_words(report.start, report.start_attempt):
        put(f"{'start':<8} {start}")
    found = problems(report)
    if not found:
        put(no_advice(report))
    put_problems([*found, *start_problems(report)])
