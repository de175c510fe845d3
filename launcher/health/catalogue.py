"""What is written about the health rules, as data: texts, limits and advice (rules.toml), families (families.toml)."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from launcher.core.tables import record, tables_of
from launcher.record.fix import Fix, fixes_of
from launcher.record.levels import FLAGS

_SCALES: dict[str, Callable[[float, float], float]] = {
    "fixed": lambda value, k: value,
    "times": lambda value, k: value * k,
    "excess": lambda value, k: 1 + (value - 1) * k,
    "divided": lambda value, k: value / k,
    "root": lambda value, k: value / math.sqrt(k),
}


@dataclass(frozen=True, slots=True)
class Family:
    """The subject of a group of rules; its texts describe `metrics`."""

    meaning: str
    healthy: str
    bad: str
    metrics: tuple[str, ...] = ()
    of_machine: bool = False
    of_policy: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """One number of a rule; `lower` if a healthy value stays above it, `letting_go` where it has a limit of its own."""

    value: float
    letting_go: float | None
    scale: str
    lower: bool

    def scaled(self, value: float, factor: float) -> float:
        """`value` changed by `factor`, which is that of a preset or of release limits, on the scale of this limit."""
        return _SCALES[self.scale](value, factor)

    def released(self, value: float, factor: float | None) -> float:
        """The release limit that goes with the raise limit `value`."""
        if self.letting_go is not None:
            return value * self.letting_go / self.value
        return value if factor is None else self.scaled(value, factor)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that a rule compares: what is taken of the model of a metric, and the name of its limits.

    `unit` is an estimate that the limits are multiples of, `swing` the name of limits in units of the noise, also to
    be exceeded. `distance`: the limits are distances from 1. A `change` is CRITICAL only with harm, and one that
    `pays` a NOTICE while the reward rises. `stuck`: it counts while the reward has had no new best for so many steps,
    `flat`: while it has not risen since the first step.
    It is judged from the value number `after` on; the rule from that of its first one, but for flags. While the
    metric `eases` falls, WARN is a NOTICE. `only`: for losses that are a "token mean" or "other mean", or that are
    known or not (RunConfig.known). `words` describe the figure in a list of limits, "" for the metric itself; `say`
    describes it in the message.
    """

    metric: str
    limit: str
    take: str = "now"
    side: str = ">="
    unit: str = ""
    swing: str = ""
    distance: bool = False
    change: bool = False
    pays: bool = False
    fixed: bool = False
    after: int = 1
    eases: str = ""
    only: str = ""
    stuck: str = ""
    flat: bool = False
    most: float = math.inf
    words: str = ""
    say: str = ""


@dataclass(frozen=True, slots=True)
class RuleData:
    """A rule: all of it where it has `figures`, else without its judgement, which is code in rules/.

    `message` is its sentence while no figure has one of its own, `aside` what is added where the values are known.
    `constant` is why it is not judged while its first figure is always 0, and `missing` why while there is none. It
    needs the first figure and the metrics in `needs`, with `any` one of its figures; those in `also` are drawn as well.
    """

    id: str
    title: str
    family: str
    meaning: str
    limits: Mapping[str, Limit]
    advice: tuple[Fix, ...]
    raised: tuple[int, int] = (2, 3)
    release: int = 5
    factor: float | None = None
    harm: str = ""  # the damage that the rule sees, in words; only with such does a change become CRITICAL
    applies: str = "always"
    figures: tuple[Figure, ...] = ()
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    worse: int = 0
    any: bool = False
    constant: str = ""
    missing: str = ""
    message: str = ""
    aside: str = ""


@functools.cache
def families() -> dict[str, Family]:
    """All families by name, read once."""
    return {name: record(Family, row) for name, row in tables_of(__file__, "families.toml").items()}


def texts_of(rule: str, family: str) -> Family | None:
    """The texts about the metrics of a rule: those of its family, or its own meaning where they describe others."""
    about, data = families().get(family), rules().get(rule)
    if about is None or data is None or not data.figures or any(each.metric in about.metrics for each in data.figures):
        return about
    return replace(about, meaning=data.meaning, healthy="", bad="")


@functools.cache
def rules() -> dict[str, RuleData]:
    """All rules by id, read once, in the order of the checklist."""
    return {
        row["id"]: record(
            RuleData,
            row,
            limits=_limits(row["limits"]),
            advice=tuple(fixes_of(row["advice"], _tables()["advice"])),
            figures=tuple(record(Figure, figure) for figure in row.get("figures", ())),
        )
        for row in _tables()["rules"]
    }


@functools.cache
def plain_settings() -> Mapping[str, str]:
    """Words for veRL keys, for runs of other frameworks."""
    return cast(Mapping[str, str], _tables()["plain"])


def shared_advice(name: str) -> tuple[Fix, ...]:
    """A list of advice that several rules use, or that belongs to one kind of error."""
    return tuple(fixes_of([{"use": name}], _tables()["advice"]))


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tables_of(__file__, "rules.toml")


def _limits(rows: Sequence[Mapping[str, Any]]) -> dict[str, Limit]:
    """The limits of a rule, level by level and then in their order."""
    return {f"{level}.{row['name']}": _limit(row, row[level]) for _, level in FLAGS for row in rows if level in row}


def _limit(row: Mapping[str, Any], value: float | list[float]) -> Limit:
    raised, letting_go = value if isinstance(value, list) else (value, None)
    return Limit(raised, letting_go, row.get("scale", "fixed"), row.get("direction") == "below")
