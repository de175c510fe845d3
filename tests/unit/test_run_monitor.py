"""One attempt followed: what reaches the checklist, the sink and state.json."""

import gzip
import importlib.util
import json
import re
import statistics
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.console.phases import PHASE_OF_TIMER
from launcher.health.checklist import Checklist
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.events import LevelChange
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir
from launcher.record.levels import Level
from launcher.record.spans import STEP, TRAINER, Span, TimerTail
from launcher.record.state import RunState
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.run_checklist import checklist_maker
from launcher.runs.watch.startup import NAMES
from launcher.timing.stages import STAGES

LOGS = Path(__file__).parents[1] / "data" / "logs"
TOY = gzip.decompress((LOGS / "cpu-toy.log.gz").read_bytes())


class Heard:
    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.of_steps: list[tuple[str, int | None]] = []
        self.changes: list[LevelChange] = []

    def steps(self, records: list[StepRecord]) -> None:
        self.records += records

    def phase(self, phase: str, step: int | None, t: float) -> None:
        self.of_steps.append((phase, step))

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        self.changes += changes

    @property
    def phases(self) -> list[str]:
        return [phase for phase, _ in self.of_steps]


def make(sink: Heard, **keys: object) -> Monitor:
    return Monitor(sink, checklist_maker(RunInfo(), {}, None), keys, file_logger=False)


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


@pytest.mark.parametrize("size", [1 << 12, len(TOY)])
def test_every_save_and_validation_is_told_once_at_its_own_step(size: int) -> None:
    sink, log = Heard(), TOY.replace(b"timing_s/testing:", b"timing_s/save_checkpoint:0.3 - timing_s/testing:")
    monitor = make(sink)
    for start in range(0, len(log), size):
        monitor.feed_console(log[start : start + size], 1.0)
        monitor.collect(1.0)
    monitor.close(1.0)
    for phase, timer in (("save", "save_checkpoint"), ("validate", "testing")):
        own = [each.step for each in sink.records if each.data.get(f"timing_s/{timer}")]
        assert own and [step for each, step in sink.of_steps if each == phase] == own
    assert sink.of_steps[-1] == ("final", sink.records[-1].step)
    start = [each for each in NAMES if each != "graphs"]
    assert sink.phases[: len(start)] == start


STEPS_OF_TOY = json.loads((LOGS.parent / "toy_steps.json").read_text())["steps"]
FIRST_VALIDATION = 3.88


def recorded(folder: Path) -> Iterator[tuple[Mapping[str, object], list[StepRecord]]]:
    """Keys and steps of the toy, and of each attempt on a GPU that validated or saved several times."""
    names = ("timing_s/testing", "timing_s/save_checkpoint")
    toy = [StepRecord(step, t, None, dict(zip(names, spent, strict=True))) for step, t, *spent in STEPS_OF_TOY]
    yield {"trainer.test_freq": 10, "trainer.save_freq": 10}, toy
    with tarfile.open(LOGS.parent / "gpu/runs.tar.xz") as archive:
        members = [each for each in archive.getmembers() if each.name.endswith(("/steps.jsonl", "/launch.json"))]
        archive.extractall(folder, members, filter="data")
    for file in sorted(folder.glob("runs/*/attempts/*/steps.jsonl")):
        keys = orjson.loads((file.parent / "launch.json").read_bytes())["keys"]
        every = max(keys.get("trainer.test_freq") or -1, keys.get("trainer.save_freq") or -1)
        records = [record for line in file.read_bytes().splitlines() if (record := StepRecord.from_line(line))]
        due = [place for place, record in enumerate(records) if every > 0 and record.step % every == 0]
        if len(due) > 1:
            yield keys, records[: due[-1] + 1]


def test_the_eta_counts_validation_and_saving_over_recorded_runs(tmp_path: Path) -> None:
    """At every step, against the time that the rest really took; and against the mean of the steps alone."""
    before, after = list[float](), list[float]()
    for number, (keys, records) in enumerate(recorded(tmp_path)):
        monitor, gaps = make(Heard(), **keys), list[float]()
        if number == 0:  # its first validation showed what one takes
            monitor.feed_console(TOY[: TOY.index(b"step:0 -")], 1.0)
            monitor._enter("validate-first", 1.0)
            monitor._enter("rollout", 1.0 + FIRST_VALIDATION)
        monitor.total = records[-1].step
        errors = []
        for earlier, record in pairwise(records):
            if not gaps:
                monitor._measure(earlier)
            monitor._measure(record)
            gaps.append(record.t - earlier.t)
            left = records[-1].t - record.t
            if left > 0 and (eta := monitor.eta) is not None:
                errors.append(abs(eta - left) / left)
                before.append(abs((monitor.total - record.step) * statistics.fmean(gaps[-20:]) - left) / left)
        assert monitor.eta == 0.0
        after += errors
        assert number or statistics.median(errors) < 0.06, "of the toy, where it was 0.10"
    assert len(after) > 90 and statistics.median(after) < 0.8 * statistics.median(before)


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
    monitor = Monitor(Heard(), checklist_maker(RunInfo(), {}, None), {"a": 1}, file_logger=False, pinned=pinned)
    monitor.feed_console(TOY, 1.0)
    assert {"a": 1, **pinned, "algorithm.adv_estimator": "gae"}.items() <= monitor.keys.items()


def test_a_resumed_attempt_keeps_its_baselines_when_the_dump_comes() -> None:
    before = Heard()
    first = make(before)
    first.feed_console(TOY, 1.0)
    first.close(1.0)
    resumed = make(Heard())
    resumed.history([record for record in before.records if 0 < record.step <= 40])
    unready = warm(resumed.checklist)
    resumed.feed_console(TOY[: TOY.index(b"step:0 -")], 1.0)  # its own start-up, with the dump
    # STOP-1 needs the limit of a response, which only the dump has
    assert warm(resumed.checklist) - {"STOP-1"} == unready != warm(make(Heard()).checklist)


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
    monitor.feed_timers(Span("gen", "trainer", 142.5), [], 142.6)
    monitor.feed_console(line(43), 143.0)  # the line of the step before comes late
    monitor.collect(143.0)
    assert monitor.phase == "rollout" and monitor.stage == (142.5, None, None), "never passed before, by its spans"
    earlier = [Span(name, "trainer", 100.0, 100.0 + took) for name, took in (("ref", 0.2), ("ref", 0.4), ("adv", 0.1))]
    monitor.feed_timers(Span("ref", "trainer", 144.0), earlier, 144.1)
    assert monitor.stage == (144.0, pytest.approx(0.3), pytest.approx(0.4))
    state = state_of(monitor, 145.0)
    assert state.phase == "log-prob" and state.phase_since == 144.0
    assert state.phase_usual == pytest.approx(0.4), "of all its timers"
    monitor.feed_timers(Span("testing", "trainer", 146.0), [Span("ref", "trainer", 144.0, 146.0)], 146.1)
    assert monitor.phase == "validate" == heard.phases[-1] and monitor.stage == (146.0, None, None)
    monitor.feed_timers(Span("dump_rollout_generations", "trainer", 148.0), [], 148.1)
    assert monitor.phase == "other" and monitor.stage == (148.0, None, None)
    for step in (44, 45):  # without further spans
        monitor.feed_console(line(step), 150.0 + step)
    assert monitor.phase == "rollout" and monitor.phase_since == 195.0 and monitor.stage[1] == 1.0


def test_a_span_in_which_the_run_stood_still_is_not_usual() -> None:
    monitor = make(Heard())
    monitor.stood_still = 130.0
    ended = [Span("data", "trainer", start, end) for start, end in ((100.0, 100.1), (101.0, 160.0), (170.0, 170.1))]
    monitor.feed_timers(Span("data", "trainer", 180.0), ended, 180.0)
    assert monitor.stage == (180.0, pytest.approx(0.1), pytest.approx(0.1))


@pytest.mark.parametrize("file", sorted((LOGS.parent / "spans").glob("*.spans.jsonl.gz")), ids=lambda file: file.name)
def test_the_phase_of_a_recorded_run_is_that_of_its_timer_at_every_look(file: Path, tmp_path: Path) -> None:
    """The lines of its trainer come as they were written; the phase is looked at twice a second, as it lasts."""
    attempt = AttemptDir(tmp_path / "1")
    attempt.spans.mkdir(parents=True)
    lines = [(Span.from_line(line), line) for line in gzip.decompress(file.read_bytes()).splitlines(keepends=True)]
    trainer = [(span, line) for span, line in lines if span is not None and span.lane == TRAINER]
    begins = [(span.start, 0, begin_of(line)) for span, line in trainer if span.end is not None]
    written = sorted([*begins, *((span.end, 1, line) for span, line in trainer if span.end is not None)])
    monitor, tail, seen = make(Heard()), TimerTail(attempt), set[str]()
    monitor.feed_console(TOY[: TOY.index(b"step:2 -")], written[0][0])
    now, whole = written[0][0], [span for span, _ in trainer if span.name != STEP and span.end is not None]
    with (attempt.spans / "host-1.jsonl").open("ab", buffering=0) as out:
        while written:
            while written and written[0][0] <= now:
                out.write(written.pop(0)[2])
            monitor.feed_timers(*tail.read(), now)
            running = [span for span in whole if span.start <= now < (span.end or now)]
            before = max((span.end or 0.0 for span in whole if (span.end or now) < now), default=now)
            if running:
                assert monitor.phase == PHASE_OF_TIMER.get(max(running, key=lambda span: span.start).name, "other")
                seen.add(monitor.phase)
            elif now - before >= 1.0:
                assert monitor.phase == "other"
            now += 0.05 if file.name.startswith("toy") else 0.5
    assert {"rollout", "log-prob", "update"} <= seen, "all that lasts is seen"


def begin_of(line: bytes) -> bytes:
    """The line that a span wrote when it began."""
    span = orjson.loads(line)
    return orjson.dumps({key: span[key] for key in span if key != "end"}) + b"\n"


def test_every_timer_of_verl_s_trainers_has_a_phase() -> None:
    known = {timer for stage in STAGES.values() for timer in stage.timers} - {"adv", "dump_rollout_generations"}
    assert known <= PHASE_OF_TIMER.keys()
    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs veRL")
    text = "".join(
        path.read_text() for path in (Path(found.submodule_search_locations[0]) / "trainer/ppo").rglob("*.py")
    )
    timers = set(re.findall(r'marked_timer\("(\w+)"', text)) - {STEP}
    assert len(timers) > 10 and timers - PHASE_OF_TIMER.keys() == {
        *("dump_rollout_generations", "start_profile", "stop_profile")
    }


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
    monitor.collect(1.0)
    assert {change.rule for change in heard.changes if change.notable} == flags


def test_errors_of_a_second_run_in_one_log_count_again() -> None:
    heard = Heard()
    monitor = make(heard)
    first = b"Total training steps: 1\nstep:1 - actor/entropy:0.5 - critic/score/mean:0.1\n"
    monitor.feed_console(
        first + b"2026-11-25 07:00:00,000\tINFO worker.py:2012 -- Started a local Ray instance.\n", 1.0
    )
    monitor.feed_console(_KILLED, 1.0)
    monitor.collect(1.0)
    assert {change.rule for change in heard.changes if change.notable} == {"ERR-1"}
