"""The detached process beside a run: starts veRL, watches it, writes the truth down.

`python -m launcher.run.supervisor RUN_DIR` works on the newest attempt. It holds no screen, survives the terminal,
and is the only writer of state.json, events.jsonl, gpu.jsonl and steps.jsonl.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from launcher.errors import UserError
from launcher.gpu import Sampler, visible
from launcher.health.alerting import AlertSettings
from launcher.record import control
from launcher.record.attempt import Exit
from launcher.record.events import Action, Alert, DriverExit, EventLog, LevelChange, Note, StateChange, read_events
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId, session_members
from launcher.record.state import RunState, StateFile
from launcher.run.reading.checklist import checklist_maker, machine_sizes
from launcher.run.reading.diagnosis import Outcome, outcome
from launcher.run.reading.monitor import DiskSink, Monitor
from launcher.run.reading.steps import earlier_steps
from launcher.run.supervisor import driver
from launcher.run.supervisor.alerts import AlertCommand, StopRule
from launcher.run.supervisor.disk import MachineLog, Reserve
from launcher.tail import LineTail, Tail

TICK = 0.5  # seconds between two looks
_AT_ONCE = 16  # MiB that are read between two looks for a stop
_GONE = 6  # looks in a row without the run's folder, after which it was removed


class Supervisor:
    """One attempt of one run, from the start of the driver to its exit record."""

    def __init__(self, run: RunDir) -> None:
        attempt = run.last_attempt()
        if attempt is None:
            raise FileNotFoundError(f"no attempt in {run.attempts}")
        self.run, self.attempt = run, attempt
        self.launch = attempt.read_launch()
        self.events = EventLog(run.events, patient=True)
        info = run.read_info()
        alerts = AlertSettings.read(info.health)
        self.name = info.name
        self.alert_command = AlertCommand(alerts.on_alert, lambda text: self.events.add(Alert(text)))
        self.state_file = StateFile(run)
        self.sampler = Sampler(visible({**os.environ, **self.launch.env}))
        self.machine = MachineLog(run.machine)
        self.reserve = Reserve(run.path / ".room", self._gone)
        keys = self.launch.keys
        # a replayed log tells of another machine's memory
        sizes = {} if info.replay_of else machine_sizes(self.sampler)
        self.sink = DiskSink(attempt, self.events, self._alert, patient=True)
        file_logger = "file" in str(keys.get("trainer.logger", ""))
        self.monitor = Monitor(self.sink, checklist_maker(info, sizes, clock=True), keys, file_logger=file_logger)
        self.stop_rule = StopRule(alerts, keys.get("trainer.save_freq"))
        self.console, self.metrics = Tail(attempt.console), LineTail(attempt.metrics)
        self.process: subprocess.Popen[bytes] | None = None
        self.driver: ProcessId | None = None
        self.state = "queued"
        self.exit: Exit | None = None
        self.requested_by: str | None = None
        self.stopping_since: float | None = None  # by a clock that nobody sets
        self.terminated = False  # by SIGTERM
        self.behind = False  # more was printed than is read at once
        self.missed = 0  # looks in a row that did not find the run's folder
        self.pids: list[int] = []
        self.faulty = False

    def supervise(self) -> None:
        """Runs the attempt to its end."""
        self._enter("starting")
        if self._spawn():
            self._guard(self._recall, time.time())
            while self.process is not None and self.process.poll() is None and not self._gone():
                self._look(time.time())
                if not self.behind:
                    time.sleep(TICK)
            self._finish()
        self.sampler.close()

    def stop(self, by: str) -> bool:
        """Asks the driver to end; `_look` kills its session when it takes too long.

        False when it is ending already, or has ended by itself: that end must not pass for a stop.
        """
        if self.stopping_since is not None or self.process is None or self.process.poll() is not None:
            return False
        self.requested_by, self.stopping_since = by, time.monotonic()
        self.process.terminate()
        self._enter("stopping")
        return True

    def _spawn(self) -> bool:
        """Starts the driver; a command that cannot be started ends the run as failed."""
        env = {**os.environ, **self.launch.env, "PPO_TUI_RUN": self.run.id}
        for name in self.launch.unset:
            env.pop(name, None)
        try:
            self.process = driver.spawn(self.launch.argv, env, Path(self.launch.cwd), self.attempt.console)
        except OSError as error:
            text = f"ppo-tui: cannot start the driver: {error}\n"
            self.reserve.retry(lambda: self.attempt.console.write_text(text))
            self._end(127, None)
            return False
        self.driver = ProcessId.of(self.process.pid) or ProcessId(self.process.pid, time.time())
        self._write()
        return True

    def _recall(self, _: float) -> None:
        """Takes in the earlier attempts. Judging 10,000 steps takes seconds: the driver starts meanwhile."""
        self.monitor.history(earlier_steps(self.run, self.attempt.number, self.launch.resume_step))
        for event in read_events(self.run.events):  # what the user muted
            if isinstance(event.what, Action):
                self._mute(event.what.verb, event.what.rule)

    def _look(self, now: float) -> None:
        self._guard(self._obey, now)
        self._guard(self._read, now)
        if self.machine.due():
            self._guard(self._sample, now)
        if self.state == "starting" and self.monitor.step is not None:
            self._enter("running")
        since = self.stopping_since
        if since is not None and time.monotonic() - since > driver.PATIENCE and self.driver:
            driver.kill_session(self.driver)
        self._write()

    def _obey(self, now: float) -> None:
        if self.terminated:
            self.stop("SIGTERM to the supervisor")
        for request in control.take(self.run):
            self.events.add(Action(request.verb, request.by, request.rule), now)
            if request.verb == "stop":
                self.stop(request.by)
            else:
                self._mute(request.verb, request.rule)

    def _gone(self) -> bool:
        """Whether the run was removed: then nobody could watch or stop it any more."""
        try:
            Path("run.yaml").stat()  # where we stand: a folder that was moved is still the run
            self.missed = 0
        except FileNotFoundError:
            self.missed += 1
        except OSError:  # a network disk that is away for a while
            pass
        return self.missed > _GONE

    def _mute(self, verb: str, rule: str | None) -> None:
        if verb in ("mute", "unmute"):
            with contextlib.suppress(UserError):  # a rule that does not exist, or does not any more
                self.monitor.mute(str(rule), verb == "mute")

    def _guard(self, part: Callable[[float], object], now: float) -> None:
        """Reading and judging must never harm the run: a mistake in them is noted, supervision goes on."""
        try:
            part(now)
        except Exception as error:
            if not self.faulty:
                self.faulty = True
                with contextlib.suppress(OSError):
                    traceback.print_exc()
                text = f"ppo-tui failed while reading the run ({error!r}); figures may be missing"
                self.events.add(Note(f"{text}; see {self.run.supervisor_log}"), now)

    def _read(self, now: float) -> None:
        """Takes in what was printed and logged since the last look.

        Of a process that prints without end only a part, or a stop would not be heard.
        """
        self.behind = False
        for _ in range(_AT_ONCE):
            chunk, lines = self.console.read(), self.metrics.read()
            self.behind = bool(chunk or lines)
            if not self.behind:
                break
            if chunk:
                self.monitor.feed_console(chunk, now)
            self.monitor.feed_file(lines, now)
        for record in self.monitor.collect(now):
            levels = {check.rule: check.level for check in self.monitor.checklist.checks() if not check.muted}
            reason = self.stop_rule.due(levels, record.step)
            if reason and self.stop(reason):
                self.events.add(Action("stop", reason, step=record.step), now)

    def _alert(self, change: LevelChange, t: float) -> None:
        """A flag rose to WARN or CRITICAL: the user's command hears of it."""
        if change.alarming and change.rule not in self.monitor.checklist.muted:
            self._tell({"kind": change.kind, "t": t, **change.to_json()})

    def _tell(self, event: dict[str, object]) -> None:
        self.alert_command.send({"run": self.run.id, "name": self.name, "dir": str(self.run.path), **event})

    def _sample(self, now: float) -> None:
        # finding them scans /proc, which is dear on a machine full of processes
        if self.driver is not None and int(now) % 10 == 0:
            self.pids = [process.pid for process in session_members(self.driver)]
        sample = self.sampler.sample(self.pids, self.driver.pid if self.driver else None)
        self.machine.add(sample)
        gpus = [(gpu.used, gpu.total) for gpu in sample.gpus if gpu.total and gpu.used is not None]
        fullest = max(gpus, key=lambda gpu: gpu[0] / gpu[1], default=None)
        self.monitor.tick(now, fullest, (sample.host.used or 0, sample.host.total or 0))

    def _finish(self) -> None:
        """The driver ended, or the run was removed: clear its session, read the rest, write the exit down."""
        assert self.process is not None and self.driver is not None
        if self.process.poll() is None:
            driver.stop(self.driver)
            self.process.wait()
        left = [] if driver.wait_gone(self.driver, 2.0) else driver.sweep(self.driver)
        if left:
            self.events.add(Note(f"could not kill these processes of the run: {', '.join(left)}"))
        self._guard(self._read, time.time())
        while self.behind and not self._gone():
            self._write()
            self._guard(self._read, time.time())
        self._guard(self.monitor.close, time.time())
        self.machine.add(self.sampler.sample(session=self.driver.pid))  # shows that the memory came back
        self._end(*driver.exit_status(self.process.returncode))

    def _end(self, code: int, name: str | None) -> None:
        self.exit = record = Exit(code, name, self.requested_by, time.time())
        self.reserve.retry(lambda: record.write(self.attempt.exit))
        self.monitor.checklist.ended(code)
        self.events.add(DriverExit.of(record))
        ended = Outcome(record.state)
        with contextlib.suppress(UserError):  # a log that cannot be read
            ended = outcome(self.attempt, record)
        self.events.add(StateChange(self.state, ended.state))
        self.state = ended.state
        self.reserve.retry(lambda: self._replace_state(ended))
        if ended.state == "failed":
            self._tell({"kind": "exit", "t": record.t, "code": code, "error": ended.error})
        self.alert_command.close()
        for waiting in (self.sink, self.events):
            self.reserve.retry(waiting.flush)
        self.reserve.release()

    def _enter(self, state: str) -> None:
        self.events.add(StateChange(self.state, state))
        self.state = state
        self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the next look tries again
            self._replace_state(Outcome(self.state))

    def _replace_state(self, outcome: Outcome) -> None:
        state = RunState(
            outcome.state,
            attempt=self.attempt.number,
            created=self.launch.run_created,
            started=self.launch.created,
            supervisor=_ME,
            driver=self.driver,
            exit=self.exit,
            error=outcome.error,
            cause=outcome.cause,
        )
        self.state_file.write(self.monitor.state(state, time.time()))


_ME = ProcessId.of(os.getpid()) or ProcessId(os.getpid(), time.time())


def main() -> None:
    """Supervises the newest attempt of the run directory named on the command line."""
    run = RunDir(Path(sys.argv[1]).absolute())
    os.chdir(run.path)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        supervisor = Supervisor(run)
        # only noted: a handler runs in the middle of anything, such as writing state.json
        signal.signal(signal.SIGTERM, lambda *_: setattr(supervisor, "terminated", True))
        supervisor.supervise()
    except Exception:
        # stderr is supervisor.log; a reader derives `lost` and names that file
        traceback.print_exc()
        raise SystemExit(1) from None
