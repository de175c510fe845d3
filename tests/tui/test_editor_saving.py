"""From the editor to files and runs: saved, kept, left, changed from outside, launched."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from editing import HOME, MINE, editor, head, text_of
from pilots import message, until
from terminal import Terminal

from launcher.preset.files import load
from launcher.record.layout import RunDir
from tui.kit.actions.editing import edit_preset, edit_run
from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ChooseScreen
from tui.kit.widgets.findings import Findings
from tui.pages.editor.form import FormLines
from tui.pages.editor.screen import EditorScreen
from tui.pages.launch.screen import LaunchScreen
from tui.pages.runs.screen import RunsScreen


@pytest.fixture
def mine(home: Path) -> Path:
    path = home / "presets" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE)
    return path


async def test_leaving_asks_and_keeps_what_is_not_saved(mine: Path, make: SimpleNamespace) -> None:
    async with make.app().run_test(size=HOME) as pilot:
        edit_preset(pilot.app, "mine", "actor.lr")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        await pilot.pause()
        await pilot.press("right", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        assert load("mine").preset.actor.lr == 5e-4


async def test_what_was_not_saved_comes_back_after_a_broken_connection(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.press("right")
        await until(pilot, lambda: "not saved" in head(pilot))
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.pause()
        assert pilot.app.screen.draft.value(("actor", "lr")) == 5e-4 and "restored" in message(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("d")
        await until(pilot, lambda: not pilot.app.is_running)
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.pause()
        assert pilot.app.screen.draft.text == MINE and message(pilot.app) == ""


async def test_quitting_asks_too(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.press("right")
        await pilot.pause()
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ChooseScreen) and pilot.app.is_running
        await pilot.press("d")
        await until(pilot, lambda: not pilot.app.is_running)
    assert mine.read_text() == MINE


async def test_a_shipped_preset_is_saved_as_one_of_yours(home: Path) -> None:
    async with editor("toy-cpu", "actor.lr").run_test(size=HOME) as pilot:
        assert "shipped" in head(pilot)
        await pilot.press("right", "w")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: (home / "presets" / "toy-cpu-copy.yaml").exists())
        assert load("toy-cpu-copy").preset.actor.lr == 5e-4 and load("toy-cpu").origin == "shipped"
        await pilot.press("a", "w")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
        await pilot.press(*"other", "enter")
        await until(pilot, lambda: (home / "presets" / "other.yaml").exists())


async def test_a_change_by_another_program_is_noticed(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.press("right")
        await pilot.pause()
        mine.write_text("description: theirs\n")
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        assert mine.read_text() == "description: theirs\n"
        assert pilot.app.screen.draft.text == "description: theirs\n"
        await pilot.press("u")
        await until(pilot, lambda: pilot.app.screen.draft.value(("actor", "lr")) == 5e-4)
        mine.write_text("description: theirs again\n")
        await until(pilot, lambda: "changed on disk" in head(pilot))
        mine.unlink()
        await until(pilot, lambda: "removed on disk" in head(pilot))
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("o")
        await until(pilot, lambda: mine.exists() and "lr: 5e-4" in mine.read_text())


async def test_a_broken_file_shows_its_line_and_is_not_touched(mine: Path) -> None:
    mine.write_text("actor: [1,\nlr: 2\n")
    async with editor().run_test(size=HOME) as pilot:
        await pilot.pause()
        lines = pilot.app.screen.query_one(FormLines)
        assert any(key.startswith("|") and "actor: [1," in key for key in lines.keys)
        await pilot.press("delete", "right", "a", "a", "enter")
        assert "has errors" in head(pilot) and pilot.app.screen.draft.text == "actor: [1,\nlr: 2\n"


async def test_a_fix_made_before_the_start_comes_back_into_the_draft(mine: Path) -> None:
    mine.write_text("extends: gsm8k-0.5b-24gb\nrollout:\n  tensor_model_parallel_size: 2\n")
    async with editor().run_test(size=HOME) as pilot:
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        launch: Any = pilot.app.screen
        findings = launch.query_one(Findings)
        await until(pilot, lambda: [each for each in findings.findings if each.id == "P2"])
        while findings.chosen.id != "P2":
            await pilot.press("down")
        await pilot.press("F")
        await until(pilot, lambda: launch.fixes == ["rollout.tensor_model_parallel_size=1"])
        await pilot.press("e")
        await until(pilot, lambda: "not saved" in head(pilot))
        assert pilot.app.screen.draft.value(("rollout", "tensor_model_parallel_size")) == 1
        assert "size: 2" in mine.read_text()
        await pilot.press("u")
        await until(pilot, lambda: "not saved" not in head(pilot))


async def test_a_run_is_edited_and_its_launch_remembers_it(make: SimpleNamespace, home: Path) -> None:
    run = RunDir(make.run(state=make.ended("finished", step=80)))
    info = make.write_info(run.path, preset=load("toy-cpu", ["actor.lr=1e-4"]).snapshot())
    async with make.app().run_test(size=HOME) as pilot:
        await pilot.pause()
        edit_run(pilot.app, info, "actor.lr")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        await pilot.pause()
        await pilot.press("right")
        await pilot.pause()
        await pilot.press("tab", "tab", "tab")
        await until(pilot, lambda: run.id in text_of(pilot, "#changes"))
        assert "actor.lr" in text_of(pilot, "#changes")
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.after.id == run.id and not (home / "presets").exists()


@pytest.mark.slow
def test_the_text_goes_through_the_users_own_editor(mine: Path, home: Path) -> None:
    script = home / "editor.sh"
    script.write_text('#!/bin/sh\necho "$1" > "$PPO_TUI_HOME/line"\nsed -i "s/2e-4/7e-5/" "$2"\n')
    script.chmod(0o755)
    env = {**os.environ, "EDITOR": str(script), "VISUAL": ""}
    words = [sys.executable, "-c", "from tui.entry import main; main()", "preset", "edit", "mine", "actor.lr"]
    shown = Terminal(words, env)
    try:
        shown.wait_for(lambda text: "2e-4" in text)
        shown.send("ao")
        shown.wait_for(lambda text: "7e-5" in text and "not saved" in text)
        assert (home / "line").read_text() == "+4\n" and mine.read_text() == MINE
        shown.send("w")
        shown.wait_for(lambda text: "Saved" in text)
        assert mine.read_text() == MINE.replace("2e-4", "7e-5")
        shown.send("q")
        shown.wait_for(lambda _: shown.process.poll() == 0)
    finally:
        shown.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "said"),
    [(None, "cannot start"), ("exit 3", "failed with exit code 3")],
    ids=["no such program", "fails"],
)
def test_an_editor_that_does_not_work_gives_the_screen_back(
    script: str | None, said: str, mine: Path, home: Path
) -> None:
    editor = home / "editor.sh"
    if script is not None:
        editor.write_text(f"#!/bin/sh\n{script}\n")
        editor.chmod(0o755)
    env = {**os.environ, "EDITOR": str(editor), "VISUAL": ""}
    words = [sys.executable, "-c", "from tui.entry import main; main()", "preset", "edit", "mine", "actor.lr"]
    shown = Terminal(words, env)
    try:
        shown.wait_for(lambda text: "2e-4" in text)
        shown.send("\x1b[C")
        shown.wait_for(lambda text: "not saved" in text)
        shown.send("ao")
        text = shown.wait_for(lambda text: said in " ".join(text.split()))
        assert "actor" in text and "not saved" in text, "the form and the change are still there"
        assert mine.read_text() == MINE
    finally:
        shown.close()
