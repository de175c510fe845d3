"""Trials of fixes: a player of recorded steps in veRL's place, below real supervisors."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from driven import driven
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_for, wait_until

from launcher.compare.trial_runs import TrialPlan, carry_out, enqueue, plan, start_apart
from launcher.compare.trial_verdicts import trials_of, waiting_trials
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.health.catalogue import rules
from launcher.metrics.records import StepRecord
from launcher.preset.files import load, restore
from launcher.preset.settle import configuration, moved, settings_of, settle
from launcher.record import queued
from launcher.record.events import Action, EventLog, LevelChange, read_events
from launcher.record.fix import Fix
from launcher.record.info import Origin, RunInfo
from launcher.record.layout import RunDir, appearing, create
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.act import queue_runner as going
from launcher.runs.act.fork import planned_fork
from launcher.runs.watch.checkpoints import TRACKER, checkpoints
from launcher.runs.watch.history import Onset
from launcher.runs.watch.last_change import last_change
from launcher.runs.watch.log import Log
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.steps import earlier_steps, steps

pytestmark = pytest.mark.usefixtures("home")

BLOWUP = Path(__file__).parents[1] / "data" / "logs" / "kl-blowup.log.gz"  # KL-1 is WARN from step 7 on
DRIVER = """
import json, pathlib, sys
for step, data in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    print(f"step:{step} - " + " - ".join(f"{key}:{value!r}" for key, value in data.items()), flush=True)
if len(sys.argv) > 2:
    sys.exit(sys.argv[2])
"""
FAILED = """Error executing job with overrides: ['actor_rollout_ref.actor.fsdp_config.model_dtype=bf8']
Traceback (most recent call last):
  File "/opt/lib/python3.12/site-packages/verl/workers/engine/fsdp/transformer_impl.py", line 8, in _build_module
    torch_dtype = PrecisionType.to_dtype(torch_dtype)
  File "/opt/lib/python3.12/site-packages/verl/utils/torch_dtypes.py", line 69, in to_dtype
    raise RuntimeError(f"unexpected precision: {precision}")
RuntimeError: unexpected precision: bf8"""
Figures = list[tuple[int, dict[str, float]]]


def recorded(first: int, last: int) -> Figures:
    """Steps of the run that blew up."""
    found = [record for _, record in steps(Log(BLOWUP, BLOWUP)) if first <= record.step <= last]
    return [(each.step, each.data) for each in found]


def healthy(first: int, last: int, reward: float = 0.0) -> Figures:
    """The steps before its trouble, over and over."""
    early = [data for _, data in recorded(1, 4)]
    found = [(step, dict(early[step % 4])) for step in range(first, last + 1)]
    for _, data in found:
        data["critic/score/mean"] += reward
    return found


def played(settings: Sequence[str], figures: Figures, after: Origin | None = None, failure: str = "") -> RunDir:
    """A run whose driver prints these steps and a failure; only one that is no trial has checkpoints."""
    loaded, run = restore("toy", load("toy-cpu").snapshot(), settings), create("toy")
    (run.path / "figures.json").write_text(json.dumps(figures))
    for step in (4, 8, 12) if after is None or after.trial is None else ():
        (run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
        (run.checkpoints / TRACKER).write_text("12")
    return driven(
        *(DRIVER, str(run.path / "figures.json"), *filter(None, [failure])),
        **{"run": run, "name": "toy", "preset": loaded.snapshot(), "on_cpu": True, "after": after},
        keys={"actor_rollout_ref.actor.use_kl_loss": False},
        resume_step=after.step if after else None,
    )


@pytest.fixture
def parent() -> RunDir:
    """The run that blew up, with checkpoints at 4, 8 and 12 of 27 steps."""
    run = played(["trainer.steps=27"], recorded(0, 27))
    wait_for(run, lambda state: not state.live)
    return run


def beginning(make: Callable[[Sequence[str], int, int], Figures]) -> Callable[..., RunDir]:
    """Starts a trial at once, with made-up steps."""

    def begin(planned: TrialPlan, changes: Sequence[str], *, force: bool) -> RunDir:
        settings = [*changes, f"trainer.steps={planned.until}"]
        parent = Parent(planned.run)
        after = parent.origin(parent.restored(settings), planned.step, planned.onset.rule, planned.undoes(changes))
        return played(settings, make(settings, planned.step + 1, planned.until), after)

    return begin


@pytest.mark.slow
def test_the_supervisor_keeps_the_checkpoint_from_before_the_flag(parent: RunDir) -> None:
    onset = Parent(parent).onset()
    assert onset is not None and (onset.rule, onset.rose, onset.step) == ("KL-1", 7, 5)
    assert (parent.protected / "global_step_4" / "actor").is_dir(), "KL-4 and TRUNC-1 belong to the same trouble"
    assert [path.name for path in parent.protected.iterdir()] == ["global_step_4"]
    assert [*checkpoints(parent)] == [4, 8, 12] and Parent(parent).fork_step() == 4
    assert any("step 4, from before KL-1, is kept" in getattr(e.what, "text", "") for e in read_events(parent.events))


@pytest.mark.slow
def test_each_fix_is_judged_beside_the_twin(parent: RunDir) -> None:
    def make(settings: Sequence[str], first: int, last: int) -> Figures:
        words = " ".join(settings)
        if "actor.lr" in words:
            return healthy(first, last, reward=0.02)  # the recorded reward rises by as much
        return healthy(first, last, reward=-0.03) if "clip_ratio" in words else recorded(first, last)

    changes = [["actor.lr=1e-5"], ["actor.clip_ratio=0.05"], ["kl.loss_coef=0.002"]]
    planned = plan(parent, None, changes)
    assert (planned.step, planned.until, planned.gpus, planned.gpu_minutes) == (4, 19, 0, 0)
    assert planned.seconds and planned.wall == 4 * planned.seconds and planned.arms[0] == ()
    runs = carry_out(planned, begin=beginning(make), poll=0.05)
    assert len(runs) == 4
    for run in runs:
        wait_for(run, lambda state: not state.live)
    (found,) = trials_of(parent.id)
    assert (found.parent, found.rule, found.step) == (parent.id, "KL-1", 4)
    assert [(arm.changes, arm.verdict) for arm in found.arms] == [
        ((), "repeated"),
        (("actor.lr=1e-5",), "fixed"),
        (("actor.clip_ratio=0.05",), "harmful"),
        (("kl.loss_coef=0.002",), "no effect"),
    ], found.arms
    assert [record.step for record in earlier_steps(runs[1], 1, 4)] == [0, 1, 2, 3, 4], "baselines go on"


@pytest.mark.nightly("launcher/compare/", "launcher/runs/")
@pytest.mark.slow
def test_a_fork_first_tries_to_undo_its_own_change() -> None:
    """A batch of one comes with a mini-batch of one: put back alone, either breaks the run."""
    sound = played(["trainer.steps=12"], healthy(0, 12))
    wait_for(sound, lambda state: not state.live)  # the fork knows the steps before its own
    one = ["data.train_batch_size=1", "actor.ppo_mini_batch_size=1", "actor.entropy_coeff=0.3", "trainer.steps=27"]
    edits = Parent(sound).origin(Parent(sound).restored(one)).diff
    run = played(one, recorded(5, 27), Origin(sound.id, edits, 4))
    wait_for(run, lambda state: not state.live)
    planned = plan(run, "KL-4", at=0)
    back = ("actor.entropy_coeff=null", "actor.ppo_mini_batch_size=32", "data.train_batch_size=64")
    assert planned.arms[:2] == ((), back) and len(planned.arms) == 4, planned.arms
    assert planned.lines[1].endswith("data.train_batch_size=64 (undoes what the fork changed)")
    after = planned_fork(Parent(run), back, step=0, trial="KL-4", undoes=planned.undoes(back)).origin
    assert after is not None and after.undoes == "what the fork changed"

    def make(settings: Sequence[str], first: int, last: int) -> Figures:
        return healthy(first, last, reward=0.02) if len(settings) > 2 else recorded(first, last)

    for trial in carry_out(planned, begin=beginning(make), poll=0.05):
        wait_for(trial, lambda state: not state.live)
    (found,) = trials_of(run.id)
    control, first = found.arms[:2]
    assert (control.verdict, first.verdict, set(first.changes)) == ("repeated", "fixed", set(back)), found.arms
    assert first.told.startswith("undoes what the fork changed; no flag"), first.told
    assert last_change(Parent(sound), planned.onset) is None
    EventLog(run.events).add(LevelChange(3, "KL-4", Level.OK, Level.WARN))
    EventLog(run.events).add(Action("resume", step=4, settings=("actor.lr=1e-3",)))
    assert last_change(Parent(run), planned.onset).words == "what the fork changed", "the flag was up before the resume"
    EventLog(sound.events).add(LevelChange(9, "KL-4", Level.OK, Level.WARN))
    assert last_change(Parent(run), planned.onset) is None, "its parent had the flag, too"


@pytest.mark.nightly("launcher/compare/", "launcher/runs/watch/")
@pytest.mark.slow
def test_settings_that_nobody_reports_to_work_are_tried_before_the_advice() -> None:
    run = played(
        ["trainer.steps=27", "actor.entropy_coeff=-0.5", "actor.lr=0.03", "actor.clip_ratio=5"], recorded(0, 27)
    )
    wait_for(run, lambda state: not state.live)
    planned = plan(run, "KL-1", at=0)
    clips = ("actor.clip_ratio_low=0.3", "actor.clip_ratio_high=0.3")
    every = ("actor.lr=0.001", *clips, "actor.entropy_coeff=0")  # either may be enough to keep the trouble going
    assert planned.arms == ((), every, ("actor.lr=0.001",), clips), planned.arms
    assert planned.lines[1].endswith("actor.entropy_coeff=0 (all usual values together)"), planned.lines
    assert not any("optim.lr" in " ".join(arm) for arm in planned.arms), "the advice is another value of the same key"
    assert plan(run, "KL-1", at=0, most=4).lines[4] == "  actor.entropy_coeff=0 (now -0.5, below the usual 0 to 0.01)"
    assert planned.undoes(planned.arms[1]) is None


@pytest.mark.nightly("launcher/compare/", "launcher/runs/watch/")
@pytest.mark.slow
def test_nothing_can_be_told_when_the_twin_is_well(parent: RunDir) -> None:
    planned = plan(parent, "KL-1", [["actor.lr=1e-5"]], count=6)
    for run in carry_out(planned, begin=beginning(lambda _, first, last: healthy(first, last)), poll=0.05):
        wait_for(run, lambda state: not state.live)
    (found,) = trials_of()
    assert [arm.verdict for arm in found.arms] == ["not repeated", "inconclusive"]
    with pytest.raises(UserError, match="ENT-1 never rose"):
        plan(parent, "ENT-1")
    with pytest.raises(UserError, match=r"actor\.lrr.*did you mean 'actor\.lr'"):
        plan(parent, "KL-1", [["actor.lrr=1e-5"]])


@pytest.mark.slow
def test_a_failure_is_isolated_by_a_short_run_without_its_setting() -> None:
    run = played(["actor.model_dtype=bf8", "trainer.steps=27"], healthy(0, 3), failure=FAILED)
    wait_for(run, lambda state: not state.live)
    planned = plan(run)
    assert (planned.step, planned.until, planned.arms) == (0, 5, (("actor.model_dtype=fp32",),)), planned
    assert planned.name.startswith("isolation, not a fix: the run failed in step 4 (Likely in veRL's trainer: RuntimeE")
    assert plan(run, at=4).step == 4
    outcomes = {
        "actor.model_dtype=fp32": (5, ""),
        "actor.lr=0.1": (3, FAILED),
        "actor.lr=0.2": (1, FAILED.replace("RuntimeError: unexpected", "ValueError: another")),
        "actor.lr=0.3": (4, FAILED.replace("RuntimeError: unexpected", "ValueError: another")),
        "actor.lr=0.4": (2, ""),
    }

    def begin(planned: TrialPlan, changes: Sequence[str], *, force: bool) -> RunDir:
        last, failure = outcomes[changes[0]]
        parent = Parent(run)
        after = parent.origin(parent.restored(changes), planned.step, planned.onset.rule)
        return played(changes, healthy(1, last), after, failure)

    for changes in ((), [[each] for each in list(outcomes)[1:]]):
        for trial in carry_out(plan(run, None, changes), begin=begin, poll=0.05):
            wait_for(trial, lambda state: not state.live)
    (found,) = trials_of(run.id)
    assert {arm.changes[0]: arm.verdict for arm in found.arms} == {
        "actor.model_dtype=fp32": "isolated",
        "actor.lr=0.1": "came again",
        "actor.lr=0.2": "other failure",
        "actor.lr=0.3": "isolated",
        "actor.lr=0.4": "unfinished",
    }, found.arms
    with pytest.raises(UserError, match="KL-1 never rose"):
        plan(run, "KL-1")


@pytest.mark.slow
def test_trials_wait_in_the_queue_and_what_cannot_start_is_left_out(
    parent: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(going, "wake_queue", lambda: None)  # nothing starts
    planned = plan(parent, None, [["actor.lr=1e-5"]])
    planned = replace(planned, arms=(*planned.arms, ("trainer.gpus=2",)))
    control = beginning(lambda _, first, last: recorded(first, last))

    def skipped(planned: TrialPlan, changes: Sequence[str], *, force: bool) -> RunDir:
        if not changes and not force:
            return control(planned, changes, force=force)
        run = enqueue(planned, changes, force=force)
        entry = queued.find(run.id)
        assert entry.origin is not None and (entry.origin.run, entry.origin.step) == (parent.id, 4)
        assert entry.origin.trial == "KL-1" and f"trainer.steps={planned.until}" in entry.settings
        assert run.id in [each.id for each in waiting_trials(parent.id)] and not waiting_trials("another")
        with pytest.raises(UserError, match=rf"\d trials? of run {parent.id} already in the queue"):
            plan(parent, None)
        queued.change(entry, skipped="no room")
        return run

    said: list[str] = []
    runs = carry_out(planned, said.append, begin=skipped, poll=0.05)
    assert [run.read_info().after.trial for run in runs] == ["KL-1"]  # type: ignore[union-attr]
    assert "left out actor.lr=1e-5: no room" in said
    assert any(line.startswith("left out trainer.gpus=2: trainer.n_gpus_per_node cannot change") for line in said)
    with pytest.raises(UserError, match="the control run cannot start: no room"):
        carry_out(planned, said.append, begin=skipped, force=True, poll=0.05)
    assert any(f" waits in the queue {paths.queue_dir()}: no room" in line for line in said)
    assert not queued.entries(), "those that still wait are withdrawn"


def tried(rule: str, preset: dict[str, Any], earlier: dict[str, Any] | None = None) -> list[str]:
    config = configuration(preset)
    return [each for fix in rules()[rule].advice for each in settings_of(settle(fix, config, earlier))]


def test_a_value_from_before_the_change_is_tried_first() -> None:
    before = {"actor.lr": 3e-4, "actor.clip_ratio": 5}
    wanted = tried("KL-2", {"actor": {"lr": 0.03, "clip_ratio": 0.2}}, before)
    assert {"actor.lr=3e-4", "actor.clip_ratio=0.1"} <= {*wanted}


def test_advice_becomes_a_value_in_its_direction() -> None:
    actor = {"lr": 1e-4, "ppo_epochs": 4}
    kl = {"in_loss": True, "loss_coef": 0.001}
    wanted = {"actor.lr=5e-6", "kl.loss_coef=0.005", "actor.ppo_epochs=2"}
    assert wanted <= {*tried("KL-1", {"actor": actor, "kl": kl})}
    assert "kl.loss_coef=0.001" in tried("KL-1", {"kl": {"in_loss": True, "loss_coef": 0}})
    wanted = {"actor.entropy_coeff=0.001", "rollout.temperature=1.2"}
    assert wanted <= {*tried("ENT-1", {"rollout": {"temperature": 1.0}, "actor": {"entropy_coeff": 0}})}


@pytest.mark.parametrize(
    "rule, preset, expected",
    [
        ("KL-1", {"actor": {"lr": 0.3}}, "actor.lr=5e-6"),
        ("KL-1", {"actor": {"lr": 0.3}, "usual": {"actor.lr": [1e-5, 1e-3]}}, "actor.lr=0.001"),
        ("KL-1", {"actor": {"lr": 9e-3}, "model": {"lora_rank": 16}}, "actor.lr=1e-4"),
        ("KL-1", {"actor": {"lr": 3e-6}}, "actor.lr=6e-7"),
        ("KL-1", {"actor": {"lr": 2e-7}}, "actor.lr=1e-7"),
        ("KL-1", {"actor": {"lr": 1e-7}}, None),
        ("MOVE-1", {"actor": {"lr": 1e-12}}, "actor.lr=1e-7"),
        ("KL-2", {"actor": {"clip_ratio": 2.0, "ppo_epochs": 30}}, "actor.clip_ratio=0.3"),
        ("KL-2", {"actor": {"clip_ratio": 2.0, "ppo_epochs": 30}}, "actor.ppo_epochs=4"),
        ("GROUP-1", {"algorithm": "grpo", "rollout": {"n": 16}}, None),
        ("GRAD-1", {"data": {"train_batch_size": 1}, "actor": {"ppo_mini_batch_size": 1}}, "data.train_batch_size=64"),
    ],
)
def test_values_come_from_usual_ranges(rule: str, preset: dict[str, Any], expected: str | None) -> None:
    """In one step, however far away they are; within the range by steps."""
    wanted = tried(rule, preset)
    assert expected in wanted if expected else not any(each.startswith(("actor.lr", "rollout.n")) for each in wanted)


def test_a_value_that_check_computed_is_the_one_to_take() -> None:
    computed = {"data.max_prompt_length": 54}
    assert tried("INPUT-1", {"data": {"max_prompt_length": 26}}, computed) == ["data.max_prompt_length=54"]
    assert tried("INPUT-1", {"data": {"max_prompt_length": 60}}, computed) == ["data.max_prompt_length=120"]


@given(
    st.sampled_from([fix for rule in rules().values() for fix in rule.advice]),
    st.floats(1e-9, 1e6) | st.integers(1, 10**6),
)
def test_a_value_goes_where_the_advice_points(fix: Fix, now: float) -> None:
    for change in fix.changes:
        found = moved(change, now, None)
        if change.operation in ("lower", "raise") and found is not None:
            assert found < now if change.operation == "lower" else found > now


def test_trials_side_by_side_on_a_cpu_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    run = RunDir(Path("r"))
    onset = Onset("KL-1", Level.WARN, 5, 5)
    planned = TrialPlan(run, onset, 0, 10, ((), ("a=1",), ("b=1",), ("c=1",)), 60.0, 0, 4)
    assert planned.wall == 120.0
    assert replace(planned, gpus=1).wall == 60.0


def test_a_step_of_a_damaged_parent_ends_nothing() -> None:
    with appearing("x") as (run, hidden):
        RunInfo(run.id, "x", after=Origin(run.id, step=3)).write(hidden.run_yaml)  # its own parent
        attempt = hidden.add_attempt()
        attempt.steps.write_bytes(StepRecord(1, 0.0, None, {"a": 1.0}).to_line())
    assert [record.step for record in earlier_steps(run, 1, 3)] == []
    assert [record.step for record in earlier_steps(run, 2, 3)] == [1]


@pytest.mark.slow
def test_trials_apart_from_the_screen_tell_what_they_do_in_a_file() -> None:
    run = create("quiet")
    RunInfo(run.id, "quiet", time.time(), preset=load("toy-cpu").snapshot(), on_cpu=True).write(run.run_yaml)
    RunState("finished", attempt=1).write(run.state)
    start_apart(TrialPlan(run, Onset("KL-1", 8, 6, Level.CRITICAL), 4, 20, ((),), None, 0, 1))
    wait_until(lambda: "KL-1 never rose" in run.trials_log.read_text())
