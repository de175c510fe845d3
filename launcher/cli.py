"""The command `ppo-tui`: what works without a screen, and the way to one."""

import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from launcher.commands import (
    check,
    checkpoint,
    data,
    doctor,
    export,
    keys,
    launch,
    library,
    logs,
    note,
    preset,
    report,
    reward,
)
from launcher.commands.output import say
from launcher.errors import UserError
from launcher.screen_request import ScreenRequest
from launcher.settings import Settings, read
from launcher.text import TWINS

OpenScreen = Callable[[ScreenRequest], int]
ListKeys = Callable[[Settings], tuple[list[dict[str, Any]], list[str]]]

app = typer.Typer(
    name="ppo-tui",
    help="Train language models with PPO on veRL over SSH: presets, launch, dashboard, health.",
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (launch, check, doctor, report, preset, logs, export, checkpoint, note, keys):
    module.register(app)
app.add_typer(data.app, name="data")
app.add_typer(library.app, name="preset")
app.add_typer(reward.app, name="reward")
_NO_SCREEN = "there is no screen in this process: use the command 'ppo-tui'"


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    mouse: Annotated[
        bool | None, typer.Option("--mouse/--no-mouse", help="Take the mouse; over SSH it is left to the terminal.")
    ] = None,
    theme: Annotated[
        str | None, typer.Option(help="dark, light, colour-blind, terminal, or a theme of Textual.")
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters alone.")] = False,
) -> None:
    """Open the screen on the runs and presets of this machine."""
    ctx.obj.asked = {"mouse": mouse, "theme": theme, "ascii": ascii_only or None}
    if version:
        from importlib.metadata import version as installed

        python = sys.version.split()[0]
        print(f"ppo-tui {installed('ppo-tui')} (Textual {installed('textual')}, Python {python})")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        raise typer.Exit(ctx.obj.open())


class Screen:
    """Opens the screen as the options before the command, the environment and config.yaml ask for it."""

    def __init__(self, open_screen: OpenScreen | None, list_keys: ListKeys | None) -> None:
        self._open, self._list_keys = open_screen, list_keys
        self.asked: dict[str, bool | str | None] = {}

    def open(
        self,
        run: str | None = None,
        *,
        read_only: bool = False,
        compare: tuple[str, ...] = (),
        preset: str | None = None,
        field: str | None = None,
    ) -> int:
        """Shows the screen; returns its exit code."""
        if self._open is None:
            raise UserError(_NO_SCREEN)
        settings = read(self.asked)
        return self._open(ScreenRequest(run, read_only, compare, preset, field, settings))

    def keys(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Every key of the screen, and what is wrong with those of config.yaml."""
        if self._list_keys is None:
            raise UserError(_NO_SCREEN)
        return self._list_keys(read(self.asked))


def _wrong_use(error: typer.TyperException) -> str:
    """What Typer says about the words, and whose help tells more; the help itself for a group alone."""
    said = error.format_message()
    if "\n" in said:
        return said
    context = getattr(error, "ctx", None)
    return f"ppo-tui: {said} ('{context.command_path if context else 'ppo-tui'} --help' tells more)"


def main(open_screen: OpenScreen | None = None, list_keys: ListKeys | None = None) -> None:
    """Runs the command line and exits: 0, 1 for a failed check or run, 2 for wrong use."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=TWINS)  # text holds letters that the encoding of a C locale lacks
    try:
        code = app(prog_name="ppo-tui", obj=Screen(open_screen, list_keys), standalone_mode=False)
    except UserError as error:
        say(f"ppo-tui: {error}")
        code = 2
    except typer.TyperException as error:
        say(_wrong_use(error))
        code = 2
    except typer.Abort:
        say("ppo-tui: nothing was done")
        code = 1
    except SystemExit as error:
        # Typer's way out when the reader of our output has gone (`| head`), which is no error
        code = 0 if isinstance(error.__context__, BrokenPipeError) else error.code
    except OSError as error:  # a full disk, a folder that is not ours
        place = f"{error.filename}: " if error.filename else ""
        say(f"ppo-tui: {place}{error.strerror or error}")
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
