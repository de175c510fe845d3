"""Runs over weeks and by the hundred: scores read alone, events bounded, runs removed."""

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.core.errors import UserError
from launcher.core.files import size
from launcher.metrics.records import StepRecord
from launcher.record.events import EventLog, Note
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, create
from launcher.record.levels import Level
from launcher.record.machine import GpuSample, HostSample, MachineSample
from launcher.record.state import RunState
from launcher.runs.act.import_logs import import_logs
from launcher.runs.act.removal import delete
from launcher.runs.judge.run_checklist import judged
from launcher.runs.supervise.disk import MachineLog
from launcher.runs.watch import reader as reading
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.steps import Scores, steps

pytestmark = pytest.mark.usefixtures("home")

LOGS = Path(__file__).parents[1] / "data" / "logs"


def run_with(*lines: bytes) -> RunDir:
    run = create("made")
    RunInfo(run.id, "made").write(run.run_yaml)
    run.add_attempt().steps.write_bytes(b"".join(lines))
    return run


def test_scores_are_those_of_the_whole_record() -> None:
    (run,) = import_logs([str(LOGS / f"{name}.log.gz") for name in ("learning", "resume")])
    reader, scores = RunReader(run.path), Scores(run)
    reader.poll()
    assert scores.poll() and not scores.poll()
    expected = reader.series.get("critic/score/mean")
    assert expected is not None and len(run.attempt_numbers()) == 2
    assert (scores.series.steps, scores.series.values) == (expected.steps, expected.values)
    assert scores.best == max(expected.values)


@given(st.integers(0, 10**9), st.floats())
def test_any_score_is_read_as_it_was_written(step: int, value: float) -> None:
    run = run_with(StepRecord(step, 1.0, None, {"a": 1.0, "critic/score/mean": value}).to_line())
    scores = Scores(run)
    scores.poll()
    assert list(scores.series.steps) == [step]
    (found,) = scores.series.values
    assert found == value or (math.isnan(found) and math.isnan(value))
    assert (scores.best is None) == (not math.isfinite(value))


def test_lines_of_other_writers_and_broken_ones_do_no_harm() -> None:
    run = run_with(
        b'{"step": 1, "data": {"critic/score/mean": 0.25, "x": 1}}\n',
        b'{"step":2,"data":{"critic/sc\n',
        b'{"step":3,"t":1,"log_offset":null,"data":{"critic/score/mean":null}}\n',
        b"nonsense\n",
        b'{"step":4,"t":1,"log_offset":null,"data":{"critic/rewards/mean":0.5}}\n',
    )
    scores = Scores(run)
    scores.poll()
    assert list(scores.series.steps) == [1, 3, 4] and scores.best == 0.5


def test_of_a_run_that_only_validates_the_validation_counts() -> None:
    data = {
        "val-aux/x/acc/mean@1": 0.1,
        "val-core/openai/gsm8k/acc/best@4/mean": 0.9,
        "val-core/openai/gsm8k/acc/mean@4": 0.75,
    }
    validated = StepRecord(6, 1.0, None, data).to_line()
    scores = Scores(run_with(validated))
    scores.poll()
    assert scores.best == 0.75 and not scores.series.steps
    trained = Scores(run_with(validated, StepRecord(7, 2.0, None, {"critic/score/mean": 0.5}).to_line()))
    trained.poll()
    assert trained.best == 0.5


def test_the_events_of_a_reader_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_EVENTS", 5)
    run = run_with()
    reader = RunReader(run.path)
    log = EventLog(run.events)
    for number in range(8):
        log.add(Note(str(number)), float(number))
    assert "events" in reader.poll()
    assert [event.t for event in reader.events] == [3, 4, 5, 6, 7] and reader.event_count == 8
    assert [event.what for event in reader.events_since(6)] == [Note("6"), Note("7")]
    assert len(reader.events_since(0)) == 5 and reader.events_since(8) == []
    assert "events" not in reader.poll()


def test_the_tail_of_a_long_console_begins_with_a_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LOG_TAIL", 30)
    run = run_with()
    (run.path / "attempts/1/console.log").write_text("the █████ first line\nthe █████ second line\nthe last\n")
    reader = RunReader(run.path)
    reader.poll()
    assert list(reader.log) == ["the last"]


def test_a_run_that_goes_is_not_deleted_and_an_ended_one_leaves_nothing(home: Path) -> None:
    run, other = run_with(), run_with()
    RunState("queued", updated=time.time()).write(run.state)
    with pytest.raises(UserError, match=r"the run has not ended; stop it first: 'ppo-tui stop "):
        delete(run)
    RunState("finished").write(run.state)
    assert size(run.path) >= run.run_yaml.stat().st_size + run.state.stat().st_size > 0
    left = home / "runs" / ".deleted-before"  # a delete that was killed
    left.mkdir()
    delete(run)
    assert [found.id for found in all_runs()] == [other.id]
    assert [path.name for path in (home / "runs").iterdir()] == [other.id]
    with pytest.raises(UserError, match="cannot change run"):
        delete(run)


def test_a_run_is_judged_with_the_memory_of_its_own_machine() -> None:
    (run,) = import_logs([str(LOGS / "two-gpus.log.gz")])
    reserved = max(record.data.get("actor/perf/max_memory_reserved_gb", 0.0) for _, record in steps(run))

    def memory_level() -> Level:
        return {check.rule: check.level for check in judged(run, []).checklist.checks()}["MEM-1"]

    assert memory_level() == Level.N_A
    gpu = GpuSample(0, total=int(reserved * 2**30))
    MachineLog(run.machine).add(MachineSample(1.0, HostSample(1, 64 << 30), gpus=(gpu,)))
    assert memory_level() == Level.N_A, "the log may be of another machine"
    replace(run.read_info(), imported_from=()).write(run.run_yaml)
    assert memory_level() >= Level.WARN
