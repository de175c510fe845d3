"""Pages about the program: commands and keys."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from page_words import cell, code, sentence, table

import launcher.cli
from launcher.cli.completion import WORDS
from launcher.cli.root import app
from launcher.core.tables import read_tables
from tui.kit.keymap import pages
from tui.kit.keys import KEYS, LETTERS

EXAMPLES = Path(launcher.cli.__path__[0]) / "examples.toml"


def root() -> tuple[Any, Any]:
    """`ppo-tui` itself, with its parsing context."""
    command = typer.main.get_command(app)
    return command, command.make_context("ppo-tui", [], resilient_parsing=True)


def tree() -> dict[str, tuple[Any, Any]]:
    """Every command by its words (`queue add`), with its parsing context."""
    return {" ".join(path): found for path, *found in _below(*root())}  # type: ignore[misc]


def _below(group: Any, context: Any, path: tuple[str, ...] = ()) -> Iterator[Any]:
    for name, command in group.commands.items():
        own = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield (*path, name), command, own
        if hasattr(command, "commands"):
            yield from _below(command, own, (*path, name))


def commands() -> str:
    """Every command, in groups: use, meaning, words and options, two examples."""
    known, lines = tree(), []
    for group, examples in read_tables(EXAMPLES).items():
        lines.append(f"## {group}\n")
        for name, shown in examples.items():
            command, context = known[name]
            lines += [f"### {name}\n", sentence(command.help or ""), ""]
            lines += [f"`{command.get_usage(context).removeprefix('Usage: ')}`\n"]
            found = [each.get_help_record(context) for each in command.get_params(context)]
            rows = [(code(words), cell(about)) for words, about in filter(None, found) if "--help" not in words]
            lines += [table(("argument or option", "meaning"), rows), "```sh", *shown, "```\n"]
    return "\n".join(lines)


def write_words() -> None:
    """Writes what completion offers: the options of each command, and the arguments that it takes."""
    lines = ["# What completion offers of each command; written by `make pages` from the commands.\n"]
    for name, (command, context) in {"": root(), **tree()}.items():
        options, takes = {}, []
        for each in command.get_params(context):
            if each.param_type_name == "option":
                about = " ".join((each.help or "Show this message and exit.").split())
                options |= {word: about for word in [*each.opts, *each.secondary_opts] if word.startswith("--")}
            else:
                takes.append(each.metavar or each.name.upper())
        about = " ".join((command.help or "").split()).partition(". ")[0].rstrip(".")
        lines.append(f"[{json.dumps(name)}]\nabout = {json.dumps(about)}\ntakes = {json.dumps(takes)}")
        pairs = (f"{json.dumps(word)} = {json.dumps(text)}" for word, text in options.items())
        lines.append(f"options = {{{', '.join(pairs)}}}\n")
    WORDS.write_text("\n".join(lines), "utf-8")


def letters() -> str:
    """One row per letter, without the use of a letter to close the page that it opened."""
    rows = sorted((letter.lower(), letter.isupper(), letter, meaning) for meaning, letter in LETTERS.items())
    return table(
        ("letter", "meaning", "pages"),
        [(code(letter), meaning, ", ".join(pages(letter))) for _, _, letter, meaning in rows],
    )


def keys() -> str:
    """Every key by its id, once, page by page."""
    found = {
        str(binding.id): (code(binding.key), cell(binding.tooltip or binding.description))
        for bindings in KEYS.values()
        for binding in bindings
    }
    return table(("id", "keys", "meaning"), [(code(id), *found[id]) for id in sorted(found)])
