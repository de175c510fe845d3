"""Text next to a progress bar, which does not end its line, is a line of its own for every reader."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled

from launcher.console.diagnose import diagnose
from launcher.console.lines import LineSplitter
from launcher.console.reader import ConsoleReader, Notable, StepLine
from launcher.metrics.frameworks import frameworks
from launcher.record.layout import RunDir
from launcher.record.state import stored
from launcher.runs.act import attach_file
from launcher.runs.supervise import follow, supervisor
from launcher.runs.supervise.supervisor import Supervisor

TRL = frameworks()["trl"]
BAR = "\r {percent}%|████▌     | {step}/60 [00:0{step}<00:06,  5.31it/s]"
ROW = "{{'loss': '0.1', 'reward': '0.{step}', 'kl': '0.01', 'learning_rate': '1e-05', 'epoch': '0.0{step}'}}\n"
TRACE = """Traceback (most recent call last):
  File "/home/me/train.py", line 60, in <module>
    trainer.train()
  File "/opt/v/lib/python3.11/site-packages/transformers/trainer.py", line 1917, in _run_epoch
    step(model, inputs)
  File "/opt/v/lib/python3.11/site-packages/trl/trainer/grpo_trainer.py", line 2753, in _generate_and_score_completions
    rewards = self._calculate_rewards(inputs)
  File "/home/me/rewards.py", line 28, in reward
    raise fail()
"""
ERRORS = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB": "gpu-oom-rollout",
    "RuntimeError: CUDA error: device-side assert triggered": "cuda-assert",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2356": "nccl",
    "OSError: [Errno 28] No space left on device": "disk-full",
    "ValueError: too many values to unpack": "unknown",
    "KeyError: 'answer'": "unknown",
    "FileNotFoundError: [Errno 2] No such file or directory: 'answers.json'": None,
    "RuntimeError: the judge is gone": "unknown",
    "KeyboardInterrupt": "stopped",
}
PLACES = list(itertools.product((False, True), repeat=2))  # a bar before the traceback, and after its last line


def bar(step: int) -> str:
    return BAR.format(percent=step, step=step)


def crash(error: str, *, before: bool, after: bool, newline: bool = False) -> str:
    """A run of TRL that ends so; with a `newline` next to each bar, or without."""
    steps = "".join(f"{bar(step)}\r{' ' * 40}\r{ROW.format(step=step)}" for step in range(1, 5))
    end = "\n" if newline else ""
    return steps + (bar(4) + end if before else "") + TRACE + error + (end + bar(4) if after else "") + "\n"


def lines_of(found: object) -> list[str]:
    return [quote.text for quote in found.evidence]  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("before", "after"), PLACES)
def test_a_crash_has_the_cause_and_the_place_that_it_has_on_lines_of_its_own(
    error: str, before: bool, after: bool
) -> None:
    text, apart = (crash(error, before=before, after=after, newline=each) for each in (False, True))

    found, expected = (diagnose([each.encode()], framework=TRL) for each in (text, apart))

    assert ERRORS[error] in (None, found.cause)
    assert (found.cause, found.title, found.place, lines_of(found)) == (
        expected.cause,
        expected.title,
        expected.place,
        lines_of(expected),
    )
    assert not any("%|" in each for each in [found.title, *lines_of(found)])
    if found.cause != "stopped":
        assert found.place is not None and found.place.file == "in reward, rewards.py line 28"


@given(st.sampled_from(list(ERRORS)), st.sampled_from(PLACES), st.lists(st.integers(1, 400), min_size=1, max_size=9))
def test_a_log_that_grows_has_the_steps_and_errors_of_the_whole_log(
    error: str, places: tuple[bool, bool], sizes: list[int]
) -> None:
    data = crash(error, before=places[0], after=places[1]).encode()
    whole, live = ConsoleReader(TRL), ConsoleReader(TRL)
    expected = [*whole.feed(data), *whole.close()]
    found, at = [], 0
    for size in itertools.cycle(sizes):
        if at >= len(data):
            break
        found += live.feed(data[at : at + size])
        at += size

    found += live.close()

    assert found == expected
    assert [each.step for each in found if isinstance(each, StepLine)] == [1, 2, 3, 4]
    assert [each.line.text for each in found if isinstance(each, Notable)] == [TRACE.splitlines()[0], error]


@given(st.lists(st.sampled_from([bar(3), "text", "\r", "\n", " 7it [00:03,  3.40it/s]", "'", "é"]), max_size=12))
def test_every_part_is_in_its_place(parts: list[str]) -> None:
    data = "".join(parts).encode()
    splitter = LineSplitter()
    for line in [*splitter.feed(data), *splitter.close()]:
        assert data[: line.offset].count(b"\n") + 1 == line.number
        assert line.text.encode() in data[line.offset :]


@tabled
def test_bars_and_texts_are_lines(text: str, lines: list[str]) -> None:
    splitter = LineSplitter()
    assert [line.text for line in [*splitter.feed(text.encode()), *splitter.close()]] == lines


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), PLACES)
def test_a_followed_run_that_crashes_behind_its_bar_has_failed(
    before: bool, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(supervisor, "TICK", 0.01)
    monkeypatch.setattr(attach_file, "spawn_supervisor", lambda run: None)
    for name in ("_LOOK", "_QUIET", "_DONE", "_FORSAKEN"):
        monkeypatch.setattr(follow, name, 0.01)
    log = tmp_path / "train.log"
    log.write_text(crash("RuntimeError: the judge is gone", before=before, after=after))

    run: RunDir = attach_file.attach_file(str(log), {})
    Supervisor(run).supervise()

    state = stored(run)
    assert state is not None and (state.state, state.cause, state.step) == ("failed", "unknown", 4)
    assert state.error == "Likely in reward, rewards.py line 28: RuntimeError: the judge is gone"
