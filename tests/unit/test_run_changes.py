"""The settings in which a run differs from its preset, or from the other runs of it."""

import itertools
from pathlib import Path

import pytest
from commands import call

from launcher.preset.files import load
from launcher.record.events import Action, read_kind
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir, create
from launcher.runs.act.start import note_origin
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.run_settings import asked_words, changes, differs, titles

pytestmark = pytest.mark.usefixtures("home")


def toy(*settings: str, name: str = "toy-cpu") -> RunInfo:
    return RunInfo(name=name, preset=load("toy-cpu", settings).snapshot(), versions={"verl": str(len(settings))})


def keys(*infos: RunInfo) -> list[dict[str, object]]:
    return [{edit.key: (edit.before, edit.now) for edit in edits} for edits in changes(infos)]


def test_a_run_differs_from_its_preset_in_what_was_set_over_it() -> None:
    assert keys(toy()) == [{}]
    assert keys(toy("actor.lr=1e-5")) == [{"actor.lr": (0.0003, 1e-5)}]


def test_what_all_runs_of_a_preset_share_is_left_out() -> None:
    found = keys(toy("trainer.steps=5", "actor.lr=1e-5"), toy("trainer.steps=5"))
    assert found == [{"actor.lr": (0.0003, 1e-5)}, {}]


def test_runs_of_other_presets_do_not_count() -> None:
    assert keys(toy("trainer.steps=5"), toy("trainer.steps=5", name="gone")) == [{"trainer.steps": (60, 5)}, {}]


def test_without_its_preset_a_run_is_compared_with_the_oldest_one() -> None:
    assert keys(toy("actor.lr=1e-5", name="gone"), toy(name="gone")) == [{"actor.lr": (0.0003, 1e-5)}, {}]
    assert keys(RunInfo(name="toy-cpu")) == [{}]


def test_runs_are_named_with_what_differs(home: Path) -> None:
    runs = []
    for hex_id, settings in (("aaa", ["actor.lr=0.1", "critic.lr=0.2"]), ("bbb", [])):
        run = RunDir(home / "runs" / f"{hex_id}-toy-cpu")
        run.path.mkdir(parents=True)
        toy(*settings).write(run.run_yaml)
        (run.path / "state.json").write_text('{"schema": 1, "state": "finished"}')
        runs.append(run)
    assert titles(runs) == {"aaa-toy-cpu": "aaa-toy-cpu lr=0.1 critic.lr=0.2", "bbb-toy-cpu": "bbb-toy-cpu"}
    listed = call(["list"])[0].decode()
    assert "aaa-toy-cpu lr=0.1 critic.lr=0.2 " in listed and "bbb-toy-cpu  " in listed


def test_settings_are_named_as_what_differs() -> None:
    given = ["trainer.steps=5", "actor.lr=2e-3", "kl.coef=1"]
    assert asked_words(given) == "lr=0.002 kl.coef=1 steps=5"
    for order in itertools.permutations(given):
        assert asked_words(order) == differs(changes([toy(*order), toy()])[0]), "a label is the same after the start"


def test_a_run_that_was_edited_out_of_another_tells_which_and_what_differs() -> None:
    earlier, run = create("toy-cpu"), create("toy-cpu")
    preset = load("toy-cpu", ["env.A=b"]).snapshot()
    RunInfo(earlier.id, preset=preset, versions={"torch": "2"}).write(earlier.run_yaml)
    after = Parent(earlier).origin(load("toy-cpu", ["actor.lr=1e-4"]))
    assert after == Origin(earlier.id, (Edit("actor.lr", 3e-4, 1e-4), Edit("env.A", "b", None)))
    note_origin(run, after)
    told = (f"after {earlier.id}:", "actor.lr=1e-4", "env.A=null")
    assert read_kind(run.events, Action) == [Action("relaunch", settings=told, after=earlier.id)]
