"""Waiting for what a run's supervisor, a process of its own, writes down."""

import time
from collections.abc import Callable
from typing import Any

from launcher.record.layout import RunDir
from launcher.record.state import current


def wait_for(run: RunDir, good: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
    """The state of a run once it is as it should be."""
    deadline = time.monotonic() + seconds
    while not good(state := current(run)):
        assert time.monotonic() < deadline, state
        time.sleep(0.05)
    return state
