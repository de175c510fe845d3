"""`tune` and `enter` on a preset of the list."""

from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from pilots import message, until
from waiting import PATIENCE

from launcher.estimate.tuning import Measured, Point
from launcher.preset.files import LoadedPreset
from launcher.runs.act import tune as tuning
from launcher.runs.act.tune import Tuned
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets.lists import RunTable
from tui.pages.launch.screen import LaunchScreen
from tui.pages.runs.screen import RunsScreen


async def test_a_preset_is_tuned_after_a_question(
    make: SimpleNamespace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_PYTHON", str(home / "python"))  # where the first probe fails
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        app.screen.query_one(RunTable).move_to("preset toy-cpu")
        for key in ("n", "y"):
            await pilot.press("a", "u")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await until(pilot, lambda: "cannot be used" in message(app))
        (presets := home / "presets").mkdir(exist_ok=True)
        (presets / "toy-cpu-tuned.yaml").write_text("extends: toy-cpu\n")
        await pilot.press("a", "u")
        await until(pilot, lambda: "toy-cpu-tuned exists already" in message(app))


async def test_a_tuned_preset_is_in_the_list(
    make: SimpleNamespace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tune(loaded: LoadedPreset, path: Path, narrate: tuning.Narrate) -> Tuned:
        """Ends when its preset is in the list, which any page that closes makes read the presets again."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("extends: toy-cpu\n")
        listed.wait(PATIENCE)
        best = Measured(Point(), "a-toy-cpu", 400.0)
        return Tuned((best,), best, {}, path)

    monkeypatch.setattr(tuning, "tune", tune)
    listed = Event()
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        table = app.screen.query_one(RunTable)
        table.move_to("preset toy-cpu")
        await pilot.press("a", "u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: (home / "presets" / "toy-cpu-tuned.yaml").exists())
        await pilot.press("question_mark", "escape")
        await until(pilot, lambda: "preset toy-cpu-tuned" in table.keys)
        listed.set()
        await app.workers.wait_for_complete()
        assert table.cursor == "preset toy-cpu", "the cursor stays with the user"


async def test_two_enters_open_one_launch_page(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        app.screen.query_one(RunTable).move_to("preset toy-cpu")
        app.simulate_key("enter")
        app.simulate_key("enter")  # in one read, as over a slow link
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        await pilot.pause(0.5)
        assert sum(isinstance(screen, LaunchScreen) for screen in app.screen_stack) == 1
