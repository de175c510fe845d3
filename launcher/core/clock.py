"""The time in the records of a run: unix seconds that advance evenly even if the clock of the machine is set.

A process reads the clock of the machine once and continues it with the monotonic clock. A supervisor that takes over a
run continues the time of its predecessor. So all times of a run on one machine can be subtracted from each other.
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
    """Continues the time of another process of this machine, whose time was `t` when `beat` was `at`."""
    global _zero
    _zero = t - at


_zero = time.time() - beat()
