"""A run as it was logged, and a number as it is printed: what the forms of messages (said_forms.py) are checked with.

A number in a message is an interval: `0.412` is anything that is printed so.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}
KL = ("actor/reward_kl_penalty", "critic/kl", "actor/kl_loss")
SCORE = ("critic/score/mean", "critic/rewards/mean")
ENTROPY = ("actor/entropy", "actor/entropy_loss")
TIME = ("timing_s/step", "perf/time_per_step")
LENGTH = ("response_length/mean",)
LOSS = ("critic/vf_loss",)
GRADIENT = ("actor/grad_norm",)


@dataclass(frozen=True)
class Shown:
    """A number as printed: all that it can stand for."""

    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> "Shown":
        digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1] in _UNITS else (text, 1.0)
        mantissa, _, exponent = digits.partition("e")
        half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) * unit
        if "." not in mantissa and not exponent and unit == 1.0:
            half = 0.5 if abs(float(mantissa)) >= 100 else 5e-4  # 2 is a whole number, or anything near it
        if float(mantissa) == 0:
            half = 1e-99
        value = float(digits) * unit
        half *= 1 + 1e-9
        return cls(value - half, value + half)

    def is_(self, value: float | None, times: float = 1.0) -> bool:
        return value is not None and self.low - 1e-12 <= value * times <= self.high + 1e-12

    def ratio_of(self, value: "Shown", base: "Shown") -> bool:
        """Whether this may be `value` divided by `base`."""
        return base.low <= 0 or (self.low <= value.high / base.low and value.low / base.high <= self.high)


@dataclass
class Past:
    """The steps of a run up to the current one, as they were logged."""

    config: Mapping[str, object] = field(default_factory=dict)
    steps: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    usual: dict[str, list[Shown]] = field(
        default_factory=lambda: defaultdict(list)
    )  # what is called usual at this step
    _read: dict[tuple[str, ...], list[float]] = field(default_factory=dict)

    def see(self, step: int, data: dict[str, float]) -> None:
        self.steps.append((step, data))
        self.usual.clear()
        self._read.clear()

    def value(self, *names: str) -> float | None:
        data = self.steps[-1][1]
        found = next((name for name in names if name in data), None)
        return None if found is None or not finite(data[found]) else data[found]

    def values(self, *names: str) -> list[float]:
        """All values so far of the first of these metrics that a step has."""
        if names not in self._read:
            firsts = (next((data[name] for name in names if name in data), None) for _, data in self.steps)
            self._read[names] = [x for x in firsts if x is not None and finite(x)]
        return self._read[names]

    def smooth(self, *names: str) -> float:
        """The exponential mean over five steps."""
        return smooth(self.values(*names))[-1]

    def median(self, count: int, *names: str, ago: int = 0) -> float:
        values = self.values(*names)
        return statistics.median(values[len(values) - ago - count : len(values) - ago])

    def run(self, holds: Callable[[dict[str, float]], bool | None]) -> int:
        """Steps in a row up to this one; a step for which it is unknown counts neither way."""
        count = 0
        for _, data in reversed(self.steps):
            held = holds(data)
            if held is False:
                break
            count += held is True
        return count

    def called_usual(self, text: str, *names: str, of: float = 1.0, floor: float = math.inf) -> bool:
        """Whether a usual value is one that the metric had before, and the only one that is named so at this step."""
        shown, values = Shown.of(text), [of * x for x in self.values(*names)]
        self.usual[names[0]].append(shown)
        same = max(each.low for each in self.usual[names[0]]) <= min(each.high for each in self.usual[names[0]])
        return same and shown.high >= min(*values, floor) and shown.low <= max(values)


def finite(x: float) -> bool:
    return x - x == 0


def smooth(values: Sequence[float]) -> list[float]:
    """Exponential means over five steps."""
    found: list[float] = []
    for x in values:
        found.append(x if not found else found[-1] + (x - found[-1]) / 3)
    return found
