"""`ppo-tui data`: the training files of presets."""

from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.output import Json, put_result, say
from launcher.cli.parsing import group
from launcher.core.format import counted

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write: train.parquet, test.parquet.")
]
app = group("Write training data in veRL's parquet schema.")


@app.command()
def toy(json: Json = False) -> None:
    """Build the toy task offline: a small model and its sums."""
    from launcher.data import toy as assets
    from launcher.verl import env as verl_env

    folder = assets.ensure(python=verl_env.interpreter(None), progress=say)
    put_result(str(folder), {"dir": str(folder)}, json)


@app.command()
def gsm8k(
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder with train.jsonl and test.jsonl, plain or .gz.")
    ] = None,
    output: Output = Path("~/data/gsm8k"),
    json: Json = False,
) -> None:
    """Write GSM8K from its files or from the Hugging Face hub."""
    from launcher.data import gsm8k as builder

    target = output.expanduser()
    _done(target, builder.write(source.expanduser() if source else None, target), json)


@app.command()
def math(
    source: Annotated[
        str | None, typer.Option("--from", help="Folder, or the name of a data set on the Hugging Face hub.")
    ] = None,
    output: Output = Path("~/data/math"),
    json: Json = False,
) -> None:
    """Write MATH from its files or from the Hugging Face hub."""
    from launcher.data import math as builder

    _done(output.expanduser(), builder.write(source, output.expanduser()), json)


@app.command()
def jsonl(
    file: Annotated[Path, typer.Argument(help="Table of questions and answers: .jsonl, .jsonl.gz or .csv.")],
    prompt: Annotated[str, typer.Option(help="Column of the question.")],
    answer: Annotated[str, typer.Option(help="Column of the right answer.")],
    reward: Annotated[
        str | None, typer.Option(help="veRL's gsm8k or math [default: your own reward function].")
    ] = None,
    test_share: Annotated[float, typer.Option(help="Share of rows for the test set.")] = 0.1,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write [default: ~/data/NAME, as the table]."),
    ] = None,
    json: Json = False,
) -> None:
    """Convert your own table of questions and answers. A tenth of its rows becomes the test set."""
    from launcher.data import table

    name = file.name.removesuffix(".gz").rpartition(".")[0]
    target = (output or Path("~/data") / name).expanduser()
    form = table.Form(prompt, answer, name, reward)
    _done(target, table.write(file.expanduser(), target, form, test_share), json)
    if reward is None:
        say(
            "veRL has no reward function for these rows: set reward.path to your own, and try it with"
            " 'ppo-tui check --reward FILE'"
        )


def _done(target: Path, rows: dict[str, int], json: bool) -> None:
    counts = ", ".join(counted(count, f"{split} row") for split, count in rows.items())
    put_result(f"{target}: {counts}", {"dir": str(target), "rows": rows}, json)
