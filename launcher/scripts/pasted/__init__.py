"""Splits a pasted text, such as a whole issue thread, into parts for other modules: the log in it, the commands that
start veRL (most reliable first), and the stated versions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from launcher.console.recognize import has_errors, is_verl_output
from launcher.core.errors import UserError
from launcher.core.secrets import redact
from launcher.scripts.pasted import mentions
from launcher.scripts.pasted.blocks import Block, blocks, clean_lines, is_open, without_prose
from launcher.scripts.pasted.commands import STARTS, listed, spans, straightened, traced, typed

LARGEST = 4 << 20
"""Maximum characters of a pasted text."""

_ENDS = "the lines end with CR LF, which bash refuses: remove them with `sed -i 's/\\r$//'` before you run the script"
_SETTING = re.compile(r"\s*(?:#|(?:export|declare|set|cd|source|conda|unset|ulimit|module)\b|[A-Za-z_]\w*=|\.\s|\Z)")


@dataclass(frozen=True)
class Command:
    """A shell text that starts veRL, and its origin."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pasted:
    """The parts of a pasted text with its line numbers; `log` is empty without veRL output, and has no secrets."""

    log: str
    commands: tuple[Command, ...]
    versions: dict[str, str]


def check_size(text: str) -> None:
    """Raises UserError for a pasted text that is too large."""
    if len(text) > LARGEST:
        raise UserError(
            f"the pasted text is larger than {LARGEST >> 20} Mi characters",
            "paste the command and the end of the log, or save the log and run: ppo-tui diagnose FILE",
        )


def read(text: str) -> Pasted:
    """The parts of a pasted text. Raises UserError if it is too large."""
    check_size(text)
    lines = clean_lines(text)
    return Pasted(_log(lines), tuple(_commands(lines)), mentions.stated("\n".join(lines)))


def commands(text: str) -> list[Command]:
    """The commands in a text, most reliable first; without any, the text itself. Raises as `read`."""
    check_size(text)
    lines = clean_lines(text)
    found = list(_commands(lines)) or [Command("\n".join(lines))]
    return [replace(each, notes=(*each.notes, _ENDS)) for each in found] if "\r\n" in text else found


def _commands(lines: list[str]) -> Iterator[Command]:
    if trace := traced(lines):
        yield _straight(Command(trace))
    if script := _script(lines):
        yield _straight(script)
    whole = "\n".join(lines)
    if overrides := listed(whole):
        yield Command(overrides, ("taken from Hydra's list of overrides, which has no environment variables",))


def _straight(command: Command) -> Command:
    text = straightened(command.text)
    if text == command.text:
        return command
    return Command(text, (*command.notes, "typographic quotes or dashes were replaced by straight ones"))


def _script(lines: list[str]) -> Command | None:
    """The first block that starts veRL, after the settings in earlier blocks."""
    before: list[Block] = []
    starts: list[Block] = []
    for block in blocks(lines):
        if block.kind != "shell":
            continue
        block = typed(block)
        if STARTS.search(block.text):
            starts.append(block)
        elif not starts and (all(map(_SETTING.match, block.lines)) or not (block.fenced or is_open(block.text))):
            before.append(block)
    if not starts:
        span = next(spans("\n".join(lines)), "")
        return Command(span) if span else None
    merged = [""] * len(lines)
    for block in (*before, starts[0]):
        merged[block.start : block.start + len(block.lines)] = block.lines
    notes: tuple[str, ...] = ()
    if len({" ".join(block.text.split()) for block in starts}) > 1:
        notes = (f"the text has {len(starts)} veRL commands, of which the first one is used",)
    return Command("\n".join(merged), notes)


def _log(lines: list[str]) -> str:
    """veRL's output in a text, or another program's with an error, in its lines."""
    for kept in (without_prose(lines), lines):
        log = redact("\n".join(kept))
        if is_verl_output(partial(list, [log.encode()])):
            return log
    return log if has_errors([log.encode()]) else ""
