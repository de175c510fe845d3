"""From the editor to files and runs: saved, kept, left, changed from outside, launched."""

import os
import sys
from pathlib import Path

import pytest
from editing import MINE, chosen, edit, head, text_of, value
from pilots import at_once
from terminal import Terminal

from launcher.preset.files import load
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs
from tui.kit.actions.editing import edit_preset, edit_run

PRESSED = [sys.executable, "-c", "from tui.entry import main; main()", "preset", "edit", "mine", "actor.lr"]


async def test_leaving_asks_and_keeps_what_is_not_saved(mine, make):
    async with make.open() as user:
        edit_preset(user.app, "mine", "actor.lr")
        await user(
            "EditorScreen", "right", "escape", "ChooseScreen", "c", "EditorScreen", "escape", "ChooseScreen", "s"
        )
        await user("RunsScreen")
        assert load("mine").preset.actor.lr == 5e-4


async def test_what_was_not_saved_comes_back_after_a_broken_connection_and_quitting_asks_too(mine):
    async with edit(field="actor.lr") as user:
        await user("right", lambda: "not saved" in head(user))
    async with edit(field="actor.lr") as user:
        assert value(user) == 5e-4 and "restored" in user.message
        await user("ctrl+q", "ChooseScreen", "ctrl+q", "ChooseScreen")
        assert user.app.is_running
        await user("d", lambda: not user.app.is_running)
    async with edit(field="actor.lr") as user:
        assert user.screen.draft.text == MINE == mine.read_text() and user.message == ""


async def test_a_shipped_preset_is_saved_as_one_of_yours(home):
    presets = home / "presets"
    async with edit("toy-cpu", "actor.lr") as user:
        assert "shipped" in head(user)
        await user("right", "w", "AskScreen", "enter", (presets / "toy-cpu-copy.yaml").exists)
        assert load("toy-cpu-copy").preset.actor.lr == 5e-4 and load("toy-cpu").origin == "shipped"
        await user("a", "w", "AskScreen", *"other", "enter", (presets / "other.yaml").exists)


async def test_a_change_by_another_program_is_noticed(mine):
    async with edit(field="actor.lr") as user:
        await user("right")
        mine.write_text("description: theirs\n")
        await user("w", "ChooseScreen", "r", "EditorScreen")
        assert mine.read_text() == "description: theirs\n" == user.screen.draft.text
        await user("u", lambda: value(user) == 5e-4)
        mine.write_text("description: theirs again\n")
        await user(lambda: "changed on disk" in head(user))
        mine.unlink()
        await user(lambda: "removed on disk" in head(user), "w", "ChooseScreen", "o")
        await user(lambda: mine.exists() and "lr: 5e-4" in mine.read_text())


async def test_a_broken_file_shows_its_line_and_is_not_touched(mine):
    mine.write_text("actor: [1,\nlr: 2\n")
    async with edit() as user:
        assert any(key.startswith("|") and "actor: [1," in key for key in user.one("FormLines").keys)
        await user("delete", "right", "a", "a", "enter")
        assert "has errors" in head(user) and user.screen.draft.text == "actor: [1,\nlr: 2\n"


async def test_a_fix_made_before_the_start_comes_back_into_the_draft(mine):
    mine.write_text("extends: gsm8k-0.5b-24gb\nrollout:\n  tensor_model_parallel_size: 2\n")
    async with edit() as user:
        await user("S", "LaunchScreen")
        launch, findings = user.screen, user.one("Findings")
        await user(lambda: [each for each in findings.findings if each.id == "P2"])
        while findings.chosen.id != "P2":
            await user("down")
        await user("F", lambda: launch.fixes == ["rollout.tensor_model_parallel_size=1"])
        await user("e", "EditorScreen", lambda: "not saved" in head(user))
        assert value(user, "rollout.tensor_model_parallel_size") == 1 and "size: 2" in mine.read_text()
        await user("u", lambda: "not saved" not in head(user))


async def test_a_run_is_edited_and_its_launch_remembers_it(make, home):
    run = RunDir(make.run(state=make.ended("finished", step=80)))
    info = make.write_info(run.path, preset=load("toy-cpu", ["actor.lr=1e-4"]).snapshot())
    async with make.open() as user:
        edit_run(user.app, info, "actor.lr")
        await user("EditorScreen", "right", "tab", "tab", "tab", lambda: run.id in text_of(user, "#changes"))
        assert "actor.lr" in text_of(user, "#changes")
        await user("S", "ChooseScreen", "y", "LaunchScreen")
        assert user.screen.after.id == run.id and not (home / "presets").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('echo "$1" > "$PPO_TUI_HOME/line"\nsed -i "s/2e-4/7e-5/" "$2"', "7e-5"),
        (None, "cannot start"),
        ("exit 3", "failed with exit code 3"),
    ],
    ids=["works", "no such program", "fails"],
)
def test_the_text_goes_through_the_users_own_editor(script, said, mine, home):
    editor = home / "editor.sh"
    if script is not None:
        editor.write_text(f"#!/bin/sh\n{script}\n")
        editor.chmod(0o755)
    shown = Terminal(PRESSED, {**os.environ, "EDITOR": str(editor), "VISUAL": ""})
    try:
        shown.wait_for(lambda text: "2e-4" in text)
        if said != "7e-5":
            shown.send("\x1b[C")
            shown.wait_for(lambda text: "not saved" in text)
        shown.send("ao")
        text = shown.wait_for(lambda text: said in " ".join(text.split()) and "not saved" in text)
        assert "actor" in text and mine.read_text() == MINE, "the form and the change are still there"
        if said == "7e-5":
            assert (home / "line").read_text() == "+4\n"
            shown.send("w")
            shown.wait_for(lambda text: "Saved" in text)
            assert mine.read_text() == MINE.replace("2e-4", "7e-5")
            shown.send("q")
            shown.wait_for(lambda _: shown.process.poll() == 0)
    finally:
        shown.close()


LOG = str(Path(__file__).parents[1] / "data/logs/grpo.log.gz")


@pytest.mark.parametrize(
    ("opening", "keys", "typed"),
    [([], "/quick", "quick"), (["l"], "/quick", "quick"), (["m"], "/quick", "quick"), (["l"], "#12/#", "12/#")],
    ids=["runs", "log", "metrics", "a place in the log"],
)
async def test_a_field_gets_every_letter_of_a_burst(make, opening, keys, typed):
    (run,) = import_logs([LOG])
    async with make.open(run.path if opening else None) as user:
        await user(*opening, lambda: user.screen.query("Input"))
        at_once(user, keys)
        await user(lambda: user.one("Input").value == typed)


async def test_a_field_a_value_and_a_choice_are_typed_and_entered_in_one_burst(home):
    async with edit("toy-cpu") as user:
        box = user.one("ValueBox")
        at_once(user, "/ppo_mini")
        await user(lambda: str(chosen(user)).endswith(".ppo_mini_batch_size"), "escape")
        user.screen.action_find()
        user.screen.on_resize()  # a search keeps the keys when the window changes
        await user()
        assert user.screen.focused is user.one("#editor-find")
        await user(*"actor.lr", "enter", lambda: chosen(user) == "actor.lr", "enter", lambda: box.is_open)
        at_once(user, [*"2e-5", "enter"])
        await user(lambda: value(user) == 2e-5, "a", "r", lambda: box.is_open)
        at_once(user, ["down", "down", "enter"])
        await user(lambda: value(user, "recipe") == "dapo")
