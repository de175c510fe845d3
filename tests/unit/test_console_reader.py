"""Events of console logs: our own runs whole, and what other versions and accidents do to a log."""

import gzip
import json
import math
import tracemalloc

import pytest
from console_logs import DATA, TASK, TASK_LOGGER, events_of, only, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.console import phases
from launcher.console.lines import LineSplitter
from launcher.console.reader import (
    ConsoleReader,
    Event,
    Notable,
    PhaseChange,
    Progress,
    Resumed,
    RolloutCount,
    StepLine,
    TotalSteps,
)

RUNS = ["learning", "kl-blowup", "grpo", "resume", "nan", "two-gpus", "cpu-toy", "sglang"]
FAILURES = ["no-flash-attn", "kv-cache", "oom", "missing-parquet", "missing-model", "broken-reward"]
EVERY = [*RUNS, *(f"fail-{name}" for name in FAILURES)]
START = ["config", "ray", "trainer", "data", "workers", "model", "engine", "checkpoint-load"]


def phases_of(data: bytes | str) -> list[str]:
    return [event.phase for event in only(PhaseChange, events_of(data))]


# --- our own runs


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


def test_the_phases_of_a_first_run_and_a_save() -> None:
    events = only(PhaseChange, events_of(stored("learning")))
    names = [event.phase for event in events]
    assert names[:11] == [*START, "validate-first", "rollout", "update"]
    save = names.index("save")
    assert (names[save - 1], names[save + 1]) == ("update", "rollout")
    assert set(names) <= set(phases.ORDER)


def test_a_run_that_does_not_validate_first() -> None:
    names = phases_of(stored("two-gpus"))
    assert "validate-first" not in names
    assert names[names.index("checkpoint-load") + 1] == "rollout"


def test_the_phases_of_a_run_with_sglang() -> None:
    """veRL sets SGLang's log level to error, so that nothing tells when a step goes on to its updates."""
    names = phases_of(stored("sglang"))
    assert names == [*START, "rollout", "final"]


def test_a_resumed_run() -> None:
    events = events_of(stored("resume"))
    assert only(Resumed, events) == [Resumed(20)]
    assert only(TotalSteps, events) == [TotalSteps(60)]
    assert only(Progress, events)[0] == Progress(20, 60)


def test_a_run_that_ends_by_itself() -> None:
    events = events_of(stored("cpu-toy"))
    assert only(PhaseChange, events)[-1].phase == "final"
    assert only(Progress, events)[-1] == Progress(80, 80)
    assert only(Notable, events) == []


@pytest.mark.parametrize(
    ("name", "last", "fragment"),
    [
        ("no-flash-attn", "workers", "is not a value head model"),
        ("kv-cache", "engine", "Engine core initialization failed"),
        ("oom", "update", "torch.OutOfMemoryError: CUDA out of memory. Tried"),
        ("missing-parquet", "data", "FileNotFoundError: Unable to find"),
        ("missing-model", "data", "LocalEntryNotFoundError"),
        ("broken-reward", "rollout", "Error in _run_prompt for uid="),
    ],
)
def test_failures_say_where_and_what(name: str, last: str, fragment: str) -> None:
    events = events_of(stored(f"fail-{name}"))
    assert only(PhaseChange, events)[-1].phase == last
    assert any(fragment in event.line.text for event in only(Notable, events))


# --- steps among accidents


def test_surroundings_of_step_lines() -> None:
    text = (
        "\x1b[36m(TaskRunner pid=3, ip=10.0.0.2)\x1b[0m \x1b[32mstep:1 - a/b:1.0\x1b[0m\n"
        f"{TASK}\rTraining Progress:   3%|▎    | 2/29 [01:02<29:10, 62.50s/it]step:2 - a/b:1.0\n"
        f"{TASK}\rTraining Progress:   9%|▎    | 3/29 [01:02<29:10, 62.50s/it]\r{TASK}step:3 - a/b:1.0\n"
        f"(WorkerDict pid=4) loading{TASK}step:4 - a/b:1.0\n"
        f"{TASK}Filtering: 100%|██| 5/5 [00:00<00:00] step:5 - a/b:1.0\r\n"
        "step:6 - a/b:0.125\n"
        "[Step 7] train | reward/overall=0.05 | kl=0.000\n"
    )
    events = events_of(text)
    assert [step.step for step in only(StepLine, events)] == [1, 2, 3, 4, 5, 6, 7]
    assert [step.line for step in only(StepLine, events)] == [1, 2, 3, 4, 5, 6, 7]
    assert [step.three_decimals for step in only(StepLine, events)] == [False] * 5 + [True, False]
    assert only(Progress, events) == [Progress(2, 29), Progress(3, 29)]
    data = text.encode()
    for step in only(StepLine, events):
        assert f"step:{step.step} - ".encode() in data[step.offset :].split(b"\n")[0] or step.step == 7


def test_responses_of_the_model_are_no_steps() -> None:
    text = (
        f"{TASK}[response] To train, print step:3 - actor/entropy:0.5 and go on.\n"
        f"{TASK}step:4 - First, add 3:4 and you get 7\n"
        f"{TASK}He runs [Step 5] train | reward=0.5\n"
        f"{TASK}global_step:6 - actor/entropy:0.5\n"
    )
    assert only(StepLine, events_of(text)) == []


def test_the_end_of_the_file_reports_no_half_figure() -> None:
    whole = f"{TASK}step:5 - actor/entropy:0.12345 - critic/score/mean:np.float64(0.25)"
    assert only(StepLine, events_of(whole))[0].data == {"actor/entropy": 0.12345, "critic/score/mean": 0.25}
    for at in range(len(whole)):
        for step in only(StepLine, events_of(whole[:at])):
            assert step.data == {"actor/entropy": 0.12345}


def test_a_line_that_ray_forwards_in_two_parts() -> None:
    text = (
        f"{TASK}step:5 - actor/entropy:0.1\n(WorkerDict pid=9) other\n{TASK}2345 - critic/score/mean:0.5\n{TASK}more\n"
    )
    first, second = only(StepLine, events_of(text))
    assert first.data == {"actor/entropy": 0.1}
    assert second.data == {"actor/entropy": 0.12345, "critic/score/mean": 0.5}
    assert (second.step, second.line, second.offset) == (first.step, first.line, first.offset)


def test_two_writers_in_one_line_keep_the_complete_entries() -> None:
    text = f"{TASK}step:5 - a/b:1.5 - c/d:(WorkerDict pid=9) Loading weights\n{TASK}step:6 - a/b:2.5\n"
    assert [(step.step, step.data) for step in only(StepLine, events_of(text))] == [
        (5, {"a/b": 1.5}),
        (6, {"a/b": 2.5}),
    ]


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


def test_counts_of_a_rollout_and_of_a_validation() -> None:
    awake = "(Server pid=1) (EngineCore pid=2) INFO 01-01 10:00:{} [abstract.py:345] It took 0.01 seconds to {}\n"
    count = f"{TASK_LOGGER}pending: 3, running: 2, finished: 1, failure: 0\n"
    text = (
        f"{TASK_LOGGER}all initialize finished, ready to fit\n"
        + awake.format("01", "wake up tags ['weights'].")
        + f"{TASK}step:1 - a/b:1\n"
        + count
        + awake.format("09", "fall asleep.")
        + count
        + f"{TASK}step:2 - a/b:1\n"
        + awake.format("01", "fall asleep.")  # of another engine, forwarded late
    )
    events = events_of(text)
    assert only(RolloutCount, events) == [RolloutCount(3, 2, 1, 0)] * 2
    assert [event.phase for event in only(PhaseChange, events)] == [
        "config",
        "validate-first",
        "rollout",
        "update",
        "validate",
        "rollout",
    ]


def test_the_phases_of_older_versions() -> None:
    t = "(TaskRunner pid=7) "
    text = (
        "2026-01-01 10:00:00,123\tINFO worker.py:1843 -- Started a local Ray instance.\n"
        f"{t}TaskRunner hostname: h, PID: 7\n"
        f"{t}{{'actor_rollout_ref': {{'actor': {{'clip_ratio': 0.2}}}},\n"
        f"{t} 'trainer': {{'val_before_train': True}}}}\n"
        f"{t}[validate_config] All configuration checks passed successfully!\n"
        f"{t}dataset len: 7473\n{t}Size of train dataloader: 58, Size of val dataloader: 1\n"
        f"{t}Total training steps: 2\n"
        f"{t}colocated worker base class <class 'verl.single_controller.base.worker.Worker'>\n"
        "(WorkerDict pid=9) Before building vllm rollout, memory allocated (GB): 0.0\n"
        f"{t}Found checkpoint: %s /c/global_step_1\n{t}Load from checkpoint folder: /c/global_step_1\n"
        f"{t}Setting global step to 1\n{t}Resuming from /c/global_step_1\n"
        f"{t}test_gen_batch meta info: {{'eos_token_id': 0}}\n{t}validation generation end\n"
        f"{t}(\"Initial validation metrics: {{'val-core/x/reward/mean@1': \"\n"
        f"{t}step:1 - val-core/x/reward/mean@1:0.125\n"
        f"{t}test_gen_batch meta info: {{'eos_token_id': 0}}\n"
        f"{t}local_global_step_folder: /c/global_step_2\n"
        f"{t}step:2 - actor/lr:0.000\n{t}'Final validation metrics: None'\n"
    )
    events = events_of(text)
    assert [event.phase for event in only(PhaseChange, events)] == [
        "config",
        "trainer",
        "data",
        "workers",
        "engine",
        "checkpoint-load",
        "validate-first",
        "rollout",
        "validate",
        "save",
        "final",
    ]
    assert only(Resumed, events) == [Resumed(1)]
    assert only(TotalSteps, events) == [TotalSteps(2)]
    assert [step.three_decimals for step in only(StepLine, events)] == [True, True]


def test_a_second_run_in_the_same_file() -> None:
    text = (
        f"{TASK}step:9 - a/b:1\nray init kwargs: {{}}\n{TASK_LOGGER}worker group kwargs: {{}}\n{TASK}step:1 - a/b:1\n"
    )
    assert phases_of(text) == ["config", "rollout", "ray", "workers", "rollout"]


@pytest.mark.parametrize("first", [True, False])
def test_a_separate_engine_starts_after_the_trainer_says_that_it_is_ready(first: bool) -> None:
    mode = f"{{'val_before_train': {first}, 'v1': {{'trainer_mode': 'separate_async'}}}}"
    text = f"{TASK}{{'actor_rollout_ref': {{'x': 1}}, 'trainer': {mode}}}\n"
    text += f"{TASK_LOGGER}checkpoint engine manager initialized\n{TASK_LOGGER}all initialize finished, ready to fit\n"
    assert phases_of(text)[-1] == "engine"
    count = "pending: 3, running: 1, finished: 0, failure: 0\n"
    assert phases_of(text + count)[-1] == ("validate-first" if first else "rollout")
    assert phases_of(text + "Training Progress:   0%|          | 0/9 [00:00<?, ?it/s]\n")[-1] == "rollout"


def test_every_phase_has_words_and_a_stall_is_explained() -> None:
    for name, phase in phases.PHASES.items():
        assert phase.label
        assert 0 < phase.cpu[0] < phase.cpu[1]
        assert 0 < phase.gpu[0] < phase.gpu[1]
        assert phases.stall(name, phase.gpu[1]) is None
        assert phase.stall in (phases.stall(name, 10 * phase.gpu[1]) or "")
    assert phases.stall("no such phase", 1e6) is None


# --- anything at all

PIECES: list[bytes] = [
    b"\n",
    b"\n",
    b"\r",
    TASK.encode(),
    TASK_LOGGER.encode(),
    b"(EngineCore pid=8) ",
    b"step:1 - a/b:1.5",
    b" - c/d:np.float64(2)",
    b" - e",
    b"Training Progress:  3%|",
    "█| 1/29 [01:02<29:10, 6s/it]".encode(),
    b"Total training steps: 60",
    b"pending: 1, running: 2, finished: 3, failure: 4",
    b"{'actor_rollout_ref': {'actor': 1},",
    b" 'x': 2}",
    b"'y': 3,",
    b"Traceback (most recent call last):",
    b"CUDA error: x",
    b"all initialize finished",
    b"\xff",
    b"\x1b[",
    b"[Step 1] ",
]
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
