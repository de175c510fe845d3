"""What happened to a run since somebody last looked at it."""

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.record.attempt import Exit
from launcher.record.check import Check
from launcher.record.events import Action, Event, LevelChange, Note
from launcher.record.levels import Level
from launcher.record.note import last_look, looked
from launcher.record.state import RunState
from launcher.runs.watch.history import missed

pytestmark = pytest.mark.usefixtures("home")


def change(t: float, rule: str, after: Level, before: Level = Level.OK) -> Event:
    return Event(t, LevelChange(int(t), rule, before, after, "m"))


RUNNING = RunState("running", created=10.0, updated=100.0)
EARLY = [change(20, "KL-1", Level.CRITICAL)]


def test_only_what_came_after_the_last_look_was_missed() -> None:
    events = [
        *EARLY,
        change(50, "KL-4", Level.WARN),
        Event(55, Action("stop")),
        change(60, "GRAD-1", Level.NOTICE),
        Event(65, Note("a note")),
        change(70, "KL-4", Level.CRITICAL, Level.WARN),
        change(80, "NUM-1", Level.WARN, Level.CRITICAL),
    ]
    found = missed(events, RUNNING, 30.0)
    assert found is not None and (found.since, found.end) == (30.0, None)
    assert [(rise.rule, rise.after) for rise in found.rises] == [("KL-4", Level.CRITICAL)]
    assert missed(events, RUNNING, 75.0) is None


def test_the_worst_of_what_was_missed_comes_first_and_muted_rules_were_not() -> None:
    levels = {"ENT-1": Level.WARN, "KL-1": Level.CRITICAL, "LEN-1": Level.WARN}
    found = missed([change(50 + n, rule, level) for n, (rule, level) in enumerate(levels.items())], RUNNING, 30.0)
    assert found is not None and [rise.rule for rise in found.rises] == ["KL-1", "ENT-1", "LEN-1"]
    assert missed(EARLY, replace(RUNNING, checks=(Check("KL-1"),)), 15.0) is not None
    assert missed(EARLY, replace(RUNNING, checks=(Check("KL-1", muted=True),)), 15.0) is None


def test_a_run_that_nobody_looked_at_counts_from_its_start() -> None:
    found = missed(EARLY, RUNNING, None)
    assert found is not None and found.since == 10.0 and found.rises
    assert missed(EARLY, replace(RUNNING, state="imported"), None) is None


@pytest.mark.parametrize(
    ("state", "look", "end"),
    [
        (RunState("failed", exit=Exit(1, t=90.0)), 80.0, "failed"),
        (RunState("failed", exit=Exit(1, t=90.0)), 95.0, None),  # seen already
        (RunState("lost", updated=50.0, heartbeat=85.0), 80.0, "lost"),
        (RunState("lost", updated=50.0, heartbeat=75.0), 80.0, None),
    ],
)
def test_an_end_is_told_once(state: RunState, look: float, end: str | None) -> None:
    found = missed([], state, look)
    assert (found.end if found else None) == end


def test_the_last_look_is_kept_outside_the_run_directory(tmp_path: Path) -> None:
    assert last_look("7f3a-toy") is None
    looked("7f3a-toy", 12.5)
    assert last_look("7f3a-toy") == 12.5
    assert [path.name for path in (tmp_path / "cache").rglob("*.json")] == ["7f3a-toy.json"]
    (tmp_path / "cache" / "seen" / "7f3a-toy.json").write_text('{"t": ')
    assert last_look("7f3a-toy") is None
