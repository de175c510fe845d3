"""A preset that is being edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import caches
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tables import tabled

from launcher.core.errors import UserError
from launcher.preset.draft import ChangedOnDisk, Draft, free_name
from launcher.preset.drafts import draft_of_run, keep_unsaved, open_draft, restore_unsaved
from launcher.preset.field_values import field_named, typed, where_of
from launcher.preset.files import load, shipped
from launcher.record.info import RunInfo
from tui.kit.actions.preset_saving import editor_command

MINE = """\
# my first try
extends: toy-cpu
actor:
  lr: 2e-4              # lower than the toy's

data:
  train: rows/train.parquet   # relative
overrides:
  +algorithm.extra: 1
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    caches.share(tmp_path, shared)
    return tmp_path


@pytest.fixture
def mine(home: Path) -> Path:
    path = home / "presets" / "mine.yaml"
    path.parent.mkdir()
    path.write_text(MINE)
    return path


LR = ("actor", "lr")


def test_a_value_is_the_files_then_the_parents_then_the_default(mine: Path) -> None:
    draft = open_draft("mine")
    assert draft.value(LR) == 2e-4
    assert draft.value(("data", "train")) == "rows/train.parquet"
    assert draft.value(("data", "train_batch_size")) == 64
    assert draft.value(("trainer", "max_actor_ckpt_to_keep")) == 3
    assert draft.value(("overrides", "algorithm.extra")) == 1
    assert LR in draft.reading.layers[0] and LR in draft.reading.base


def test_set_unset_undo_redo_and_save_keep_every_other_line(mine: Path) -> None:
    draft = open_draft("mine")
    draft.set_text(LR, "5e-5")
    assert draft.changed and draft.changed_fields() == {LR}
    draft.unset(LR)
    assert draft.value(LR) == 3e-4 and "actor:" not in draft.text
    assert draft.undo() and draft.value(LR) == 5e-5
    draft.save()
    assert mine.read_text() == MINE.replace("2e-4", "5e-5") and not draft.changed
    assert draft.undo() and draft.text == MINE and draft.changed
    assert not draft.undo()
    assert draft.redo() and not draft.changed
    draft.set(("actor", "shuffle"), True)
    assert load("mine").preset.actor.shuffle is None  # not saved
    assert draft.loaded().preset.actor.shuffle is True


@tabled
def test_what_cannot_be_is_said_while_it_is_typed_and_never_set(mine: Path, name: str, text: str, why: str) -> None:
    import re

    draft, where = open_draft("mine"), where_of(name)
    error = draft.check_text(where, text)
    assert error is not None and re.search(why, error), error
    with pytest.raises(UserError):
        draft.set_text(where, text)
    assert draft.text == MINE


def test_texts_mean_what_the_field_takes() -> None:
    assert typed(("trainer", "experiment"), "1e5") == "1e5"
    assert typed(("trainer", "experiment"), "null") is None
    assert typed(("description",), "a: b # c") == "a: b # c"
    assert typed(("trainer", "loggers"), "wandb, mlflow") == ["wandb", "mlflow"]
    assert typed(("data", "train"), "[a, b]") == ["a", "b"]
    assert typed(("env", "A"), "1") == "1"
    assert typed(("overrides", "x"), "{a: 1}") == {"a": 1}


def test_the_line_of_a_value(mine: Path) -> None:
    draft = open_draft("mine")
    assert draft.line(LR) == 4 and draft.line(("overrides", "algorithm.extra")) == 9
    assert draft.line(("critic", "lr")) == 1
    draft.replace("actor: [1,\nlr: 2\n")
    assert draft.line(LR) >= 2


def test_both_spellings_of_a_value_are_one(mine: Path) -> None:
    mine.write_text("overrides:\n  actor_rollout_ref.actor.optim.lr: 1e-5  # by its key\n")
    draft = open_draft("mine")
    assert draft.value(LR) == 1e-5
    draft.set(LR, 2e-5)
    assert draft.text == "overrides:\n  actor_rollout_ref.actor.optim.lr: 2e-5  # by its key\n"
    draft.unset(LR)
    assert draft.value(LR) is None and load("mine").preset.actor.lr == 1e-5


def test_a_key_without_a_field_is_added_with_its_plus(mine: Path) -> None:
    draft = open_draft("mine")
    where = draft.add("+actor_rollout_ref.model.override_config.foo", [0.9, 0.95])
    assert (
        draft.value(where) == [0.9, 0.95]
        and "  +actor_rollout_ref.model.override_config.foo: [0.9, 0.95]" in draft.text
    )
    assert draft.add("actor_rollout_ref.actor.optim.lr", 1e-5) == LR and draft.value(LR) == 1e-5
    with pytest.raises(UserError, match="not a preset field or a veRL key"):
        draft.add("nothing.like.this", 1)


def test_a_shipped_preset_becomes_one_of_yours_when_it_is_saved(home: Path) -> None:
    before = shipped()["toy-cpu"].read_bytes()
    draft = open_draft("toy-cpu")
    assert draft.is_new and not draft.changed and not draft.path.exists()
    draft.set(LR, 1e-4)
    for save in (draft.save, lambda: draft.save(over=True), lambda: draft.save_as("toy-cpu")):
        with pytest.raises(UserError, match=r"'toy-cpu' is the name of a shipped preset; .*toy-cpu-copy"):
            save()
    assert draft.needs_name and draft.path.name == "toy-cpu.yaml" and not (home / "presets").exists()
    draft.save_as(free_name("toy-cpu"))
    assert load("toy-cpu-copy").origin == "user" and load("toy-cpu-copy").preset.actor.lr == 1e-4
    assert load("toy-cpu").origin == "shipped" and shipped()["toy-cpu"].read_bytes() == before
    assert free_name("toy-cpu") == "toy-cpu-copy-2" and free_name("other") == "other"


def test_a_draft_of_a_run_says_exactly_what_the_run_was_started_with(home: Path) -> None:
    first = load("toy-cpu", ["actor.lr=1e-4", "env.A=b", "health.rules.KL-1.warn=0.5"])
    draft = draft_of_run(RunInfo("7f3a-toy", "toy-cpu", preset=first.snapshot()))
    assert draft.run == "7f3a-toy" and draft.path.name == "toy-cpu-7f3a.yaml"
    assert draft.loaded().preset == first.preset
    with pytest.raises(UserError, match="not started by ppo-tui"):
        draft_of_run(RunInfo("x", "imported"))


def test_what_another_program_wrote_is_never_lost_silently(mine: Path) -> None:
    draft = open_draft("mine")
    draft.set(LR, 1e-4)
    mine.write_text("description: theirs\n")
    assert draft.stale() == "changed"
    with pytest.raises(ChangedOnDisk):
        draft.save()
    assert mine.read_text() == "description: theirs\n"
    draft.reload()
    assert draft.value(("description",)) == "theirs" and not draft.stale()
    assert draft.undo() and draft.value(LR) == 1e-4
    draft.save()
    assert load("mine").preset.actor.lr == 1e-4


def test_a_file_that_is_gone_is_said_to_be(mine: Path) -> None:
    draft = open_draft("mine")
    mine.unlink()
    assert draft.stale() == "removed"
    with pytest.raises(ChangedOnDisk, match="was removed by another program"):
        draft.save()
    draft.save(over=True)
    assert mine.read_text() == draft.text and not draft.stale()


def test_a_file_made_meanwhile_is_not_overwritten(home: Path) -> None:
    draft = draft_of_run(RunInfo("7f3a-toy", "toy-cpu", preset=load("toy-cpu").snapshot()))
    draft.path.parent.mkdir()
    draft.path.write_text("description: somebody was faster\n")
    with pytest.raises(ChangedOnDisk):
        draft.save()


def test_a_copy_of_an_imported_preset_does_not_say_that_it_was_imported(mine: Path) -> None:
    mine.write_text(f"# Imported as mine.\n# Note: kept\n{mine.read_text()}")
    draft = open_draft("mine")
    draft.save_as("other")
    assert (mine.parent / "other.yaml").read_text().startswith("# Note: kept\n")


def test_save_as_keeps_the_meaning_of_relative_paths(mine: Path, home: Path) -> None:
    draft = open_draft("mine")
    draft.save_as("other")
    assert draft.path == home / "presets" / "other.yaml" and "train: rows/train.parquet " in draft.text
    draft.save_as(str(home / "elsewhere" / "third.yaml"))
    assert load(str(draft.path)).preset.data.train == str(mine.parent / "rows" / "train.parquet")
    assert mine.read_text() == MINE
    with pytest.raises(UserError, match="already exists"):
        draft.save_as("mine")
    with pytest.raises(UserError, match="not a valid preset name"):
        draft.save_as("x y")


def test_a_broken_file_is_kept_with_its_line_and_reason(mine: Path) -> None:
    mine.write_text("actor: [1,\nlr: 2\n")
    draft = open_draft("mine")
    assert draft.reading.problem and "line" in draft.reading.problem and draft.text == "actor: [1,\nlr: 2\n"
    draft.replace("actor:\n  lr: fast\n  lrr: 1\n")
    assert draft.reading.problem is None and not draft.changed_fields()  # nobody knows what it was
    errors = draft.reading.errors
    assert "allowed" in str(errors[LR]) and "line 3" in str(errors["actor", "lrr"])
    draft.unset(("actor", "lrr"))
    draft.set(LR, 1e-6)
    assert not draft.reading.errors and draft.text == "actor:\n  lr: 1e-6\n"


def test_a_draft_survives_a_screen_that_went_away(mine: Path) -> None:
    draft = open_draft("mine")
    keep_unsaved(draft)
    assert not restore_unsaved(open_draft("mine"))
    draft.set(LR, 1e-5)
    keep_unsaved(draft)
    again = open_draft("mine")
    assert restore_unsaved(again) and again.value(LR) == 1e-5 and again.undo() and again.text == MINE
    mine.write_text("description: theirs\n")
    assert not restore_unsaved(open_draft("mine"))  # what was changed is not there any more
    mine.write_text(MINE)
    draft.save()
    keep_unsaved(draft)
    assert not restore_unsaved(open_draft("mine"))


@tabled
def test_no_text_is_too_odd_to_be_opened(mine: Path, text: str) -> None:
    mine.write_text(text)
    draft = open_draft("mine")
    reading = draft.reading
    assert draft.text == text and (reading.problem or reading.errors or not reading.layers[0])


def test_a_parent_that_is_gone_is_an_error_of_extends(mine: Path) -> None:
    mine.write_text("extends: nobody\nactor:\n  lr: 1e-6\n")
    reading = open_draft("mine").reading
    assert "no preset named 'nobody'" in reading.errors[("extends",)] and LR in reading.layers[0]


SETTABLE = st.sampled_from(["actor.lr", "critic.lr", "kl.coef", "rollout.temperature"])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), SETTABLE, st.sampled_from([1e-6, 0.5, 1])),
        st.tuples(st.just("set"), st.just("env.A"), st.text("ab #:'\"", max_size=5)),
        st.tuples(st.just("unset"), st.one_of(SETTABLE, st.just("env.A")), st.none()),
        st.tuples(st.sampled_from(["undo", "redo", "save"]), st.just(""), st.none()),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=30, phases=(Phase.generate,))
@given(actions=ACTIONS, name=st.sampled_from(["gsm8k-0.5b-24gb", "toy-cpu"]))
def test_comments_survive_any_sequence(home: Path, actions: list[tuple[str, str, Any]], name: str) -> None:
    text = shipped()[name].read_text()
    path = home / "any.yaml"
    path.write_text(text)
    draft = Draft(path, text, on_disk=text)
    touched: set[str] = set()
    for action, field, value in actions:
        if action == "set":
            draft.set(where_of(field), value)
            assert draft.value(where_of(field)) == value
            touched.add(field.rpartition(".")[2])
        elif action == "unset":
            draft.unset(where_of(field))
            touched.add(field.rpartition(".")[2])
        else:
            getattr(draft, action)()
    assert draft.reading.problem is None and not draft.reading.errors
    lines = set(draft.text.splitlines())
    for line in text.splitlines():
        assert line in lines or line.strip().partition(":")[0] in {*touched, "kl", "env"}
    assert draft.loaded().preset is not None
    while draft.undo():
        pass
    assert draft.text == text


def test_an_empty_file_is_what_its_draft_is_compared_with(tmp_path):
    draft = Draft(tmp_path / "mine.yaml", "algorithm: ppo\n", on_disk="")
    assert draft.against() == ({}, "the file") and draft.changed_fields() == {("algorithm",)}


@pytest.mark.parametrize(
    ("text", "names", "renamed"),
    [
        ("actor: {lrr: 1e-5}\n", ("actor.lrr", "actor.lr"), {("actor", "lr"): 1e-5}),
        (
            "overrides:\n  actor_rollout_ref.actor.optim.lrr: 1e-5  # mine\nkl:\n  coef: 0.1\n",
            ("actor_rollout_ref.actor.optim.lrr", "actor_rollout_ref.actor.optim.lr"),
            {("actor", "lr"): 1e-5, ("kl", "coef"): 0.1},
        ),
    ],
)
def test_a_mistyped_name_is_renamed_in_one_change(tmp_path, text, names, renamed):
    draft = Draft(tmp_path / "mine.yaml", text, on_disk=text)
    draft.rename(*names)
    assert {where: draft.value(where) for where in renamed} == renamed and not draft.reading.errors
    assert draft.undo() and draft.text == text


def test_a_field_is_named_by_its_name_or_its_key() -> None:
    assert field_named("actor.lr") == field_named("+actor_rollout_ref.actor.optim.lr") == "actor.lr"
    assert field_named("actor_rollout_ref.actor.grad_clip") == "actor.clip_grad"  # until 0.8
    with pytest.raises(UserError, match=r"did you mean 'actor\.lr'"):
        field_named("actor.lrr")


def test_the_users_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "code --wait")
    monkeypatch.delenv("VISUAL", raising=False)
    assert editor_command() == ["code", "--wait"]
    monkeypatch.delenv("EDITOR")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="set EDITOR"):
        editor_command()
