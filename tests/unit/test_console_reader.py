"""Events of console logs: our own runs whole, and what other versions and accidents do to a log."""

import gzip
import json
import math
import tracemalloc

import console_rows
import pytest
from console_logs import DATA, TASK, events_of, only, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import parts, tabled

from launcher.console import phases
from launcher.console.lines import LineSplitter
from launcher.console.reader import ConfigDump, ConsoleReader, Event, Notable, PhaseChange, Progress, Resumed, StepLine

RUNS = ["learning", "kl-blowup", "grpo", "resume", "nan", "two-gpus", "cpu-toy", "sglang"]
FAILURES = ["no-flash-attn", "kv-cache", "oom", "missing-parquet", "missing-model", "broken-reward"]
EVERY = [*RUNS, *(f"fail-{name}" for name in FAILURES)]


@pytest.mark.parametrize(("console", "events"), [pytest.param(*row[1:], id=row[0]) for row in console_rows.events()])
def test_a_console_has_these_events(console: bytes, events: list[str]) -> None:
    assert list(map(repr, events_of(console))) == events


# --- our own runs

START = ["config", "ray", "trainer", "data", "workers", "model", "engine", "checkpoint-load"]


@tabled
def test_the_phases_of_a_run(name: str, expected: list[object]) -> None:
    events = events_of(stored(name))
    names, done = [event.phase for event in only(PhaseChange, events)], only(Progress, events)
    more = names[len(START) :]
    assert names[: len(START)] == START[: len(names)] and set(names) <= set(phases.ORDER)
    last = [done[-1].step, done[-1].total] if done else None
    found = [len(names), " ".join(more[:3]), names[-1], more.count("save"), last, len(only(Notable, events))]
    assert found == expected
    assert only(Resumed, events) == ([Resumed(20)] if name == "resume" else [])


@pytest.mark.parametrize("name", RUNS)
def test_every_step_and_key_of_a_run(name: str) -> None:
    data = stored(name)
    steps = only(StepLine, events_of(data, 1 << 18))
    records = [
        json.loads(line) for line in gzip.decompress((DATA / "logs" / f"{name}.jsonl.gz").read_bytes()).splitlines()
    ]
    assert [step.step for step in steps] == [record["step"] for record in records]
    for step, record in zip(steps, records, strict=True):
        assert step.data.keys() == record["data"].keys()
        for key, value in record["data"].items():
            if value is None:  # the file logger's word for nan and inf
                assert not math.isfinite(step.data[key])
            else:
                assert step.data[key] == pytest.approx(value, rel=1e-12)
        assert not step.three_decimals


@pytest.mark.parametrize("name", EVERY)
def test_places_are_exact(name: str) -> None:
    data = stored(name)
    for event in events_of(data):
        if isinstance(event, StepLine):
            line = data[event.offset :].split(b"\n", 1)[0]
            assert f"step:{event.step} - ".encode() in line
        elif isinstance(event, Notable):
            line = data[event.line.offset :].split(b"\n", 1)[0]
            assert LineSplitter().feed(line + b"\n")[0].text == event.line.text
        else:
            continue
        number = event.line if isinstance(event, StepLine) else event.line.number
        assert number == data[: data.index(line)].count(b"\n") + 1 or data.count(line) > 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 100, 4096, 65_537])
@pytest.mark.parametrize("name", ["nan", "fail-broken-reward"])
def test_chunks_of_any_size_give_the_same_events(name: str, size: int) -> None:
    data = stored(name)
    assert repr(events_of(data, size)) == repr(events_of(data))  # nan is not equal to itself


# --- steps among accidents


def test_the_end_of_the_file_reports_no_half_figure() -> None:
    whole = f"{TASK}step:5 - actor/entropy:0.12345 - critic/score/mean:np.float64(0.25)"
    assert only(StepLine, events_of(whole))[0].data == {"actor/entropy": 0.12345, "critic/score/mean": 0.25}
    for at in range(len(whole)):
        for step in only(StepLine, events_of(whole[:at])):
            assert step.data == {"actor/entropy": 0.12345}


def test_a_step_line_of_megabytes_keeps_what_fits() -> None:
    text = f"{TASK}step:5" + "".join(f" - a/key{number}:0.123456" for number in range(100_000)) + "\n"
    (step,) = only(StepLine, events_of(text, 4096))
    assert 5_000 < len(step.data) < 100_000
    assert set(step.data.values()) == {0.123456}


@pytest.mark.parametrize(("length", "kept"), [(4096, False), (4097, True)])
def test_a_line_of_the_length_that_wandb_cuts_at_loses_its_last_figure(length: int, kept: bool) -> None:
    text = "step:5 - a/b:1.5 - c/" + "x" * length
    text = text[: length - 5] + ":0.12"
    (step,) = only(StepLine, events_of(text + "\n" + "step:6 - a/b:2.5\n"))[:1]
    assert (len(step.data) == 2) is kept


# --- phases, counts, totals


def test_every_phase_has_words_and_a_stall_is_explained() -> None:
    for name, phase in phases.PHASES.items():
        assert phase.label
        assert 0 < phase.cpu[0] < phase.cpu[1]
        assert 0 < phase.gpu[0] < phase.gpu[1]
        assert phases.stall(name, phase.gpu[1]) is None
        assert phase.stall in (phases.stall(name, 10 * phase.gpu[1]) or "")
    assert phases.stall("no such phase", 1e6) is None


# --- anything at all

PIECES = [text.encode(errors="surrogateescape") for text in parts("console_reader")["PIECES"][1]]
WILD = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))).map(b"".join)


@pytest.mark.slow
@settings(max_examples=300)
@given(WILD, st.lists(st.integers(1, 40), min_size=1))
def test_how_the_bytes_arrive_makes_no_difference(data: bytes, sizes: list[int]) -> None:
    reader = ConsoleReader()
    events: list[Event] = []
    at, turn = 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        events += reader.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    events += reader.close()
    assert repr(events) == repr(events_of(data))


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    def peak(line: bytes) -> int:
        reader = ConsoleReader()
        tracemalloc.start()
        reader.feed(f"{TASK}{{'actor_rollout_ref': 1,\n".encode())
        for _ in range(60):
            reader.feed(line)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(b"x" * (1 << 16)) < 1 << 21
    assert peak((f"{TASK}'key': 'value',\n" * 1000).encode()) < 1 << 23
    assert peak(b"\rTraining Progress:   3%|" + b"x" * (1 << 16)) < 1 << 21


def test_a_line_that_repeats_between_two_steps_is_reported_twenty_times() -> None:
    events = events_of(b"".join(b"RuntimeError: worker %d\n" % number for number in range(30)))
    assert len(only(Notable, events)) == 20


def test_a_step_behind_other_words_and_a_mark_keep_their_order_however_they_are_fed() -> None:
    lines = [
        b"(TaskRunnerV1 pid=1) Total training steps: 9\n",
        b"(WorkerDict pid=2) loading (TaskRunnerV1 pid=1) step:1 - actor/entropy:0.5 - actor/lr:1e-06\n",
        b"(TaskRunnerV1 pid=1) INFO:2026-11-21 10:10:05,222:Saving checkpoint to /x/global_step_1\n",
    ]
    whole, pieces = ConsoleReader(), ConsoleReader()
    events = whole.feed(b"".join(lines)) + whole.close()
    assert [e for line in lines for e in pieces.feed(line)] + pieces.close() == events
    assert [e.phase for e in events if isinstance(e, PhaseChange)] == ["config", "data", "rollout", "save"]


# --- the configuration that a run prints


LOGS = [path.name.removesuffix(".log.gz") for path in sorted((DATA / "logs").glob("*.log.gz"))]


@pytest.mark.parametrize("name", LOGS)
def test_the_configuration_of_every_run(name: str) -> None:
    (dump,) = only(ConfigDump, events_of(stored(name), 4096))
    assert len(dump.keys) > 900
    assert dump.keys["algorithm.adv_estimator"] == ("grpo" if name == "grpo" else "gae")
    assert dump.keys["trainer.logger"] == ["console", "file"]
    assert dump.keys["actor_rollout_ref.actor.optim.lr"] == (50 if name == "nan" else pytest.approx(0, abs=1e-3))
    assert name != "nan" or math.isnan(dump.keys["trainer.experiment_name"])  # Hydra reads nan as a number


def test_a_configuration_that_ray_broke_at_every_pause() -> None:
    (dump,) = only(ConfigDump, events_of(stored("real-no-environment")))
    assert dump.keys["critic.model.external_lib"] is None and len(dump.keys) > 900


TREE = "{'actor_rollout_ref': {'a': [], 'b': {}, 'c': None, 'd': [None, True, -1, 1e-06], 'e': [{'f': nan}, [-inf]]}}"


def test_a_configuration_that_is_broken_anywhere_between_two_values() -> None:
    places = [at for at in range(25, len(TREE)) if TREE[at] in "[{}]'NTn-" and TREE[at - 1] in "[{ "]
    places += [at for at in range(25, len(TREE)) if TREE[at] in ",:}]"]
    for start in places:
        for end in (end for end in places if end > start):
            parts = TREE[:start], TREE[start:end], TREE[end:]
            (dump,) = only(ConfigDump, events_of("".join(f"{TASK}{part}\n" for part in parts)))
            assert len(dump.keys) == 5, parts


def test_a_configuration_without_an_end_is_ignored() -> None:
    body = "{'actor_rollout_ref': {'actor': [" + "[" * 5000 + "}"
    events = events_of(f"{TASK}{body}\n" + f"{TASK}'x'}}\n" * 50 + f"{TASK}step:1 - a/b:1.0\n")
    assert only(ConfigDump, events) == [] and [step.step for step in only(StepLine, events)] == [1]
