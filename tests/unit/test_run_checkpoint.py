"""What merge, eval, resume and retry refuse, and a merger that fails. The real ones are in tests/e2e."""

import importlib.util
import time
from pathlib import Path

import pytest
from commands import call

from launcher.core.errors import UserError
from launcher.metrics.records import StepRecord
from launcher.preset.alerting import AlertSettings
from launcher.preset.files import load
from launcher.preset.translate import Launch
from launcher.record.events import Action, EventLog, Note, read_kind
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.state import RunState
from launcher.runs.act.resume import resume
from launcher.runs.act.use_checkpoint import MergeError, merge, scores
from launcher.runs.supervise import supervisor
from launcher.runs.supervise.spawn import wait_before_retry, write_launch
from launcher.runs.watch.checkpoints import TRACKER, checkpoint
from launcher.runs.watch.run_settings import last_settings

needs_verl = pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL (extra cpu)")
SNAPSHOT = load("toy-cpu", ["trainer.steps=12"]).snapshot()


@pytest.fixture
def run(home: Path) -> RunDir:
    """A finished run of twelve steps with checkpoints of steps 3 and 6, and one of step 9 that was cut off."""
    made = create("toy-cpu")
    RunInfo(made.id, "toy-cpu", time.time(), preset=SNAPSHOT).write(made.run_yaml)
    RunState("finished", step=12, total=12).write(made.state)
    made.add_attempt()
    for step in (3, 6, 9):
        (made.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
    (made.checkpoints / TRACKER).write_text("6")
    return made


def test_the_newest_complete_checkpoint_is_meant_or_the_one_that_is_named(run: RunDir) -> None:
    assert checkpoint(run, None) == (6, run.checkpoints / "global_step_6")
    assert checkpoint(run, 3) == (3, run.checkpoints / "global_step_3")
    for step in (9, 4):
        with pytest.raises(UserError, match=rf"--checkpoint {step}: .*; use --checkpoint 3 or 6$"):
            checkpoint(run, step)
    with pytest.raises(UserError, match=r"no complete checkpoint.*trainer\.save_every"):
        checkpoint(create("none"), None)
    (run.checkpoints / TRACKER).write_text("60")
    with pytest.raises(UserError, match=r"no complete checkpoint.*it saves one every 10 steps and at the last"):
        resume(run)


def test_a_model_that_is_there_is_not_overwritten(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="already exists; remove it, or choose another folder with --output"):
        merge(run, None, tmp_path / "model", print)


@pytest.mark.slow
@needs_verl
def test_a_merger_that_fails_says_why_and_leaves_nothing(run: RunDir) -> None:
    with pytest.raises(MergeError, match=r"failed with exit code 1:\n(.|\n)*(huggingface|fsdp_config)"):
        merge(run, None, None, print)
    assert list((run.path / "merged").iterdir()) == []


def test_a_complete_run_is_not_started_for_nothing(run: RunDir) -> None:
    (run.checkpoints / "global_step_12" / "actor").mkdir(parents=True)
    (run.checkpoints / TRACKER).write_text("12")
    for settings, said in (([], r"is complete.*trainer\.steps=24"), (["actor.lr=1e-5"], "is complete")):
        with pytest.raises(UserError, match=said):
            resume(run, settings)
    assert run.attempt_numbers() == [1]


def test_scores_are_those_of_the_last_validation_headline_first(home: Path) -> None:
    run = create("eval")
    run.add_attempt().steps.write_bytes(
        StepRecord(6, 1.0, None, {"val-aux/x/score/mean@1": 0.5, "val-core/x/acc/mean@1": 0.75, "a": 1}).to_line()
    )
    assert list(scores(run).items()) == [("val-core/x/acc/mean@1", 0.75), ("val-aux/x/score/mean@1", 0.5)]


def test_the_settings_of_a_run_are_those_it_was_resumed_with_last(run: RunDir) -> None:
    first, given = last_settings(run)
    assert given == () and first.preset == SNAPSHOT
    for text in ("actor.lr=0.1", "actor.lr=0.2"):
        EventLog(run.events).add(Action("resume", settings=(text,)))
    info, given = last_settings(run)
    assert given == ("actor.lr=0.2",) and info.preset is not None and info.preset["actor"]["lr"] == 0.2


def test_commands_say_what_is_missing_and_what_to_do(home: Path) -> None:
    for command in (["export", "--model"], ["eval"]):
        out, err, code = call([*command, "last"])
        assert (out, code) == (b"", 2) and b"no runs in " in err and b"ppo-tui run toy-cpu" in err


def retried(run: RunDir, step: int) -> None:
    EventLog(run.events).add(Action("retry", step=step))


def test_only_what_may_pass_is_retried_later_and_later_and_so_many_times(run: RunDir) -> None:
    assert wait_before_retry(run, 2, "nccl", 12) == 30
    for cause in ("nan", "gpu-oom-update", "gpu-oom", "unknown-config-key", "reward-raises", "unknown", None):
        assert wait_before_retry(run, 2, cause, 12) is None
    assert wait_before_retry(run, 0, "nccl", 12) is None, "it is off by default"
    retried(run, 12)
    assert wait_before_retry(run, 2, "nccl", 12) == 60
    retried(run, 12)
    assert wait_before_retry(run, 2, "nccl", 12) is None
    assert wait_before_retry(run, 3, "nccl", 12) is not None
    (run.checkpoints / TRACKER).unlink()
    assert wait_before_retry(run, 3, "nccl", 12) is None, "there is nothing to continue from"


def test_memory_that_ran_out_at_the_same_step_again_was_the_run_itself(run: RunDir) -> None:
    assert wait_before_retry(run, 5, "host-oom-killed", 12) is not None
    retried(run, 12)
    assert wait_before_retry(run, 5, "host-oom-killed", 12) is None
    assert wait_before_retry(run, 5, "host-oom-killed", 19) is not None


def test_a_run_that_other_users_may_write_is_not_continued(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    write_launch(run, run.attempt(1), Launch(argv=[], env={}, unset=[], keys={}), created=1.0)
    continued: list[Path] = []
    monkeypatch.setattr(supervisor, "wait_before_retry", lambda *_: 0.0)
    monkeypatch.setattr(supervisor, "retry", lambda _, folder: continued.append(folder))
    monkeypatch.chdir(run.path)
    for mode in (0o777, 0o700):
        run.path.chmod(mode)
        supervisor.Supervisor(run)._retry("nccl")
        assert continued == ([run.path] if mode == 0o700 else [])
    said = [note.text for note in read_kind(run.events, Note)]
    assert any(f"the run is not continued: {run.run_yaml} is not used" in text for text in said)


def test_a_number_of_retries_is_a_number() -> None:
    assert AlertSettings.read({"retry": 2}).retry == 2
    with pytest.raises(UserError, match="is -1; use a whole number"):
        AlertSettings.read({"retry": -1})
