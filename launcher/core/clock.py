"""The time in the records of a run: unix seconds that go on evenly when the clock of the machine is set.

It is the clock of the machine as the process found it, continued by one that nobody sets. A supervisor that takes over
a run continues the time of its predecessor. So all times of a run on one machine can be subtracted from each other.
"""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def beat() -> float:
    """Seconds since the start of the machine, the same in all of its processes."""
    return time.clock_gettime(_CLOCK)


def now() -> float:
    """Unix seconds."""
    return _zero + beat()


def follow(t: float, at: float) -> None:
    """Continues the time of another process of this machine, which was `t` at beat `at`."""
    global _zero
    _zero = t - at


_zero = time.time() - beat()
