"""`ppo-tui data`: the files that presets train on."""

from pathlib import Path
from typing import Annotated

import typer

from launcher.commands.output import Json, put, put_json, say

app = typer.Typer(
    help="Make training data in veRL's parquet schema.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def toy(json: Json = False) -> None:
    """Build the small model and its sums, offline, once."""
    from launcher import verl_env
    from launcher.data import toy as assets

    folder = assets.ensure(python=verl_env.interpreter(None), progress=say)
    if json:
        put_json({"dir": str(folder)})
    else:
        put(str(folder))


@app.command()
def gsm8k(
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder of train.jsonl and test.jsonl, plain or .gz.")
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder for train.parquet and test.parquet.")] = Path(
        "~/data/gsm8k"
    ),
    json: Json = False,
) -> None:
    """Write GSM8K, from its original files or from the Hugging Face hub."""
    from launcher.data import gsm8k as builder

    target = to.expanduser()
    rows = builder.write(source.expanduser() if source else None, target)
    if json:
        put_json({"dir": str(target), "rows": rows})
    else:
        put(f"{target}: " + ", ".join(f"{count} {split} rows" for split, count in rows.items()))
