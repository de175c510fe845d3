"""Shared parts of the preset editor's tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pilots import User, until
from textual.pilot import Pilot

from launcher.cli.screen import ScreenRequest
from tui.app import PpoTui
from tui.kit.widgets.lines import Lines
from tui.pages.editor.form import FormLines
from tui.pages.editor.side import EditorSide

HOME, LARGE = (80, 24), (160, 48)
MINE = "# mine\nextends: toy-cpu\nactor:\n  lr: 2e-4   # lower\n"


def editor(preset: str = "mine", field: str | None = None, **more: Any) -> PpoTui:
    return PpoTui(ScreenRequest(preset=preset, field=field, **more))


@asynccontextmanager
async def edit(*what: Any, size: tuple[int, int] = HOME, **more: Any) -> AsyncIterator[User]:
    """The editor, which may still be checking."""
    app = editor(*what, **more)
    async with app.run_test(size=size):
        user = User(app)
        await user()
        yield user


async def checked(pilot: Pilot[Any]) -> None:
    side = pilot.app.screen.query_one(EditorSide)
    await until(pilot, lambda: side.checked)


def chosen(pilot: Pilot[Any]) -> str | None:
    return pilot.app.screen.query_one(FormLines).cursor


def text_of(pilot: Pilot[Any], selector: str) -> str:
    rows = pilot.app.screen.query_one(selector, Lines).lines
    return "\n".join("".join(text for text, _ in row) for row in rows)


def head(pilot: Pilot[Any]) -> str:
    return text_of(pilot, "#editor-head")


def value(user: User, field: str = "actor.lr") -> Any:
    """The draft's value of a field."""
    return user.screen.draft.value(tuple(field.split(".")))
