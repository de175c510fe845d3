"""What a reader of a run hears of its failure, or of the errors of one that goes on."""

import dataclasses
import os
from pathlib import Path

import pytest
from console_logs import DATA, diagnosis_of, stored
from whole_run import whole_run

from launcher.console.diagnose import errors_so_far
from launcher.console.lines import clean_text
from launcher.console.pager import LogPager
from launcher.metrics.records import StepRecord
from launcher.record.attempt import Exit, LaunchRecord, MachineEnd
from launcher.record.check import Check
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.process import ProcessId
from launcher.record.ray_session import RaySession
from launcher.record.state import RunState, current
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import Outcome, diagnosis, explained, explanation, outcome
from tui.kit.page import run_refusal

pytestmark = pytest.mark.usefixtures("home")

FAILED = ["fail-oom", "fail-broken-reward", "fail-kv-cache", "fail-missing-parquet", "fail-no-flash-attn"]


def imported(name: str) -> RunDir:
    (run,) = import_logs([str(DATA / "logs" / f"{name}.log.gz")])
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILED)
def test_the_lines_of_an_explanation_are_those_of_the_log(name: str) -> None:
    run = imported(name)
    found = explanation(run)
    assert found is not None and found.offers
    told = found.to_json()
    assert [each["text"] for each in told["fix_records"]] == told["fixes"]
    assert found.diagnosis.cause == diagnosis_of(stored(name)).cause
    so_far = errors_so_far([stored(name)])
    assert so_far is not None and so_far.cause == found.diagnosis.cause, "also while the run goes on"
    pager = LogPager(run.attempt(1).console)
    pager.count()
    for quote in found.diagnosis.evidence:
        offset = pager.offset_of(quote.line)
        assert offset is not None
        assert quote.text.removesuffix(" …") in clean_text(next(pager.forward(offset)).raw, 0)


def test_a_log_without_errors_points_to_nothing() -> None:
    assert errors_so_far([stored("cpu-toy")]) is None


def test_a_reader_explains_when_there_is_trouble_and_again_when_it_changes() -> None:
    run = imported("fail-oom")
    me = ProcessId.of(os.getpid())
    going = RunState("running", attempt=1, supervisor=me, driver=me)
    going.write(run.state)
    reader = RunReader(run.path)
    reader.poll()
    assert not reader.unexplained
    error = Check("ERR-1", level=Level.CRITICAL, message="CUDA out of memory (line 5)")
    dataclasses.replace(going, checks=(error,)).write(run.state)
    reader.poll()
    assert reader.unexplained
    reader.explain()
    assert not reader.unexplained
    assert reader.explanation is not None and reader.explanation.diagnosis.cause == "gpu-oom-update"
    going.write(run.state)
    reader.poll()
    assert reader.unexplained  # the flag was released
    reader.explain()
    assert reader.explanation is None


def test_a_fix_names_the_ray_session_of_the_run() -> None:
    run = imported("fail-oom")
    died = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    run.attempt(1).console.write_text(f"Error executing job with overrides: []\n{died}")
    for session in ("session_latest", "session_of_this_run"):
        found = explanation(run)
        assert found is not None and found.diagnosis.cause == "worker-died"
        assert any(f"/tmp/ray/{session}/logs" in fix.text for fix in found.diagnosis.fixes)
        RaySession("/tmp/ray/session_of_this_run", 1, 2).write(run.attempt(1).ray)


@pytest.mark.parametrize("by", ["user", "screen", "agent", "stop_on: KL-1 is CRITICAL", "trial: ended", None])
def test_the_shell_and_the_page_name_who_stopped_a_run_and_its_flags(by: str | None, tmp_path: Path) -> None:
    run = whole_run(tmp_path)
    run.attempt(1).console.write_text("step:3 - actor/entropy:0.4\n*** SIGTERM received at time=1 on cpu 4 ***\n")
    ended = Exit(143, "SIGTERM", by, 1.0)
    ended.write(run.attempt(1).exit)
    checks = (Check("KL-1", level=Level.CRITICAL), Check("ENT-1"), Check("LR-1", level=Level.WARN, muted=True))
    state = dataclasses.replace(current(run), state="stopped", error=None, exit=ended, checks=checks)
    state.write(run.state)
    found = diagnosis(run)
    words = {"user": "`ppo-tui stop`", "screen": "key on the screen", "agent": "an agent", None: "is not recorded"}
    assert words.get(by, f"by {by}") in found.title
    assert found.meaning.endswith("Flags at that time: CRITICAL KL-1.")
    reader = RunReader(run.path)
    reader.poll()
    reader.explain()
    assert reader.problem == explained(run).problem and run_refusal("diagnosis", reader, read_only=False) is None
    (run.checkpoints / "global_step_2" / "actor").mkdir(parents=True)
    (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("2")
    assert explained(run).offers[-1].text.endswith("from checkpoint 2")


def vanished(folder: Path, validated: bool, saved: str, step: int = 30, more: str = "") -> Outcome:
    """The outcome of a recorded log of veRL that ends with a step, of a driver that vanished."""
    run = whole_run(folder)
    attempt, data = run.attempt(1), stored("cpu-toy")
    at = data.index(f"step:{step} - ".encode())
    attempt.console.write_bytes(data[: data.index(b"\n", at) + 1] + more.encode())
    keys = {"trainer.total_training_steps": 30, "trainer.test_freq": 10, "trainer.save_freq": 10}
    LaunchRecord(keys=keys).write(attempt.launch)
    metrics = {"actor/entropy": 0.5} | ({"val-core/toy/acc/mean@1": 0.5} if validated else {})
    metrics |= {"timing_s/save_checkpoint": 1.0} if saved == "log" else {}
    attempt.steps.write_bytes(StepRecord(step, 1.0, 0, metrics).to_line())
    if saved == "disk":
        (run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
        (run.checkpoints / "latest_checkpointed_iteration.txt").write_text(str(step))
    return outcome(attempt, Exit(machine=MachineEnd()))


def test_a_driver_that_vanished_after_its_last_step_finished_if_that_is_complete(tmp_path: Path) -> None:
    finished = Outcome("finished", "finished")
    for number, saved in enumerate(("log", "disk")):
        assert vanished(tmp_path / str(number), True, saved) == finished
    error = "Traceback (most recent call last):\nValueError: no number in the answer\n"
    for number, (validated, saved, step, more) in enumerate(
        [(False, "log", 30, ""), (True, "", 30, ""), (True, "log", 29, ""), (True, "log", 30, error)], 2
    ):
        assert vanished(tmp_path / str(number), validated, saved, step, more).state == "failed"
