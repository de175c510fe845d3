"""`ppo-tui reward`: try a reward function before a run depends on it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from launcher.cli.output import Json, put, put_json, put_table, say
from launcher.cli.parsing import Commands
from launcher.core.errors import UserError
from launcher.core.files import beside
from launcher.core.text import near_hint

app = typer.Typer(cls=Commands, help="Try a reward function.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Keeps `test` a command of its own: typer makes a lone command the app itself."""


@app.command()
def test(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Python file with the function.")],
    data: Annotated[
        Path | None, typer.Option(help="Data file to read eight rows from (default: made-up sums).")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the function.")] = "compute_score",
    json: Json = False,
) -> None:
    """Score right, wrong and empty responses in a separate process. Exits with 1 if the function fails."""
    from launcher.check import reward, worker
    from launcher.core.format import number
    from launcher.verl import env as verl_env

    python, rows = verl_env.interpreter(None), reward.MADE_UP
    if data is not None:
        path = data.expanduser().absolute()
        if not path.is_file():
            raise UserError(f"--data: file not found: {path}", near_hint(path.name, beside(path)))
        request: dict[str, Any] = {"file": str(path), "prompt_key": "prompt", "template": {}}
        found = worker.ask(python, "read_rows.py", request, timeout=60)
        rows = found.get("examples", [])
        if not rows:
            missing = f"the package {found['missing']} is missing" if "missing" in found else "it has no rows"
            why = found.get("problem") or found.get("failed") or missing
            raise UserError(f"--data: {path} cannot be used: {why}")
    trial = reward.try_out(python, str(file.expanduser().absolute()), name, rows)
    if json:
        put_json(
            {
                "ok": trial.ok,
                "findings": [finding.as_json() for finding in trial.findings],
                "scores": list(trial.scores),
                "answers": list(trial.kinds),
                "extra": list(trial.extra),
                "seconds": trial.seconds,
                "async": trial.is_async,
            }
        )
    else:
        if trial.scores:
            rows_out = [("RESPONSE", "SCORE", "GROUND TRUTH")]
            for kind, score, call in zip(trial.kinds, trial.scores, trial.calls, strict=True):
                rows_out.append((kind, number(score), str(call["ground_truth"])))
            put_table(rows_out)
            put(
                f"{len(trial.scores)} responses, {number(min(trial.scores))} to {number(max(trial.scores))}, "
                f"{number(trial.seconds * 1000)} ms each"
                + (f"; also returned: {', '.join(trial.extra)}" if trial.extra else "")
            )
        for finding in trial.findings:
            say(f"{finding.level}: {finding.message}")
            say(f"hint: {finding.fix}")
    if not trial.ok:
        raise typer.Exit(1)
