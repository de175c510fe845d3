"""Rehearsals: a small driver in veRL's place, below a real supervisor."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from driven import driven

from launcher.check.finding import REHEARSAL
from launcher.preset.files import load
from launcher.record.layout import RunDir, all_runs, create
from launcher.record.state import current
from launcher.runs.act import rehearse
from launcher.runs.act.start import Plan

STEPS = "print('step:1 - critic/score/mean:0.1'); print('step:2 - critic/score/mean:0.2')"
FAILS = "raise KeyError('answer')"
FULL = "raise OSError(28, 'No space left on device')"
HANGS = "import time; print('step:1 - critic/score/mean:0.1', flush=True); time.sleep(600)"

SMALLER = rehearse._smaller


@pytest.fixture(autouse=True)
def unchanged(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset is run as it is."""
    monkeypatch.setattr(rehearse, "_smaller", lambda loaded, folder, narrate: loaded)


def drives(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """What the driver of a rehearsal does."""

    def start(plan: Plan, *_: Any, **__: Any) -> RunDir:
        return driven(code, run=create("toy-rehearsal"), preset=plan.loaded.snapshot(), on_cpu=True)

    monkeypatch.setattr(rehearse, "start", start)


def rehearsed(**given: Any) -> Any:
    return rehearse.rehearse(load("toy-cpu"), lambda _: None, poll=0.05, **given)


def test_a_rehearsal_that_comes_to_its_end_is_a_note_and_leaves_no_run(monkeypatch: pytest.MonkeyPatch):
    drives(monkeypatch, STEPS)
    found = rehearsed()
    assert (found.id, found.level) == (REHEARSAL, "info")
    assert "veRL ran 2 small steps on the CPU; not tested: GPUs" in found.message
    assert list(all_runs()) == []


def test_one_that_fails_is_an_error_with_its_cause_and_stays(monkeypatch: pytest.MonkeyPatch):
    drives(monkeypatch, FAILS)
    found = rehearsed()
    (run,) = all_runs()
    assert (found.id, found.level) == (REHEARSAL, "error")
    assert found.message.endswith("KeyError: 'answer'") and run.id in found.fix


def test_a_full_disk_says_nothing_of_the_preset(monkeypatch: pytest.MonkeyPatch):
    drives(monkeypatch, FULL)
    assert rehearsed().level == "warning"


def test_one_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch):
    drives(monkeypatch, HANGS)
    monkeypatch.setattr(rehearse, "PATIENCE", 2.0)
    found = rehearsed()
    (run,) = all_runs()
    assert found.level == "warning" and "was stopped after" in found.message
    assert current(run).state == "stopped"


@pytest.mark.parametrize("interrupted", [False, True])
def test_one_that_is_cancelled_leaves_nothing(monkeypatch: pytest.MonkeyPatch, interrupted: bool):
    drives(monkeypatch, HANGS)

    def cancelled() -> bool:
        runs = any(current(run).driver for run in all_runs())
        if runs and interrupted:
            raise KeyboardInterrupt
        return runs

    with pytest.raises(KeyboardInterrupt) if interrupted else contextlib.nullcontext():
        assert rehearsed(cancelled=cancelled) is None
    assert list(all_runs()) == []


def test_what_cannot_be_rehearsed_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, toy_build: Any):
    (tmp_path / "cache").symlink_to(toy_build.cache)
    monkeypatch.setattr(rehearse, "_smaller", SMALLER)
    found = rehearse.rehearse(load("toy-cpu", ["actor.strategy=megatron"]), lambda _: None)
    assert found is not None and found.level == "warning"
    assert found.message == "no rehearsal: the CPU platform runs only FSDP, not megatron"
    assert list(all_runs()) == []
