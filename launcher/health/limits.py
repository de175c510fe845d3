"""Every limit of the rules, by name, and how the preset factor k and the user's settings change it.

A limit is named `<level>.<name>`; the first name of a level is its main one, which `health.<RULE>.<level>: x`
sets. Release limits are what a flag lets go at: looser than the raise limits where a rule has them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

Scale = Callable[[float, float], float]


def _fixed(value: float, k: float) -> float:
    return value


def _times(value: float, k: float) -> float:
    return value * k


def _excess(value: float, k: float) -> float:
    return 1 + (value - 1) * k


def _divided(value: float, k: float) -> float:
    return value / k


def _root(value: float, k: float) -> float:
    return value / math.sqrt(k)


@dataclass(frozen=True, slots=True)
class Limit:
    """One number of a rule.

    `scale` says how k acts on it. `lower` marks limits that a healthy value stays above. `release` is the
    value at which the flag lets go, when that is not the rule's common release factor.
    """

    value: float
    scale: Scale = _fixed
    lower: bool = False
    release: float | None = None

    def released(self, value: float, factor: float | None) -> float:
        """The release limit that goes with the raise limit `value`."""
        if self.release is not None:
            return value * self.release / self.value
        return value if factor is None else self.scale(value, factor)


def fixed(value: float, lower: bool = False, release: float | None = None) -> Limit:
    """A limit that k leaves alone."""
    return Limit(value, _fixed, lower, release)


def times(value: float, lower: bool = False, release: float | None = None) -> Limit:
    """A limit that is multiplied by k."""
    return Limit(value, _times, lower, release)


def excess(value: float) -> Limit:
    """A ratio whose part above 1 is multiplied by k."""
    return Limit(value, _excess)


def divided(value: float) -> Limit:
    """A lower limit that is divided by k."""
    return Limit(value, _divided, lower=True)


def root(value: float) -> Limit:
    """A lower limit that is divided by the square root of k."""
    return Limit(value, _root, lower=True)


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """Limits and debounce of one rule.

    A flag rises when `raise_[0]` of the last `raise_[1]` steps are bad and lets go after `release` better
    ones. `factor` is what the release limits are scaled with, None where a flag holds as it rises.
    """

    limits: dict[str, Limit]
    raise_: tuple[int, int] = (2, 3)
    release: int = 5
    factor: float | None = None


AT_ONCE = (1, 1)

TABLE: dict[str, RuleLimits] = {
    "NUM-1": RuleLimits({"critical.again": fixed(10)}, raise_=AT_ONCE),
    "KL-0": RuleLimits({"notice.mean": fixed(-0.02, lower=True), "warn.mean": times(-0.05, lower=True)}),
    "KL-1": RuleLimits(
        {
            "notice.value": times(0.5),
            "warn.value": times(1.0),
            "warn.ratio": excess(3),
            "warn.offset": times(0.05),
            "critical.value": times(3.0),
            "critical.jump": times(1.0),
            "critical.ratio": excess(3),
            "critical.offset": times(0.05),
            "critical.early": times(0.3),
            "critical.early_ratio": times(10),
        },
        factor=0.8,
    ),
    "KL-2": RuleLimits({"warn.value": times(0.015), "critical.value": times(0.075)}, factor=0.8),
    "KL-3": RuleLimits({"notice.ratio": fixed(1.5), "warn.ratio": fixed(3)}),
    "KL-4": RuleLimits(
        {
            "warn.rise": times(0.10),
            "warn.gain_span": fixed(0.05, release=0.05 / 0.8),
            "warn.gain_sigmas": fixed(2, release=2 / 0.8),
            "critical.rise": times(0.20),
            "critical.gain_span": fixed(0.05, release=0.05 / 0.8),
            "critical.gain_sigmas": fixed(2, release=2 / 0.8),
        },
        factor=0.8,
    ),
    "CLIP-1": RuleLimits(
        {"notice.share": times(0.05), "warn.share": times(0.10), "critical.share": times(0.30)}, factor=0.8
    ),
    "ENT-1": RuleLimits(
        {
            "notice.value": divided(0.045),
            "warn.ratio_5": root(0.55),
            "warn.ratio_10": root(0.45),
            "warn.ratio_20": root(0.35),
            "warn.value": divided(0.03),
            "warn.start": root(0.25),
            "critical.ratio_5": root(0.35),
            "critical.ratio_10": root(0.25),
            "critical.ratio_20": root(0.18),
            "critical.value": divided(0.01),
            "critical.start": root(0.15),
        }
    ),
    "ENT-2": RuleLimits(
        {
            "notice.ratio": times(1.6),
            "notice.offset": fixed(0.1),
            "warn.ratio": times(2),
            "warn.offset": fixed(0.15),
            "critical.ratio": times(4),
            "critical.offset": fixed(0.5),
        },
        factor=0.8,
    ),
    "ENT-3": RuleLimits({"notice.start": Limit(0.1, lower=True), "notice.steps": fixed(50)}),
    "REW-1": RuleLimits(
        {"warn.span": times(0.15), "warn.sigmas": times(6), "critical.span": times(0.30), "critical.sigmas": times(10)},
        factor=0.8,
    ),
    "REW-2": RuleLimits({"notice.steps": fixed(100)}),
    "REW-4": RuleLimits({"notice.span": times(0.30), "notice.sigmas": times(8)}),
    "HACK-1": RuleLimits(
        {
            "warn.ratio": excess(1.5),
            "warn.span": fixed(0.05),
            "warn.sigmas": fixed(3),
            "warn.validation_span": times(0.10),
            "warn.validation_sigmas": times(3),
            "warn.training_span": times(0.05),
            "warn.training_sigmas": times(2),
            "critical.ratio": excess(3),
            "critical.top_ratio": excess(2),
        }
    ),
    "SIG-1": RuleLimits(
        {
            "notice.had": fixed(2),
            "notice.never": fixed(3),
            "notice.solved": fixed(2),
            "warn.had": fixed(3),
            "warn.never": fixed(10),
            "warn.solved": fixed(10),
            "warn.mostly": fixed(8),
            "critical.had": fixed(5),
            "critical.never": fixed(25),
        },
        raise_=AT_ONCE,
    ),
    "VAL-1": RuleLimits(
        {
            "notice.span": times(0.05),
            "notice.sigmas": times(3),
            "warn.span": times(0.10),
            "warn.sigmas": times(4),
            "critical.span": times(0.25),
            "critical.sigmas": times(6),
        },
        raise_=AT_ONCE,
        release=1,
    ),
    "LEN-1": RuleLimits(
        {
            "notice.longer": excess(1.5),
            "notice.shorter": root(0.7),
            "warn.longer": excess(2),
            "warn.shorter": root(0.5),
            "critical.longer": excess(3),
            "critical.shorter": root(0.2),
        },
        factor=0.85,
    ),
    "TRUNC-1": RuleLimits(
        {
            "notice.share": times(0.10),
            "notice.distance": times(0.07),
            "notice.sigmas": times(4),
            "notice.lasting": times(0.5, release=0.4),
            "warn.share": times(0.20, release=0.15),
            "warn.distance": times(0.15, release=0.10),
            "warn.sigmas": times(4, release=0),
            "warn.lasting": times(0.9, release=0.8),
            "critical.share": times(0.50, release=0.40),
            "critical.distance": times(0.35, release=0.30),
            "critical.sigmas": times(6, release=0),
        }
    ),
    "ABORT-1": RuleLimits({"notice.share": fixed(0.02), "warn.share": times(0.10), "critical.share": fixed(0.50)}),
    "CRIT-1": RuleLimits(
        {
            "notice.explained": fixed(0, lower=True),
            "warn.ratio": times(6, release=4),
            "warn.span": times(0.25, release=0.2),
            "warn.explained": fixed(-0.5, lower=True),
            "critical.ratio": times(20),
            "critical.span": times(1.0),
            "critical.explained": fixed(-2, lower=True),
        },
        raise_=(3, 4),
    ),
    "GRAD-1": RuleLimits(
        {
            "notice.ratio": times(5),
            "notice.sigmas": fixed(3),
            "warn.ratio": times(10),
            "warn.sigmas": fixed(4),
            "critical.ratio": times(30),
            "critical.sigmas": fixed(6),
        },
        raise_=(2, 5),
    ),
    "GRAD-2": RuleLimits({"warn.ratio": divided(0.02), "critical.ratio": divided(0.002)}),
    "LOSS-1": RuleLimits({"warn.value": times(1), "warn.ratio": times(20), "critical.value": times(10)}),
    "LR-1": RuleLimits({"warn.steps": fixed(2), "critical.steps": fixed(5)}, raise_=AT_ONCE),
    "MIS-1": RuleLimits(
        {
            "notice.probs_diff": times(0.02),
            "notice.correlation": times(0.02),
            "notice.kl": times(0.05),
            "notice.samples": fixed(0.5),
            "notice.chi2": times(0.5),
            "warn.probs_diff": times(0.05),
            "warn.correlation": times(0.05),
            "warn.kl": times(0.10),
            "warn.weight_low": Limit(0.5, lower=True),
            "warn.weight_high": fixed(2),
            "warn.samples": fixed(0.7),
            "warn.chi2": times(1.0),
            "critical.probs_diff": times(0.15),
            "critical.correlation": times(0.20),
            "critical.kl": times(0.50),
            "critical.samples": fixed(0.9),
            "critical.chi2": times(10),
        }
    ),
    "STALE-1": RuleLimits({"notice.versions": times(4), "warn.versions": times(8), "critical.versions": times(16)}),
    "THR-1": RuleLimits(
        {"notice.ratio": excess(1.4), "warn.ratio": excess(1.7), "critical.ratio": excess(4)},
        raise_=(3, 5),
        factor=0.85,
    ),
    "MEM-1": RuleLimits(
        {
            "notice.share": fixed(0.93),
            "notice.creep": fixed(0.004),
            "notice.sampled": fixed(0.985),
            "warn.share": fixed(0.97),
            "warn.steps": fixed(200),
            "critical.share": fixed(0.995),
        }
    ),
    "MEM-2": RuleLimits(
        {
            "notice.share": fixed(0.85),
            "notice.creep": fixed(0.003),
            "notice.sampled": fixed(0.95),
            "warn.share": fixed(0.92),
            "warn.steps": fixed(200),
            "critical.share": fixed(0.97),
        }
    ),
    "STALL-1": RuleLimits(
        {
            "warn.median": times(4),
            "warn.longest": times(1.3),
            "warn.seconds": times(180),
            "warn.start": times(1200),
            "critical.median": times(10),
            "critical.longest": times(2),
            "critical.seconds": times(900),
            "critical.start": times(3600),
        },
        raise_=AT_ONCE,
        release=1,
    ),
    "ERR-1": RuleLimits({"notice.after": fixed(3), "notice.until": fixed(20)}, raise_=AT_ONCE, release=1),
}
