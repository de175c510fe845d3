"""What enter and `e` do on an entry of a diagnosis: a line of the log, or a fix."""

from typing import Any

from textual.screen import Screen

from launcher.runs.watch.reader import RunReader
from tui.kit.actions.editing import follow_advice
from tui.kit.navigation import navigation


def open_entry(screen: Screen[Any], reader: RunReader, name: str, *, read_only: bool) -> None:
    """Goes to a line of the log, or to the field that a fix is about."""
    kind, _, number = name.partition(" ")
    if kind == "line":
        navigation(screen.app).show_log(reader, int(number))
    else:
        edit_entry(screen, reader, name, read_only=read_only)


def edit_entry(screen: Screen[Any], reader: RunReader, name: str, *, read_only: bool) -> None:
    """Opens the editor at what a fix changes; where none is chosen, at the first one that changes something."""
    kind, _, number = name.partition(" ")
    advice = reader.explanation.remedies if reader.explanation else ()
    helps = (each for each in advice if each is not None and not each.done)
    chosen = advice[int(number)] if kind == "fix" else next(helps, None)
    if kind == "fix" and chosen is None and reader.info.preset is not None:
        screen.notify("This fix is not a preset setting; apply it outside ppo-tui")
    else:
        follow_advice(screen.app, reader.info, chosen, read_only=read_only)
