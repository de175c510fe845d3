"""Commands that try the fixes of a flag, and show what came of them."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.launch import Force, Run, refusals
from launcher.cli.output import Json, put, put_json, put_table, say
from launcher.core.errors import UserError
from launcher.core.format import number
from launcher.record.layout import find

if TYPE_CHECKING:
    from launcher.compare.trial_verdicts import Trials

_NEXT = re.compile(r",(?=\+*[A-Za-z_][\w.]*=)")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command(name="try")(try_)
    app.command()(trials)


def try_(
    run: Run,
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE[,KEY=VALUE]", help="Try these in place of the advised fixes, each as a trial of its own."
        ),
    ] = None,
    rule: Annotated[
        str | None, typer.Option(help="The check whose flag is tried (default: the first CRITICAL).")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of each trial.")] = None,
    at: Annotated[int | None, typer.Option(min=0, help="Step of the checkpoint (default: before the flag).")] = None,
    most: Annotated[int, typer.Option(min=1, help="Try at most so many fixes.")] = 3,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Try the fixes of a flag from the checkpoint before it, next to an untouched twin.

    The trials are runs of the queue: side by side on free GPUs, else one after another.
    """
    from launcher.compare.trial_runs import carry_out, plan
    from launcher.compare.trial_verdicts import trials_of

    parent = find(run)
    planned = plan(parent, rule, [_NEXT.split(each) for each in changes or []], count=steps, at=at, most=most)
    say(f"{planned.name}:")
    for line in planned.lines:
        say(line)
    say(f"cost: {planned.cost}")
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"trials of run {parent.id} without a terminal require a confirmation", "add --yes")
        typer.confirm("Start the trials?", abort=True, err=True)
    with refusals():
        carry_out(planned, say, force=force)
    found = next(each for each in trials_of(parent.id) if (each.rule, each.step) == (planned.onset.rule, planned.step))
    _show([found], json)


def trials(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="Only those of this run.")] = None, json: Json = False
) -> None:
    """Show what came of trials: which fixes healed, did nothing, or broke something else."""
    from launcher.compare.trial_verdicts import trials_of

    found = trials_of(find(run).id if run else None)
    if not found and not json:
        say("no trials yet; 'ppo-tui try RUN' tries the fixes of a flag")
    _show(found, json)


def _show(found: "list[Trials]", json: bool) -> None:
    for each in found:
        if json:
            arms = [arm.to_json() for arm in each.arms]
            put_json({"parent": each.parent, "rule": each.rule, "step": each.step, "trials": arms})
            continue
        put(f"{each.rule} of run {each.parent}, from {f'step {each.step}' if each.step else 'the start'}")
        rows = [("VERDICT", "RUN", "STEP", "REWARD", "CHANGE")]
        for arm in each.arms:
            gap = "–" if arm.reward is None else f"{'+' * (arm.reward >= 0)}{number(arm.reward)}"
            change = " ".join(arm.changes) or "untouched twin"
            told = f"{change} ({arm.told})" if arm.told else change
            rows.append((arm.verdict, arm.run, f"{arm.step}/{arm.planned}", gap, told))
        put_table(rows)
