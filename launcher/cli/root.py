"""The command line: all commands, and the options before them."""

import sys
from typing import Annotated

import typer

from launcher.cli import (
    checking,
    checkpoint,
    clean,
    comparisons,
    data,
    doctor,
    export,
    keys,
    launch,
    library,
    logs,
    note,
    preset,
    queueing,
    report,
    reward,
    sweep,
)
from launcher.cli.output import say
from launcher.cli.parsing import Commands, wrong_use
from launcher.cli.screen import Screen
from launcher.core.errors import UserError

app = typer.Typer(
    cls=Commands,
    name="ppo-tui",
    help="Train language models with PPO on veRL over SSH: presets, launch, dashboard, health.",
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    launch,
    checking,
    doctor,
    report,
    preset,
    logs,
    export,
    checkpoint,
    comparisons,
    note,
    sweep,
    clean,
    keys,
):
    module.register(app)
app.add_typer(data.app, name="data")
app.add_typer(library.app, name="preset")
app.add_typer(queueing.app, name="queue")
app.add_typer(reward.app, name="reward")


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    mouse: Annotated[
        bool | None, typer.Option("--mouse/--no-mouse", help="Use the mouse (default: on, except over SSH).")
    ] = None,
    theme: Annotated[str | None, typer.Option(help="dark, light, colour-blind, terminal, or a Textual theme.")] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="[USER@]HOST", help="Run ppo-tui on another machine through ssh; must precede the command."
        ),
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")] = False,
) -> None:
    """Open the screen with the runs and presets of this machine."""
    if host is not None:
        raise UserError("--host must be the first option", "use 'ppo-tui --host HOST ...'")
    ctx.obj.ask_for({"mouse": mouse, "theme": theme, "ascii": ascii_only or None})
    if version:
        from importlib.metadata import version as installed

        python = sys.version.split()[0]
        print(f"ppo-tui {installed('ppo-tui')} (Textual {installed('textual')}, Python {python})")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        raise typer.Exit(ctx.obj.open())


def command_line(screen: Screen) -> int | str | None:
    """Does what the words after `ppo-tui` ask for; returns the exit code. Raises UserError for wrong use."""
    try:
        code: int | str | None = app(prog_name="ppo-tui", obj=screen, standalone_mode=False)
    except typer.TyperException as error:
        if "\n" in (text := error.format_message()):  # the help of a group without a command
            say(text)
            return 2
        raise wrong_use(error) from None
    except typer.Abort:
        say("cancelled")
        return 1
    except SystemExit as error:
        # Typer's way out when the reader of our output has gone (`| head`), which is no error
        return 0 if isinstance(error.__context__, BrokenPipeError) else error.code
    return code
