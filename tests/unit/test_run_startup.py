"""The stages of a start: which is done, runs, waits; what each takes and usually takes."""

import io
import time

import pytest
from quoted import quoted

from launcher.cli.plain import _Printer
from launcher.core import paths
from launcher.metrics.records import StepRecord
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import Event, EventLog, PhaseChange, StateChange
from launcher.record.info import Head, RunInfo
from launcher.record.layout import RunDir, create
from launcher.record.standstill import StageWork, StartupWork
from launcher.record.state import RunState, current
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.startup import (
    ENDED,
    UNEXPLAINED,
    Startup,
    Usual,
    stage_lines,
    start_times,
    start_words,
    startup,
    startup_of,
    usual_start,
)

pytestmark = pytest.mark.usefixtures("home")
T = 1_795_000_000.0
TAKEN = {"config": 14.0, "ray": 20.0, "data": 26.0, "model": 28.0, "engine": 88.0}


def started(*phases: str, at: float = T, took: dict[str, float] | None = None) -> list[Event]:
    """Events of an attempt that came to the last of these phases."""
    events, t = [Event(at, StateChange("queued", "starting"))], at
    for phase in phases:
        events.append(Event(t, PhaseChange(phase)))
        t += (took or TAKEN).get(phase, 1.0)
    return events


def run_with(name: str, run_id: str, created: float, *, step: int | None, factor: float = 1.0) -> RunDir:
    """A run of a preset on disk, all of whose stages took `factor` times as long; without a step it failed."""
    run = RunDir(paths.runs_dir() / run_id)
    run.attempt(1).path.mkdir(parents=True)
    RunInfo(run_id, name, created, preset={}).write(run.run_yaml)
    LaunchRecord(created=created, host="here").write(run.attempt(1).launch)
    log = EventLog(run.events)
    for event in started(*TAKEN, at=created, took={phase: factor * taken for phase, taken in TAKEN.items()}):
        log.add(event.what, event.t)
    log.flush()
    if step is not None:
        t = created + factor * sum(TAKEN.values())
        run.attempt(1).steps.write_bytes(
            StepRecord(0, t - 1, None, {}).to_line() + StepRecord(step, t, None, {}).to_line()
        )
    return run


def words(found: Startup | None) -> list[str]:
    assert found is not None
    return [f"{stage.stage} {stage.state}" for stage in found.stages]


FAILED = started("config", "ray", "data", "model"), RunState("failed", phase="model", exit=Exit(1, t=T + 65))
ALL = "workers waiting, model waiting, engine waiting, checkpoint-load waiting, validate-first waiting, rollout waiting"
PASSED, AGAIN = started(*TAKEN, "rollout"), [*started(*TAKEN, "rollout"), *started("config", "ray", at=T + 1000)]


@pytest.mark.parametrize(
    ("events", "state", "expected"),
    [
        (started("config", "ray", "data"), RunState("starting", phase="data"), f"ray done, data running, {ALL}"),
        (PASSED, RunState("starting", phase="rollout", phase_since=T + 176), "engine done, rollout running"),
        (AGAIN, RunState("starting", phase="ray", started=T + 1000), "config done, ray running, trainer waiting"),
        (PASSED, RunState("starting", attempt=2, started=T + 1000), "config running, ray waiting"),
        (*FAILED, f"data done, model {ENDED}, engine not reached"),
    ],
    ids=["the rest waits", "one was passed over", "the newest attempt", "an attempt without an event", "it failed"],
)
def test_stages_of_a_start(events: list[Event], state: RunState, expected: str) -> None:
    assert expected in ", ".join(words(startup(events, state, Usual({}), T + 1020)))


def test_stages_have_their_seconds_and_the_validation_before_the_training_is_no_step_of_it() -> None:
    events = started("config", "ray", "data")
    found = startup(events, RunState("starting", phase="data", phase_since=T + 34, started=T), Usual({}), T + 40)
    assert found is not None and found.seconds == 40.0
    assert [stage.seconds for stage in found.stages[:4]] == [14.0, 20.0, 6.0, None]
    failed = startup(*FAILED, Usual({}), T + 900)
    assert failed is not None and failed.stages[3].seconds == 5.0
    events, state = started(*TAKEN, "validate-first", "rollout"), RunState("running", phase="rollout", step=10)
    assert words(startup(events, state, Usual({}), T + 300, before=10))[-1] == "rollout running"
    assert startup(events, state, Usual({}), T + 300, before=9) is None


def test_an_attempt_is_starting_before_its_supervisor_writes() -> None:
    run = create("early")
    RunState("queued", attempt=1, updated=time.time()).write(run.state)
    assert current(run).state == "starting"


def test_usual_times_are_medians_of_completed_starts_of_the_preset() -> None:
    for at, factor in enumerate((1.0, 3.0, 2.0)):
        run_with("mine", f"aaa{at}-mine", T + at, step=1, factor=factor)
    run_with("mine", "bbb0-mine", T + 10, step=None, factor=50.0)  # it failed: its last stage took no usual time
    run_with("another", "ccc0-another", T + 20, step=1, factor=70.0)
    run = run_with("mine", "ddd0-mine", T + 30, step=None)
    usual = usual_start(run, run.read_head())
    assert usual.starts == 3
    assert {stage: span[0] for stage, span in usual.spans.items()} == {each: 2 * t for each, t in TAKEN.items()}
    state = RunState("starting", attempt=1, phase="engine", phase_since=T + 118, heartbeat=T + 600)
    found = startup_of(run, state)
    assert found is not None and found.usual == 2 * sum(TAKEN.values())
    slow = next(stage for stage in found.stages if stage.slow)
    assert slow.stage == "engine"
    assert stage_lines(found, on_cpu=True)[-3:] == [
        "engine            longer than usual  8m 02s  usually 2m 56s",
        f"  {UNEXPLAINED}",
        "usual times: median of the last 3 starts of this preset",
    ]


def test_without_earlier_starts_the_table_tells_and_a_log_from_elsewhere_has_none() -> None:
    run = run_with("mine", "aaa0-mine", T, step=None)
    assert usual_start(run, Head("mine", True, frozenset({"preset"}))).spans["ray"] == (3.0, 20.0)
    assert usual_start(run, Head("mine", False, frozenset({"preset"}))).spans["ray"] == (3.0, 30.0)
    assert usual_start(run, Head("mine", True, frozenset({"replay_of"}))).spans == {}


def test_plain_output_tells_what_the_stage_before_took() -> None:
    run_with("mine", "aaa0-mine", T, step=1)
    run = run_with("mine", "bbb0-mine", T + 30, step=None)
    RunState("starting", attempt=1, phase="engine").write(run.state)
    reader, out = RunReader(run.path), io.StringIO()
    reader.poll()
    _Printer(reader, out).print_new()
    assert "starting: Ray; configuration took 14s, usually 14s\n" in out.getvalue()
    assert "starting: configuration" not in out.getvalue()


def why(work: StageWork, took: float, usual: float, *earlier: StageWork) -> str | None:
    """What is said of the stage "model" that took so long."""
    events = started("config", "ray", "data", "model")
    state = RunState("starting", phase="model", phase_since=T + 60)
    known = Usual({"model": (usual, usual)}, 1, [StartupWork((each,)) for each in earlier])
    found = startup(events, state, known, T + 60 + took, work=StartupWork((work,)))
    assert found is not None
    return next(stage.why for stage in found.stages if stage.stage == "model")


def test_a_stage_says_why_it_takes_long() -> None:
    def model(**what: float | int | str) -> StageWork:
        return StageWork("model", seconds=100.0, **what)  # type: ignore[arg-type]

    slow_disk = model(fetched=9_000_000_000, disk="/mnt/models nfs4")
    for work, usual, earlier, first, told in (
        (model(downloaded=3_100_000_000), 90, (), "downloaded", "3.1 31"),
        (model(compiled=62.0, cpu=80.0), 90, (StageWork("model", 30, compiled=0.5),), "compilers", "1m 02s 0s"),
        (slow_disk, 30, (), "read", "9.0 nfs4"),
        (model(starved=70.0, cpu=20.0), 30, (), "the", "1m 10s"),
        (model(quiet=80.0), 30, (), "did", "1m 20s"),
        (model(cpu=95.0), 30, (StageWork("model", 30, cpu=20.0),), "used", "1m 35s 20s"),
    ):
        reason = why(work, 100, usual, *earlier)
        assert reason and reason.split()[0] == first and quoted(reason) == told.split()
    assert why(slow_disk, 100, 95) is None, "as long as usual"
    assert why(model(cpu=5.0), 100, 30, StageWork("model", 30, cpu=5.0)) == UNEXPLAINED


def test_the_newest_complete_start_is_part_of_the_times_of_a_run() -> None:
    attempt, times = start_times(run_with("mine", "aaa0-mine", T, step=1))
    assert (attempt, times) == (1, TAKEN)
    assert " first step of attempt 2: engine" in start_words(times, 2) and start_words(times) == (
        "2m 56s to the end of the first step: engine 1m 28s, models 28s, data 26s, Ray 20s, configuration 14s"
    )
    assert start_times(run_with("mine", "bbb0-mine", T, step=None)) == (0, {}) and start_words({}) == ""
