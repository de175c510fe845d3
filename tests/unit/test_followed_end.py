"""The end of a followed log in its supervisor: its state, its silence, and a stop; on a clock that is given."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from foreign_logs import FORMS
from growing_logs import WRITERS, Step, Write, console, run_of, wandb
from quoted import quoted
from waiting import PATIENCE, wait_until

from launcher.core import clock
from launcher.core.progress import Meter
from launcher.record.attempt import Exit
from launcher.record.check import Check
from launcher.record.events import LevelChange, Note, read_kind
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.machine import HostSample, MachineSample
from launcher.record.state import RunState, current
from launcher.runs.act import attach_file
from launcher.runs.supervise import follow, supervisor
from launcher.runs.supervise.supervisor import Supervisor
from launcher.runs.watch.steps import steps

EVERY = 30.0  # seconds per step
LAST = 12


CALM = {"critic/score/mean": 0.5, "actor/entropy": 0.5, "actor/kl_loss": 0.01, "response_length/mean": 7.0}
CALM |= {"actor/lr": 1e-6, "timing_s/step": EVERY}


def calm(last: int) -> list[Step]:
    return [(step, CALM) for step in range(1, last + 1)]


def trl(steps: int) -> bytes:
    """As TRL prints so many of `LAST` steps, without the line that ends a training."""
    text = FORMS["trl"][1](calm(LAST)).partition("{'train_runtime'")[0]
    return text.partition(f"| {steps + 1}/{LAST}")[0].encode()


class Followed:
    """A followed log and its supervisor, which looks when it is told to; `writers` hold the log open."""

    def __init__(self, path: Path, written: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.writers, self.alerts = path, list[int](), list[dict[str, object]]()
        path.parent.mkdir(parents=True)
        path.write_bytes(written)
        self.now = self.grown = path.stat().st_mtime
        monkeypatch.setenv("PPO_TUI_HOME", str(path.parents[1] / "home"))
        monkeypatch.setattr(clock, "now", lambda: self.now)
        monkeypatch.setattr(follow, "_LOOK", 0.01)
        monkeypatch.setattr(follow, "holders", lambda path: iter(self.writers))
        monkeypatch.setattr(follow, "written", lambda path: self.grown)
        monkeypatch.setattr(supervisor, "TICK", 0.01)
        monkeypatch.setattr(attach_file, "spawn_supervisor", lambda run: None)
        self.run: RunDir = attach_file.attach_file(str(path), {})
        self.supervise()

    def supervise(self, before: RunState | None = None) -> None:
        self.supervisor = Supervisor(self.run, before)
        self.supervisor.feed._sampling.take = lambda: MachineSample(self.now, host=HostSample())  # type: ignore[method-assign, union-attr]
        self.supervisor.messages.send = self.supervisor.alert_command.send = self.alerts.append  # type: ignore[method-assign, assignment]
        self.going = self.supervisor._take_over() if before else self.supervisor._spawn()

    def look(self) -> RunState:
        self.supervisor._look()
        return current(self.run)

    def until(self, good: Callable[[RunState], bool]) -> RunState:
        wait_until(lambda: good(self.look()), lambda: replace(current(self.run), checks=()))
        return current(self.run)

    def after(self, seconds: float) -> RunState:
        """Its state so much later; the thread that reads the log has looked, too."""
        self.now += seconds
        for _ in range(30):
            self.look()
            threading.Event().wait(0.01)
        return current(self.run)

    def end(self) -> RunState:
        assert isinstance(self.supervisor.driver, follow.FileDriver)
        wait_until(lambda: not self.supervisor.driver.running(), self.look)  # type: ignore[union-attr]
        self.supervisor._finish()
        return current(self.run)

    def silence(self) -> Check:
        return next(check for check in current(self.run).checks if check.rule == "STALL-1")

    def raised(self) -> list[Level]:
        return [
            each.after
            for each in read_kind(self.run.events, LevelChange)
            if each.rule == "STALL-1" and each.after > Level.OK
        ]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Followed]]:
    begun: list[Followed] = []

    def make(name: str, written: bytes) -> Followed:
        begun.append(Followed(tmp_path / "logs" / name, written, monkeypatch))
        return begun[-1]

    yield make
    for each in begun:
        if each.supervisor.driver is not None:
            each.supervisor.driver.terminate()
        each.supervisor.feed.close()


def test_a_log_with_all_steps_and_no_writer_is_finished_after_ten_minutes(begin: Callable[..., Followed]) -> None:
    log = begin("run.log", trl(LAST))
    state = log.until(lambda state: state.step == LAST)
    assert (state.state, state.phase) == ("running", "all steps done, waiting for its end")

    state = log.after(599)
    assert (state.state, state.phase) == ("running", "all steps done, waiting for its end")
    log.now += 2

    assert log.end().state == "finished"
    assert ["10m", "01s"] in [quoted(note.text) for note in read_kind(log.run.events, Note)]
    assert not log.raised() and [each["state"] for each in log.alerts] == ["finished"]


def test_the_memory_in_a_log_is_not_compared_with_that_of_this_machine(begin: Callable[..., Followed]) -> None:
    used = 0.99 * psutil.virtual_memory().total / 2**30  # here it would be CRITICAL
    log = begin("run.log", console([(step, data | {"perf/cpu_memory_used_gb": used}) for step, data in calm(LAST)]))
    state = log.until(lambda state: state.step == LAST)
    (memory,) = [check for check in state.checks if check.rule == "MEM-2"]
    assert memory.level <= Level.OK


def test_no_hang_is_reported_after_the_last_step(begin: Callable[..., Followed]) -> None:
    log = begin("run.log", trl(LAST))
    log.writers = [1]
    log.until(lambda state: state.step == LAST)

    state = log.after(1e6)  # its program saves the model

    assert (state.state, state.stalled, log.raised(), log.alerts) == ("running", False, [], [])
    log.writers = []
    assert log.end().state == "finished"


@pytest.mark.parametrize("here", [False, True])
def test_a_silence_before_the_last_step_is_a_hang_only_of_a_writer_that_is_seen(
    begin: Callable[..., Followed], here: bool
) -> None:
    log = begin("run.log", trl(8))
    log.writers = [1] if here else []
    log.until(lambda state: state.step == 8 and (log.supervisor.driver.written_here is here))  # type: ignore[union-attr]

    state = log.after(3600)

    words = "no new step for 1h 00m (usual 30s)"
    if here:
        assert (log.silence().level, log.silence().message, state.stalled) == (Level.CRITICAL, words, True)
        assert {each["rule"] for each in log.alerts} == {"STALL-1"}
    else:
        assert (log.silence().level, log.silence().message) == (Level.NOTICE, f"{words}, no writer is seen here")
        assert (state.stalled, log.raised(), log.alerts) == (False, [Level.NOTICE], [])


@pytest.mark.parametrize(("code", "expected"), [(0, "finished"), (1, "failed")])
def test_a_wandb_run_that_has_ended_is_ended(begin: Callable[..., Followed], code: int, expected: str) -> None:
    log = begin("run-1-ab/run-ab.wandb", wandb(run_of(1, 8)))
    log.writers = [1]  # its service
    log.until(lambda state: state.step == 7)
    assert log.after(5).state == "running"

    log.log.write_bytes(wandb(run_of(1, 8), code))

    state = log.end()
    assert (state.state, state.step, state.exit and state.exit.code) == (expected, 8, code)


@pytest.mark.parametrize(("name", "write"), [WRITERS["csv"][1:], WRITERS["wandb"][1:]])
def test_a_stop_ends_the_reading_of_a_long_log(
    begin: Callable[..., Followed], monkeypatch: pytest.MonkeyPatch, name: str, write: Write
) -> None:
    reading, asked, add = threading.Event(), threading.Event(), Meter.add

    def wait(meter: Meter, size: float) -> None:
        reading.set()
        asked.wait(PATIENCE)
        add(meter, size)

    asked.set()
    log = begin(name, write(run_of(1, 8)))
    log.until(lambda state: state.step == 7)
    asked.clear()
    reading.clear()
    monkeypatch.setattr(Meter, "add", wait)
    monkeypatch.setattr(follow, "_REST", -1.0)
    log.log.write_bytes(write(run_of(1, 20)))
    wait_until(reading.is_set)
    log.supervisor.stop("user")
    asked.set()

    state = log.end()

    assert (state.state, state.step) == ("stopped", 7)


def test_the_steps_of_a_long_log_are_dated_together_and_judged_in_parts(begin: Callable[..., Followed]) -> None:
    log = begin("run.log", console(calm(250)))
    state = log.until(lambda state: state.step is not None)
    assert [state.step, log.look().step, log.look().step] == [100, 200, 250]
    times = [step.t for _, step in steps(log.run)]
    assert {round(later - before, 3) for before, later in pairwise(times)} == {EVERY}
    log.supervisor.driver.terminate()  # type: ignore[union-attr]
    log.supervise(current(log.run))
    while log.supervisor.feed.behind or log.supervisor.feed.catching_up:
        log.look()
    assert [step.t for _, step in steps(log.run)] == times
    log.supervise(current(log.run))
    log.until(lambda state: log.supervisor.feed.behind)
    log.supervisor.stop("user")
    assert log.end().state == "stopped"


def test_a_stop_that_another_process_recorded_holds_for_the_next_supervisor(begin: Callable[..., Followed]) -> None:
    log = begin("run.log", console(calm(40)))
    before = log.until(lambda state: state.step == 40)
    Exit(None, None, "user", log.now).write(log.run.attempt(1).exit)

    log.supervise(before)

    state = current(log.run)
    assert not log.going and (state.state, state.step, len(state.checks)) == ("stopped", 40, len(before.checks))
