"""What resume refuses before it starts anything."""

import importlib.util
import time
from pathlib import Path

import pytest

from launcher.core.errors import UserError
from launcher.preset.files import load
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.state import RunState
from launcher.runs.act.resume import resume

needs_verl = pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL (extra cpu)")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A finished toy run of twelve steps without a checkpoint."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    made = create("toy-cpu")
    snapshot = load("toy-cpu", ["trainer.steps=12"]).snapshot()
    RunInfo(made.id, "toy-cpu", time.time(), preset=snapshot).write(made.run_yaml)
    RunState("finished", step=12, total=12).write(made.state)
    made.add_attempt()
    return made


def checkpoint(run: RunDir, step: int) -> None:
    (run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
    (run.checkpoints / "latest_checkpointed_iteration.txt").write_text(str(step))


def test_a_run_without_a_checkpoint_says_how_to_have_one(run: RunDir) -> None:
    with pytest.raises(UserError, match=r"no complete checkpoint.*it saves one every 10 steps and at the last"):
        resume(run)


@needs_verl
def test_a_complete_run_is_not_started_for_nothing(run: RunDir) -> None:
    checkpoint(run, 12)
    with pytest.raises(UserError, match=r"is complete.*trainer\.steps=24"):
        resume(run)
    with pytest.raises(UserError, match="is complete"):
        resume(run, ["actor.lr=1e-5"])
    assert run.attempt_numbers() == [1], "the attempt that was not to be is gone"


@pytest.mark.parametrize(("state", "sentence"), [("running", "has not ended"), ("imported", "it is an imported log")])
def test_a_run_that_goes_on_or_came_from_elsewhere_is_not_resumed(run: RunDir, state: str, sentence: str) -> None:
    RunState(state, updated=time.time()).write(run.state)
    with pytest.raises(UserError, match=sentence):
        resume(run)
