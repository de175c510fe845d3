"""Every limit of the rules, by name, and how the preset factor k and the user's settings change it.

A limit is named `<level>.<name>`; the first name of a level is its main one, which `health.<RULE>.<level>: x`
sets. Release limits are what a flag lets go at: looser than the raise limits where a rule has them.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from launcher.record.levels import FLAGS

Value = float | tuple[float, float]
"""What raises a flag; with the value at which it lets go, when that is not the rule's common release factor."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One number of a rule.

    `scale` says how k acts on it. `lower` marks limits that a healthy value stays above. `release` is the
    value at which the flag lets go, when that is not the rule's common release factor.
    """

    value: float
    release: float | None
    scale: Callable[[float, float], float]
    lower: bool

    def released(self, value: float, factor: float | None) -> float:
        """The release limit that goes with the raise limit `value`."""
        if self.release is not None:
            return value * self.release / self.value
        return value if factor is None else self.scale(value, factor)


Levels = Mapping[str, Limit]
Kind = Callable[..., Levels]


def _kind(scale: Callable[[float, float], float], *, lower: bool = False) -> Kind:
    """A maker of limits on one figure by level: `times(notice=0.5, warn=1.0)`."""

    def limits(*, lower: bool = lower, **values: Value) -> Levels:
        found = {}
        for level, value in values.items():
            raised, release = value if isinstance(value, tuple) else (value, None)
            found[level] = Limit(raised, release, scale, lower)
        return found

    return limits


fixed = _kind(lambda value, k: value)  # k leaves it alone
times = _kind(lambda value, k: value * k)
excess = _kind(lambda value, k: 1 + (value - 1) * k)  # a ratio, of which only the part above 1 is multiplied
divided = _kind(lambda value, k: value / k, lower=True)
root = _kind(lambda value, k: value / math.sqrt(k), lower=True)


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """Limits and debounce of one rule.

    A flag rises when `raised[0]` of the last `raised[1]` steps are bad and lets go after `release` better
    ones. `factor` is what the release limits are scaled with, None where a flag holds as it rises.
    """

    limits: dict[str, Limit]
    raised: tuple[int, int]
    release: int
    factor: float | None


def rule(
    *, raised: tuple[int, int] = (2, 3), release: int = 5, factor: float | None = None, **figures: Levels
) -> RuleLimits:
    """A rule's limits, figure by figure."""
    limits = {
        f"{level}.{name}": levels[level] for _, level in FLAGS for name, levels in figures.items() if level in levels
    }
    return RuleLimits(limits, raised, release, factor)


AT_ONCE = (1, 1)

TABLE: dict[str, RuleLimits] = {
    "NUM-1": rule(raised=AT_ONCE, again=fixed(critical=10)),
    "KL-0": rule(mean={**fixed(notice=-0.02, lower=True), **times(warn=-0.05, lower=True)}),
    "KL-1": rule(
        factor=0.8,
        value=times(notice=0.5, warn=1.0, critical=3.0),
        ratio=excess(warn=3, critical=3),
        offset=times(warn=0.05, critical=0.05),
        jump=times(critical=1.0),
        early=times(critical=0.3),
        early_ratio=times(critical=10),
        sigmas=fixed(warn=3, critical=4),
    ),
    "KL-2": rule(factor=0.8, value=times(warn=0.015, critical=0.075)),
    "KL-3": rule(ratio=fixed(notice=1.5, warn=3)),
    "KL-4": rule(
        factor=0.8,
        rise=times(warn=0.10, critical=0.20),
        gain_span=fixed(warn=(0.05, 0.05 / 0.8), critical=(0.05, 0.05 / 0.8)),
        gain_sigmas=fixed(warn=(1.25, 1.25 / 0.8), critical=(1.25, 1.25 / 0.8)),
    ),
    "CLIP-1": rule(factor=0.8, share=times(notice=0.05, warn=0.10, critical=0.30)),
    "ENT-1": rule(
        ratio_5=root(warn=0.55, critical=0.35),
        ratio_10=root(warn=0.45, critical=0.25),
        ratio_20=root(warn=0.35, critical=0.18),
        value=divided(notice=0.045, warn=0.03, critical=0.01),
        start=root(warn=0.25, critical=0.15),
        sigmas=fixed(warn=3, critical=4),
    ),
    "ENT-2": rule(
        factor=0.8,
        ratio=times(notice=1.6, warn=2, critical=4),
        offset=fixed(notice=0.1, warn=0.15, critical=0.5),
        start=times(warn=2.5, critical=5),
        top=fixed(warn=0.5, critical=0.75),
        noise=fixed(warn=0.8),
        sigmas=fixed(notice=3, warn=4, critical=6),
    ),
    "ENT-3": rule(start=fixed(notice=0.1, lower=True), steps=fixed(notice=50)),
    "REW-1": rule(
        factor=0.8,
        span=times(warn=0.15, critical=0.30),
        share=times(warn=0.5, critical=0.8),
        sigmas=times(warn=6, critical=10),
        lasting=times(warn=3, critical=5),
    ),
    "REW-2": rule(steps=fixed(notice=100)),
    "REW-4": rule(span=times(notice=0.30), sigmas=times(notice=8), scale=fixed(warn=10)),
    "HACK-1": rule(
        ratio=excess(warn=1.5, critical=3),
        span=fixed(warn=0.05),
        sigmas=fixed(warn=3),
        validation_span=times(warn=0.10),
        validation_sigmas=times(warn=3),
        training_span=times(warn=0.05),
        training_sigmas=times(warn=2),
        top_ratio=excess(critical=2),
    ),
    "HACK-2": rule(span=fixed(notice=0.05), sigmas=fixed(notice=1), audit_sigmas=fixed(notice=0.67)),
    "SIG-1": rule(
        raised=AT_ONCE,
        had=fixed(notice=2, warn=3, critical=5),
        never=fixed(notice=3, warn=10, critical=25),
        solved=fixed(notice=2, warn=10),
        mostly=fixed(warn=8),
        chance=fixed(notice=1e-2, warn=1e-4, critical=1e-6, lower=True),
    ),
    "VAL-1": rule(
        raised=AT_ONCE,
        release=1,
        span=times(notice=0.05, warn=0.10, critical=0.25),
        sigmas=times(notice=3, warn=4, critical=6),
    ),
    "LEN-1": rule(
        factor=0.85,
        longer=excess(notice=1.5, warn=2, critical=3),
        shorter=root(notice=0.7, warn=0.5, critical=0.2),
        longer_ago=excess(notice=2, warn=3),
        longer_at_all=excess(warn=4),
        shorter_ago=root(notice=0.5, warn=0.3),
    ),
    "TRUNC-1": rule(
        share=times(notice=0.10, warn=(0.20, 0.15), critical=(0.50, 0.40)),
        distance=times(notice=0.07, warn=(0.15, 0.10), critical=(0.35, 0.30)),
        sigmas=times(notice=4, warn=(4, 0), critical=(6, 0)),
        lasting=times(notice=(0.2, 0.15), warn=(0.85, 0.75)),
        level=times(warn=(0.30, 0.25), critical=(0.60, 0.50)),
        grown=times(warn=(0.20, 0.15), critical=(0.40, 0.30)),
    ),
    "ABORT-1": rule(share={**fixed(notice=0.02, critical=0.50), **times(warn=0.10)}),
    "CRIT-1": rule(
        raised=(3, 4),
        ratio=times(warn=(6, 4), critical=20),
        span=times(warn=(0.25, 0.2), critical=1.0),
        explained=fixed(notice=-0.1, warn=-0.5, critical=-2, lower=True),
    ),
    "DISC-1": rule(share=fixed(notice=0.8, warn=0.5, lower=True)),
    "GRAD-1": rule(
        raised=(2, 5), ratio=times(notice=5, warn=10, critical=30), sigmas=fixed(notice=3, warn=4, critical=6)
    ),
    "GRAD-2": rule(ratio=divided(warn=0.02, critical=0.002)),
    "LOSS-1": rule(value=times(warn=1, critical=10), ratio=times(warn=20)),
    "LR-1": rule(raised=AT_ONCE, steps=fixed(warn=2, critical=5)),
    "MIS-1": rule(
        probs_diff=times(notice=0.02, warn=0.05, critical=0.15),
        correlation=times(notice=0.02, warn=0.05, critical=0.20),
        kl=times(notice=0.05, warn=0.10, critical=0.50),
        samples=fixed(notice=0.5, warn=0.7, critical=0.9),
        chi2=times(notice=0.5, warn=1.0, critical=10),
        weight_low=fixed(warn=0.5, lower=True),
        weight_high=fixed(warn=2),
    ),
    "MIS-2": rule(
        highest=excess(notice=2),
        floor=fixed(notice=0.3),
        mean=excess(notice=1.5),
        least=fixed(notice=0.001),  # a fifth of what engines in bf16 have; below are rounding errors
        length=excess(notice=1.5),
    ),
    "RATIO-1": rule(drift=fixed(notice=0.003), clipped=fixed(notice=0.01)),
    "STALE-1": rule(versions=times(notice=4, warn=8, critical=16)),
    "EVICT-1": rule(
        unvaried=fixed(notice=0.75), stale=fixed(notice=0.2), failed=fixed(notice=0.05), surplus=fixed(notice=0.5)
    ),
    "GROUP-1": rule(share=fixed(notice=0.75)),
    "TEXT-1": rule(
        alike=fixed(notice=0.5), copied=fixed(notice=0.3), repeated=fixed(notice=0.5), format=fixed(notice=0.3)
    ),
    "WAIT-1": rule(trainer=fixed(notice=0.5), rollout=fixed(notice=0.5)),
    "TURN-1": rule(raised=AT_ONCE, release=1, steps=fixed(notice=5)),
    "THR-1": rule(
        raised=(3, 5), factor=0.85, ratio=excess(notice=1.4, warn=1.7, critical=4), ago=excess(notice=1.6, warn=2)
    ),
    "MEM-1": rule(
        share=fixed(notice=0.93, warn=0.97, critical=0.995),
        creep=fixed(notice=0.004),
        sampled=fixed(notice=0.985),
        steps=fixed(warn=200),
    ),
    "MEM-2": rule(
        share=fixed(notice=0.85, warn=0.92, critical=0.97),
        creep=fixed(notice=0.003),
        sampled=fixed(notice=0.95),
        steps=fixed(warn=200),
    ),
    "STALL-1": rule(
        raised=AT_ONCE,
        release=1,
        median=times(warn=4, critical=10),
        longest=times(warn=1.3, critical=2),
        seconds=times(warn=180, critical=900),
        start=times(warn=1200, critical=3600),
    ),
    "ERR-1": rule(raised=AT_ONCE, release=1, after=fixed(notice=3), until=fixed(notice=20)),
}
