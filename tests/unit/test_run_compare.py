"""Runs side by side: facts from real logs, differences from fabricated presets."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quoted import quoted

from launcher.compare.comparison import (
    Compared,
    RunResults,
    band,
    difference_rows,
    fact_rows,
    find_runs,
    groups,
    notes,
    summary,
)
from launcher.core.errors import UserError
from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from launcher.preset.files import load
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import Action, EventLog
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.state import RunState
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.run_settings import Difference, differences
from launcher.runs.watch.steps import steps

pytestmark = pytest.mark.usefixtures("home")

LOGS = Path(__file__).parents[1] / "data" / "logs"


def facts(run: RunDir) -> RunResults:
    compared = Compared(run)
    compared.poll()
    return compared.facts()


def imported(*names: str) -> RunDir:
    (run,) = import_logs([str(LOGS / f"{name}.log.gz") for name in names])
    return run


def test_the_facts_of_an_imported_run_are_those_of_its_steps() -> None:
    run = imported("kl-blowup")
    found, records = facts(run), [record for _, record in steps(run)]
    scores = [record.data["critic/score/mean"] for record in records if "critic/score/mean" in record.data]
    last = records[-1].data
    assert (found.state, found.outcome, found.verdict) == ("imported", "stopped", "CRITICAL")
    assert (found.step, found.total) == (27, 58)
    assert (found.best_score, found.last_score) == (max(scores), scores[-1])
    assert (found.kl, found.kl_key) == (last["actor/reward_kl_penalty"], "actor/reward_kl_penalty")
    assert (found.entropy, found.throughput) == (last["actor/entropy"], last["perf/throughput"])
    taken = sum(record.data.get("timing_s/step", 0.0) for record in records)
    assert found.duration is not None and taken <= found.duration < 1.2 * taken


@pytest.mark.slow
def test_the_time_of_all_attempts_counts_and_the_pause_between_them_does_not() -> None:
    alone, resumed = facts(imported("learning")).duration, facts(imported("learning", "resume")).duration
    assert alone is not None and resumed is not None and alone < resumed < 2 * alone


def test_a_run_of_ours_took_from_its_launch_to_its_exit() -> None:
    run = create("ours")
    attempt = run.add_attempt()
    LaunchRecord(created=100.0).write(attempt.launch)
    RunState("finished", attempt=1).write(run.state)
    attempt.steps.write_bytes(StepRecord(1, 150.0, None, {"timing_s/step": 10.0}).to_line())
    Exit(0, t=190.0).write(attempt.exit)
    assert facts(run).duration == 90.0
    attempt.exit.unlink()  # lost: the last step is the last sign of it
    assert facts(run).duration == 50.0
    RunState("queued", attempt=1, updated=time.time()).write(run.state)
    assert facts(run).duration == pytest.approx(time.time() - 100.0, abs=5)


def test_a_run_without_a_step_has_no_figures() -> None:
    run = create("empty")
    RunState("failed", verdict="WARM").write(run.state)
    found = facts(run)
    assert found.state == "failed" and found.duration is None and found.step is None
    assert {found.best_score, found.last_score, found.kl, found.entropy, found.throughput} == {None}
    assert all("None" not in cell for row in fact_rows([found]) for cell in row)


def test_a_nan_is_told_and_is_not_the_best() -> None:
    store = SeriesStore()
    for step, score in enumerate((0.25, 0.5, math.nan), 1):
        store.add(StepRecord(step, 0.0, None, {"critic/score/mean": score, "actor/kl_loss": math.inf}))
    found = summary("7f3a-x", RunInfo(name="x"), RunState("running"), store, 3.0)
    assert found.best_score == 0.5
    assert found.to_json() | {"last_score": "nan", "kl": "inf", "name": "x"} == found.to_json()


def test_kl_figures_of_different_kinds_are_named() -> None:
    ours, other = facts(imported("kl-blowup")), facts(imported("grpo"))
    (row,) = [row for row in fact_rows([ours, other]) if row[0] == "KL key"]
    assert row[1:] == ["actor/reward_kl_penalty", "actor/kl_loss"]
    without = summary("x", RunInfo(), RunState("running"), SeriesStore(), None)
    assert not [row for row in fact_rows([ours, ours, without]) if row[0] == "KL key"]


def test_settings_of_a_resume_are_compared_and_told() -> None:
    runs = [create(name) for name in ("plain", "resumed", "back")]
    preset = load("toy-cpu", ["actor.lr=1e-6"]).snapshot()
    for run in runs:
        RunInfo(run.id, "toy-cpu", preset=preset).write(run.run_yaml)
        RunState("finished").write(run.state)
    for run, all_settings in zip(runs[1:], ([("actor.lr=2e-6",)], [("actor.lr=3e-6",), ()]), strict=True):
        for given in all_settings:
            EventLog(run.events).add(Action("resume", step=6, settings=given))
    compared = [Compared(run) for run in runs]
    assert differences([each.info for each in compared]) == [Difference("actor.lr", [1e-6, 2e-6, 1e-6])]
    assert [quoted(note) for note in notes(compared)] == [[runs[1].id, "actor.lr=2e-6"]]
    EventLog(runs[1].events).add(Action("resume", settings=("no.such=1",)))
    with runs[1].events.open("ab") as file:
        file.write(b'{"schema":1,"t":9,"kind":"action","verb":"resume","set')
    assert Compared(runs[1]).info.preset == preset  # of another ppo-tui: what was asked for at first


def test_of_another_frameworks_run_only_settings_that_both_have_are_compared() -> None:
    log = str(LOGS.parent / "frameworks" / "slime-collapse.log.gz")
    runs = [
        *import_logs([log], {"actor_rollout_ref.actor.optim.lr": 2e-6, "actor_rollout_ref.rollout.n": 8}),
        *import_logs([log], {"actor_rollout_ref.actor.optim.lr": 3e-6, "data.max_response_length": 9}),
        create("ours"),
    ]
    ours = load("toy-cpu", ["actor.lr=1e-6", "data.max_response_length=32"]).snapshot()
    RunInfo(runs[2].id, "toy-cpu", preset=ours).write(runs[2].run_yaml)
    RunState("finished").write(runs[2].state)

    compared = [Compared(run) for run in runs]

    assert differences([each.info for each in compared]) == [Difference("actor.lr", [2e-6, 3e-6, 1e-6])]
    assert groups([each.info for each in compared]) == [0, 1, 2]
    assert [note.partition(" is of another")[0] for note in notes(compared)] == [f"run {run.id}" for run in runs[:2]]


def info(preset: dict[str, Any], **versions: str) -> RunInfo:
    return RunInfo(name="x", preset=preset, versions=versions)


def test_only_settings_and_versions_that_differ_are_listed() -> None:
    overrides = {"trainer.balance_batch": True, "+x.y": {"z": 1}}
    actor = {"lr": 1e-6, "clip_ratio": 0.2}
    first = info({"description": "a", "actor": actor, "kl": {"coef": 0.001}, "overrides": overrides, "env": {}})
    other = {"description": "b", "actor": actor | {"lr": 5e-6}}
    other["overrides"] = overrides | {"trainer.balance_batch": False}
    first, second = replace(first, versions={"verl": "0.9.1", "torch": "2"}), info(other, verl="0.9.0", torch="2")
    assert differences([first, second]) == [
        Difference("actor.lr", [1e-6, 5e-6]),
        Difference("kl.coef", [0.001, None]),
        Difference("trainer.balance_batch", [True, False]),
        Difference("versions.verl", ["0.9.1", "0.9.0"]),
    ]
    assert differences([second, first])[1] == Difference("kl.coef", [None, 0.001])
    assert differences([first, first]) == []
    unset = info({"actor": {"lr": 1e-6, "clip_ratio": None}})
    assert differences([unset, info({"actor": {"lr": 1e-6}})]) == []  # both have veRL's own default


def test_a_run_without_a_preset_differs_in_no_setting() -> None:
    a, b = info({"actor": {"lr": 1e-6}}), info({"actor": {"lr": 2e-6}})
    bare = RunInfo(name="imported")
    assert differences([bare, a]) == differences([bare, bare]) == []
    assert differences([a, bare, b]) == [Difference("actor.lr", [1e-6, None, 2e-6])]


def test_runs_written_to_disk_keep_their_differences() -> None:
    runs = [create("x"), create("x")]
    for run, given in zip(runs, ([], ["actor.lr=1e-5", "trainer.steps=3"]), strict=True):
        info(load("toy-cpu", given).snapshot()).write(run.run_yaml)
    infos = [run.read_info() for run in find_runs([run.id for run in runs])]
    found = {each.key: each.values for each in differences(infos)}
    assert found["actor.lr"] == [3e-4, 1e-5] and found.keys() == {"actor.lr", "trainer.steps"}
    with pytest.raises(UserError, match="listed twice"):
        find_runs([runs[0].id, runs[0].id])


def test_values_are_written_as_in_a_preset() -> None:
    rows = difference_rows([], [Difference("actor.lr", [1e-06, 0.0003]), Difference("x", [True, None])])
    assert rows[1:] == [["actor.lr", "1e-6", "3e-4"], ["x", "true", "–"]]


def test_runs_that_differ_in_seeds_alone_are_one_group() -> None:
    def run(lr: float, seed: int) -> RunInfo:
        return info({"actor": {"lr": lr, "data_loader_seed": seed}, "data": {"seed": seed}})

    assert groups([run(1e-6, 1), run(3e-6, 1), run(1e-6, 2), RunInfo(), RunInfo()]) == [0, 1, 0, 2, 3]


def test_a_band_has_the_steps_that_all_runs_have() -> None:
    several = []
    for values in ({1: 1.0, 2: 2.0, 3: math.nan, 4: 4.0}, {1: 3.0, 2: 2.0, 3: 1.0}):
        several.append(found := Series())
        for step, value in values.items():
            found.append(step, value)
    shown = band(several)
    assert list(shown.mean.steps) == [1, 2]
    assert [list(each.values) for each in shown] == [[2.0, 2.0], [1.0, 2.0], [3.0, 2.0]]
