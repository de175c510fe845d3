"""Turns invalid command lines into errors of the usual form."""

import functools
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from launcher.cli.output import say
from launcher.core.about import documentation
from launcher.core.errors import UserError
from launcher.core.files import open_folders
from launcher.core.tables import tables_of
from launcher.core.text import hint_of, nearest

_UNCUT = 1000  # characters of a description in the help, which a narrow terminal wraps
_BRACES = str.maketrans("", "", "{}")  # Typer puts them around required arguments

WRITING = {
    "ppo-tui": "run stop resume fork sweep delete attach try tune eval import demo clean",
    "ppo-tui queue": "pause resume start move remove",
    "ppo-tui preset": "edit copy rename delete import",
    "ppo-tui data": "toy",
}
"""Per group, the commands that write into our folders."""


@functools.cache
def examples() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Page and two examples per command, by heading of the main help."""
    return tables_of(__file__, "examples.toml")


def groups_of(path: str) -> dict[str, str]:
    """Heading per command; empty for a group's commands, which share one subject."""
    return {} if path else {name.partition(" ")[0]: heading for heading, rows in examples().items() for name in rows}


def _write_examples(path: str, ctx: Any, formatter: Any) -> None:
    """Writes the end of a command's help. The table of examples is read only then, so no command waits for it."""
    for rows in examples().values():
        for name, row in rows.items():
            if name == path:
                formatter.write("\n  Examples:\n" + "".join(f"    {line}\n" for line in row["examples"]))
            if name == path or name.startswith(f"{path} "):
                formatter.write(f"\n  Documentation: {documentation(row['page'])}\n")
                return


class Commands(TyperGroup):
    """A group of commands, which refuses an unknown one with the nearest name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names. Raises UserError."""
        path, name = ctx.command_path, args[0]
        if name not in self.commands:
            group = f" of '{path}'" if ctx.parent else ""
            hint = hint_of(_meant(path, name, self.commands), f"'{path} --help' lists all")
            raise UserError(f"no command '{name}'{group}", hint)
        writes = name in WRITING.get(path, "").split() and not {"--help", "-h"}.intersection(args)
        if writes and (found := open_folders()):
            more = f"; 'ppo-tui doctor' lists {len(found) - 1} more" if found[1:] else ""
            say(f"warning: {found[0]}{more}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands under the headings of the reference; in a group without headings, in their order."""
        groups = groups_of(ctx.command_path.partition(" ")[2]) or dict.fromkeys(self.commands, "Commands")
        listed = [(name, self.commands[name]) for name in groups if not self.commands[name].hidden]
        for heading in dict.fromkeys(groups[name] for name, _ in listed):
            rows = [(name, command.get_short_help_str(_UNCUT)) for name, command in listed if groups[name] == heading]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def get_command(self, ctx: Any, name: str) -> Any:
        """The command of a name; its help ends with its examples."""
        command: Any = super().get_command(ctx, name)
        if command is None:
            return None
        for param in command.params:
            if param.param_type_name == "argument":
                param.display_type = lambda ctx: ""  # Typer writes a Python type, which means nothing to users
            if param.metavar is None and not getattr(param, "is_flag", False):
                param.metavar = param.name.upper()
            param._get_number_range_help_str = lambda param=param: _range(param).strip()
        pieces = type(command).collect_usage_pieces
        command.collect_usage_pieces = lambda ctx: [piece.translate(_BRACES) for piece in pieces(command, ctx)]
        command.format_epilog = partial(_write_examples, f"{ctx.command_path} {name}".partition(" ")[2])
        return command

    def invoke(self, ctx: Any) -> Any:
        """Runs the command. Raises UserError for a wrongly used option, which Typer reports without its command."""
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            if getattr(error, "ctx", None) is not None:
                raise
            raise _shown(error, f"'{ctx.command_path} {ctx.invoked_subcommand} --help' shows its use") from None


def group(help: str, *, alone: bool = False) -> typer.Typer:
    """A group of commands; `alone`: its name works as a command."""
    return typer.Typer(cls=Commands, help=help, no_args_is_help=not alone, rich_markup_mode=None)


def wrong_use(error: typer.TyperException) -> UserError:
    """The error of the parser as a UserError, with the command that prints the help."""
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return _shown(error, "'ppo-tui --help' shows its use")
    path, params = context.command_path, context.command.params
    parameter: Any = getattr(error, "param", None)
    if hasattr(error, "possibilities"):  # an unknown option
        known, root = _options(context), context.find_root()
        option = str(getattr(error, "option_name", ""))
        if context is not root and option in _options(root):
            return UserError(f"{option} must precede the command", f"use 'ppo-tui {option} ... {context.info_name}'")
        return UserError(
            f"no option '{option}' of '{path}'", hint_of(_meant(path, option, known), f"'{path} --help' lists all")
        )
    if hasattr(error, "param_type"):  # a missing argument; the given ones are read first
        missing = [_name(each) for each in params if each.required and each.name not in context.params]
        words = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        return UserError(f"missing {words}", _use(path, params))
    if parameter is not None:
        name, explained = _name(parameter), f"'{path} --help' explains {_name(parameter)}"
        refused = next(iter(getattr(error.__cause__, "errors", list)()), None)  # pydantic's, whose words have no value
        if refused is None:
            return UserError(f"{name}: {_lower(error.message)}", explained)
        kind, given = refused["type"], refused["input"]
        allowed = "a number" if kind.startswith("float") else f"a whole number{_range(parameter)}"
        return UserError(f"{name} {given} is not allowed", f"use {allowed}; {explained}")
    return _shown(error, _use(path, params))


def _meant(path: str, name: str, known: Iterable[str]) -> str | None:
    """What a name that `path` lacks probably means."""
    other: str | None = tables_of(__file__, "other_names.toml").get(path, {}).get(name)
    return other or nearest(name, known)


def _options(context: Any) -> list[str]:
    return [name for each in context.command.params for name in each.opts]


def _shown(error: typer.TyperException, hint: str) -> UserError:
    return UserError(_lower(error.message), hint)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _use(path: str, params: list[Any]) -> str:
    """`use 'ppo-tui export SOURCE -o FILE'`."""
    needed = [each for each in params if each.required]
    words = [_name(each) if each.param_type_name != "option" else f"{_name(each)} {_value(each)}" for each in needed]
    return f"use '{' '.join([path, *words])}'"


def _name(parameter: Any) -> str:
    """`--to` for an option, `RUN` for an argument."""
    return str(parameter.opts[0] if parameter.param_type_name == "option" else _value(parameter))


def _range(parameter: Any) -> str:
    """` from 1 to 64`, ` of at least 1`, or nothing."""
    least, most = parameter.min, parameter.max
    return "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"


def _value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())
