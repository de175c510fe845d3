"""The catalog of the reasons why a run stands still (stalls.toml), and the words for one that was found."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.core.format import duration
from launcher.core.tables import read_tables, record
from launcher.record.fix import Fix, fixes_of
from launcher.record.layout import RunDir
from launcher.record.standstill import Standstill

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Reason:
    """A row of stalls.toml, where its fields are described."""

    title: str
    meaning: str
    fixes: tuple[Fix, ...]
    command: str | None = None
    certain: bool = False


@functools.cache
def reasons() -> Mapping[str, Reason]:
    """All reasons by their ids, in the order of the file."""
    return {
        id: record(Reason, row, fixes=tuple(fixes_of(row["fixes"], {}))) for id, row in _tables()["reasons"].items()
    }


@functools.cache
def calls() -> Mapping[str, re.Pattern[str]]:
    """What a frame shows that a thread waits for."""
    return {name: re.compile(pattern.replace("\\\n", "")) for name, pattern in _tables()["calls"].items()}


@functools.cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return read_tables(Path(__file__).with_suffix(".toml"))


def last_standstill(run: RunDir) -> Standstill | None:
    """The newest one of the newest attempt, over or not; None without one."""
    attempt = run.last_attempt()
    return Standstill.read(attempt.standstill) if attempt is not None else None


def sentence(found: Standstill, now: float) -> str:
    """`The reward function does not return (no progress for 2m 10s, usually 31s)`; in steps of 10 s."""
    usual = f", usually {duration(found.usual)}" if found.usual else ""
    return f"{found.title} (no progress for {duration(max(0.0, now - found.since) // 10 * 10)}{usual})"


def fixes(found: Standstill) -> tuple[Fix, ...]:
    """What to try."""
    return reasons().get(found.reason, reasons()[UNKNOWN]).fixes


def lines(found: Standstill) -> list[str]:
    """Meaning, evidence, fixes and the command that shows more."""
    reason = reasons().get(found.reason, reasons()[UNKNOWN])
    shown = [f"{found.reason}: {reason.meaning}"]
    shown += [f"seen: {each}" for each in found.evidence]
    shown += [f"fix: {each.text}" for each in reason.fixes]
    return [*shown, f"more: {found.command}"] if found.command else shown
