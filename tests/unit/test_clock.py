"""Runs on a machine whose clock is set back or forward by hours while they go on."""

import json
import os
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from stepping import stepping_run
from waiting import wait_for, wait_until

from launcher.record.events import read_events
from launcher.record.state import current
from launcher.runs.supervise.spawn import kept
from launcher.runs.watch.history import elapsed
from launcher.runs.watch.steps import steps

pytestmark = pytest.mark.slow  # each starts supervisors and drivers

# Sets the clock of each Python process to what a file says.
JUMPS = """
import pathlib, time
real = time.time
def jumped():
    try:
        return real() + float(pathlib.Path(__file__).with_name("jump").read_text())
    except (OSError, ValueError):
        return real()
time.time = jumped
"""


@pytest.mark.parametrize("jump", [-3 * 3600.0, 3 * 3600.0])
def test_a_clock_that_is_set_changes_no_duration_no_verdict_and_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ppo_tui: Callable[..., Any], jump: float
) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMPS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    real, home = time.time, str(tmp_path / "home")
    with stepping_run(tmp_path) as run:
        (tmp_path / "jump").write_text(str(jump))
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        beat = current(run).beat
        wait_until(lambda: current(run).beat != beat)
        state = current(run)
        assert (state.state, state.silent_minutes) == ("running", None)
        assert not {"STALL-1"} & set(state.flags)
        supervisor = state.supervisor
        assert supervisor is not None
        os.kill(supervisor.pid, signal.SIGKILL)
        wait_until(lambda: not supervisor.alive())
        (tmp_path / "go").touch()
        kept(run)
        state = wait_for(run, lambda state: state.step == 5)
        assert not {"STALL-1"} & set(state.flags) and not state.stalled
        shown = json.loads(ppo_tui("status", run.id, "--json", PPO_TUI_HOME=home).stdout)
        assert 0 <= shown["heartbeat"] - shown["phase_since"] < 600
        (tmp_path / "end").touch()
        state = wait_for(run, lambda state: not state.live)
        times = [record.t for _, record in steps(run)]
        seconds = elapsed(run, state)
        assert state.state == "finished" and seconds is not None and 0 < seconds < 600
        assert times == sorted(times) and times[-1] - times[0] < 600
        told = [event.t for event in read_events(run.events)]
        assert all(later > earlier - 60 for earlier, later in pairwise(told))
        assert state.exit is not None and state.exit.t >= times[-1]
