"""Where the time of a step goes, from recorded spans of the CPU toy and made-up ones of several GPUs."""

import gzip
import json
from pathlib import Path

import orjson
import pytest
import span_runs
from commands import call
from console_logs import DATA
from quoted import quoted
from tables import tabled

from launcher.estimate.models import facts
from launcher.metrics.store import SeriesStore
from launcher.preset.files import load
from launcher.record.attempt import LaunchRecord
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.machine import GpuSample
from launcher.record.spans import Span, SpanTail, TimerTail
from launcher.record.state import RunState
from launcher.timing.anatomy import StepTime, step_times
from launcher.timing.limits import Size, limits, peak, size_of
from launcher.timing.report import NO_SPANS, SWITCHED_OFF, Timing, rough
from launcher.timing.stages import OF_SPAN, OF_TIMER, STAGES
from launcher.timing.words import limit_line
from tui.kit.drawing.glyphs import SIGNS

START = span_runs.START


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """The recorded toy run, ended."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    found = RunDir(tmp_path / "home" / "runs" / "1550b6-toy-cpu")
    found.attempts.mkdir(parents=True)
    attempt = found.add_attempt()
    settings = ("trainer.save_every=3", "trainer.validate_every=3")
    RunInfo(id=found.id, name="toy-cpu", created=1.0, preset=load("toy-cpu", settings).snapshot()).write(found.run_yaml)
    RunState("finished", attempt=1, created=1.0, step=6, total=6).write(found.state)
    LaunchRecord(created=1.0).write(attempt.launch)
    attempt.steps.write_bytes(b"".join(record.to_line() for record in span_runs.recorded_steps()))
    span_runs.write_spans(attempt, span_runs.recorded())
    return found


def series() -> SeriesStore:
    store = SeriesStore()
    store.add_all(span_runs.recorded_steps(), 1)
    return store


def recorded() -> dict[int, StepTime]:
    return {each.step: each for each in step_times(span_runs.recorded())}


def test_every_moment_of_a_step_is_under_one_stage() -> None:
    for step in (*recorded().values(), *step_times(span_runs.made_up(5))):
        assert sum(step.stages.values()) == pytest.approx(step.seconds, rel=1e-6)
        assert all(a.end == pytest.approx(b.start) for a, b in zip(step.path, step.path[1:], strict=False))
        for lane in step.lanes:
            assert all(a.end <= b.start + 1e-9 for a, b in zip(lane.pieces, lane.pieces[1:], strict=False)), lane.name


def test_the_recorded_toy_has_its_lanes_and_stages() -> None:
    steps = recorded()
    assert sorted(steps) == [1, 2, 3, 4, 5, 6]
    assert [lane.name for lane in steps[4].lanes] == ["trainer", "rank 0", "replica 0", "agent 0", "reward 0"]
    for step, time in steps.items():
        assert ("validation" in time.stages) == ("checkpoint" in time.stages) == (step in (3, 6))
        assert {"rollout", "log-prob", "reference", "critic", "update", "sync", "waiting"} < set(time.stages)
    logged = series()
    for name, timers in (("update", ["update_actor"]), ("critic", ["values", "update_critic"])):
        whole = sum(logged.get(f"timing_s/{timer}").at(4) or 0.0 for timer in timers)  # type: ignore[union-attr]
        assert 0.5 * whole < steps[4].stages[name] <= whole, "without the waiting in it"


def test_a_tail_a_slow_rank_and_idle_gpus_are_seen() -> None:
    last = step_times(span_runs.made_up(8))[-1]
    assert 0.15 < last.stages["tail"] / last.seconds < 0.35
    assert last.stages["checkpoint"] == pytest.approx(2.7, abs=0.01)
    idle = last.idle()
    assert sorted(idle) == [*range(8)]
    assert min(idle, key=lambda rank: idle[rank]) == 7, "the slow rank is the one that works most"
    assert all(0.05 < share < 0.4 for share in idle.values())


def test_a_running_step_grows() -> None:
    spans = span_runs.made_up(3, running=True)
    assert [step.step for step in step_times(spans)] == [1, 2]
    begun = max(span.start for span in spans)
    for later in (1.0, 2.0):
        step = step_times(spans, begun + later)[-1]
        assert step.running and step.step == 3 and step.path[-1].stage == "critic"
        assert step.path[-1].end == pytest.approx(begun + later)
        assert step.lanes[1].pieces[-1].stage == "critic", "the rank works on"


def test_a_step_that_a_stop_cut_off_is_none() -> None:
    spans = [span for span in span_runs.made_up(3) if not (span.step == 3 and span.name in ("update_actor", "ref"))]
    assert [step.step for step in step_times(spans)] == [1, 2], "its timer ended with the run"


def test_a_killed_run_and_damaged_lines_hide_nothing_else(run: RunDir) -> None:
    path = run.attempt(1).spans / "host-1.jsonl"
    path.write_bytes(path.read_bytes() + b'{"name":"gen"}\n\xff\xfe\n{"name":1,"lane":"x","start":"y"}\n{"na')
    timing = Timing(run, whole=True)
    assert timing.poll(False)
    assert timing.steps(series()) == [1, 2, 3, 4, 5, 6]


def test_each_step_of_a_resumed_run_has_the_trace_of_its_last_attempt(run: RunDir) -> None:
    recorded = {step: [each for each in span_runs.recorded() if each.step == step] for step in (5, 6)}
    follower = Timing(run, whole=True)
    follower.poll(False)
    second = run.add_attempt()
    LaunchRecord(created=2.0, resume_step=4).write(second.launch)
    span_runs.write_spans(second, [])
    for timing in (follower, Timing(run, whole=True)):
        timing.poll(True)
        assert [*timing.seconds()] == [1, 2, 3, 4], "5 and 6 are trained again"
        assert (early := timing.report(series(), 2)) is not None and early.time is not None
    span_runs.write_spans(second, recorded[5] + recorded[6])
    follower.poll(True)
    assert [*follower.seconds()] == [1, 2, 3, 4, 5, 6]


def test_no_spans_are_no_steps() -> None:
    assert step_times([]) == [] == step_times([Span("reward", "process_1", 1.0, 2.0)])


def test_only_the_end_of_a_large_file_is_read_at_first(run: RunDir) -> None:
    attempt = run.attempt(1)
    (attempt.spans / "host-2.jsonl").write_bytes(
        b'{"name":"reward","lane":"process_2","start":1.0,"end":2.0}\n' * 30_000
    )
    assert 15_000 < sum(span.lane == "process_2" for span in SpanTail(attempt).read()) < 20_000
    assert sum(span.lane == "process_2" for span in SpanTail(attempt, whole=True).read()) == 30_000


def test_the_timer_that_runs_is_found_among_the_files(run: RunDir) -> None:
    attempt = run.attempt(1)
    timers = TimerTail(attempt)
    span_runs.write_spans(attempt, [Span("actor_update", "rank_0", START)])
    assert timers.read() == (None, [])
    trainer = attempt.spans / "host-2.jsonl"
    lines = [Span("step", "trainer", START, None, 3), Span("gen", "trainer", START + 1, None, 3)]
    trainer.write_bytes(b"".join(orjson.dumps(span.to_json()) + b"\n" for span in lines))
    assert timers.read() == (lines[1], [])
    with trainer.open("ab") as file:
        file.write(b'{"name":"gen","lane":"trainer","start":%f,"end":%f}\n{"name":"re' % (START + 1, START + 2))
    running, ended = timers.read()
    assert running is None and [(span.name, span.end) for span in ended] == [("gen", START + 2)]
    with trainer.open("ab") as file:
        file.write(b'f","lane":"trainer","start":%f,"step":3}\n' % (START + 2))
    running, ended = timers.read()
    assert running is not None and running.name == "ref" and ended == []
    trainer.write_bytes(b'{"name":"gen","lane":"trainer","start":%f}\n' % (START + 9))  # the file became the older one
    running, ended = timers.read()
    assert running is not None and running.name == "gen" and len(timers.read()[1]) == 0
    with trainer.open("ab") as file:
        file.write(b'{"name":"gen","lane":"trainer","start":%f,"end":%f}\n' % (START + 9, START + 10))
    assert timers.read()[0] is None, "what ended unseen does not run for ever"


def test_reading_as_it_is_written_is_reading_at_once(run: RunDir) -> None:
    attempt, spans = run.attempt(1), sorted(span_runs.recorded(), key=lambda span: span.end or span.start)
    whole = Timing(run, whole=True)
    whole.poll(False)
    span_runs.write_spans(attempt, [])
    timing, logged = Timing(run), series()
    for size in range(0, len(spans) + 40, 40):
        span_runs.write_spans(attempt, spans[:size])
        timing.poll(False)
    for step in (2, 3, 4, 5, 6):
        one, other = (each.report(logged, step) for each in (timing, whole))
        assert one and other and one.stages == pytest.approx(other.stages, abs=2e-3), step


@pytest.mark.parametrize(("whole", "first"), [(True, 1), (False, 3)])
def test_a_page_has_the_newest_60_steps_a_command_all(run: RunDir, whole: bool, first: int) -> None:
    span_runs.write_spans(run.attempt(1), span_runs.made_up(62, gpus=1, requests=1))
    (timing := Timing(run, whole=whole)).poll(False)
    assert [*timing.seconds()] == [*range(first, 63)]


def test_without_spans_the_timers_give_a_rough_picture(run: RunDir) -> None:
    for path in run.attempt(1).spans.iterdir():
        path.unlink()
    timing = Timing(run)
    timing.poll(False)
    report = timing.report(series())
    assert report is not None and report.time is None and report.rough == NO_SPANS
    assert report.advice[0].stage == "validation"
    assert report.step == 6 and report.stages == rough(series(), 6)
    assert report.seconds == pytest.approx(5.2, abs=0.5) and report.stages["validation"] > 2
    LaunchRecord(created=1.0, env={"PPO_TUI_SPANS": "0"}).write(run.attempt(1).launch)
    again = Timing(run)
    again.poll(False)
    told = again.report(series())
    assert told is not None and told.rough == SWITCHED_OFF


def test_mfu_and_mbu_by_hand() -> None:
    model = facts("Qwen/Qwen2.5-0.5B-Instruct", {})
    assert model is not None
    metrics = {"response_length/mean": 100.0, "response_length/max": 200.0, "prompt_length/mean": 50.0}
    metrics |= {"perf/total_num_tokens": 150_000.0}
    stages = {"rollout": 4.0, "tail": 1.0, "update": 2.0}
    h100 = peak("NVIDIA H100 80GB HBM3")
    assert h100 is not None and (h100.flops, h100.bandwidth) == (989e12, 3.35e12)
    told = limits(metrics, stages, Size.of(model), "NVIDIA H100 80GB HBM3", 2, 1000, 250)
    sizes = model.sizes
    assert (told.rollout_tokens, told.update_tokens) == (20_000, 75_000)
    flops = 150_000 * (6 * model.parameters + 12 * sizes.layers * sizes.heads * sizes.head_dim * 150)
    assert told.mfu == pytest.approx(flops / (2 * 2 * 989e12))
    weights = 200 * 2 * model.parameters * 2 * 2  # tokens, groups of 250, parameters, bytes, engines
    cache = 100_000 * (50 + 50) * 2 * sizes.layers * sizes.kv * 2
    assert told.mbu == pytest.approx((weights + cache) / (5 * 2 * 3.35e12))


def test_the_size_of_a_model_that_is_elsewhere_is_in_the_log(tmp_path: Path) -> None:
    known = size_of("/gone", DATA / "logs" / "gone.log")
    assert known is None
    console = tmp_path / "console.log"
    console.write_bytes(gzip.decompress((DATA / "logs" / "learning.log.gz").read_bytes()))
    smol = facts("HuggingFaceTB/SmolLM2-135M", {})
    assert smol is not None and size_of("/root/kit/model", console) == Size.of(smol)
    console.write_text(
        "(W pid=1) Qwen2ForTokenClassification contains 14.00B parameters\nBig contains 14.77B parameters\n"
    )
    assert size_of("/root/kit/model", console) == Size(14_770_000_000)


def test_without_a_model_or_gpu_the_mfu_is_the_one_of_verl() -> None:
    metrics, stages = {"perf/mfu/actor": 0.31, "perf/total_num_tokens": 1000.0}, {"update": 2.0}
    told = limits(metrics, stages, None, "", 8, None, None)
    assert (told.mfu, told.mbu, told.why) == (0.31, None, "no GPU recorded")
    assert quoted(limit_line(told)) == ["500", "31"] and limit_line(told).endswith(told.why)
    assert limits(metrics, stages, None, "", 0, None, None).mfu is None, "veRL's figure for a CPU means nothing"
    told = limits(metrics, stages, None, "NVIDIA H200", 8, None, None)
    assert told.why == "model size not found"


@tabled
def test_gpus_are_known_by_their_names(name: str, flops: float | None) -> None:
    found = peak(name)
    assert (found and found.flops) == flops
    if flops is None:
        told = limits({}, {"update": 1.0}, None, name, 1, None, None)
        assert (told.mfu, told.mbu, told.why) == (None, None, "the GPU is not in the table")


def test_stages_have_signs_and_no_timer_has_two() -> None:
    assert list(STAGES) == list(SIGNS["stage"])
    assert len(OF_TIMER) == sum(len(stage.timers) for stage in STAGES.values())
    assert len(OF_SPAN) == sum(len(stage.spans) for stage in STAGES.values())


def test_the_command_prints_what_the_page_shows(run: RunDir) -> None:
    shown = call(["time", "1550", "--step", "4"])[0].decode()
    assert all(part in shown for part in ("step 4: 3.28 s", "rank 0", "MFU, MBU unknown: no GPU"))
    told = json.loads(call(["time", "1550", "--json"])[0])
    assert (told["step"], told["source"], told["lanes"][1]["lane"]) == (6, "spans", "rank 0")
    assert sum(told["stages"].values()) == pytest.approx(told["seconds"], abs=0.01)
    _, wrong, code = call(["time", "1550", "--step", "99"])
    assert code == 2 and b"no times of this step" in wrong and b"1 to 6" in wrong


def test_a_gpu_of_the_run_is_taken_for_the_limits(run: RunDir) -> None:
    timing = Timing(run, whole=True)
    timing.poll(False)
    report = timing.report(series(), 4, GpuSample(0, "NVIDIA H200", run_used=1, total=141 << 30))
    assert report is not None and report.limits.gpu == "NVIDIA H200"
