"""Shared parts of screen tests: waiting, and reading the screen."""

import html
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.app import App
from textual.containers import ScrollableContainer
from textual.pilot import Pilot
from textual.widget import Widget
from textual.worker import WorkerCancelled

from tui.kit.widgets.log_tail import LogTail
from tui.kit.widgets.message_line import MessageLine
from tui.kit.widgets.painted import Painted

_TEXT = re.compile(r'<text [^>]* x="([\d.]+)" y="[\d.]+" [^>]*-line-(\d+)\)">(.*?)</text>')
_CELL = 12.2  # width of a cell in exported pictures


async def until(pilot: Pilot[Any], found: Callable[[], Any], looks: int = 1200) -> None:
    """Waits until a condition holds on the screen, checking twenty times per second."""
    for _ in range(looks):
        if found():
            return
        await pilot.pause(0.05)
    raise AssertionError(f"it never came to {pilot.app.screen}")


class User(Pilot[Any]):
    """A user of the screen: `await user("x", "ConfirmScreen", "y", lambda: done)`."""

    async def __call__(self, *steps: str | float | Callable[[], Any]) -> None:
        """Presses keys, waits for a named screen, a condition, all work ("..."), or some seconds."""
        keys: list[str] = []
        for step in (*steps, 0):
            if isinstance(step, str) and step != "..." and not step.endswith("Screen"):
                keys.append(step)
                continue
            await self.press(*keys)
            await self.pause(step if isinstance(step, float) else None)
            keys = []
            if step == "...":
                with suppress(WorkerCancelled):  # by another one of its kind
                    await self.app.workers.wait_for_complete()
                await until(self, lambda: not any(worker.is_running for worker in self.app.workers))
                await self.pause()
            elif isinstance(step, str):
                await until(self, lambda name=step: self.is_on(name))
            elif callable(step):
                await until(self, step)

    def is_on(self, name: str) -> bool:
        return name in [kind.__name__ for kind in type(self.screen).__mro__] and self.screen.is_mounted

    @property
    def screen(self) -> Any:
        return self.app.screen

    @property
    def message(self) -> str:
        return message(self.app)

    @property
    def seen(self) -> str:
        """The content of the screen, as text."""
        return "\n".join(picture(self.app))

    def one(self, selector: Any) -> Any:
        """The widget of a kind, a kind's name or an id."""
        return self.screen.query_one(selector)

    def drawn(self, selector: Any, which: int = 0) -> str:
        """The content of one widget of a kind, as text."""
        widget = list(self.screen.query(selector))[which]
        return words(widget.draw(*widget.size))


def at_once(pilot: Pilot[Any], keys: Iterable[str]) -> None:
    """Sends all keys before the first one is handled."""
    names = {"/": "slash", "#": "number_sign", "-": "minus"}
    for key in keys:
        pilot.app.post_message(events.Key(names.get(key, key), key if len(key) == 1 else None))


def drawn(app: App[Any], kind: type[Painted], which: int = 0) -> str:
    """The content of one widget of a kind, as text."""
    return User(app).drawn(kind, which)


def words(rows: Iterable[Any]) -> str:
    """Drawn rows as text."""
    return "\n".join("".join(text for text, _ in row) for row in rows)


def message(app: App[Any]) -> str:
    """The message at the bottom of the screen; empty without one."""
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
    """The terminal output for a complete repaint of the current screen, including escapes."""
    update = app.screen._compositor.render_update(full=True)
    assert update is not None
    return update.render_segments(app.console)


def assert_fits(app: App[Any], *words: str) -> None:
    """Asserts that something is drawn, no line is too wide, and only scrolling parts are outside, with the words on the
    screen.
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
