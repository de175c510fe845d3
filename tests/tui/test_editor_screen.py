"""The preset editor."""

import subprocess
import sys
from pathlib import Path

import pytest
from editing import LARGE, MINE, checked, chosen, edit, head, text_of, value

from launcher.preset.files import load
from launcher.record.layout import RunDir


async def test_a_value_is_typed_stepped_undone_reset_and_saved(mine):
    async with edit(field="actor.lr") as user:
        box = user.one("ValueBox")
        assert chosen(user) == "actor.lr" and "saved" in head(user)
        await user("enter", lambda: box.is_open and box.region.x > 20)
        await user.resize_terminal(20, 5)
        await user(lambda: 0 < box.region.x < 15)  # it stays in sight
        await user.resize_terminal(80, 24)
        await user(lambda: box.region.x > 20, *"99")
        assert "at most 1" in text_of(user, "#value-note")
        await user("backspace", "backspace", *"fast", "enter")
        assert user.screen.draft.text == MINE and "allowed" in text_of(user, "#value-note")
        assert box.is_open and box.query_one("Input").value == "fast"  # to be mended, not typed again
        await user("escape", lambda: not box.is_open)
        assert user.screen.draft.text == MINE
        await user(
            "enter", *"5e-5", "enter", lambda: value(user, "actor.lr") == 5e-5, lambda: "not saved" in head(user)
        )
        assert mine.read_text() == MINE
        await user(
            "w", lambda: mine.read_text() == MINE.replace("2e-4 ", "5e-5 "), lambda: "not saved" not in head(user)
        )
        await user("right", lambda: value(user, "actor.lr") == 1e-4, "minus", "left")
        await user(lambda: value(user, "actor.lr") == 2e-5, "u", "u", lambda: value(user, "actor.lr") == 1e-4)
        await user("ctrl+r", lambda: value(user, "actor.lr") == 5e-5)
        await user("delete", lambda: value(user, "actor.lr") == 3e-4)
        assert "actor" not in user.screen.draft.text


async def test_a_recipe_is_taken_and_its_changes_are_shown(mine):
    async with edit(field="actor.lr") as user:
        await user("a", "r", lambda: user.one("ValueBox").is_open, *"dapo", "enter")
        await user(lambda: user.screen.page == "changes")
        assert value(user, "recipe") == "dapo" and value(user, "actor.lr") == 2e-4
        changes = text_of(user, "#changes")
        assert "actor.clip_ratio_high" in changes and "0.28" in changes and "filter.enable" in changes
        await user("escape", "u", lambda: user.screen.draft.text == MINE)


async def test_values_and_files_are_offered(mine, home):
    rows = home / "rows"
    (rows / "deep").mkdir(parents=True)
    for name in ("train.parquet", "test.parquet"):
        (rows / name).write_text("")
    async with edit(field="actor.ppo_mini_batch_size") as user:
        box = user.one("ValueBox")
        await user("enter")
        assert box.choices == ["1", "2", "4", "8", "16", "32", "64"]
        await user("down", "enter", lambda: value(user, "actor.ppo_mini_batch_size") == 64)
        await user("slash", *"data.train", "enter", lambda: chosen(user) == "data.train", "enter")
        box.query_one("Input").value = f"{home}/ro"
        await user()
        await user("tab")
        assert box.query_one("Input").value == f"{rows}/"
        assert [Path(name).name for name in box.choices] == ["deep", "test.parquet", "train.parquet"]
        await user(*"tr", "tab", "enter", lambda: value(user, "data.train") == f"{rows}/train.parquet")


async def test_a_field_is_found_by_typing(mine):
    warmups = ("actor.lr_warmup_steps", "critic.lr_warmup_steps")
    async with edit() as user:
        lines = user.one("FormLines")
        await user("slash", *"steps", lambda: chosen(user) == "trainer.steps", "escape")
        await user("slash", *"warmup_steps", "enter")
        assert chosen(user) in warmups and "/warmup_steps" in head(user)
        assert all("warmup" in key for key in lines.keys if not key.startswith("#"))
        await user("escape", lambda: "/warmup" not in head(user))
        assert {"algorithm", "model.path"} <= set(lines.keys) and chosen(user) in warmups
        await user("a", "f")
        assert "actor.lr_warmup_steps" not in lines.keys


async def test_a_key_without_a_field_is_added_if_it_can_be_one(mine):
    async with edit() as user:
        area, side, box = user.one("FormArea"), user.one("EditorSide"), user.one("ValueBox")
        await checked(user)
        await user(lambda: area.verl == side.verl)
        area.verl = ("0.7.1", None)  # the keys offered are those of the veRL that is there: 0.8 has none of these
        await user("a", "a", *"data.sampler.class_pa", lambda: box.choices == ["data.sampler.class_path"], "escape")
        area.verl = side.verl
        await user(lambda: not box.is_open, "a", "a", *"trian.x", "enter")
        assert box.is_open and "is not a preset field or a veRL key" in text_of(user, "#value-note")
        box.query_one("Input").value = ""
        await user(*"data.see")
        assert text_of(user, "#value-note").strip() == ""  # it may become data.seed
        await user("enter")
        assert box.is_open and "did you mean 'data.seed'" in text_of(user, "#value-note")
        await user("escape", lambda: not box.is_open)
        assert user.screen.draft.text == MINE
        await user("a", "a", *"rollout.over_sa", "tab")
        await user("enter", lambda: box.query_one("Input").placeholder.startswith("value of"), *"0.5", "enter")
        await user(lambda: user.screen.draft.changed)
        key = "actor_rollout_ref.rollout.over_sample_rate"
        assert user.screen.draft.value(("overrides", key)) == 0.5
        await user(lambda: chosen(user) == f"overrides.{key}")


async def test_what_is_wrong_is_shown_found_fixed_and_taken_out(mine):
    mine.write_text("extends: toy-cpu\nactr:\n  lr: 1\nactor:\n  lr: fast\n  lrr: 2\ntrainer: 5\n")
    async with edit(field="actor.lr") as user:
        lines = user.one("FormLines")
        assert lines.keys[lines.keys.index("actor.lr") + 1] == "!actor.lr" and "has errors" in head(user)
        await user("enter", *"1e-4", "enter", lambda: value(user, "actor.lr") == 1e-4)
        await checked(user)
        wrong = {"actr", "actor.lrr", "trainer"}
        await user(lambda: {each.keys[0] for each in user.one("EditorSide").findings} == wrong)
        await user("tab", "tab", "enter", lambda: chosen(user) == "actr")  # the first finding, and its line
        assert "actr" in lines.keys and "!actr" in lines.keys
        await user("delete", lambda: chosen(user) == "actor.lrr")  # the cursor stays where it is
        await user("delete", lambda: chosen(user) == "trainer", "delete")
        await user(lambda: user.screen.draft.text == "extends: toy-cpu\nactor:\n  lr: 1e-4\n")


async def test_findings_are_fixed_and_the_panels_follow_the_draft(mine):
    mine.write_text("extends: gsm8k-0.5b-24gb\nrollout:\n  tensor_model_parallel_size: 2\n")
    async with edit(size=LARGE) as user:
        await checked(user)
        side = user.one("EditorSide")
        assert any(finding.level == "error" for finding in side.findings), side.findings
        fixable = next(finding for finding in side.findings if finding.change)
        await user("tab")
        assert user.one("Findings").has_focus
        while user.one("Findings").chosen != fixable:
            await user("down")
        await user("F", lambda: user.screen.draft.changed, lambda: fixable not in side.findings)
    mine.write_text(MINE)
    async with edit(field="actor.ppo_mini_batch_size", size=LARGE) as user:
        assert "2 mini-batches of 32 prompts" in text_of(user, "#plan")
        await user("left", lambda: "4 mini-batches of 16 prompts" in text_of(user, "#plan"), "tab", "tab")
        await user(lambda: "actor.ppo_mini_batch_size" in text_of(user, "#changes"), "tab")
        await user(lambda: "ppo_mini_batch_size=16" in user.one("CommandText").text)


async def test_changes_against_the_last_run(mine, make):
    async with edit() as user:
        await user("c", lambda: "No run of mine" in user.message)
        preset = load("mine", ["actor.lr=9e-4", "env.A=b"]).snapshot()
        run = RunDir(make.run(name="mine", state=make.ended("finished", step=80), preset=preset))
        await user("c", lambda: f"compared with run {run.id}" in text_of(user, "#changes"))
        assert "9e-4 to 2e-4" in text_of(user, "#changes") and "env.A" in text_of(user, "#changes")
        await user("c", lambda: "compared with toy-cpu" in text_of(user, "#changes"))


async def test_watching_changes_nothing(mine):
    async with edit(field="actor.lr", read_only=True) as user:
        await user("right", "delete", "w", "enter", lambda: "Read-only" in user.message)
        assert user.screen.draft.text == MINE


async def test_a_file_that_cannot_be_read_is_not_changed(mine):
    mine.write_text("actor: {")
    async with edit() as user:
        await user("a", "a", lambda: "Cannot read the file" in user.message)
        assert not user.one("ValueBox").is_open and mine.read_text() == "actor: {"


async def test_e_on_a_run_and_on_a_preset(make, home):
    run = RunDir(make.run(state=make.ended("failed", step=3), preset=load("toy-cpu").snapshot()))
    async with make.open(run.path) as user:
        await user("e", "EditorScreen")
        assert user.screen.draft.run == run.id
        await user("escape", "DashboardScreen", "escape", "RunsScreen", "...")  # nothing was changed
        await user(lambda: user.screen.presets, "end", "e", "EditorScreen")
        assert user.screen.draft.run is None


@pytest.mark.slow
def test_without_a_terminal_one_sentence_says_so(mine):
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


async def test_alerts_are_found_edited_with_checks_and_tested(mine, home):
    got = home / "got.json"
    async with edit() as user:
        await user("slash", *"alert", "enter", lambda: chosen(user) == "health.on_alert")
        assert {"health.alert_to", "health.notify"} <= set(user.one("FormLines").keys)
        await user("enter", *f"tee {got}", "enter", lambda: value(user, "health.on_alert") == ["tee", str(got)])
        await user("slash", *"stop_on", "enter", "enter", *"KL-1, NUM9", "enter")
        await user(lambda: "health.stop_on: 'NUM9' is not allowed" in text_of(user, "#value-note"))
        await user("backspace", "backspace", "tab", "enter", lambda: value(user, "health.stop_on") == ["KL-1", "NUM-1"])
        await user("a", "t")
        await user(
            lambda: "on_alert: sent to tee" in "".join(str(each.content) for each in user.screen.query("Static"))
        )
        assert '"rule":"KL-1"' in got.read_text()
