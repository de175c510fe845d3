"""Which failures are retried, and after how long."""

from pathlib import Path

import pytest

from launcher.core.errors import UserError
from launcher.preset.alerting import AlertSettings
from launcher.preset.translate import Launch
from launcher.record.events import Action, EventLog, Note, read_kind
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.runs.supervise import supervisor
from launcher.runs.supervise.spawn import wait_before_retry, write_launch


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run with a checkpoint at step 10."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    run = create("x")
    (run.checkpoints / "global_step_10" / "actor").mkdir(parents=True)
    (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("10")
    return run


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


def test_memory_that_ran_out_at_the_same_step_again_was_the_run_itself(run: RunDir) -> None:
    assert wait_before_retry(run, 5, "host-oom-killed", 12) is not None
    retried(run, 12)
    assert wait_before_retry(run, 5, "host-oom-killed", 12) is None
    assert wait_before_retry(run, 5, "host-oom-killed", 19) is not None


def test_without_a_checkpoint_there_is_nothing_to_continue_from(run: RunDir) -> None:
    (run.checkpoints / "latest_checkpointed_iteration.txt").unlink()
    assert wait_before_retry(run, 2, "nccl", 12) is None


def test_a_run_that_other_users_may_write_is_not_continued(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    RunInfo(run.id, "x", 1.0).write(run.run_yaml)
    write_launch(run, run.add_attempt(), Launch(argv=[], env={}, unset=[], keys={}), created=1.0)
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
