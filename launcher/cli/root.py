"""The command line: all commands and global options."""

import sys
from typing import Annotated

import typer

from launcher.cli import (
    checking,
    comparisons,
    config,
    data,
    diagnosing,
    launch,
    presets,
    queueing,
    report,
    timing,
    upkeep,
)
from launcher.cli.output import find, put, put_json, put_table, put_text, say
from launcher.cli.parsing import Commands, wrong_use
from launcher.cli.samples import samples
from launcher.cli.screen import Screen, Served
from launcher.core.about import ABOUT
from launcher.core.errors import UserError
from launcher.core.tables import read_tables

app = typer.Typer(
    cls=Commands,
    name="ppo-tui",
    help=f"{ABOUT['tagline']}.",
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    mouse: Annotated[
        bool | None, typer.Option("--mouse/--no-mouse", help="Use the mouse [default: on, except over SSH].")
    ] = None,
    theme: Annotated[
        str | None, typer.Option(metavar="NAME", help="dark, light, color-blind, terminal, or a Textual theme.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="[USER@]HOST", help="Run ppo-tui on another host over ssh; must precede the command."),
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")] = False,
) -> None:
    """Open the screen with the runs and presets of this machine."""
    if host is not None:
        raise UserError("--host must be the first option", "use 'ppo-tui --host HOST ...'")
    ctx.obj.ask_for({"mouse": mouse, "theme": theme, "ascii": ascii_only or None})
    if version:
        version_()
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        raise typer.Exit(ctx.obj.open())


def version_() -> None:
    """Print the version."""
    from importlib.metadata import version

    print(f"ppo-tui {version('ppo-tui')} (Textual {version('textual')}, Python {sys.version.split()[0]})")


def serve(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run to show [default: the list].")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 uses a free one.")] = 8000,
    address: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    write: Annotated[bool, typer.Option("--write", help="Allow changes: start, stop, edit.")] = False,
    tabs: Annotated[int, typer.Option(min=1, max=64, help="Open tabs allowed at once; each is a process.")] = 4,
) -> None:
    """Show the screen in a browser, read-only by default. Prints a link that works once."""
    target = str(find(run).path) if run is not None else None
    raise typer.Exit(ctx.obj.serve(Served(target, address, port, write, tabs), put))


def mcp(
    write: Annotated[
        bool, typer.Option("--write", help="Also offer tools that run code or change runs; each asks first.")
    ] = False,
) -> None:
    """Serve these commands to an agent over MCP. Read-only by default."""
    try:
        from launcher.agents.server import serve as serve_agent
    except ModuleNotFoundError as error:
        raise UserError(f"the package {error.name} is not installed", "run pip install 'ppo-tui[mcp]'") from None
    serve_agent(write=write)


def completion(shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print the completion script of a shell. Its first lines show where to save it."""
    from launcher.cli.completion import SCRIPTS

    scripts = read_tables(SCRIPTS)
    if shell not in scripts:
        raise UserError(f"no completion for '{shell}'", f"use one of {', '.join(scripts)}")
    print(scripts[shell], end="")


def schema(
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="A command with --json.")] = None,
) -> None:
    """Print the JSON Schema of a command's --json output. Without COMMAND, list the commands."""
    from launcher.cli.schemas import printed, schema_of

    if command:
        put_json(schema_of(" ".join(command)))
    else:
        put_table([("COMMAND", "OBJECTS"), *((name, ", ".join(objects)) for name, objects in printed().items())])


def help_(
    ctx: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(metavar="TOPIC", help="A name, or words to search for.")] = None,
) -> None:
    """Print or search the reference: rules, fields, causes."""
    from launcher.topics import hits, listed, text_of

    words = topic or []
    if not words:
        put_table(listed())
    elif words[0] in getattr(ctx.parent and ctx.parent.command, "commands", {}):
        app([*words, "--help"], prog_name="ppo-tui", obj=ctx.obj, standalone_mode=False)
    else:
        found = hits(query := " ".join(words))
        names = list(dict.fromkeys(each.name for each in found))
        if len(names) > 1 and names[0].lower() != query.lower():
            put_table([("TOPIC", "KIND", "ABOUT"), *((each.name, each.kind, each.about) for each in found)])
        else:
            put_text(text_of(names[0] if names else query))
            if names[1:]:
                put_text(f"\nSee also: {', '.join(names[1:])}")


for command in (
    *(launch.run, launch.stop, launch.resume, launch.fork, queueing.sweep, upkeep.delete),
    *(launch.attach, serve, report.status, launch.logs, report.metrics, samples, timing.time),
    *(checking.check, report.health, diagnosing.diagnose, comparisons.try_, checking.tune),
    *(comparisons.compare, upkeep.eval_, comparisons.report, upkeep.bundle, launch.import_, upkeep.export),
    *(checking.doctor, upkeep.clean, completion, launch.demo, help_),
):
    app.command(command.__name__.rstrip("_"))(command)
app.command("list")(report.list_runs)
app.command(hidden=True)(mcp)
app.command("version", hidden=True)(version_)
app.command(hidden=True, context_settings={"ignore_unknown_options": True})(schema)
for name, commands in (("queue", queueing), ("preset", presets), ("data", data), ("config", config)):
    app.add_typer(commands.app, name=name)


def command_line(screen: Screen, words: list[str]) -> int | str | None:
    """Runs the words after `ppo-tui`; returns the exit code. Raises UserError for invalid use."""
    try:
        code: int | str | None = app(words, prog_name="ppo-tui", obj=screen, standalone_mode=False)
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
