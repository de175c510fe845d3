"""Forks: from which checkpoint, with which changes, and what is refused with its reason."""

import shutil
import time
from pathlib import Path

import pytest
from commands import call
from tables import tabled

from launcher.core.errors import UserError
from launcher.metrics.records import StepRecord
from launcher.preset.files import load, restore
from launcher.preset.settle import configuration, configured
from launcher.record.check import Check
from launcher.record.events import EventLog, LevelChange
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.act.fork import fork, fork_folder, planned_fork
from launcher.runs.supervise import protection
from launcher.runs.supervise.protection import Keeper, protect
from launcher.runs.watch.checkpoints import checkpoints, kept_steps
from launcher.runs.watch.parent import Parent, refuse_fixed


@pytest.fixture
def run(home: Path) -> RunDir:
    """A finished toy run with checkpoints at 10, 20 and 30; one at 40 was cut off."""
    made = create("toy-cpu")
    RunInfo(made.id, "toy-cpu", time.time(), preset=load("toy-cpu").snapshot()).write(made.run_yaml)
    RunState("finished", step=40, total=40).write(made.state)
    made.add_attempt()
    for step in (10, 20, 30, 40):
        (made.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
    (made.checkpoints / "latest_checkpointed_iteration.txt").write_text("30")
    return made


def rise(run: RunDir, step: int, rule: str, level: Level = Level.CRITICAL, before: Level = Level.OK) -> LevelChange:
    change = LevelChange(step, rule, before, level)
    EventLog(run.events).add(change)
    return change


def test_a_fork_begins_before_the_flag_that_became_critical(run: RunDir) -> None:
    assert Parent(run).fork_step() == 30, "without a flag the newest one"
    rise(run, 5, "LEN-1", Level.WARN)
    rise(run, 25, "KL-1", Level.WARN)
    rise(run, 31, "KL-1", Level.CRITICAL, Level.WARN)
    assert Parent(run).fork_step() == 20
    rise(run, 12, "KL-1", Level.WARN)  # of an earlier attempt; 12 is up when two of three steps crossed
    assert Parent(run).fork_step() == 20


def test_without_a_checkpoint_before_the_flag_the_start_is_offered(run: RunDir) -> None:
    rise(run, 11, "KL-4")
    with pytest.raises(
        UserError, match=r"before step \d+, .*: KL-4 rose at step 11; use --checkpoint 0 .*--checkpoint 10 or 20 or 30"
    ):
        fork(run)
    with pytest.raises(UserError, match=r"--checkpoint 15: run .* use --checkpoint 10, 20 or 30"):
        fork(run, step=15)
    assert b"--name 'last' is not allowed" in call(["fork", run.id, "--checkpoint", "10", "--name", "last"])[1]


@tabled
def test_settings_that_cannot_change_are_refused_with_the_reason(
    run: RunDir, settings: list[str], sentence: str
) -> None:
    preset = run.read_info().preset or {}
    with pytest.raises(UserError, match=sentence) as caught:
        refuse_fixed(configuration(preset), configured(restore("toy", preset, settings)))
    assert str(caught.value).endswith("use --checkpoint 0 to start from the beginning")
    with pytest.raises(UserError, match=sentence):
        fork(run, settings, step=10)


def test_a_critic_cannot_come_out_of_nothing_but_may_go(run: RunDir) -> None:
    ppo, grpo, lower = (
        configured(Parent(run).restored(changes))
        for changes in ([], ["algorithm=grpo", "rollout.n=4"], ["actor.lr=1e-5", "kl.loss_coef=0.1"])
    )
    refuse_fixed(ppo, grpo)
    refuse_fixed(ppo, lower)
    with pytest.raises(UserError, match="the checkpoint has no critic"):
        refuse_fixed(grpo, ppo)


def test_the_fork_remembers_its_parent(run: RunDir, tmp_path: Path) -> None:
    preset = Parent(run).restored(["actor.lr=1e-5"])
    info = RunInfo("x", after=Parent(run).origin(preset, 20, "KL-1"))
    info.write(tmp_path / "run.yaml")
    parent = RunInfo.read(tmp_path / "run.yaml").parent
    assert parent == Origin(run.id, (Edit("actor.lr", 3e-4, 1e-5),), 20, "KL-1")
    assert RunInfo("x", after=Parent(run).origin(preset)).parent is None, "a preset edited out of a run is no fork"
    child = create("child")
    RunInfo(child.id, "child", after=parent).write(child.run_yaml)
    changed = f"fork of {run.id} at step 20, trial for KL-1: actor.lr 3e-4 → 1e-5"
    assert f"origin   {changed}" in call(["status", child.id])[0].decode()


def test_one_checkpoint_is_kept_that_of_the_present_trouble(run: RunDir) -> None:
    def kept() -> list[str]:
        return [path.name for path in run.protected.iterdir()] if run.protected.exists() else []

    assert protect(run, rise(run, 8, "KL-1"), []) is None and kept() == [], "none before"
    early = Check("KL-1", level=Level.CRITICAL, since=8)
    assert protect(run, rise(run, 15, "SIG-1"), [early]) is None and kept() == [], "none before the trouble of KL-1"
    notice = Check("KL-1", level=Level.CRITICAL, since=14)  # a NOTICE first
    assert protect(run, rise(run, 15, "KL-1"), [notice]) == 10 and kept() == ["global_step_10"]
    assert protect(run, rise(run, 15, "KL-1"), []) is None, "it is safe already"
    assert protect(run, rise(run, 25, "ENT-1", before=Level.WARN), []) is None, "it became worse"
    up = Check("KL-1", level=Level.CRITICAL, since=15)
    assert protect(run, rise(run, 26, "ENT-1"), [up]) is None, "of the trouble of KL-1"
    assert protect(run, rise(run, 26, "ENT-1"), []) == 20 and kept() == ["global_step_20"]


@pytest.fixture
def vanishing(monkeypatch: pytest.MonkeyPatch) -> None:
    """veRL's retention removes the checkpoint at this moment."""
    found = protection.checkpoint

    def removed(run: RunDir, step: int | None) -> tuple[int, Path]:
        newest = found(run, step)
        if newest[1].parent == run.checkpoints:
            shutil.rmtree(newest[1])
        return newest

    monkeypatch.setattr(protection, "checkpoint", removed)


def test_a_move_that_fails_leaves_the_protected_and_the_best_checkpoint(
    run: RunDir, request: pytest.FixtureRequest
) -> None:
    keeper = Keeper(run, run.attempt(1), RunInfo("x", preset={"trainer": {"keep_best": 1}}))
    keeper.took([StepRecord(20, 0.0, None, {"val-core/gsm8k/acc/mean@4": 0.5})])
    assert protect(run, rise(run, 15, "KL-1"), []) == 10
    request.getfixturevalue("vanishing")
    keeper.took([StepRecord(30, 0.0, None, {"val-core/gsm8k/acc/mean@4": 0.9})])
    assert [path.name for path in run.best.iterdir()] == ["global_step_20"]
    assert protect(run, rise(run, 36, "ENT-1"), []) is None
    assert [path.name for path in run.protected.iterdir()] == ["global_step_10"]


def test_checkpoints_that_are_gone_are_told_once(run: RunDir) -> None:
    keeper = Keeper(run, run.attempt(1), RunInfo("x"))
    assert keeper.removed() == () and kept_steps(run) == [*checkpoints(run)]
    assert protect(run, rise(run, 15, "KL-1"), []) == 10  # moved, not removed
    shutil.rmtree(run.checkpoints / "global_step_20")
    assert keeper.removed() == (20,) and keeper.removed() == () and 20 not in (kept_steps(run) or [20])


def test_a_step_that_is_saved_again_replaces_its_protected_checkpoint(run: RunDir) -> None:
    assert protect(run, rise(run, 15, "KL-1"), []) == 10
    (run.checkpoints / "global_step_10" / "actor").mkdir(parents=True)
    (run.checkpoints / "global_step_10" / "actor" / "again").touch()
    (run.protected / "global_step_10").rename(run.protected / ".replaced-global_step_10")  # a kill in between
    assert protect(run, rise(run, 15, "KL-1"), []) == 10
    files = [str(path.relative_to(run.protected)) for path in run.protected.rglob("*") if path.is_file()]
    assert files == ["global_step_10/actor/again"] and len([*run.protected.iterdir()]) == 1


def test_a_fork_is_forked_from_where_it_began(run: RunDir) -> None:
    plan = planned_fork(Parent(run), ["actor.lr=0.03"], step=20)
    child = create("toy-cpu")
    RunInfo(child.id, "toy-cpu", preset=plan.loaded.snapshot(), after=plan.origin).write(child.run_yaml)
    rise(child, 22, "KL-1")  # the first of its window of three steps is the last one of its parent
    begun = {20: run.checkpoints / "global_step_20"}
    assert (Parent(child).checkpoints, Parent(child).fork_step()) == (begun, 20)
    again = planned_fork(Parent(child), ["actor.lr=1e-4"])
    assert again.origin is not None and (again.origin.run, again.origin.step) == (child.id, 20)
    assert fork_folder(again.origin) == again.checkpoint == begun[20]
    grandchild = create("toy-cpu")
    RunInfo(grandchild.id, "toy-cpu", preset=again.loaded.snapshot(), after=again.origin).write(grandchild.run_yaml)
    assert Parent(grandchild).checkpoints == begun
    run.run_yaml.unlink()
    assert not Parent(grandchild).checkpoints
    with pytest.raises(UserError, match="use --checkpoint 0"):
        Parent(child).fork_step()


def test_the_best_checkpoints_are_kept(run: RunDir) -> None:
    preset = restore("toy", run.read_info().preset or {}, ["trainer.keep_best=2", "health.checkpoint_on=[REW-1]"])
    keeper = Keeper(run, run.attempt(1), RunInfo("x", preset=preset.snapshot()))

    def validated(step: int, score: float) -> list[str]:
        keeper.took([StepRecord(step, 0.0, None, {"val-core/gsm8k/acc/mean@4": score})])
        return sorted(path.name for path in run.best.iterdir())

    assert validated(10, 0.5) == ["global_step_10"]
    assert validated(15, 0.9) == ["global_step_10"], "without a checkpoint"
    assert validated(20, 0.4) == ["global_step_10", "global_step_20"]
    assert validated(30, 0.6) == ["global_step_10", "global_step_30"], "what it replaces is removed"
    assert [*checkpoints(run)] == [10, 30]
    assert not run.attempt(1).save_now.exists()
    keeper.rose(rise(run, 32, "REW-1", Level.WARN), [])
    assert run.attempt(1).save_now.exists()
