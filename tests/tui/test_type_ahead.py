"""Keys that arrive together, as over a slow link: what is typed after a key that opens a field goes there."""

from pathlib import Path

import pytest
from pilots import at_once, until
from textual.widgets import Input

from launcher.cli.screen import ScreenRequest
from launcher.runs.act.import_logs import import_logs
from tui.app import PpoTui
from tui.pages.editor.form import FormLines
from tui.pages.editor.value_box import ValueBox

LOG = str(Path(__file__).parents[1] / "data/logs/grpo.log.gz")


@pytest.mark.parametrize(
    ("opening", "keys", "typed"),
    [([], "/quick", "quick"), (["l"], "/quick", "quick"), (["m"], "/quick", "quick"), (["l"], "#12/#", "12/#")],
    ids=["runs", "log", "metrics", "a place in the log"],
)
async def test_a_field_gets_every_letter(home: Path, opening: list[str], keys: str, typed: str) -> None:
    (run,) = import_logs([LOG])
    app = PpoTui(ScreenRequest(run=str(run.path) if opening else None))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*opening)
        await until(pilot, lambda: pilot.app.screen.query(Input))
        at_once(pilot, keys)
        await pilot.pause()
        assert pilot.app.screen.query_one(Input).value == typed


async def test_a_field_of_a_preset_is_found(home: Path) -> None:
    async with PpoTui(ScreenRequest(preset="toy-cpu")).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        at_once(pilot, "/ppo_mini")
        await pilot.pause()
        assert pilot.app.screen.query_one(FormLines).cursor in (
            "actor.ppo_mini_batch_size",
            "critic.ppo_mini_batch_size",
        )


async def test_a_search_keeps_the_keys_when_the_window_changes(home: Path) -> None:
    async with PpoTui(ScreenRequest(preset="toy-cpu")).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        editor = pilot.app.screen
        editor.action_find()
        editor.on_resize()
        await pilot.pause()
        assert editor.focused is editor.query_one("#editor-find")


async def test_a_value_is_typed_or_chosen_and_entered_in_one_burst(home: Path) -> None:
    async with PpoTui(ScreenRequest(preset="toy-cpu", field="actor.lr")).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        draft = pilot.app.screen.draft
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen.query_one(ValueBox).is_open)
        at_once(pilot, [*"2e-5", "enter"])
        await until(pilot, lambda: draft.value(("actor", "lr")) == 2e-5)
        await pilot.press("a", "r")
        await until(pilot, lambda: pilot.app.screen.query_one(ValueBox).is_open)
        at_once(pilot, ["down", "down", "enter"])
        await until(pilot, lambda: draft.value(("recipe",)) == "dapo")
