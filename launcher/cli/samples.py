"""`ppo-tui samples`: prompts and responses of a step."""

from typing import Annotated

import typer

from launcher.cli.output import Json, Run, find, put, put_json, say
from launcher.core.errors import UserError
from launcher.core.format import counted, number
from launcher.core.text import allowed_steps, near_hint
from launcher.metrics.records import jsonable

_KINDS = ("rollout", "validation")


def samples(
    run: Run,
    step: Annotated[int | None, typer.Option(help="Step of the responses [default: the newest].")] = None,
    kind: Annotated[str, typer.Option(metavar="rollout|validation", help="Which responses.")] = "rollout",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Maximum number of responses.")] = 3,
    json: Json = False,
) -> None:
    """Print responses of the model. The best and the worst come first."""
    from launcher.runs.watch.responses import dumps, read

    if kind not in _KINDS:
        raise UserError(f"--kind: '{kind}' is not allowed", near_hint(kind, _KINDS, f"use {' or '.join(_KINDS)}"))
    target = find(run)
    found = {dump.step: dump for dump in dumps(target) if dump.kind == kind}
    if not found:
        hint = (
            "look on the machine where the run was made"
            if target.read_head().followed
            else "set trainer.rollout_data_dir to keep them"
        )
        raise UserError(f"run {target.id} has no {kind} responses", hint)
    chosen = max(found) if step is None else step
    if chosen not in found:
        missing = f"--step {chosen}: run {target.id} has no {kind} responses of this step"
        raise UserError(missing, allowed_steps(sorted(found), "--step"))
    responses, cut = read(found[chosen])
    ordered = sorted(responses, key=lambda sample: sample.score)
    ends = [ordered.pop(-1 if place % 2 == 0 else 0) for place in range(min(limit, len(ordered)))]
    for sample in ends:
        if json:
            put_json({"step": chosen, "kind": kind, **sample._asdict(), **jsonable({"score": sample.score})})
        else:
            put(f"step {chosen}, score {number(sample.score)}" + (f", expected {sample.truth}" if sample.truth else ""))
            for name, text in (("prompt", sample.prompt), ("response", sample.response)):
                put(f"{name}:")
                for line in text.splitlines():
                    put(f"  {line}")
    left = len(responses) - len(ends)
    if left or cut:
        say(f"{counted(left, 'more response')}; see them with --limit, or on the samples page")
