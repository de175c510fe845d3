"""The time in a run's records: unix seconds that advance evenly even if the machine's clock is set.

A process reads the machine's clock once and continues it with the monotonic clock. A supervisor that takes over a run
continues its predecessor's time. So all times of a run on one machine can be subtracted from each other.
"""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def beat() -> float:
    """Seconds since the boot of the machine, equal in all processes."""
    return time.clock_gettime(_CLOCK)


def now() -> float:
    """Unix seconds."""
    return _zero + beat()


def follow(t: float, at: float) -> None:
    """Continues the time of another local process, which was `t` at its `beat` of `at`."""
    global _zero
    _zero = t - at


_zero = time.time() - beat()
