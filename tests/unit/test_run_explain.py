"""Explanations rebuilt from run directories, and what happened while nobody looked."""

from pathlib import Path
from typing import Any

import pytest
from launcher.run.explain import Explainer

from launcher.errors import UserError
from launcher.files import write_json
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.run.actions.import_logs import import_logs
from launcher.run.reading.checklist import judged
from launcher.run.reading.missed import away, last_look, looked

LOGS = Path(__file__).parents[1] / "data" / "logs"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


def imported(name: str) -> RunDir:
    return import_logs([str(LOGS / name)])[0]


def test_an_explanation_has_the_limits_and_fixes_of_the_supervisors_checklist() -> None:
    run = imported("kl-blowup.log.gz")
    explainer = Explainer(run)
    assert explainer.follow() and not explainer.follow()
    checklist, _ = judged(run, [])
    for row in checklist.checks():
        assert explainer.explain(row.rule) == checklist.explain(row.rule), row.rule
    found = explainer.explain("KL-1")
    assert {line.level for line in found.lines} == {Level.NOTICE, Level.WARN, Level.CRITICAL}
    assert "algorithm.kl_ctrl.kl_coef ↑ (now 0.001)" in found.fixes


def test_it_goes_on_with_the_run_and_into_its_next_attempt() -> None:
    run = imported("learning.log.gz")
    steps = run.attempt(1).steps
    whole = steps.read_bytes().splitlines(keepends=True)
    steps.write_bytes(b"".join(whole[:12]))
    explainer = Explainer(run)
    explainer.follow()
    early = explainer.explain("KL-1").lines
    with steps.open("ab") as file:
        file.writelines(whole[12:])
    assert explainer.follow()
    assert explainer.explain("KL-1").lines != early
    second = run.add_attempt()
    second.steps.write_bytes(b"")
    write_json(second.launch, {"keys": {}, "resume_step": 11})
    assert explainer.follow()
    assert explainer.explain("KL-1").lines == early


def test_nobody_wants_to_know_any_more() -> None:
    run = imported("learning.log.gz")
    explainer = Explainer(run)
    explainer.follow(lambda: False)
    assert explainer.explain("REW-1").keys == []
    with pytest.raises(UserError, match="did you mean 'KL-1'"):
        explainer.explain("KL-11")


def rise(t: float, rule: str, to: str, before: str = "OK") -> dict[str, Any]:
    return {"t": t, "kind": "health", "step": int(t), "rule": rule, "from": before, "to": to, "message": "m"}


RUNNING = {"state": "running", "created": 10.0, "updated": 100.0}


def test_only_what_came_after_the_last_look_was_missed() -> None:
    events = [
        rise(20, "KL-1", "CRITICAL"),
        rise(50, "KL-4", "WARN"),
        rise(60, "GRAD-1", "NOTICE"),
        rise(70, "KL-4", "CRITICAL", "WARN"),
        rise(80, "NUM-1", "WARN", "CRITICAL"),
    ]
    missed = away(events, RUNNING, 30.0)
    assert missed is not None and missed.end is None
    assert [(event["rule"], event["to"]) for event in missed.rises] == [("KL-4", "CRITICAL")]
    assert away(events, RUNNING, 75.0) is None


def test_a_run_that_nobody_looked_at_counts_from_its_start() -> None:
    missed = away([rise(20, "KL-1", "CRITICAL")], RUNNING, None)
    assert missed is not None and missed.since == 10.0
    assert away([rise(20, "KL-1", "CRITICAL")], {**RUNNING, "state": "imported"}, None) is None


def test_muted_rules_were_not_missed() -> None:
    muted = {**RUNNING, "checks": [{"rule": "KL-1", "muted": True}]}
    assert away([rise(20, "KL-1", "CRITICAL")], muted, 15.0) is None


@pytest.mark.parametrize(
    ("state", "look", "end"),
    [
        ({"state": "failed", "exit": {"t": 90.0}}, 80.0, "failed"),
        ({"state": "failed", "exit": {"t": 90.0}}, 95.0, None),  # seen already
        ({"state": "lost", "updated": 50.0, "heartbeat": 85.0}, 80.0, "lost"),
        ({"state": "lost", "updated": 50.0, "heartbeat": 75.0}, 80.0, None),
    ],
)
def test_an_end_is_told_once(state: dict[str, Any], look: float, end: str | None) -> None:
    missed = away([], state, look)
    assert (missed.end if missed else None) == end


def test_the_last_look_is_kept_outside_the_run_directory(tmp_path: Path) -> None:
    assert last_look("7f3a-toy") is None
    looked("7f3a-toy", 12.5)
    assert last_look("7f3a-toy") == 12.5
    assert [path.name for path in (tmp_path / "cache").rglob("*.json")] == ["7f3a-toy.json"]
    (tmp_path / "cache" / "seen" / "7f3a-toy.json").write_text('{"t": ')
    assert last_look("7f3a-toy") is None
