"""`ppo-tui queue`: the waiting runs; `ppo-tui sweep` adds many."""

import secrets
from itertools import zip_longest
from typing import Annotated

import typer

from launcher.cli.output import Force, Json, Preset, put_json, put_result, put_table, say
from launcher.cli.parsing import group
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.record import queued

app = group("Show and change the queue. Each run starts when its GPUs are free.", alone=True)

Queued = Annotated[str, typer.Argument(metavar="RUN", help="A queued run: its id, the start of the id, or its name.")]
Maybe = Annotated[str | None, typer.Argument(metavar="RUN", help="A queued run [default: the whole queue].")]


@app.callback(invoke_without_command=True)
def show(ctx: typer.Context, json: Json = False) -> None:
    """List the queue in its order, and what each run waits for."""
    from launcher.runs.supervise.spawn import wake_queue
    from launcher.runs.watch.run_settings import asked_words, title
    from launcher.runs.watch.turns import turns

    if ctx.invoked_subcommand is not None:
        return
    queue = turns()
    wake_queue()
    for refusal in queued.refused()[:1]:
        say(str(refusal))
    for turn in queue if json else ():
        entry = turn.entry
        asked = {
            name: getattr(entry, name) for name in ("needs", "gpus", "after", "settings", "force", "added", "host")
        }
        found = {"state": turn.state, "waits": turn.waits, "checked": turn.check.ended or None}
        put_json({"run": entry.id, "name": entry.name, **found, **asked})
    if json:
        return
    if queue:
        names = [title(turn.entry.id, asked_words(turn.entry.settings)) for turn in queue]
        rows = [(n, t.entry.word, t.entry.uses, t.waits or "starts next") for n, t in zip(names, queue, strict=True)]
        put_table([("RUN", "STATE", "USES", "WAITS FOR"), *rows])
    else:
        say("the queue is empty; add a run with 'ppo-tui run PRESET --queue'")
    if queued.paused():
        say("the queue is paused; 'ppo-tui queue resume' resumes it")


@app.command()
def pause(run: Maybe = None) -> None:
    """Pause a queued run, or the whole queue. Runs that have started continue."""
    if run is None:
        queued.pause(on=True)
        say("paused the queue")
    else:
        entry = queued.find(run)
        queued.change(entry, paused=True, now=False)
        say(f"paused {entry.id}")


@app.command()
def resume(run: Maybe = None) -> None:
    """Resume a paused run, or the whole queue.

    A skipped run is tried again; one that waits for another host starts on this one.
    """
    from launcher.runs.act.queue_runner import resume as let_go

    entry = None if run is None else queued.find(run)
    let_go(entry)
    say("resumed the queue" if entry is None else f"resumed {entry.id}")


@app.command()
def start(run: Queued) -> None:
    """Start a queued run now, even if its GPUs are in use. The preflight can still refuse it."""
    from launcher.runs.act.queue_runner import begin_now

    if queued.paused():
        raise UserError("the queue is paused", "'ppo-tui queue resume' resumes it")
    entry = queued.find(run)
    begin_now(entry)
    say(f"starting {entry.id}; if the preflight refuses it, 'ppo-tui queue' shows why")


@app.command()
def move(
    run: Queued,
    to: Annotated[int, typer.Argument(metavar="PLACE", min=1, help="New place in the queue; 1 is the first.")],
) -> None:
    """Move a run to another place in the queue."""
    entry = queued.find(run)
    place, count = queued.move(entry, to=to - 1)
    say(f"{entry.id} is at place {place + 1} of {count}")


@app.command()
def remove(run: Queued) -> None:
    """Remove a run from the queue."""
    entry = queued.find(run)
    entry.remove()
    say(f"removed {entry.id} from the queue")


def sweep(
    preset: Preset,
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE[,VALUE]", help="Values per setting, in addition to the preset's 'sweep:'."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=64, help="Runs per combination, with data.seed 1, 2, ...")] = 1,
    tag: Annotated[str | None, typer.Option(help="Tag of the runs [default: a new one].")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs without queueing them.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Queue a run per combination of values and seeds. CRITICAL NUM-1, ERR-1, KL-1, SIG-1 or REW-1 ends a run."""
    from launcher.runs.act import queue_runner as core

    tag = tag.removeprefix("#") if tag is not None else f"sweep-{secrets.token_hex(2)}"
    runs = core.arms(preset, settings or [], seeds)
    entries = [] if dry_run else core.sweep(preset, runs, tag, force=force)
    ids = [entry.id for entry in entries]
    for id, words in zip_longest(ids, runs):
        put_result(
            "  ".join([*([id] if id else []), " ".join(words)]), {"run": id, "tag": tag, "settings": words}, json
        )
    if dry_run:
        say(f"would queue {counted(len(runs), 'run')}; run again without --dry-run")
    else:
        say(f"queued {counted(len(runs), 'run')}; 'ppo-tui queue', and later 'ppo-tui compare --tag {tag}', show it")
