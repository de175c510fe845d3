import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, wait_until

from launcher.cli import plain
from launcher.core.errors import UserError
from launcher.health.alerting import AlertSettings
from launcher.record.events import Alert, EventLog
from launcher.record.layout import create
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.supervise.alerts import AlertCommand, StopRule

CRITICAL, OK = Level.CRITICAL, Level.OK


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"on_alert": "notify-send x"}, "must be a list of words"),
        ({"on_alert": ["x", 1]}, "must be a list of words"),
        ({"stop_on": ["NUM1"]}, "did you mean 'NUM-1'"),
        ({"stop_on": "NUM-1"}, "a list of"),
        ({"stop_on": ["LEN-1"]}, "a list of"),
        ({"stop_at": "later"}, "now or checkpoint"),
        ({"grace_steps": -1}, "0 to 1000"),
        ({"grace_steps": True}, "0 to 1000"),
    ],
)
def test_wrong_options_are_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match="health") as caught:
        AlertSettings.read(settings)
    assert sentence in str(caught.value)


def test_nothing_acts_unless_it_is_asked_for() -> None:
    assert AlertSettings.read({"preset": "sensitive"}) == AlertSettings()
    assert StopRule(AlertSettings(), 20).due({"NUM-1": CRITICAL}, 1) is None


def test_the_command_gets_the_event_on_stdin_and_never_through_a_shell(tmp_path: Path) -> None:
    target, failures = tmp_path / "$(touch owned); event.json", list[str]()
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    command = AlertCommand((sys.executable, "-c", code, str(target)), failures.append)
    command.send({"rule": "KL-1", "message": "KL 3 vs usual 0.1"})
    command.close()
    wait_until(target.exists)
    assert json.loads(target.read_text())["rule"] == "KL-1" and failures == []
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "limit", "sentence"),
    [
        ("import sys; sys.exit('no network')", PATIENCE, "failed with exit code 1: no network"),
        ("import time; time.sleep(60)", 0.5, "was killed after"),
    ],
)
def test_a_failing_or_slow_command_is_told_and_never_waited_for(
    code: str, limit: float, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launcher.runs.supervise.alerts.TIME_LIMIT", limit)
    failures: list[str] = []
    command = AlertCommand((sys.executable, "-c", code), failures.append)
    command.send({})
    assert failures == [], "it has not even been started"
    wait_until(lambda: failures)
    assert sentence in failures[0]


def test_a_missing_command_is_told() -> None:
    failures: list[str] = []
    command = AlertCommand(("/nonexistent/notify",), failures.append)
    command.send({})
    command.close()
    assert "cannot run" in failures[0]


def steps(rule: StopRule, levels: list[Level], name: str, first: int = 1) -> list[int]:
    return [step for step, level in enumerate(levels, first) if rule.due({name: level}, step)]


def test_a_rule_must_stay_critical_for_the_grace_and_nan_stops_at_once() -> None:
    settings = AlertSettings.read({"stop_on": ["KL-1", "NUM-1"]})
    assert steps(StopRule(settings, None), [CRITICAL, CRITICAL, OK, CRITICAL, OK], "KL-1") == []
    assert steps(StopRule(settings, None), [OK, CRITICAL, CRITICAL, CRITICAL, CRITICAL], "KL-1") == [5]
    assert steps(StopRule(settings, None), [OK, CRITICAL, OK], "NUM-1")[0] == 2


def test_a_stop_can_wait_for_the_next_checkpoint() -> None:
    settings = AlertSettings.read({"stop_on": ["NUM-1"], "stop_at": "checkpoint"})
    assert steps(StopRule(settings, 5), [CRITICAL, OK, OK, OK, OK, OK], "NUM-1", first=6) == [10, 11]
    assert steps(StopRule(settings, 5), [CRITICAL], "NUM-1", first=10) == [10], "its checkpoint is on disk"
    assert steps(StopRule(settings, -1), [CRITICAL], "NUM-1", first=6) == [6], "no checkpoint will ever come"


@pytest.mark.parametrize(
    ("notify", "sentence"), [(["bel"], "did you mean 'bell'"), ("bell", "a list of"), (None, "a list")]
)
def test_notify_is_a_list_of_known_ways(notify: object, sentence: str) -> None:
    assert AlertSettings.read({"notify": []}).notify == frozenset()
    assert AlertSettings.read({"notify": ["toast"]}).notify == {"toast"}
    with pytest.raises(UserError, match=sentence):
        AlertSettings.read({"notify": notify})


def test_plain_lines_tell_an_alert_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    run, out = create("x"), io.StringIO()
    EventLog(run.events).add(Alert("on_alert: cannot run mail: No such file or directory"))
    RunState("finished").write(run.state)
    assert plain.follow(run, out) == 0
    assert out.getvalue().splitlines() == ["on_alert: cannot run mail: No such file or directory", "finished"]
