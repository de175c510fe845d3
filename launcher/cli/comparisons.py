"""Commands that compare runs, try the fixes of a flag, and show the verdicts."""

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.checking import refusals
from launcher.cli.output import Follow, Force, Json, Yes, confirm, find, put, put_json, put_table, say
from launcher.cli.screen import ScreenRequest, on_terminal
from launcher.core.errors import UserError
from launcher.core.format import counted, number
from launcher.core.tail import LineTail
from launcher.record.layout import RunDir

if TYPE_CHECKING:
    from launcher.compare.trial_runs import TrialPlan
    from launcher.compare.trial_verdicts import Trials

_LOOK = 0.2  # seconds between two looks at the trials' output
_AGAIN = 30.0  # seconds between two updates of `report --follow`
_NEXT = re.compile(r",(?=\+*[A-Za-z_][\w.]*=)")


def compare(
    ctx: typer.Context,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Two to eight runs, or their logs.")] = None,
    tag: Annotated[str | None, typer.Option(help="Compare the runs with this tag, such as a sweep's.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print tables instead of opening the screen.")] = False,
    json: Json = False,
) -> None:
    """Compare runs: results with intervals, settings that differ."""
    with ExitStack() as folders:

        def of_file(path: Path) -> RunDir:
            from launcher.runs.act.import_logs import unlisted

            return unlisted(path, folders.enter_context(TemporaryDirectory(prefix="ppo-tui-compare-")))

        _compare(ctx, runs, tag, plain, json, of_file)


def _compare(
    ctx: typer.Context,
    runs: list[str] | None,
    tag: str | None,
    plain: bool,
    json: bool,
    files: Callable[[Path], RunDir],
) -> None:
    from launcher.compare import comparison as core
    from launcher.compare import contrast
    from launcher.compare.comparison import groups
    from launcher.runs.watch.run_settings import differences as settings_that_differ
    from launcher.runs.watch.run_settings import foreign

    if tag is not None and runs:
        raise UserError("compare expects runs or --tag, not both", "leave one of them out")
    chosen = core.tagged(tag) if tag is not None else core.find_runs(runs or [], say, files)
    if not (plain or json) and on_terminal() and len(chosen) <= core.MOST:
        raise typer.Exit(ctx.obj.open(ScreenRequest(compare=tuple(str(run.path) for run in chosen))))
    compared = [core.Compared(run) for run in chosen]
    for each in compared:
        each.poll()
    facts, infos = [each.facts() for each in compared], [each.info for each in compared]
    differences, of_run = settings_that_differ(infos), [group + 1 for group in groups(infos)]
    judged = contrast.contrasts(compared)
    assumed = contrast.assumptions(compared, judged)
    if json:
        changed = [{"key": entry.key, "values": entry.values} for entry in differences]
        against = [each.to_json() for each in judged]
        told = {"groups": of_run, "contrasts": against, "assumptions": assumed}
        put_json({"runs": [fact.to_json() for fact in facts], "differences": changed, **told})
        return
    rows = core.fact_rows(facts)
    by_group = tag is not None
    put_table(contrast.arm_rows(compared) if by_group else [*rows, ["group", *map(str, of_run)]])
    if judged:
        put("")
        put_table(contrast.contrast_rows(judged))
    elif repeated := contrast.spread_rows(compared):
        put("")
        put_table(repeated)
    for line in assumed:
        put(line)
    for note in core.notes(compared):
        say(note)
    if by_group:
        return
    if differences:
        put("")
        put_table(core.difference_rows(chosen, differences))
    elif all(info.preset is not None and not foreign(info) for info in infos):
        say("the runs have the same settings and versions")


def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="One to eight runs.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="File to write.")] = Path(
        "report.html"
    ),
    tag: Annotated[str | None, typer.Option(help="Runs with a tag, such as a sweep's.")] = None,
    follow: Follow = False,
) -> None:
    """Write a report of runs as one HTML file. Verdict, curves, samples, settings, cost."""
    from launcher.compare.comparison import find_runs, tagged
    from launcher.report.page import write

    if not runs and tag is None:
        raise UserError("no run to report on", "name one to eight runs, such as 'last', or use --tag")
    if runs and tag is not None:
        raise UserError(f"runs and --tag {tag} cannot be combined", "leave one of them out")
    if tag is not None:
        chosen = tagged(tag)
    else:
        chosen = [find(word) for word in runs or []] if len(runs or ()) == 1 else find_runs(runs or [], say)
    while write(chosen, output) and follow:
        say(f"wrote {output}; the next in {_AGAIN:.0f} s")
        time.sleep(_AGAIN)
    put(str(output))


def try_(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="An id, the start of one, a name, 'last'.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE[,KEY=VALUE]", help="Changes to try instead; each is a separate trial."),
    ] = None,
    rule: Annotated[str | None, typer.Option(help="Rule to try fixes for [default: the first CRITICAL one].")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of each trial.")] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option(metavar="STEP", min=0, help="Checkpoint step; 0: the start [default: before the flag]."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of fixes.")] = 3,
    faster: Annotated[bool, typer.Option("--faster", help="Try the first suggestion of 'ppo-tui time'.")] = False,
    verdicts: Annotated[bool, typer.Option("--list", help="List trials with verdicts [default: of all runs].")] = False,
    yes: Yes = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Try the fixes of a flag from the checkpoint before it. A control run without changes runs alongside.

    For a failed run, one trial runs a few steps without the suspected setting. The trials are
    runs of the queue: side by side on free GPUs, otherwise one after another.
    """
    if verdicts:
        _list(run, json)
        return
    if run is None:
        raise UserError("missing RUN", "use 'ppo-tui try RUN'")
    if faster:
        if changes or rule:
            raise UserError("--faster takes no KEY=VALUE and no --rule", "leave them out")
        _try_faster(find(run), steps, checkpoint, yes=yes, force=force, json=json)
        return
    from launcher.compare.trial_runs import plan

    arms = [_NEXT.split(each) for each in changes or []]
    planned = plan(find(run), rule, arms, count=steps, at=checkpoint, most=limit)
    _carry_out(planned, arms, yes=yes, force=force, json=json)


def _carry_out(planned: "TrialPlan", arms: Sequence[Sequence[str]], *, yes: bool, force: bool, json: bool) -> None:
    """Carries out trials in a process that outlives this one and its terminal; an interruption ends both."""
    from launcher.compare.trial_runs import start_apart
    from launcher.compare.trial_verdicts import trials_of

    for line in (f"{planned.name}:", *planned.lines, f"cost: {planned.cost}"):
        say(line)
    confirm("Start the trials?", yes, f"trials of run {planned.run.id}")
    process, log = start_apart(planned, arms, force=force), LineTail(planned.run.trials_log)
    try:
        for line in _followed(process, log):
            say(line)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    if process.returncode:
        raise typer.Exit(process.returncode)
    started = (planned.onset.rule, planned.step)
    _show([each for each in trials_of(planned.run.id) if (each.rule, each.step) == started][:1], json)


def _followed(process: "subprocess.Popen[bytes]", log: LineTail) -> Iterator[str]:
    """The lines of a log while a process writes it."""
    while True:
        ended = process.poll() is not None
        yield from (line.decode(errors="replace") for line in log.read())
        if ended:
            return
        time.sleep(_LOOK)


def _try_faster(parent: RunDir, count: int | None, at: int | None, *, yes: bool, force: bool, json: bool) -> None:
    from launcher.compare.faster import carry_out, plan

    planned = plan(parent, count=count, at=at)
    for line in planned.lines:
        say(line)
    confirm("Start them?", yes, f"trying to make run {parent.id} faster")
    with refusals():
        proof = carry_out(planned, say, force=force)
    if json:
        put_json(proof.to_json())
        return
    before, after, saved, low, high = (
        number(value) for value in (proof.before, proof.after, proof.saved, proof.low, proof.high)
    )
    put(f"control run {proof.control}: {before} s per step")
    put(f"with {proof.setting} {proof.changed}: {after} s per step")
    put(f"saved: {saved} s per step ({low} to {high})")
    if proof.proven:
        put(f"kept: it is faster; 'ppo-tui resume {proof.changed} trainer.steps=N' continues with it")
    else:
        put(f"not kept: not proven faster; 'ppo-tui resume {proof.control} trainer.steps=N' continues without it")


def _list(run: str | None, json: bool) -> None:
    from launcher.compare.trial_verdicts import trials_of, waiting_trials

    parent = find(run).id if run else None
    if waiting := waiting_trials(parent):
        say(f"{counted(len(waiting), 'trial')} in the queue: {', '.join(each.id for each in waiting)}")
    if run and not json:
        for line in LineTail(find(run).trials_log).read():
            say(line.decode(errors="replace"))
    if (found := trials_of(parent)) or json or not waiting:
        _show(found, json)


def _show(results: "list[Trials]", json: bool) -> None:
    if not results and not json:
        say("no trials yet; 'ppo-tui try RUN' tries the fixes of a flag")
    for each in results:
        if json:
            arms = [arm.to_json() for arm in each.arms]
            put_json({"parent": each.parent, "rule": each.rule, "step": each.step, "trials": arms})
            continue
        put(f"{each.rule} of run {each.parent}, from {f'step {each.step}' if each.step else 'the start'}")
        rows = [("VERDICT", "RUN", "STEP", "REWARD", "CHANGE")]
        for arm in each.arms:
            gap = "–" if arm.reward is None else f"{'+' * (arm.reward >= 0)}{number(arm.reward)}"
            change = " ".join(arm.changes) or "control run"
            reason = f"{change} ({arm.told})" if arm.told else change
            rows.append((arm.verdict, arm.run, f"{arm.step}/{arm.planned}", gap, reason))
        put_table(rows)
