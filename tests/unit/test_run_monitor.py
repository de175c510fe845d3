"""One attempt followed: what reaches the checklist, the sink and state.json."""

import gzip
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.health.checklist import Checklist
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.events import LevelChange
from launcher.record.info import RunInfo
from launcher.record.levels import Level
from launcher.record.spans import Span
from launcher.record.state import RunState
from launcher.runs.watch.monitor import Monitor
from launcher.runs.watch.run_checklist import checklist_maker

LOGS = Path(__file__).parents[1] / "data" / "logs"
TOY = gzip.decompress((LOGS / "cpu-toy.log.gz").read_bytes())


class Heard:
    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.phases: list[str] = []
        self.changes: list[LevelChange] = []

    def steps(self, records: list[StepRecord]) -> None:
        self.records += records

    def phase(self, phase: str, step: int | None, t: float) -> None:
        self.phases.append(phase)

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        self.changes += changes


def make(sink: Heard, **keys: object) -> Monitor:
    return Monitor(sink, checklist_maker(RunInfo(), {}), keys, file_logger=False)


def state_of(monitor: Monitor, now: float = 1.0) -> RunState:
    return monitor.state(RunState("running"), now)


def warm(checklist: Checklist) -> set[str]:
    return {check.rule for check in checklist.checks() if check.level == Level.WARM}


@pytest.mark.slow
@settings(max_examples=10)
@given(st.lists(st.integers(0, len(TOY)), max_size=12))
def test_live_pieces_and_the_whole_log_give_the_same(cuts: list[int]) -> None:
    whole, pieces = Heard(), Heard()
    monitor = make(whole)
    monitor.feed_console(TOY, 1.0)
    monitor.close(1.0)
    monitor = make(pieces)
    edges = [0, *sorted(cuts), len(TOY)]
    for start, stop in pairwise(edges):
        monitor.feed_console(TOY[start:stop], 1.0)
        monitor.collect(1.0)
    monitor.close(1.0)
    assert [r.step for r in pieces.records] == [r.step for r in whole.records] == list(range(81))
    assert [r.data for r in pieces.records] == [r.data for r in whole.records]
    assert [c for c in pieces.changes if c.notable] == [c for c in whole.changes if c.notable]


def test_the_start_is_told_phase_by_phase() -> None:
    sink = Heard()
    monitor = make(sink)
    monitor.feed_console(TOY, 1.0)
    monitor.close(1.0)
    start = ["config", "ray", "data", "model", "engine", "checkpoint-load", "validate-first", "rollout"]
    assert sink.phases[: len(start)] == start and sink.phases[-1] == "final"


def test_the_rest_of_a_run_takes_the_mean_of_its_recent_steps() -> None:
    """Steps whose groups are generated again are long: the median would leave them out of the rest."""
    monitor = make(Heard())
    assert state_of(monitor).eta is None
    cuts = [0, *(TOY.index(b"step:%d -" % step) for step in (1, 2, 3, 4))]
    usual, pace = [None, 10.0, 6.0, 9.0], [None, 10.0, 6.0, 7.0]  # of gaps of 10, 2 and 9 s
    for step, now in enumerate((10.0, 20.0, 22.0, 31.0)):
        monitor.feed_console(TOY[cuts[step] : cuts[step + 1]], now)
        monitor.collect(now)
        state = state_of(monitor, now)
        assert (state.step, state.total, state.step_seconds) == (step, 80, usual[step])
        assert state.eta == (None if pace[step] is None else (80 - step) * pace[step])
    monitor.feed_console(TOY[cuts[-1] :], 30.0)
    monitor.close(30.0)
    state = state_of(monitor)
    assert (state.step, state.total, state.eta) == (80, 80, 0.0)


def test_the_consoles_dump_completes_the_keys_and_pinned_ones_beat_it() -> None:
    pinned = {"data.train_batch_size": 7}
    monitor = Monitor(Heard(), checklist_maker(RunInfo(), {}), {"a": 1}, file_logger=False, pinned=pinned)
    monitor.feed_console(TOY, 1.0)
    assert monitor.keys["a"] == 1 and monitor.keys["data.train_batch_size"] == 7
    assert monitor.keys["algorithm.adv_estimator"] == "gae"


def test_a_resumed_attempt_keeps_its_baselines_when_the_dump_comes() -> None:
    before = Heard()
    first = make(before)
    first.feed_console(TOY, 1.0)
    first.close(1.0)
    resumed = make(Heard())
    resumed.history([record for record in before.records if 0 < record.step <= 40])
    unready = warm(resumed.checklist)
    resumed.feed_console(TOY[: TOY.index(b"step:0 -")], 1.0)  # its own start-up, with the dump
    assert warm(resumed.checklist) == unready != warm(make(Heard()).checklist)


@pytest.mark.parametrize("size", [5_000, 1 << 24])
def test_an_attempt_appended_to_the_same_log_holds_in_place_of_what_it_repeats(size: int) -> None:
    begin, forty, fifty = (TOY.index(b"step:%d -" % step) for step in (0, 41, 51))
    second = TOY[:begin] + TOY[forty:].replace(b"critic/score/mean:", b"critic/score/mean:9")
    log, heard, store = TOY[:fifty] + b"\n" + second, Heard(), SeriesStore()
    monitor = make(heard)
    for start in range(0, len(log), size):
        monitor.feed_console(log[start : start + size], 1.0)
        monitor.collect(1.0)
    monitor.close(1.0)
    assert [record.step for record in heard.records] == [*range(51), *range(41, 81)]
    for record in heard.records:
        store.add(record)
    score = store.get("critic/score/mean")
    assert score is not None and [step for step in range(1, 81) if (score.at(step) or 0) > 9] == [*range(41, 81)]
    assert sum(change.rule == "NUM-1" for change in heard.changes) == 2  # each attempt is judged on its own


def test_a_mute_outlives_the_configuration_dump_and_takes_its_flag_away() -> None:
    log = gzip.decompress((LOGS / "kl-blowup.log.gz").read_bytes())
    loud, quiet = make(Heard()), make(Heard())
    quiet.mute("KL-4")
    for monitor in (loud, quiet):
        monitor.feed_console(log, 1.0)
        monitor.close(1.0)
    assert "KL-4" in state_of(loud).flags
    state = state_of(quiet)
    assert "KL-4" not in state.flags and state.muted == {"KL-4"}
    quiet.mute("KL-4", False)
    assert state_of(quiet).flags == state_of(loud).flags


def test_a_phase_is_timed_from_the_last_step_and_measured_by_the_steps_before() -> None:
    monitor = make(Heard())
    cut = TOY.index(b"step:41 -")
    monitor.feed_console(TOY[:cut], 100.0)
    monitor.collect(100.0)
    monitor.feed_console(TOY[cut : TOY.index(b"\n", cut) + 1], 250.0)
    monitor.collect(250.0)
    state = state_of(monitor, 251.0)
    assert state.phase == "rollout" and state.phase_since == 250.0
    assert state.phase_usual is not None and 0.5 < state.phase_usual < 3.0, "median of timing_s/gen"


def test_a_timer_that_runs_is_measured_by_itself_and_not_by_the_whole_step() -> None:
    heard = Heard()
    monitor = make(heard)
    for step in (*range(41), 42):  # a step every second
        monitor.feed_console(TOY[: TOY.index(b"step:1 -")] if step == 0 else line(step), 100.0 + step)
        monitor.collect(100.0 + step)
    since, usual, longest = monitor.stage
    assert since == 142.0 and usual == 1.0 and longest == 2.0, "no mark shows the parts of a step on a CPU"
    monitor.feed_timer(Span("gen", "trainer", 142.5))
    monitor.feed_console(line(43), 143.0)  # the line of the step before comes late
    monitor.collect(143.0)
    assert monitor.phase == "rollout" and monitor.stage[0] == 142.5
    monitor.feed_timer(Span("ref", "trainer", 144.0))
    since, usual, longest = monitor.stage
    assert since == 144.0 and usual is not None and 0.01 < usual < 0.6 and usual <= (longest or 0), "of timing_s/ref"
    state = state_of(monitor, 145.0)
    assert state.phase == "update" and state.phase_since == 144.0
    assert state.phase_usual is not None and state.phase_usual > 2 * usual, "log-probabilities, values, updates"
    monitor.feed_timer(Span("testing", "trainer", 146.0))
    since, usual, _ = monitor.stage
    assert monitor.phase == "validate" == heard.phases[-1] and since == 146.0 and usual == pytest.approx(2.0, abs=0.5)
    monitor.feed_timer(Span("dump_rollout_generations", "trainer", 148.0))
    assert monitor.phase == "validate" and monitor.stage == (148.0, None, None), "never passed before"
    for step in (44, 45):  # without further spans
        monitor.feed_console(line(step), 150.0 + step)
    assert monitor.phase == "rollout" and monitor.phase_since == 195.0 and monitor.stage[1] == 1.0


def line(step: int) -> bytes:
    begin = TOY.index(b"step:%d -" % step)
    return TOY[begin : TOY.index(b"\n", begin) + 1]


_KILLED = b"""Traceback (most recent call last):
RuntimeError: DataLoader worker (pid 4711) is killed by signal: Terminated.
"""


@pytest.mark.parametrize(("last", "flags"), [(1, {"ERR-1"}), (2, set())])
def test_what_is_killed_after_the_last_step_is_no_error_of_the_run(last: int, flags: set[str]) -> None:
    heard = Heard()
    monitor = make(heard)
    steps = b"".join(b"step:%d - actor/entropy:0.5 - critic/score/mean:0.1\n" % step for step in range(1, last + 1))
    monitor.feed_console(b"Total training steps: 2\n" + steps + _KILLED, 1.0)
    assert {change.rule for change in heard.changes if change.notable} == flags


def test_errors_of_a_second_run_in_one_log_count_again() -> None:
    heard = Heard()
    monitor = make(heard)
    first = b"Total training steps: 1\nstep:1 - actor/entropy:0.5 - critic/score/mean:0.1\n"
    monitor.feed_console(
        first + b"2026-11-25 07:00:00,000\tINFO worker.py:2012 -- Started a local Ray instance.\n", 1.0
    )
    monitor.feed_console(_KILLED, 1.0)
    assert {change.rule for change in heard.changes if change.notable} == {"ERR-1"}
