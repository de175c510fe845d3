"""What tests of screens share: waiting, and reading what is on the screen."""

import html
import re
from collections.abc import Callable, Iterable
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import App
from textual.containers import ScrollableContainer
from textual.pilot import Pilot
from textual.widget import Widget

from tui.kit.widgets.log_tail import LogTail
from tui.kit.widgets.message_line import MessageLine
from tui.kit.widgets.painted import Painted

_TEXT = re.compile(r'<text [^>]* x="([\d.]+)" y="[\d.]+" [^>]*-line-(\d+)\)">(.*?)</text>')
_CELL = 12.2  # width of a cell in exported pictures


async def until(pilot: Pilot[Any], found: Callable[[], Any], looks: int = 1200) -> None:
    """Waits until something is true of the screen, looking twenty times a second."""
    for _ in range(looks):
        if found():
            return
        await pilot.pause(0.05)
    raise AssertionError("it never came")


def at_once(pilot: Pilot[Any], keys: Iterable[str]) -> None:
    """All keys are there before the first one is looked at."""
    names = {"/": "slash", "#": "number_sign", "-": "minus"}
    for key in keys:
        pilot.app.post_message(events.Key(names.get(key, key), key if len(key) == 1 else None))


def drawn(app: App[Any], kind: type[Painted], which: int = 0) -> str:
    """What one of the widgets of a kind draws, as text."""
    widget = list(app.screen.query(kind))[which]
    return "\n".join("".join(text for text, _ in row) for row in widget.draw(*widget.size))


def message(app: App[Any]) -> str:
    """The message that stands at the bottom of the screen; empty without one."""
    lines = [line.said.text for line in app.screen.query(MessageLine)]
    lines += [tail.said.text for tail in app.screen.query(LogTail) if tail.said is not None]
    assert len(lines) <= 1, "messages pile up"
    return "".join(lines)


def picture(app: App[Any]) -> list[str]:
    """The lines on the screen, read from an exported picture."""
    lines: dict[int, str] = {}
    for x, line, text in _TEXT.findall(app.export_screenshot()):
        before = lines.get(int(line), "")
        gap = round(float(x) / _CELL) - cell_len(before)
        lines[int(line)] = before + " " * gap + html.unescape(text).replace("\xa0", " ")
    return [lines.get(line, "") for line in range(app.size.height)]


def frame(app: App[Any]) -> str:
    """What the screen that is up writes on the terminal when it is painted whole, escapes and all."""
    update = app.screen._compositor.render_update(full=True)
    assert update is not None
    return update.render_segments(app.console)


def assert_fits(app: App[Any], *words: str) -> None:
    """Something is drawn and no line is too wide; with room, nothing but what scrolls lies beyond the screen.

    The words have to be on the screen.
    """
    lines, size = picture(app), app.size
    assert any(line.strip() for line in lines) or size.width < 20, f"nothing is drawn in {size}"
    assert all(cell_len(line.rstrip()) <= size.width for line in lines), lines
    if size.width >= 60 and size.height >= 16:
        beyond = [widget for widget in app.screen.walk_children(Widget) if _beyond(widget)]
        assert not beyond, [(widget, widget.region) for widget in beyond]
    for word in words:
        assert any(word in line for line in lines), (word, lines)


def _beyond(widget: Widget) -> bool:
    scrolls = any(isinstance(above, ScrollableContainer) for above in widget.ancestors)
    shown = widget.display and all(getattr(above, "display", True) for above in widget.ancestors)
    return bool(shown and not scrolls and widget.region and not widget.screen.region.contains_region(widget.region))
