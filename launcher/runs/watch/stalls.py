"""The catalog of reasons for hangs (stalls.toml), and their words."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from launcher.core.format import duration
from launcher.core.tables import record, tables_of
from launcher.record.fix import Fix, fixes_of
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.problem import Evidence, Problem
from launcher.record.standstill import Standstill

if TYPE_CHECKING:
    from launcher.preset.effective import EffectiveConfig

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Reason:
    """A row of stalls.toml, which describes its fields."""

    title: str
    meaning: str
    fixes: tuple[Fix, ...]
    command: str | None = None
    certain: bool = False


@functools.cache
def reasons() -> Mapping[str, Reason]:
    """All reasons by id, in file order."""
    return {
        id: record(Reason, row, fixes=tuple(fixes_of(row["fixes"], {}))) for id, row in _tables()["reasons"].items()
    }


@functools.cache
def calls() -> Mapping[str, re.Pattern[str]]:
    """Frame patterns by kind of wait."""
    return {name: re.compile(pattern.replace("\\\n", "")) for name, pattern in _tables()["calls"].items()}


@functools.cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return tables_of(__file__)


def last_standstill(run: RunDir) -> Standstill | None:
    """The newest attempt's newest hang, over or not; None without one."""
    attempt = run.last_attempt()
    return Standstill.read(attempt.standstill) if attempt is not None else None


def sentence(found: Standstill, now: float) -> str:
    """`The reward function does not return (no progress for 2m 10s, usually 31s)`; in steps of 10 s."""
    return f"{found.title} ({_patience(found, now)})"


def _patience(found: Standstill, now: float) -> str:
    usual = f", usually {duration(found.usual)}" if found.usual else ""
    return f"no progress for {duration(max(0.0, now - found.since) // 10 * 10)}{usual}"


def problem_of(found: Standstill, now: float | None, config: EffectiveConfig | None = None) -> Problem:
    """A hang in the form of all problems; `config`: the run's; `now`: None if it is over."""
    from launcher.preset.settle import offers  # imports all of veRL's keys, which a supervisor does not need

    reason = reasons().get(found.reason, reasons()[UNKNOWN])
    return Problem(
        "hang",
        found.reason,
        Level.WARN,
        found.title,
        _patience(found, now or found.noticed),
        reason.meaning,
        tuple(map(Evidence, found.evidence)),
        offers(reason.fixes, config),
        found.command,
    )
