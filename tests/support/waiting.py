"""Waits for other processes: a run's supervisor, a driver, a terminal.

No test measures time. The limit only ends a hanging test; a busy machine takes ten times as long as an idle one.
"""

import time
from collections.abc import Callable
from typing import Any

from launcher.record.layout import RunDir
from launcher.record.state import RunState, current

PATIENCE = 300.0  # seconds


def wait_until(good: Callable[[], Any], what: Callable[[], object] = lambda: None, every: float = 0.05) -> None:
    """Waits until `good()` is true, checking every `every` seconds. `what`: the failure's message."""
    deadline = time.monotonic() + PATIENCE
    while not good():
        assert time.monotonic() < deadline, what()
        time.sleep(every)


def wait_for(run: RunDir, good: Callable[[RunState], bool]) -> RunState:
    """The state of a run once it meets a condition."""
    seen: list[RunState] = []

    def there() -> bool:
        seen[:] = [current(run)]
        return good(seen[0])

    wait_until(there, lambda: seen)
    return seen[0]
