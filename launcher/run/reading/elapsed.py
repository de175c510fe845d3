"""How long a run took."""

import time
from collections.abc import Mapping
from types import MappingProxyType

from launcher.record.layout import RunDir
from launcher.record.state import RunState

Spans = Mapping[int, tuple[float, float]]
"""Attempt -> begin and end of its steps, unix seconds."""


def elapsed(
    run: RunDir, state: RunState, spans: Spans = MappingProxyType({}), now: float | None = None
) -> float | None:
    """Seconds of all attempts, their start-up included; the pauses between them are left out.

    An attempt without a record of its start or end took as long as its steps, when `spans` has them. `now` is
    where one that lives has come to, and the last sign of one that was lost. None when nothing is known.
    """
    seconds = 0.0
    for number in run.attempt_numbers():
        newest, attempt = number == state.attempt, run.attempt(number)
        begin, end = spans.get(number, (None, None))
        begin = attempt.read_launch().created or begin or (state.started if newest else None)
        if newest and state.live:
            end = now or time.time()
        else:
            record = attempt.read_exit()
            end = (record and record.t) or end or (state.ended or now if newest else None)
        if begin is not None and end is not None:
            seconds += max(0.0, end - begin)
    return seconds or None
