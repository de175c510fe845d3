"""The rows in state.json: limits, metrics and fixes as they are now, for a screen that judges nothing itself."""

from pathlib import Path

import orjson
import pytest

from launcher.core.tail import chunks
from launcher.preset.settle import configuration, offers
from launcher.record.check import Check
from launcher.record.events import EventLog
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.levels import Level
from launcher.record.state import RunState, StateFile, current
from launcher.runs.act.import_logs import import_logs
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.run_checklist import checklist_maker, judged
from launcher.runs.supervise.disk import DiskSink
from launcher.runs.watch.steps import earlier_steps, steps

pytestmark = pytest.mark.usefixtures("home")

LOGS = Path(__file__).parents[1] / "data" / "logs"
KILLED = b"""Traceback (most recent call last):
RuntimeError: DataLoader worker (pid 4711) is killed by signal: Terminated.
"""


def imported(*names: str) -> RunDir:
    return import_logs([str(LOGS / name) for name in names])[0]


def rows(run: RunDir) -> dict[str, Check]:
    return {check.rule: check for check in current(run).checks}


@pytest.mark.slow
@pytest.mark.parametrize("names", [("kl-blowup.log.gz",), ("learning.log.gz", "resume.log.gz")])
def test_the_rows_on_disk_are_those_of_the_rules(names: tuple[str, ...]) -> None:
    run = imported(*names)
    checklist = judged(run, []).checklist
    assert list(current(run).checks) == checklist.checks()


def test_a_row_has_its_limits_its_metric_and_fixes_with_present_values() -> None:
    run = imported("kl-blowup.log.gz")
    found = rows(run)["KL-1"]
    assert {bound.level for bound in found.bounds} == {Level.WARN, Level.CRITICAL}
    assert found.keys == ("actor/reward_kl_penalty",)
    offered = offers(found.fixes, configuration(run.read_info().preset or {}))
    assert offered[-1].text == "raise kl.coef from 0.001 to 0.005, which helps against slow drift, not a sudden jump"


def test_limits_that_follow_the_run_move_with_its_steps_and_go_on_after_a_resume() -> None:
    """The run of a log is watched step by step; then an attempt goes on from its step 11."""
    source = imported("learning.log.gz")
    log = b"".join(chunks(source.attempt(1).console))
    run = create("x")
    file, events = StateFile(run), EventLog(run.events)

    def watch(resume_step: int | None, pieces: list[bytes]) -> list[Check]:
        attempt = run.add_attempt()
        monitor = Monitor(DiskSink(attempt, events), checklist_maker(RunInfo(), {}, None), {}, file_logger=False)
        monitor.history(earlier_steps(run, attempt.number, resume_step))
        found = []
        for now, piece in enumerate(pieces):
            monitor.feed_console(piece, float(now))
            monitor.collect(float(now))
            file.write(monitor.state(RunState("stopped", attempt=attempt.number), float(now)))
            found.append(rows(run)["KL-1"])
        return found

    cut = log.index(b"step:12 -")
    early, late = watch(None, [log[:cut], log[cut:]])
    assert early.bounds and late.bounds and early.bounds != late.bounds
    assert [record.step for _, record in steps(run)][-1] > 11
    (resumed,) = watch(11, [b""])
    assert resumed.bounds == early.bounds and resumed.keys == early.keys


@pytest.mark.parametrize("suffixes", [["log"], ["log", "jsonl"]])
def test_an_error_in_a_log_is_judged_at_the_step_after_which_it_was_printed(
    suffixes: list[str], tmp_path: Path
) -> None:
    rows = [{"step": step, "data": {"actor/entropy": 0.5, "critic/score/mean": 0.1}} for step in range(1, 12)]
    lines = [b"step:%d - actor/entropy:0.5 - critic/score/mean:0.1\n" % step for step in range(1, 12)]
    (tmp_path / "x.log").write_bytes(b"".join([*lines[:9], KILLED, *lines[9:]]))
    (tmp_path / "x.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (run,) = import_logs([str(tmp_path / f"x.{suffix}") for suffix in suffixes])

    found = judged(run, [])

    (check,) = (check for check in found.checklist.checks() if check.rule == "ERR-1")
    assert check.since == 9 and check.level >= Level.WARN
    assert {change.step for change in found.changes if change.rule == "ERR-1" and change.notable} == {9}
    assert str(found.checklist.verdict) == current(run).verdict
