import contextlib
import io
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from tables import tabled
from waiting import PATIENCE, wait_until

from launcher.cli import plain
from launcher.core.errors import UserError
from launcher.machine import targets
from launcher.preset.alerting import AlertSettings, check_health
from launcher.record.events import Alert, EventLog
from launcher.record.layout import create
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.supervise.alerts import AlertCommand, StopRule, send_test

CRITICAL, OK = Level.CRITICAL, Level.OK


@tabled
def test_wrong_options_are_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        AlertSettings.read(settings)
    assert "health" in str(caught.value) and sentence in str(caught.value)


def test_nothing_acts_unless_it_is_asked_for() -> None:
    assert AlertSettings.read({"preset": "sensitive"}) == AlertSettings.read({})
    assert StopRule(AlertSettings.read({}), 20).due({"NUM-1": CRITICAL}, 1) is None
    assert [AlertSettings.read({"notify": ways}).notify for ways in ([], ["toast"])] == [frozenset(), {"toast"}]


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


@pytest.mark.parametrize(
    ("argv", "events", "sentence"),
    [
        (("notify\0x",), [{"kind": "health"}] * 60, "embedded null byte"),
        (("/nonexistent/notify",), [{}], "cannot run"),
        (("true",), [{"kind": {1, 2}}], "set"),
        (("true",), [{"kind": "health", "value": object()}], "object"),
    ],
)
@pytest.mark.parametrize("pause", [0.0, 0.01])
def test_no_error_ends_the_thread_that_alerts(
    argv: tuple[str, ...], events: list[dict[str, Any]], sentence: str, pause: float
) -> None:
    reports = list[str]()

    def report(text: str) -> None:
        reports.append(text)
        raise OSError(28, "No space left on device")  # of the event log

    command = AlertCommand(argv, report, pause=pause)
    for event in events:
        with contextlib.suppress(OSError):  # of a full queue
            command.send(event)
    wait_until(lambda: any(sentence in each for each in reports), lambda: reports)
    count = len(reports)
    wait_until(command._queue.empty)
    with contextlib.suppress(OSError):
        command.send({"value": object()})
    wait_until(lambda: len(reports) > count)
    command.close()
    assert not command._thread.is_alive()


def test_closing_ends_although_the_command_takes_no_more_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.runs.supervise.alerts.TIME_LIMIT", 0.2)
    asleep, reports = Event(), list[str]()
    monkeypatch.setattr("launcher.runs.supervise.alerts.subprocess.run", lambda *_, **__: asleep.wait())
    command = AlertCommand(("notify",), reports.append)
    for _ in range(60):
        command.send({})
    command.close()
    assert reports == ["on_alert: notify did not take all alerts within 0 s"]
    asleep.set()
    wait_until(lambda: any(each.endswith("alerts dropped, since 50 were waiting") for each in reports), lambda: reports)


def test_nothing_waits_for_a_full_queue_of_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pause the worker itself puts the end back, while the supervisor sends more than fit."""
    begun, go, reports = Event(), Event(), list[str]()

    def call(*_: object, **__: object) -> SimpleNamespace:
        begun.set()
        go.wait()
        return SimpleNamespace(returncode=0, stderr=b"")

    monkeypatch.setattr("launcher.runs.supervise.alerts.subprocess.run", call)
    command = AlertCommand(("notify",), reports.append, pause=0.01)
    command.send({})
    begun.wait(60)
    for _ in range(70):
        command.send({})
    go.set()
    command.close()
    assert not command._thread.is_alive() and reports == ["on_alert: 20 alerts dropped, since 50 were waiting"]


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


def test_plain_lines_tell_an_alert_that_failed(home: Path) -> None:
    run, out = create("x"), io.StringIO()
    EventLog(run.events).add(Alert("on_alert: cannot run mail"))
    RunState("finished").write(run.state)
    assert plain.follow(run, out) == 0
    assert out.getvalue().splitlines() == ["on_alert: cannot run mail", "finished"]


class Inbox(BaseHTTPRequestHandler):
    """A service such as ntfy, on this machine."""

    got: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def inbox(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[list[dict[str, Any]]]:
    """What a target named `phone` has got; another one, `gone`, does not answer."""
    server = HTTPServer(("127.0.0.1", 0), Inbox)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("TOPIC", "my-runs")
    (home / "config.yaml").write_text(
        f"alerts:\n  phone: ntfy://127.0.0.1:{server.server_port}/${{TOPIC}}\n  gone: ntfy://127.0.0.1:9/hush-hush\n"
    )
    Inbox.got = []
    yield Inbox.got
    server.shutdown()


OF = {"run": "7f3a1c", "name": "toy", "dir": "/", "t": 1.0}
RISE = {**OF, "kind": "health", "step": 27, "rule": "KL-1", "from": "OK", "to": "CRITICAL", "message": "KL 0.93"}
END = {**OF, "kind": "exit", "step": 30, "code": 0, "error": None, "state": "finished", "verdict": "CRITICAL"}
HANG = {**OF, "kind": "stall", "reason": "reward", "title": "The reward function does not return", "stage": "reward"}


@pytest.mark.slow
def test_targets_get_the_run_the_verdict_the_value_and_the_command(inbox: list[dict[str, Any]]) -> None:
    failures = list[str]()
    command = AlertCommand(targets.command(["phone", "gone"]), failures.append, "alerts", pause=3600.0)
    command.send(RISE)
    wait_until(lambda: len(failures) == 1)
    assert "gone: the service did not accept the message" in failures[0] and "hush" not in failures[0]
    command.send({**RISE, "step": 28, "rule": "ENT-1", "to": "WARN", "message": "entropy 0.1"})
    command.send(END)
    wait_until(lambda: len(inbox) == 2)
    command.close()
    assert [(each["title"], each["message"].splitlines()) for each in inbox] == [
        ("CRITICAL KL-1 · toy", ["step 27: KL-1 CRITICAL: KL 0.93", "ppo-tui attach 7f3a1c"]),
        (
            "finished · toy",
            ["step 28: ENT-1 WARN: entropy 0.1", "finished at step 30, CRITICAL", "ppo-tui attach 7f3a1c"],
        ),
    ], "what happens within the pause is one message, and the end is not held back"
    title, body = targets.message([HANG])
    assert (title, body.splitlines()[0]) == ("hang · toy", "reward: The reward function does not return")


@pytest.mark.slow
def test_a_test_shows_what_the_command_and_each_target_got(inbox: list[dict[str, Any]], tmp_path: Path) -> None:
    got = tmp_path / "got.json"
    settings = AlertSettings.read({"on_alert": ["tee", str(got)]})
    command, told, phone, gone = send_test(settings, "toy")
    assert command == "on_alert: sent to tee" and json.loads(told) == json.loads(got.read_text())
    assert json.loads(told)["to"] == "CRITICAL" and json.loads(told)["name"] == "toy"
    assert inbox[0]["title"] in phone and inbox[0]["message"] in phone and phone.startswith("phone: sent to ntfy")
    assert gone.startswith("gone: the service did not accept the message") and "hush" not in gone
    missing = AlertSettings.read({"on_alert": ["/no/such"], "alert_to": []})
    assert next(send_test(missing, "toy")) == "on_alert: cannot run /no/such: No such file or directory"


def test_alerts_that_wait_are_sent_when_the_run_ends(inbox: list[dict[str, Any]]) -> None:
    command = AlertCommand(targets.command(["phone"]), [].append, "alerts", pause=60.0)
    command.send(RISE)
    wait_until(lambda: len(inbox) == 1)
    command.send({**RISE, "rule": "ENT-1"})
    command.close()
    assert [message["title"] for message in inbox] == ["CRITICAL KL-1 · toy", "CRITICAL ENT-1 · toy"]


def test_a_preset_names_targets_of_config_yaml(inbox: list[dict[str, Any]]) -> None:
    assert AlertSettings.read({}).targets() == ["phone", "gone"]
    assert AlertSettings.read({"alert_to": []}).targets() == []
    with pytest.raises(UserError, match="'phon' is not a target") as caught:
        check_health({"alert_to": ["phon"]})
    assert "phone" in (caught.value.hint or "")
    with pytest.raises(UserError, match="did you mean 'stop_on'"):
        check_health({"stop_onn": []})


def test_mail_goes_through_sendmail_and_an_address_needs_its_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "sendmail"
    program.write_text('#!/bin/sh\necho "$@" > "$0.words"\ncat > "$0.mail"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/usr/bin:/bin")
    targets.send("mail", "sendmail:me@example.org", *targets.message([RISE]))
    assert (home / "sendmail.words").read_text() == "-t -i\n"
    mail = (home / "sendmail.mail").read_text()
    assert "To: me@example.org" in mail and "KL 0.93" in mail
    with pytest.raises(UserError, match="team: the variable TEAM_WEBHOOK is not set"):
        targets.send("team", "${TEAM_WEBHOOK}", "title", "body")
