"""Commands that start, import, follow and end runs."""

import sys
import time
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.checking import refusals
from launcher.cli.output import (
    Checkpoint,
    Detach,
    Every,
    Follow,
    Force,
    Json,
    Names,
    Plain,
    Preset,
    Run,
    Settings,
    find,
    left_within,
    pasted_text,
    put_json,
    put_result,
    put_run,
    put_table,
    say,
    shown_progress,
)
from launcher.cli.screen import on_terminal
from launcher.core.errors import UserError
from launcher.record import layout
from launcher.record.events import Note, read_kind
from launcher.record.layout import RunDir, names_file, refuse_run
from launcher.record.process import run_processes
from launcher.record.state import ALIVE

RunName = Annotated[str, typer.Option("--name", help="Name of the run [default: that of the preset].")]
_POLL = 0.5  # seconds between two looks at a log that grows


def run(
    ctx: typer.Context,
    preset: Preset,
    settings: Settings = None,
    detach: Detach = False,
    plain: Plain = False,
    json: Json = False,
    force: Force = False,
    queue: Annotated[bool, typer.Option("--queue", help="Start it when its GPUs are free; print its id.")] = False,
    after: Annotated[
        str | None, typer.Option(metavar="RUN", help="With --queue: start after this run has finished.")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(metavar="0,1", help="With --queue: use these GPUs [default: any free ones].")
    ] = None,
    name: RunName = "",
) -> None:
    """Check a preset and start a run. The run continues when this terminal closes."""
    from launcher.runs.act.start import Plan, start

    if queue:
        from launcher.runs.act.queue_runner import add

        entry = add(Plan.of(preset, settings or [], name=name), after=after, gpus=gpus, force=force, narrate=say)
        put_result(entry.id, {"run": entry.id}, json)
        return
    if after or gpus:
        raise UserError("--after and --gpus are options of the queue", "add --queue")
    with refusals():
        started = start(Plan.of(preset, settings or [], name=name), say, force=force)
    follow(ctx, started, detach, plain, json)


def attach(
    ctx: typer.Context,
    run: Annotated[
        str,
        typer.Argument(metavar="RUN | PATH | ADDRESS", help="A run, a growing log, or the dashboard of a Ray cluster."),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="JOB | KEY=VALUE", help="Job id on the cluster, or settings missing from a log."),
    ] = None,
    names: Names = None,
    every: Every = None,
    plain: Plain = False,
    detach: Detach = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Disable actions that change the run.")] = False,
) -> None:
    """Open the dashboard of a run, a growing log or a Ray job. ADDRESS alone lists the jobs of the cluster."""
    path = Path(run).expanduser()
    others, settings = split_settings(words or [])
    if (path.exists() or names_file(run)) and not (path / "run.yaml").exists():
        found = _followed(run, settings, names, every)
    elif others:
        from launcher.runs.act.attach_job import attach_job

        found = attach_job(run, others[0])
    elif ":" in run:  # never in a run's id
        _list_jobs(run)
        return
    else:
        found = find(run)
    follow(ctx, found, detach, plain, json=False, read_only=read_only)


def _followed(word: str, settings: dict[str, object], names: str | None, every: int | None) -> RunDir:
    """The run that follows a path. Raises UserError for a word that is also a run."""
    from launcher.metrics.frameworks import user_table
    from launcher.runs.act.attach_file import attach_when_begun

    refuse_run(word)
    said = set[str]()

    def wait(missing: str, seconds: float) -> None:
        if missing not in said:
            key = "q" if sys.stdin.isatty() else "Ctrl-C"
            say(f"waiting for a step: {missing}; press {key} to leave")
            said.add(missing)
        if left_within(seconds):
            raise typer.Exit

    table = user_table(Path(names).expanduser()) if names else None
    return attach_when_begun(word, settings, table, wait, shown_progress(), every)


def logs(
    run: Run,
    follow: Follow = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Number of last lines to print [default: all].")
    ] = None,
) -> None:
    """Print the console log of a run's newest attempt."""
    from launcher.console.pager import LogPager, shown
    from launcher.runs.supervise.spawn import ended

    target = find(run)
    attempt = target.last_attempt()
    if attempt is None or not attempt.console.exists():
        raise UserError(f"run {target.id} has no log yet", f"'ppo-tui status {target.id}' shows its state")
    pager = LogPager(attempt.console)
    last = list(islice(pager.backward(pager.size), limit)) if limit else []
    at, going = last[-1].offset if last else 0, True
    while going:
        going = follow and ended(target).live
        pager.look()
        for line in pager.forward(at):
            if going and pager.read(line.end - 1, 1) != b"\n":
                break  # incomplete
            sys.stdout.write(f"{shown(line, redacted=False).shown}\n")
            at = line.end
        sys.stdout.flush()
        time.sleep(_POLL if going else 0)


def stop(
    run: Run,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all processes of the run have ended.")] = False,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who requests the stop, for the record.")] = "user",
    json: Json = False,
) -> None:
    """Stop a run with its driver, Ray and the rollout engine."""
    from launcher.runs.act.stop import cancel_retry
    from launcher.runs.act.stop import stop as ask
    from launcher.runs.supervise.spawn import ended

    target = layout.find(run)  # without a note: of several runs of that name none is meant
    before = ended(target)
    state, left = before.state, list[int]()
    if before.going:
        state = ask(target, by=by, wait=wait, narrate=say)
        say(f"stopping run {target.id}" if state in ALIVE and not wait else f"run {target.id} is {state}")
        left = run_processes(target.read_id()) if wait else left
    else:
        waits = cancel_retry(target, before)
        say(f"run {target.id} is not running (state: {state})" + ("; cancelled its retry" if waits else ""))
    if left:
        say(f"processes of the run that could not be killed: {', '.join(map(str, left))}")
    if json:
        put_json({"run": target.id, "state": state, "left": left})
    if left or (before.going and wait and (state in ALIVE or state == "lost")):  # or a job whose cluster did not answer
        raise typer.Exit(1)


def resume(
    ctx: typer.Context,
    run: Run,
    settings: Settings = None,
    checkpoint: Checkpoint = None,
    detach: Detach = False,
    plain: Plain = False,
    json: Json = False,
    force: Force = False,
) -> None:
    """Resume a run from its newest checkpoint. --checkpoint selects another one."""
    from launcher.runs.act.resume import resume as go_on

    with refusals():
        going = go_on(find(run), settings or [], narrate=say, step=checkpoint, force=force)
    follow(ctx, going, detach, plain, json, resumed=True)


def fork(
    ctx: typer.Context,
    run: Run,
    settings: Settings = None,
    checkpoint: Annotated[
        int | None, typer.Option(metavar="STEP", help="Checkpoint step; 0: the start [default: before the first flag].")
    ] = None,
    name: RunName = "",
    detach: Detach = False,
    plain: Plain = False,
    json: Json = False,
    force: Force = False,
) -> None:
    """Start a run from another run's checkpoint, with changes. The other run stays as it is."""
    from launcher.runs.act.fork import fork as branch

    with refusals():
        started = branch(find(run), settings or [], narrate=say, step=checkpoint, name=name, force=force)
    follow(ctx, started, detach, plain, json)


def import_(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG", help="Logs, metrics, tracker files, KEY=VALUE; -: a pasted log.")
    ],
    names: Names = None,
    every: Every = None,
    json: Json = False,
) -> None:
    """Import runs made elsewhere. Logs with consecutive steps become attempts of one run."""
    from launcher.metrics.frameworks import user_table
    from launcher.runs.act.import_logs import import_logs, import_text
    from launcher.runs.judge.pasted_text import log_in
    from launcher.scripts import pasted

    if logs == ["-"]:
        text = pasted_text(pasted.LARGEST)
        log, _ = log_in(text, pasted.read(text))
        if not log:
            raise UserError(
                "the pasted text has no output of veRL or another known framework",
                "'ppo-tui preset import -' imports a command",
            )
        put_run(import_text(log), json)
        return
    table = user_table(Path(names).expanduser()) if names else None

    def shown(run: RunDir) -> None:
        put_run(run, json)
        for note in read_kind(run.events, Note):
            say(f"note: {note.text}")

    import_logs(*split_settings(logs), table, shown_progress(), shown, every)


def split_settings(words: list[str]) -> tuple[list[str], dict[str, object]]:
    """The files and the veRL keys among the words of a command."""
    from launcher.runs.judge.run_checklist import setting

    files = [word for word in words if "=" not in word or Path(word).expanduser().exists()]
    return files, dict(setting(word) for word in words if word not in files)


def demo(
    ctx: typer.Context,
    log: Annotated[
        str | None, typer.Argument(metavar="LOG", help="A log, metrics or tracker files [default: the recording].")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="Speed-up of the replay [default: 20; the recording: 10].")
    ] = None,
    detach: Detach = False,
    plain: Plain = False,
    json: Json = False,
) -> None:
    """Play a recorded run, or LOG, as a live run. The recording takes 25 seconds, and up to 60 more for keys."""
    from launcher.runs.act.demo import play_recording, replay

    if speed is not None and not 0 < speed < float("inf"):
        raise UserError(f"--speed {speed} is not allowed", "use a number above 0, such as 20")
    if log is not None:
        follow(ctx, replay(log, speed or 20.0), detach, plain, json)
    else:
        run = play_recording(speed, waits=on_terminal() and not (detach or plain or json))
        follow(ctx, run, detach, plain, json, read_only=True)


def follow(
    ctx: typer.Context,
    run: RunDir,
    detach: bool,
    plain: bool,
    json: bool,
    *,
    resumed: bool = False,
    read_only: bool = False,
) -> None:
    """After a start: prints the id, or shows the run until its end or the user's exit."""
    if json or detach:
        put_run(run, json)
    if detach or (json and not plain):
        return
    if plain or not on_terminal():
        from launcher.cli.plain import follow as print_lines

        raise typer.Exit(print_lines(run, out=sys.stderr if json else sys.stdout, resumed=resumed))
    raise typer.Exit(ctx.obj.show(run, read_only=read_only))


def _list_jobs(address: str) -> None:
    from launcher.machine.ray_jobs import Cluster
    from launcher.runs.act.attach_job import described

    jobs = Cluster(address).jobs()
    if not jobs:
        say(f"no jobs were submitted to {address}")
        return
    rows = [("JOB", "STATUS", "STARTED", "RUN")]
    for job in jobs:
        started = f"{datetime.fromtimestamp(job.started):%Y-%m-%d %H:%M}" if job.started else ""
        rows.append((job.id, job.status.lower(), started, str(described(job).get("name") or job.entrypoint[:60])))
    put_table(rows)
