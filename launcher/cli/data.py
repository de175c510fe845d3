"""`ppo-tui data` and `reward`: the files that presets train on, and the functions that score responses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from launcher.cli.output import Json, put, put_json, put_result, put_table, say
from launcher.cli.parsing import group
from launcher.core.errors import UserError
from launcher.core.files import require_file
from launcher.core.format import counted

app = group("Write training data in veRL's parquet schema.")
rewards = group("Try a reward function.")


@app.command()
def toy(json: Json = False) -> None:
    """Build the toy task, a small model and its sums, offline."""
    from launcher.data import toy as assets
    from launcher.verl import env as verl_env

    folder = assets.ensure(python=verl_env.interpreter(None), progress=say)
    put_result(str(folder), {"dir": str(folder)}, json)


@app.command()
def gsm8k(
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder with train.jsonl and test.jsonl, plain or .gz.")
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder for train.parquet and test.parquet.")] = Path("~/data/gsm8k"),
    json: Json = False,
) -> None:
    """Write GSM8K from its original files or from the Hugging Face hub."""
    from launcher.data import gsm8k as builder

    target = to.expanduser()
    _done(target, builder.write(source.expanduser() if source else None, target), json)


@app.command()
def math(
    source: Annotated[
        str | None, typer.Option("--from", help="Folder, or the name of a data set on the Hugging Face hub.")
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder for train.parquet and test.parquet.")] = Path("~/data/math"),
    json: Json = False,
) -> None:
    """Write MATH from its original files or from the Hugging Face hub."""
    from launcher.data import math as builder

    _done(to.expanduser(), builder.write(source, to.expanduser()), json)


@app.command()
def jsonl(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Table of questions and answers: .jsonl, .jsonl.gz or .csv.")
    ],
    prompt: Annotated[str, typer.Option(help="Column of the question.")],
    answer: Annotated[str, typer.Option(help="Column of the right answer.")],
    reward: Annotated[
        str | None, typer.Option(help="Score with veRL's gsm8k or math (default: your own reward function).")
    ] = None,
    test_share: Annotated[float, typer.Option(help="Share of the rows that become the test set.")] = 0.1,
    to: Annotated[
        Path | None, typer.Option(help="Folder for the two files (default: ~/data/NAME of the table).")
    ] = None,
    json: Json = False,
) -> None:
    """Convert your own table. A tenth of its rows becomes the test set."""
    from launcher.data import table

    name = file.name.removesuffix(".gz").rpartition(".")[0]
    target = (to or Path("~/data") / name).expanduser()
    form = table.Form(prompt, answer, name, reward)
    _done(target, table.write(file.expanduser(), target, form, test_share), json)
    if reward is None:
        say(
            "veRL has no reward function for these rows: set reward.path to your own; try it with `ppo-tui reward test`"
        )


def _done(target: Path, rows: dict[str, int], json: bool) -> None:
    counts = ", ".join(counted(count, f"{split} row") for split, count in rows.items())
    put_result(f"{target}: {counts}", {"dir": str(target), "rows": rows}, json)


@rewards.callback()
def root() -> None:
    """Keeps `test` a subcommand, since typer turns a single command into the app itself."""


@rewards.command()
def test(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Python file with the function.")],
    data: Annotated[
        Path | None, typer.Option(help="Data file to read eight rows from (default: made-up sums).")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the function.")] = "compute_score",
    json: Json = False,
) -> None:
    """Score right, wrong and degenerate responses in a separate process. Exits with 1 if the function fails."""
    from launcher.check import reward, worker
    from launcher.check.row_rules import Rows
    from launcher.core.format import number
    from launcher.verl import env as verl_env

    python = verl_env.interpreter(None)
    rows: Sequence[dict[str, Any]] = reward.MADE_UP
    if data is not None:
        path = data.expanduser().absolute()
        require_file(path, "--data")
        request: dict[str, Any] = {"file": str(path), "prompt_key": "prompt", "template": {}}
        reply = Rows.from_json(worker.ask(python, "read_rows", request, timeout=60))
        rows = reply.examples
        if not rows:
            raise UserError(f"--data: {path} cannot be used: {reply.why or 'it has no rows'}")
    require_file(function := file.expanduser().absolute())
    trial = reward.try_out(python, str(function), name, rows, degenerate=True)
    scored = list(zip(trial.kinds, trial.scores, strict=True))
    means = {kind: reward.mean_of(kind, scored) for kind in dict.fromkeys(trial.kinds)}
    plain = [(kind, score) for kind, score in scored if kind in reward.PLAIN]
    if json:
        put_json(
            {
                "ok": trial.ok,
                "findings": [finding.as_json() for finding in trial.findings],
                "scores": [score for _, score in plain],
                "answers": [kind for kind, _ in plain],
                "degenerate": {kind: mean for kind, mean in means.items() if kind not in reward.PLAIN},
                "extra": list(trial.extra),
                "seconds": trial.seconds,
                "async": trial.is_async,
            }
        )
    else:
        if trial.scores:
            right = means.get("right", 0.0)
            rows_out = [("RESPONSE", "SCORE", "OF A RIGHT ONE")]
            for kind, mean in means.items():
                rows_out.append((kind, number(mean), f"{100 * mean / right:.0f} %" if right > 0 else ""))
            put_table(rows_out)
            put(
                f"{counted(len(trial.scores), 'response')}, "
                f"{number(min(trial.scores))} to {number(max(trial.scores))}, {number(trial.seconds * 1000)} ms each"
                + (f"; also returned: {', '.join(trial.extra)}" if trial.extra else "")
            )
        for finding in trial.findings:
            say(f"{finding.level}: {finding.message}")
            there = (finding.change or {}).get("reward.function")
            say(f"hint: use --name {there}" if there else f"hint: {finding.fix}")
    if not trial.ok:
        raise typer.Exit(1)
