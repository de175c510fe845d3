"""The preset editor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from editing import HOME, LARGE, MINE, checked, chosen, editor, head, text_of
from pilots import assert_fits, message, until
from textual.widgets import Input, Static

from launcher.preset.files import load
from launcher.record.layout import RunDir
from tui.kit.widgets.findings import Findings
from tui.kit.widgets.lines import CommandText
from tui.pages.editor.form import FormLines
from tui.pages.editor.form_area import FormArea
from tui.pages.editor.screen import EditorScreen
from tui.pages.editor.side import EditorSide
from tui.pages.editor.value_box import ValueBox


@pytest.fixture
def mine(home: Path) -> Path:
    path = home / "presets" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE)
    return path


async def test_a_value_is_typed_in_its_place_and_saved(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.pause()
        assert chosen(pilot) == "actor.lr" and "saved" in head(pilot)
        await pilot.press("enter", *"99")
        await pilot.pause()
        assert "at most 1" in text_of(pilot, "#value-note")
        await pilot.press("backspace", "backspace", *"5e-5", "enter")
        await pilot.pause()
        assert pilot.app.screen.draft.value(("actor", "lr")) == 5e-5 and "not saved" in head(pilot)
        assert mine.read_text() == MINE
        await pilot.press("w")
        await until(pilot, lambda: mine.read_text() == MINE.replace("2e-4 ", "5e-5 "))
        await until(pilot, lambda: "not saved" not in head(pilot))


async def test_a_value_that_is_typed_stays_in_sight_when_the_screen_shrinks(mine: Path) -> None:
    app = editor(field="actor.lr")
    async with app.run_test(size=HOME) as pilot:
        await checked(pilot)
        await pilot.press("enter")
        box = app.screen.query_one(ValueBox)
        await until(pilot, lambda: box.is_open and box.region.x > 20)
        await pilot.resize_terminal(20, 5)
        await until(pilot, lambda: 0 < box.region.x < 15)
        await pilot.resize_terminal(*HOME)
        await until(pilot, lambda: box.region.x > 20)


async def test_what_cannot_be_is_not_taken(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        box = pilot.app.screen.query_one(ValueBox)
        await pilot.press("enter", *"fast", "enter")
        await pilot.pause()
        assert pilot.app.screen.draft.text == MINE and "allowed" in text_of(pilot, "#value-note")
        assert box.is_open and box.query_one(Input).value == "fast"  # to be mended, not typed again
        await pilot.press("escape")
        await until(pilot, lambda: not box.is_open)
        assert pilot.app.screen.draft.text == MINE


async def test_steps_undo_redo_and_reset(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        draft = pilot.app.screen.draft
        await pilot.press("right")
        await until(pilot, lambda: draft.value(("actor", "lr")) == 5e-4)
        await pilot.press("minus", "left")
        await until(pilot, lambda: draft.value(("actor", "lr")) == 1e-4)
        await pilot.press("u", "u")
        await until(pilot, lambda: draft.value(("actor", "lr")) == 5e-4)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: draft.value(("actor", "lr")) == 2e-4)
        await pilot.press("delete")
        await until(pilot, lambda: draft.value(("actor", "lr")) == 3e-4)
        assert "actor" not in draft.text


async def test_a_recipe_is_taken_and_its_changes_are_shown(mine: Path) -> None:
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        draft = pilot.app.screen.draft
        await pilot.press("a", "r")
        await until(pilot, lambda: pilot.app.screen.query_one(ValueBox).is_open)
        await pilot.press(*"dapo", "enter")
        await until(pilot, lambda: pilot.app.screen.page == "changes")
        assert draft.value(("recipe",)) == "dapo" and draft.value(("actor", "lr")) == 2e-4
        changes = text_of(pilot, "#changes")
        assert "actor.clip_ratio_high" in changes and "0.28" in changes and "filter.enable" in changes
        await pilot.press("escape", "u")
        await until(pilot, lambda: draft.text == MINE)


async def test_a_choice_is_chosen_and_a_divisor_offered(mine: Path) -> None:
    async with editor(field="actor.ppo_mini_batch_size").run_test(size=HOME) as pilot:
        draft, box = pilot.app.screen.draft, pilot.app.screen.query_one(ValueBox)
        await pilot.press("enter")
        await pilot.pause()
        assert box.choices == ["1", "2", "4", "8", "16", "32", "64"]
        await pilot.press("down", "enter")
        await until(pilot, lambda: draft.value(("actor", "ppo_mini_batch_size")) == 64)


async def test_files_are_completed_and_picked(mine: Path, home: Path) -> None:
    rows = home / "rows"
    (rows / "deep").mkdir(parents=True)
    for name in ("train.parquet", "test.parquet"):
        (rows / name).write_text("")
    async with editor(field="data.train").run_test(size=HOME) as pilot:
        draft, box = pilot.app.screen.draft, pilot.app.screen.query_one(ValueBox)
        await pilot.press("enter")
        field = box.query_one(Input)
        field.value = f"{home}/ro"
        await pilot.pause()
        await pilot.press("tab")
        await pilot.pause()
        assert field.value == f"{rows}/" and [Path(name).name for name in box.choices] == [
            "deep",
            "test.parquet",
            "train.parquet",
        ]
        await pilot.press(*"tr", "tab", "enter")
        await until(pilot, lambda: draft.value(("data", "train")) == f"{rows}/train.parquet")


async def test_a_field_is_found_by_typing(mine: Path) -> None:
    async with editor().run_test(size=HOME) as pilot:
        lines = pilot.app.screen.query_one(FormLines)
        await pilot.press("slash", *"steps")
        await until(pilot, lambda: chosen(pilot) == "trainer.steps")
        await pilot.press("escape", "slash", *"warmup_steps", "enter")
        await pilot.pause()
        assert chosen(pilot) in ("actor.lr_warmup_steps", "critic.lr_warmup_steps")
        assert all("warmup" in key for key in lines.keys if not key.startswith("#"))
        await pilot.press("escape")
        await pilot.pause()
        assert "algorithm" in lines.keys and chosen(pilot) in ("actor.lr_warmup_steps", "critic.lr_warmup_steps")
        await pilot.press("a", "f")
        await pilot.pause()
        assert "actor.lr_warmup_steps" not in lines.keys


async def test_a_key_without_a_field_is_added(mine: Path) -> None:
    async with editor().run_test(size=HOME) as pilot:
        draft, box = pilot.app.screen.draft, pilot.app.screen.query_one(ValueBox)
        await pilot.press("a", "a", *"rollout.over_sa", "tab")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: box.query_one(Input).placeholder.startswith("value of"))
        await pilot.press(*"0.5", "enter")
        await until(pilot, lambda: draft.changed)
        assert draft.value(("overrides", "actor_rollout_ref.rollout.over_sample_rate")) == 0.5
        await until(pilot, lambda: chosen(pilot) == "overrides.actor_rollout_ref.rollout.over_sample_rate")


async def test_a_key_that_cannot_be_one_is_not_taken(mine: Path) -> None:
    async with editor().run_test(size=HOME) as pilot:
        box = pilot.app.screen.query_one(ValueBox)
        await pilot.press("a", "a", *"trian.x", "enter")
        await pilot.pause()
        assert box.is_open and "is not a preset field or a veRL key" in text_of(pilot, "#value-note")
        box.query_one(Input).value = ""
        await pilot.press(*"data.see")
        await pilot.pause()
        assert text_of(pilot, "#value-note").strip() == ""  # it may become data.seed
        await pilot.press("enter")
        await pilot.pause()
        assert box.is_open and "did you mean 'data.seed'" in text_of(pilot, "#value-note")
        await pilot.press("escape")
        await until(pilot, lambda: not box.is_open)
        assert pilot.app.screen.draft.text == MINE


async def test_the_keys_offered_are_those_of_the_verl_that_is_there(mine: Path) -> None:
    async with editor().run_test(size=HOME) as pilot:
        screen = pilot.app.screen
        area, side, box = screen.query_one(FormArea), screen.query_one(EditorSide), screen.query_one(ValueBox)
        await checked(pilot)
        await until(pilot, lambda: area.verl == side.verl)
        area.verl = ("0.7.1", None)
        await pilot.press("a", "a", *"data.sampler.class_pa")
        await until(pilot, lambda: box.choices == ["data.sampler.class_path"])  # 0.8 has none


async def test_a_wrong_value_says_so_below_its_field(mine: Path) -> None:
    mine.write_text("extends: toy-cpu\nactor:\n  lr: fast\n  lrr: 1\n")
    async with editor(field="actor.lr").run_test(size=HOME) as pilot:
        await pilot.pause()
        keys = list(pilot.app.screen.query_one(FormLines).keys)
        assert keys[keys.index("actor.lr") + 1] == "!actor.lr" and "has errors" in head(pilot)
        await pilot.press("enter", *"1e-4", "enter")
        await until(pilot, lambda: pilot.app.screen.draft.value(("actor", "lr")) == 1e-4)


async def test_what_no_preset_knows_is_shown_found_and_taken_out(mine: Path) -> None:
    mine.write_text("extends: toy-cpu\nactr:\n  lr: 1\nactor:\n  lrr: 2\ntrainer: 5\n")
    async with editor().run_test(size=HOME) as pilot:
        await checked(pilot)
        side, lines = pilot.app.screen.query_one(EditorSide), pilot.app.screen.query_one(FormLines)
        assert {each.keys[0] for each in side.findings} == {"actr", "actor.lrr", "trainer"}
        await pilot.press("tab", "tab", "enter")  # the first finding, and its line
        await until(pilot, lambda: chosen(pilot) == "actr")
        assert "actr" in lines.keys and "!actr" in lines.keys
        await pilot.press("delete")  # the cursor stays where it is
        await until(pilot, lambda: chosen(pilot) == "actor.lrr")
        await pilot.press("delete")
        await until(pilot, lambda: chosen(pilot) == "trainer")
        await pilot.press("delete")
        await until(pilot, lambda: pilot.app.screen.draft.text == "extends: toy-cpu\n")


async def test_findings_are_fixed_and_lead_to_their_field(mine: Path) -> None:
    mine.write_text("extends: gsm8k-0.5b-24gb\nrollout:\n  tensor_model_parallel_size: 2\n")
    async with editor().run_test(size=LARGE) as pilot:
        await checked(pilot)
        side = pilot.app.screen.query_one(EditorSide)
        assert any(finding.level == "error" for finding in side.findings), side.findings
        fixable = next(finding for finding in side.findings if finding.change)
        await pilot.press("tab")
        findings = pilot.app.screen.query_one(Findings)
        assert findings.has_focus
        while findings.chosen != fixable:
            await pilot.press("down")
        await pilot.press("F")
        await until(pilot, lambda: pilot.app.screen.draft.changed)
        await until(pilot, lambda: fixable not in side.findings)


async def test_the_panels_follow_the_draft(mine: Path) -> None:
    async with editor(field="actor.ppo_mini_batch_size").run_test(size=LARGE) as pilot:
        assert "2 mini-batches of 32 prompts" in text_of(pilot, "#plan")
        await pilot.press("left")
        await until(pilot, lambda: "4 mini-batches of 16 prompts" in text_of(pilot, "#plan"))
        await pilot.press("tab", "tab")
        await until(pilot, lambda: "actor.ppo_mini_batch_size" in text_of(pilot, "#changes"))
        await pilot.press("tab")
        await until(pilot, lambda: "ppo_mini_batch_size=16" in pilot.app.screen.query_one(CommandText).text)


async def test_changes_against_the_last_run(mine: Path, make: SimpleNamespace) -> None:
    async with editor().run_test(size=HOME) as pilot:
        await pilot.press("c")
        await until(pilot, lambda: "No run of mine" in message(pilot.app))
        run = RunDir(make.run(name="mine", state=make.ended("finished", step=80)))
        make.write_info(run.path, preset=load("mine", ["actor.lr=9e-4", "env.A=b"]).snapshot())
        await pilot.press("c")
        await until(pilot, lambda: f"compared with run {run.id}" in text_of(pilot, "#changes"))
        assert "9e-4 to 2e-4" in text_of(pilot, "#changes") and "env.A" in text_of(pilot, "#changes")
        await pilot.press("c")
        await until(pilot, lambda: "compared with toy-cpu" in text_of(pilot, "#changes"))


async def test_watching_changes_nothing(mine: Path) -> None:
    async with editor(field="actor.lr", read_only=True).run_test(size=HOME) as pilot:
        await pilot.press("right", "delete", "w", "enter")
        await pilot.pause()
        assert pilot.app.screen.draft.text == MINE and "Read-only" in message(pilot.app)


async def test_e_on_a_run_and_on_a_preset(make: SimpleNamespace, home: Path) -> None:
    run = RunDir(make.run(state=make.ended("failed", step=3)))
    make.write_info(run.path, preset=load("toy-cpu").snapshot())
    async with make.app(run.path).run_test(size=HOME) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        assert pilot.app.screen.draft.run == run.id
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, EditorScreen)  # nothing was changed
    async with make.app().run_test(size=HOME) as pilot:
        await until(pilot, lambda: pilot.app.screen.query("RunTable") and pilot.app.screen.presets)
        await pilot.press("end", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        assert pilot.app.screen.draft.run is None


@pytest.mark.slow
def test_without_a_terminal_one_sentence_says_so(mine: Path) -> None:
    script = "from tui.entry import main; main()"
    for words, sentence in (
        (["mine"], "requires a terminal"),
        (["mine", "actor.lrr"], "actor.lr"),
        (["x"], "no preset"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, "preset", "edit", *words], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("size", [(250, 80), (60, 16), (40, 12), (20, 5), (3, 2)])
async def test_the_editor_fits_any_terminal(mine: Path, size: tuple[int, int]) -> None:
    async with editor(field="actor.lr").run_test(size=size) as pilot:
        await pilot.press("enter", *"5", "escape", "slash", "x", "escape", "tab", "tab", "tab", "tab", "tab")
        await pilot.pause()
        assert_fits(pilot.app, *(["mine"] if size[0] >= 20 else []))


async def test_a_filter_is_shown_and_esc_keeps_the_field(mine: Path) -> None:
    async with editor().run_test(size=HOME) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"kl.coef", "enter")
        await until(pilot, lambda: chosen(pilot) == "kl.coef")
        assert "/kl.coef" in head(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "/kl.coef" not in head(pilot))
        assert chosen(pilot) == "kl.coef" and "model.path" in pilot.app.screen.query_one(FormLines).keys


async def test_alerts_are_found_edited_with_checks_and_tested(mine: Path, home: Path) -> None:
    got = home / "got.json"
    async with editor().run_test(size=HOME) as pilot:
        draft, lines = pilot.app.screen.draft, pilot.app.screen.query_one(FormLines)
        await pilot.press("slash", *"alert", "enter")
        await until(pilot, lambda: chosen(pilot) == "health.on_alert")
        assert {"health.alert_to", "health.notify"} <= set(lines.keys)
        await pilot.press("enter", *f"tee {got}", "enter")
        await until(pilot, lambda: draft.value(("health", "on_alert")) == ["tee", str(got)])
        await pilot.press("slash", *"stop_on", "enter", "enter", *"KL-1, NUM9", "enter")
        await until(pilot, lambda: "health.stop_on: 'NUM9' is not allowed" in text_of(pilot, "#value-note"))
        await pilot.press("backspace", "backspace", "tab", "enter")
        await until(pilot, lambda: draft.value(("health", "stop_on")) == ["KL-1", "NUM-1"])
        await pilot.press("a", "t")
        await until(pilot, lambda: "on_alert: sent to tee" in "".join(map(str, said(pilot))))
        assert '"rule":"KL-1"' in got.read_text()


def said(pilot: Any) -> list[object]:
    """The texts of the page on top."""
    return [each.content for each in pilot.app.screen.query(Static)]
