"""Completion of command lines in bash, zsh and fish: commands, options, runs, presets, fields and values.

A shell calls `ppo-tui __complete WORDS...` at each tab. That path imports neither Typer nor the commands: their options
are in words.toml, written by `make pages`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables

WORDS = Path(__file__).with_name("words.toml")
MOST_RUNS = 50
"""Maximum number of suggested runs, newest first."""

SCRIPTS = Path(__file__).with_name("completion.toml")
"""The script of each shell."""


def complete(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The completions of the last word, each with a short description or ""."""
    *before, part = words or [""]
    known = read_tables(WORDS)
    path = ""
    given: list[str] = []
    for word in before:
        longer = f"{path} {word}".strip()
        if not given and longer in known:
            path = longer
        elif not word.startswith("-"):
            given.append(word)
    for word, about in _candidates(known, path, given, part):
        if word.startswith(part) or (path == "help" and word.lower().startswith(part.lower())):
            yield word, about


def _candidates(known: Mapping[str, Any], path: str, given: Sequence[str], part: str) -> Iterator[tuple[str, str]]:
    command = known.get(path, {})
    if part.startswith("-"):
        yield from ((option, about) for option, about in command.get("options", {}).items())
        return
    if not given:
        for name, each in known.items():
            above, _, last = name.rpartition(" ")
            if name and above == path:
                yield last, each["about"]
    takes = command.get("takes", [])
    kind = takes[min(len(given), len(takes) - 1)] if takes else ""
    if kind.startswith("RUN") and path.startswith("queue"):
        yield from _queued()
    elif kind.startswith(("RUN", "SOURCE")):
        yield from _runs()
    elif kind == "PRESET":
        from launcher.preset.files import available

        yield from ((name, "preset") for name in available())
    elif kind == "COMMAND":
        below = [name.split()[len(given) :] for name in known if name.split()[: len(given)] == [*given]]
        with_json = {words[0] for words in below if words and "--json" in known[" ".join([*given, *words])]["options"]}
        yield from ((word, "") for word in sorted(with_json))
    elif kind == "TOPIC" and not given:
        from launcher.topics import topics

        yield from ((each.name, each.about) for each in topics() if " " not in each.name)
    elif kind == "KEY=VALUE":
        yield from _settings(part)


def _runs() -> Iterator[tuple[str, str]]:
    from launcher.record.layout import all_runs
    from launcher.record.state import current

    yield "last", "the newest run"
    for run in all_runs()[:MOST_RUNS]:
        state, head = current(run, checks=False).state, run.read_head()
        yield run.id, state
        if head.name and head.named:
            yield head.name, f"{state}, {run.id}"


def _queued() -> Iterator[tuple[str, str]]:
    from launcher.record.queued import entries

    for entry in entries():
        yield entry.id, f"uses {entry.uses}"
        if entry.preset_name:
            yield entry.name, entry.id


def _settings(part: str) -> Iterator[tuple[str, str]]:
    from launcher.preset.schema import FIELDS

    name, equals, _ = part.partition("=")
    if not equals:
        yield from ((f"{field}=", spec.help) for field, spec in FIELDS.items())
        if name.startswith("usual."):
            from launcher.preset.layers import declarable

            yield from ((f"usual.{field}=", "[LOW, HIGH]") for field in declarable())
    elif (spec := FIELDS.get(name)) is not None:
        offered = spec.choices or tuple(spec.offers) or (("true", "false") if bool in spec.types else ())
        yield from ((f"{name}={value}", spec.offers.get(value, "")) for value in offered)
