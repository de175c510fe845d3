"""What merge and eval refuse, and what they make of a merger that fails. The real ones are in tests/e2e."""

import importlib.util
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.core.errors import UserError
from launcher.metrics.records import StepRecord
from launcher.preset.files import load
from launcher.record.events import Action, EventLog
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.state import RunState
from launcher.runs.act.use_checkpoint import MergeError, evaluate, merge, scores
from launcher.runs.watch.checkpoints import checkpoint
from launcher.runs.watch.run_settings import last_settings

needs_verl = pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL (extra cpu)")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run with checkpoints of steps 3 and 6, and one of step 9 that was cut off."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    made = create("toy-cpu")
    RunInfo(made.id, "toy-cpu", time.time(), preset=load("toy-cpu").snapshot()).write(made.run_yaml)
    RunState("finished", step=6, total=6).write(made.state)
    for step in (3, 6, 9):
        (made.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
    (made.checkpoints / "latest_checkpointed_iteration.txt").write_text("6")
    return made


def silent(_: str) -> None:
    pass


def test_the_newest_complete_checkpoint_is_meant_or_the_one_that_is_named(run: RunDir) -> None:
    assert checkpoint(run, None) == (6, run.checkpoints / "global_step_6")
    assert checkpoint(run, 3) == (3, run.checkpoints / "global_step_3")
    for step in (9, 4):
        with pytest.raises(
            UserError, match=rf"--checkpoint {step}: .* no checkpoint of this step; use --checkpoint 3 or 6$"
        ):
            checkpoint(run, step)
    with pytest.raises(UserError, match=r"no complete checkpoint.*trainer\.save_every"):
        checkpoint(create("none"), None)


def test_a_model_that_is_there_is_not_overwritten(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="already exists; remove it, or choose another folder with --output"):
        merge(run, None, tmp_path / "model", silent)


@pytest.mark.slow
@needs_verl
def test_a_merger_that_fails_says_why_and_leaves_nothing(run: RunDir) -> None:
    with pytest.raises(MergeError, match=r"failed with exit code 1:\n(.|\n)*(huggingface|fsdp_config)"):
        merge(run, None, None, silent)
    assert list((run.path / "merged").iterdir()) == []


def test_an_imported_run_has_nothing_to_evaluate_with(run: RunDir) -> None:
    RunInfo(run.id, "elsewhere").write(run.run_yaml)
    with pytest.raises(UserError, match="no preset is recorded"):
        evaluate(run, [], None, silent, force=False)


def test_scores_are_those_of_the_last_validation_headline_first() -> None:
    run = create("eval")
    run.add_attempt().steps.write_bytes(
        StepRecord(6, 1.0, None, {"val-aux/x/score/mean@1": 0.5, "val-core/x/acc/mean@1": 0.75, "a": 1}).to_line()
    )
    assert list(scores(run).items()) == [("val-core/x/acc/mean@1", 0.75), ("val-aux/x/score/mean@1", 0.5)]


def test_the_settings_of_a_run_are_those_it_was_resumed_with_last(run: RunDir) -> None:
    first, given = last_settings(run)
    assert given == () and first.preset == load("toy-cpu").snapshot()
    for text in ("actor.lr=0.1", "actor.lr=0.2"):
        EventLog(run.events).add(Action("resume", settings=(text,)))
    info, given = last_settings(run)
    assert given == ("actor.lr=0.2",) and info.preset is not None and info.preset["actor"]["lr"] == 0.2


def test_commands_say_what_is_missing_and_what_to_do(
    ppo_tui: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    for command in (["export", "--model"], ["eval"]):
        done = ppo_tui(*command, "last")
        wrong, action = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (2, "") and "no runs in " in wrong and action.startswith("hint: ")
