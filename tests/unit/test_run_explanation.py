"""What a reader of a run hears of its failure, or of the errors of one that goes on."""

import dataclasses
import os
from pathlib import Path

import pytest
from console_logs import DATA, diagnosis_of, stored

from launcher.console.diagnose import errors_so_far
from launcher.console.lines import clean_text
from launcher.console.pager import LogPager
from launcher.record.check import Check
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.process import ProcessId
from launcher.record.ray_session import RaySession
from launcher.record.state import RunState
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import explanation

FAILED = ["fail-oom", "fail-broken-reward", "fail-kv-cache", "fail-missing-parquet", "fail-no-flash-attn"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


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
    pager = LogPager(run.attempt(1).console)
    pager.count()
    for quote in found.diagnosis.evidence:
        offset = pager.offset_of(quote.line)
        assert offset is not None
        assert quote.text.removesuffix(" …") in clean_text(next(pager.forward(offset)).raw, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["learning", "nan", "cpu-toy"])
def test_a_run_that_did_not_fail_has_none(name: str) -> None:
    run = imported(name)
    assert explanation(run) is None
    reader = RunReader(run.path)
    reader.poll()
    assert not reader.state.failed


@pytest.mark.parametrize("name", FAILED)
def test_errors_of_a_run_that_goes_on_point_to_the_same_cause(name: str) -> None:
    so_far = errors_so_far([stored(name)])
    assert so_far is not None and so_far.cause == diagnosis_of(stored(name)).cause


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
    run.attempt(1).console.write_text(
        "Error executing job with overrides: []\n"
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    )
    found = explanation(run)
    assert found is not None and found.diagnosis.cause == "worker-died"
    assert any("/tmp/ray/session_latest/logs" in fix.text for fix in found.diagnosis.fixes)
    RaySession("/tmp/ray/session_of_this_run", 1, 2).write(run.attempt(1).ray)
    found = explanation(run)
    assert found is not None
    assert any("/tmp/ray/session_of_this_run/logs" in fix.text for fix in found.diagnosis.fixes)
