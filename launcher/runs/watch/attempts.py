"""What the attempts of a run tell: how long all of them took."""

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
    for number in (1,) if state.attempt == 1 else run.attempt_numbers():
        newest, attempt = number == state.attempt, run.attempt(number)
        begin, end = spans.get(number, (None, None))
        # of the newest attempt state.json has what launch.json and exit.json say: a list of 1,000 runs reads neither
        begin = (newest and state.started) or attempt.read_launch().created or begin
        if newest and state.live:
            end = now or time.time()
        elif newest and (told := state.exit.t if state.exit else state.ended):
            end = told
        else:
            record = attempt.read_exit()
            end = (record and record.t) or end or (now if newest else None)
        if begin is not None and end is not None:
            seconds += max(0.0, end - begin)
    return seconds or None
