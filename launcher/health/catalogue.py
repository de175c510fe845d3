"""The texts, limits and advice of the health rules (rules.toml) and their families (families.toml)."""

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
    """One number of a rule. `lower`: healthy values stay above it. `letting_go`: its own release limit, if any."""

    value: float
    letting_go: float | None
    scale: str
    lower: bool

    def scaled(self, value: float, factor: float) -> float:
        """`value` times the factor of a preset or of release limits, on this limit's scale."""
        return _SCALES[self.scale](value, factor)

    def released(self, value: float, factor: float | None) -> float:
        """The release limit for the raise limit `value`."""
        if self.letting_go is not None:
            return value * self.letting_go / self.value
        return value if factor is None else self.scaled(value, factor)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that a rule compares: an estimate from a metric's model, and the name of its limits.

    `unit`: the estimate that the limits are multiples of. `swing`: the name of additional limits in standard
    deviations. `distance`: limits are distances from 1. `change`: CRITICAL needs harm. `pays`: such a change is a
    NOTICE while the reward rises. `stuck`: counts only after this many steps without a new best reward. `flat`: counts
    only while the reward has not risen since the first step. `after`: index of the first judged value (the first
    figure's applies to the rule, except to flags). `eases`: WARN is a NOTICE while this metric falls. `only`: losses
    that are a "token mean" or "other mean", "known" (RunConfig.known), or "supervised" (no reinforcement learning).
    `words`: the figure's name in a list of limits, "" for the metric itself. `say`: its name in the message.
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
    """A rule: complete if it has `figures`; otherwise its judgement is code in rules/.

    `message`: its sentence for figures without their own. `aside`: added to it if the values are known. `constant`: why
    it is not judged while its first figure is always 0. `missing`: why not without that figure. Needs the first figure
    (with `any` one of its figures) and the metrics in `needs`; those in `also` are only drawn.
    `supervised`: the rule for a training that is not reinforcement learning; None if it does not judge one.
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
    harm: str = ""  # the rule's damage in words; a change is CRITICAL only with damage
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
    supervised: "RuleData | None" = None

    def of(self, supervised: str) -> "RuleData":
        """The rule for a training that is reinforcement learning, or `supervised`."""
        return self.supervised if supervised and self.supervised else self


@functools.cache
def families() -> dict[str, Family]:
    """All families by name, cached."""
    return {name: record(Family, row) for name, row in tables_of(__file__, "families.toml").items()}


def texts_of(rule: str, family: str) -> Family | None:
    """The texts about a rule's metrics: its family's, or its own `meaning` if that covers other metrics."""
    about, data = families().get(family), rules().get(rule)
    if about is None or data is None or not data.figures or any(each.metric in about.metrics for each in data.figures):
        return about
    return replace(about, meaning=data.meaning, healthy="", bad="")


@functools.cache
def rules() -> dict[str, RuleData]:
    """All rules by id, cached, in checklist order."""
    return {row["id"]: _rule(row) for row in _tables()["rules"]}


def _rule(row: Mapping[str, Any]) -> RuleData:
    own = row.get("supervised")
    return record(
        RuleData,
        row,
        limits=_limits(row["limits"]),
        advice=tuple(fixes_of(row["advice"], _tables()["advice"])),
        figures=tuple(record(Figure, figure) for figure in row.get("figures", ())),
        supervised=None if own is None else _rule({**row, **own, "supervised": None}),
    )


@functools.cache
def plain_settings() -> Mapping[str, str]:
    """Plain words for veRL keys, for runs of other frameworks."""
    return cast(Mapping[str, str], _tables()["plain"])


@functools.cache
def supervised_settings() -> frozenset[str]:
    """The veRL keys of settings that a training without reinforcement learning has."""
    return frozenset(_tables()["supervised"])


def shared_advice(name: str) -> tuple[Fix, ...]:
    """Advice shared by several rules, or for one kind of error."""
    return tuple(fixes_of([{"use": name}], _tables()["advice"]))


@functools.cache
def _tables() -> Mapping[str, Any]:
    return tables_of(__file__, "rules.toml")


def _limits(rows: Sequence[Mapping[str, Any]]) -> dict[str, Limit]:
    """The limits of a rule, sorted by level."""
    return {f"{level}.{row['name']}": _limit(row, row[level]) for _, level in FLAGS for row in rows if level in row}


def _limit(row: Mapping[str, Any], value: float | list[float]) -> Limit:
    raised, letting_go = value if isinstance(value, list) else (value, None)
    return Limit(raised, letting_go, row.get("scale", "fixed"), row.get("direction") == "below")
