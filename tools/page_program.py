"""Pages about the program: commands and keys."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from page_words import cell, code, sentence, table

from launcher.cli.completion import WORDS
from launcher.cli.parsing import examples
from launcher.cli.root import app
from launcher.core.tables import read_tables
from launcher.topics import REFERENCE
from tui.kit.keymap import bindings, page_name, pages
from tui.kit.keys import KEYS, LETTERS


def root() -> tuple[Any, Any]:
    """`ppo-tui` itself, with its parsing context."""
    command = typer.main.get_command(app)
    return command, command.make_context("ppo-tui", [], resilient_parsing=True)


@functools.cache
def tree() -> dict[str, tuple[Any, Any]]:
    """Every command by its words (`queue move`), with its parsing context."""
    return {" ".join(path): found for path, *found in _below(*root())}  # type: ignore[misc]


def _below(group: Any, context: Any, path: tuple[str, ...] = ()) -> Iterator[Any]:
    for name in group.commands:
        command = group.get_command(context, name)
        own = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield (*path, name), command, own
        if hasattr(command, "commands"):
            yield from _below(command, own, (*path, name))


def commands() -> str:
    """Every command, in groups: use, meaning, words and options, two examples."""
    known, lines = tree(), []
    for group, rows in examples().items():
        lines.append(f"## {group}\n")
        for name, row in rows.items():
            command, context = known[name]
            lines += [f"### {name}\n", sentence(command.help or ""), ""]
            lines += [f"`{command.get_usage(context).removeprefix('Usage: ')}`\n"]
            found = [each.get_help_record(context) for each in command.get_params(context)]
            rows = [(code(words), cell(about)) for words, about in filter(None, found) if "--help" not in words]
            lines += [
                table(("argument or option", "meaning"), rows),
                "```sh",
                *row["examples"],
                "```\n",
                f"Page: [{row['page']}](../{row['page']}.md)\n",
            ]
    return "\n".join(lines)


def write_words() -> None:
    """Writes the completion data: the options and arguments of each command."""
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


def settings() -> str:
    """A row per setting of config.yaml."""
    rows = read_tables(REFERENCE)["setting"].items()
    cells = [(code(name), row.get("by", ""), row.get("default", ""), row["about"]) for name, row in rows]
    return table(("setting", "option, variable", "default", "meaning"), cells)


def signs() -> str:
    """One row per key that is not a letter and its meaning, with the pages that have it."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for page in KEYS:
        for binding in bindings(page):
            if binding.key_display:
                row = found.setdefault((binding.key_display, binding.tooltip), {})
                row |= dict.fromkeys(page_name(page).split(", "))
    rows = [(code(sign), cell(meaning), ", ".join(having)) for (sign, meaning), having in sorted(found.items())]
    return table(("key", "meaning", "pages"), rows)


def letters() -> str:
    """One row per letter, without closing the page that it opened."""
    rows = sorted((letter.lower(), letter.isupper(), letter, meaning) for meaning, letter in LETTERS.items())
    return table(
        ("letter", "meaning", "pages"),
        [(code(letter), meaning, ", ".join(pages(letter))) for _, _, letter, meaning in rows],
    )


def gallery() -> str:
    """The pictures of `make pictures` with their captions."""
    captions: dict[str, str] = read_tables(Path(__file__).with_name("gallery.toml"))
    names = {page.lower().removesuffix("screen"): caption for page, caption in captions.items()}
    pictures = [(caption, f"../pictures/pages/{name}-80x24-dark.png") for name, caption in names.items()]
    return "\n\n".join(f"**{caption}**\n\n![{caption}]({picture})" for caption, picture in pictures)


def keys() -> str:
    """Every key by id, once, page by page."""
    found = {
        str(binding.id): (code(binding.key), cell(binding.tooltip or binding.description))
        for bindings in KEYS.values()
        for binding in bindings
    }
    return table(("id", "keys", "meaning"), [(code(id), *found[id]) for id in sorted(found)])
