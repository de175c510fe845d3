"""Faults: changes of a healthy run's metrics after a given step, which the health rules should flag.

`bench/health.py` measures the rules with them, and `tests/unit/test_health_invariants.py` tests them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from launcher.health import keys

Step = dict[str, float]


@dataclass(frozen=True)
class Fault:
    """`change(step, n, start)` alters the n-th faulty step (from 0); `start`: the last healthy one.

    `fits(start)`: whether the run has, at that place, the values that the fault changes.
    """

    name: str
    rules: tuple[str, ...]
    critical: bool
    change: Callable[[Step, int, Step], None]
    fits: Callable[[Step], bool] = lambda start: True
    slow: bool = False  # so that it takes more steps to show


def _named(start: Step, names: Sequence[str]) -> str:
    """The run's name of the metric."""
    return next((name for name in names if name in start), names[0])


def _set(names: Sequence[str], value: Callable[[float, int, float], float]) -> Callable[[Step, int, Step], None]:
    """Changes one metric, from its current value, the count of the step, and its last healthy value."""

    def change(step: Step, n: int, start: Step) -> None:
        name = _named(start, names)
        if name in step:
            step[name] = value(step[name], n, start.get(name, step[name]))

    return change


def _for(steps: int, change: Callable[[Step, int, Step], None]) -> Callable[[Step, int, Step], None]:
    """The change for a limited time."""
    return lambda step, n, start: change(step, n, start) if n < steps else None


def _ramp(share: float, steps: int) -> Callable[[float, int, float], float]:
    """Moves to a share of the last healthy value, in `steps` steps."""
    return lambda x, n, start: start * share ** (min(n + 1, steps) / steps)


def _all_zero(step: Step, n: int, start: Step) -> None:
    for name in ("mean", "max", "min"):
        step[f"critic/score/{name}"] = 0.0
        step[f"critic/advantages/{name}"] = 0.0


def _hacked(step: Step, n: int, start: Step) -> None:
    part = min(n + 1, 6) / 6
    step["critic/score/mean"] = start["critic/score/mean"] + part * (0.98 - start["critic/score/mean"])
    step["response_length/mean"] = start["response_length/mean"] * (1 + 2 * part)


def _truncated(step: Step, n: int, start: Step) -> None:
    first = start["response_length/clip_ratio"] if start["response_length/max"] >= start["limit"] else 0.0
    step["response_length/clip_ratio"] = first + min(n + 1, 6) / 6 * (0.73 - first)
    step["response_length/max"] = start["limit"]


def _slower(step: Step, n: int, start: Step) -> None:
    for key in ("timing_s/step", "perf/time_per_step"):
        step[key] = 2 * (step["timing_s/step"] if key == "timing_s/step" else step[key])


def _slowly(growth: float, most: float) -> Callable[[float, int, float], float]:
    """A slow drift with unchanged noise."""
    return lambda x, n, start: x * min(growth ** (n + 1), most)


def _cut_off_slowly(step: Step, n: int, start: Step) -> None:
    first = start["response_length/clip_ratio"] if start["response_length/max"] >= start["limit"] else 0.0
    step["response_length/clip_ratio"] = max(first, min(first + 0.01 * (n + 1), 0.60))
    step["response_length/max"] = start["limit"]


def _slows_down(step: Step, n: int, start: Step) -> None:
    for key in ("timing_s/step", "perf/time_per_step"):
        if key in step:
            step[key] *= min(1.02 ** (n + 1), 3.0)


def _creep(step: Step, n: int, start: Step) -> None:
    for key in step:
        if "max_memory_reserved" in key:
            step[key] = start[key] + 0.5 * (n + 1)


def _validation(step: Step, n: int, start: Step) -> None:
    for key in step:
        if key.startswith("val-core"):
            step[key] = max(0.0, step[key] - 0.12 * (n // 10 + 1))
    step["critic/score/mean"] = min(1.0, step["critic/score/mean"] + 0.01 * n)


def _explains_less(step: Step, n: int, start: Step) -> None:
    """Raises the loss accordingly: it is half of the returns' variance times the unexplained share."""
    key = "critic/vf_explained_var"
    if key in step:
        was, step[key] = step[key], start[key] - 0.4 * (n + 1)
        step["critic/vf_loss"] *= (1 - step[key]) / (1 - was)


def _has(names: Sequence[str], least: float) -> Callable[[Step], bool]:
    return lambda start: start.get(_named(start, names), -math.inf) >= least


def _rarely_cut_off(start: Step) -> bool:
    return start["response_length/clip_ratio"] < 0.4 or start["response_length/max"] < start["limit"]


_score = _has(keys.SCORE, 0.3)  # below, there is no reward to lose
_critic = _has(keys.VALUE_LOSS, 0)

FAULTS = [
    Fault(
        "KL grows 15 % per step",
        ("KL-1",),
        True,
        _set(keys.KL, lambda x, n, s: s * 1.15 ** (n + 1)),
        _has(keys.KL, 0.05),
    ),
    Fault("KL jumps (×8 + 0.8)", ("KL-1",), True, _set(keys.KL, lambda x, n, s: 8 * x + 0.8)),
    Fault("KL is −0.2", ("KL-0",), False, _set(keys.KL, lambda x, n, s: -0.2)),
    Fault("entropy to 3 % in 5 steps", ("ENT-1",), True, _set(keys.ENTROPY, _ramp(0.03, 5))),
    Fault("entropy to 3 % in 10 steps", ("ENT-1",), True, _set(keys.ENTROPY, _ramp(0.03, 10))),
    Fault("entropy to 3 % in 30 steps", ("ENT-1",), False, _set(keys.ENTROPY, _ramp(0.03, 30))),
    Fault(
        "entropy grows 20 % per step", ("ENT-2",), False, _set(keys.ENTROPY, lambda x, n, s: s * 1.2 ** min(n + 1, 30))
    ),
    Fault(
        "entropy grows 4 % per step, to sevenfold", ("ENT-2",), False, _set(keys.ENTROPY, _slowly(1.04, 7.0)), slow=True
    ),
    Fault(
        "length grows 4 % per step, to fivefold", ("LEN-1",), False, _set(keys.LENGTH, _slowly(1.04, 5.0)), slow=True
    ),
    Fault("truncation +1 point per step, to 60 %", ("TRUNC-1",), False, _cut_off_slowly, _rarely_cut_off, slow=True),
    Fault("step time +2 % per step, to threefold", ("THR-1",), False, _slows_down, slow=True),
    Fault(
        "value loss grows 10 % per step, to tenfold",
        ("CRIT-1",),
        False,
        _set(keys.VALUE_LOSS, _slowly(1.1, 10.0)),
        _critic,
        slow=True,
    ),
    Fault("NaN in the policy loss, once", ("NUM-1",), True, _for(1, _set(keys.POLICY_LOSS, lambda x, n, s: math.nan))),
    Fault("infinite grad norm, 3 steps", ("NUM-1",), True, _for(3, _set(keys.GRADIENT, lambda x, n, s: math.inf))),
    Fault("grad norm ×50, 4 steps", ("GRAD-1",), False, _for(4, _set(keys.GRADIENT, lambda x, n, s: 50 * x))),
    Fault("grad norm ÷10 per step", ("GRAD-2",), True, _set(keys.GRADIENT, lambda x, n, s: s * 0.1 ** (n + 1))),
    Fault("ppo_kl 0.1", ("KL-2",), True, _set(keys.PPO_KL, lambda x, n, s: 0.1)),
    Fault("40 % of tokens clipped", ("CLIP-1",), True, _set(keys.CLIPPED, lambda x, n, s: 0.4)),
    Fault("reward falls to 15 % in 5 steps", ("REW-1",), True, _set(keys.SCORE, _ramp(0.15, 5)), _score),
    Fault("all rewards 0", ("SIG-1",), True, _all_zero),
    Fault("reward to 0.98, length ×3, in 6 steps", ("HACK-1", "LEN-1"), True, _hacked),
    Fault("length grows 12 % per step", ("LEN-1",), False, _set(keys.LENGTH, lambda x, n, s: s * 1.12 ** (n + 1))),
    Fault("length shrinks 25 % per step", ("LEN-1",), True, _set(keys.LENGTH, lambda x, n, s: s * 0.75 ** (n + 1))),
    Fault("truncation to 73 % in 6 steps", ("TRUNC-1",), True, _truncated, _rarely_cut_off),
    Fault(
        "empty responses +10 points per step",
        ("ABORT-1",),
        True,
        _set(keys.EMPTY, lambda x, n, s: min(1.0, 0.1 * (n + 1))),
    ),
    Fault(
        "value loss grows 50 % per step",
        ("CRIT-1",),
        True,
        _set(keys.VALUE_LOSS, lambda x, n, s: s * 1.5 ** (n + 1)),
        _critic,
    ),
    Fault("explained variance falls 0.4 per step", ("CRIT-1",), False, _explains_less, _has(keys.EXPLAINED, -1)),
    Fault("validation falls 0.12 each, training reward rises", ("VAL-1", "HACK-1"), False, _validation, _score),
    Fault("steps take twice as long", ("THR-1",), False, _slower),
    Fault("+0.5 GB per step, of 80", ("MEM-1",), False, _creep),
    Fault("learning rate 0", ("LR-1",), True, _set(keys.LEARNING_RATE, lambda x, n, s: 0.0)),
    Fault("rollout correlation 0.7", ("MIS-1",), False, _set(keys.PROBS_CORRELATION, lambda x, n, s: 0.7)),
]
