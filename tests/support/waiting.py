"""Waiting for what a run's supervisor, a process of its own, writes down."""

import time
from collections.abc import Callable

from launcher.record.layout import RunDir
from launcher.record.state import RunState, current


def wait_for(run: RunDir, good: Callable[[RunState], bool], seconds: float = 60) -> RunState:
    """The state of a run once it is as it should be."""
    deadline = time.monotonic() + seconds
    while not good(state := current(run)):
        assert time.monotonic() < deadline, state
        time.sleep(0.05)
    return state
