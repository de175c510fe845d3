"""The detached process of a run: starts veRL, watches it, records events.

Starts the newest attempt, or takes over one whose supervisor was killed. It has no screen, survives the terminal, and
is the only writer of state.json, events.jsonl, gpu.jsonl and steps.jsonl.
"""

import contextlib
import os
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

from launcher.core import clock
from launcher.core.errors import UserError
from launcher.core.files import make_folder
from launcher.core.format import duration
from launcher.machine import targets
from launcher.machine.host import disks, oom_kills
from launcher.metrics.frameworks import described
from launcher.preset.alerting import AlertSettings
from launcher.record import control
from launcher.record.attempt import Exit, MachineEnd
from launcher.record.damage import Failure
from launcher.record.events import Action, Alert, DriverExit, LevelChange, Note, StateChange
from launcher.record.layout import RunDir
from launcher.record.process import ATTEMPT, RUN, ProcessId
from launcher.record.standstill import Standstill
from launcher.record.state import RunState, StateFile
from launcher.runs.supervise import driver
from launcher.runs.supervise.adoption import driver_of, who_asked
from launcher.runs.supervise.alerts import PAUSE, AlertCommand
from launcher.runs.supervise.disk import OwnFolder, Reserve
from launcher.runs.supervise.driver import ray_authentication
from launcher.runs.supervise.failures import FailureLog
from launcher.runs.supervise.feed import Feed, Supervised
from launcher.runs.supervise.follow import FileDriver
from launcher.runs.supervise.job import JobDriver
from launcher.runs.supervise.spawn import follow_again, retry, untrusted, wait_before_retry
from launcher.runs.watch.check_words import coverage
from launcher.runs.watch.problems import first_fix
from launcher.runs.watch.run_diagnosis import Outcome, outcome

TICK = 0.5  # seconds between two looks
STALL = "STALL-1"


class Supervisor:
    """One attempt of one run, from the start of the driver to its exit record."""

    def __init__(self, run: RunDir, before: RunState | None = None) -> None:
        """`before`: the last state of the supervisor that this one replaces."""
        of = Supervised.newest(run, before)
        self.run, self.attempt, self.launch, self.before = run, of.attempt, of.launch, before
        self.id, self.name, self.events = of.id, of.info.name, of.events
        alerts = AlertSettings.read(of.info.health)
        self.retries = alerts.retry
        self.alert_command = AlertCommand(alerts.on_alert, self._alert_failed)
        self.messages = self._messages(alerts)
        self.state_file = StateFile(run)
        self._gone = OwnFolder().gone
        self.reserve = Reserve(run.path / ".room", self._gone)
        self.failures = FailureLog(run, self.attempt.number, self._report)
        self._guard = self.failures.guard
        self.feed = Feed(of, alerts, self._guard, self._alert, self._stop_at)
        self.driver: driver.Driver | JobDriver | FileDriver | None = None
        self.standstill: Standstill | None = None  # the reported hang
        self.state = before.state if before else "queued"
        self.exit: Exit | None = None
        self.requested_by: str | None = None
        self.stopping_since: float | None = None  # by a monotonic clock
        self.terminated = False  # whether SIGTERM came
        self.retried = False
        self.late = False  # the driver had ended before this supervisor came, or was never started
        self.told: deque[str] = deque()  # messages of threads that follow a job or a log

    def _alert_failed(self, text: str) -> None:
        self.events.add(Alert(text))

    def _messages(self, alerts: AlertSettings) -> AlertCommand:
        """Sends alerts to the targets in config.yaml; a target removed since the preflight becomes an event."""
        try:
            found = alerts.targets()
        except UserError as error:
            self._alert_failed(f"alerts: {error.message}")
            found = []
        return AlertCommand(targets.command(found) if found else (), self._alert_failed, "alerts", pause=PAUSE)

    def supervise(self) -> None:
        """Runs the attempt to its end."""
        if self._take_over() if self.before else self._spawn():
            with self._guard("history"):
                self.feed.recall()
            while self.driver is not None and self.driver.running() and not self._gone():
                self._look()
                if not self.feed.behind:
                    time.sleep(TICK)
            self._finish()

    def stop(self, by: str) -> bool:
        """Requests the end of the driver; `_look` kills the whole run if it takes too long.

        Returns False if it is already ending or has ended by itself, which is not a stop.
        """
        if self.stopping_since is not None or self.driver is None or not self.driver.running():
            return False
        self.requested_by, self.stopping_since = by, time.monotonic()
        self.feed.stalls.close()  # output of an ending driver is not progress
        self.driver.terminate()
        self._enter("stopping")
        return True

    def _spawn(self) -> bool:
        """Starts the driver; if that fails, the run ends as failed."""
        self._enter("starting")
        if self.launch.job is not None or self.launch.follow is not None:
            return self._follow_elsewhere()
        tokens = ray_authentication(self.attempt.ray_token, self.launch.keys)
        env = {**os.environ, **tokens, **self.launch.env, RUN: self.id, ATTEMPT: str(self.attempt.number)}
        for name in self.launch.unset:
            env.pop(name, None)
        try:
            process = driver.spawn(self.launch.argv, env, Path(self.launch.cwd), self.attempt.console)
        except OSError as error:
            text = f"ppo-tui: cannot start the driver: {error}\n"
            self.reserve.retry(lambda: self.attempt.console.write_text(text))
            self._end(127, None)
            return False
        leader = ProcessId.of(process.pid) or ProcessId(process.pid, clock.now())
        self._follow(driver.Driver(leader, self.id, process))
        return True

    def _follow_elsewhere(self) -> bool:
        # its notes wait for the loop, which alone writes events
        info, followed = self.run.read_info(), self.launch.follow
        if followed is not None:
            self.feed.monitor.written_here = None if self.launch.followed is None else False
            self._follow(FileDriver(self.attempt, info, followed, self.told.append))
        else:
            self._follow(JobDriver(self.attempt, info, self.id, self.told.append))
        return True

    def _take_over(self) -> bool:
        """Finds the driver of the killed supervisor; without one the run ends as failed."""
        assert self.before is not None
        if self.launch.follow is not None and self.attempt.read_exit() is not None:
            self._end(None, None)
            return False
        if self.launch.job is not None or self.launch.follow is not None:
            what = "job" if self.launch.job is not None else "log"
            self.events.add(Note(f"the supervisor was killed; a new one follows the {what}"))
            self._follow_elsewhere()
            self._continue_stop()
            return True
        leader = driver_of(self.before, self.id, self.attempt)
        self.late = leader is None or not leader.alive()
        if leader is None and not self.attempt.console.exists():
            unstarted = Outcome("failed", None, "the supervisor was killed before it started the driver")
            self._end(None, None, unstarted if self.attempt.read_exit() is None else None)  # otherwise it was stopped
            return False
        goes = "has ended" if self.late else "continues"
        self.events.add(Note(f"the supervisor was killed; a new one took over the run, whose driver {goes}"))
        self._follow(driver.Driver(leader or ProcessId(0, boot="none"), self.id))
        self._continue_stop()
        if self.late:  # a stop of the driver's remaining processes
            with self._guard("requests"):
                self._obey()
        return True

    def _continue_stop(self) -> None:
        """Continues the stop of a supervisor that was killed meanwhile."""
        if self.state == "stopping":
            self.requested_by, self.stopping_since = who_asked(self.run), time.monotonic()
            if self.driver and not self.late:
                self.driver.terminate()

    def _follow(self, follower: driver.Driver | JobDriver | FileDriver) -> None:
        self.driver = follower
        if follower.id is not None:
            self.feed.watch(follower.id)
        self._write()

    def _look(self) -> None:
        with self._guard("requests"):
            self._obey()
        with self._guard("log"):
            self.feed.read()
        with self._guard("machine"):
            self.feed.sample()
        self._progress()
        since = self.stopping_since
        if since is not None and time.monotonic() - since > driver.PATIENCE and self.driver:
            self.driver.kill()
        if isinstance(self.driver, FileDriver):
            self.driver.complete, self.driver.closed = self.feed.monitor.complete, self.feed.monitor.over
            self.feed.monitor.written_here = self.driver.written_here
        with self._guard("alerts"):
            self._tell_standstill()
        self._write()

    def _progress(self) -> None:
        """Enters `running` after a first step (a fast driver may have ended by then); adds the follower's notes."""
        if self.state == "starting" and self.feed.monitor.step is not None and not self.feed.catching_up:
            if (framework := described(self.run.read_info().framework)) is not None:
                self.events.add(Note(coverage(framework, self.feed.monitor.checklist.checks())))
            self._enter("running")
        while self.told:
            self.events.add(Note(self.told.popleft()))

    def _obey(self) -> None:
        if self.terminated:
            self.stop("SIGTERM to the supervisor")
        for request in control.take(self.run):
            self.events.add(Action(request.verb, request.by, request.rule))
            if request.verb == "stop" and self.late:
                self.requested_by = request.by
            elif request.verb == "stop":
                self.stop(request.by)
            else:
                self.feed.mute(request.verb, request.rule)

    def _report(self, failure: Failure) -> None:
        text = f"ppo-tui failed at '{failure.part}' ({failure.error}); metrics may be missing"
        self.events.add(Note(f"{text}; see {self.run.failures.absolute()}"))

    def _stop_at(self, reason: str, step: int) -> None:
        if self.stop(reason):
            self.events.add(Action("stop", reason, step=step), clock.now())

    def _alert(self, change: LevelChange, t: float) -> None:
        """Handles a flag at WARN or CRITICAL: keeps the checkpoint before it, and alerts the user."""
        if change.alarming and change.rule not in self.feed.monitor.checklist.muted:
            with self._guard("checkpoints"):
                if kept := self.feed.keeper.rose(change, self.feed.monitor.checklist.checks()):
                    self.events.add(Note(kept))
            with self._guard("alerts"):
                if change.rule == STALL:
                    self.feed.stalls.ask()
                if change.rule != STALL or self.standstill is None:  # otherwise it was reported with its reason
                    self._write()  # the fix is for the recorded flag
                    heard = self.messages.listens or self.alert_command.listens
                    fix = first_fix(self.run, change.rule) if heard else None
                    self._tell({"kind": change.kind, "t": t, **change.to_json(), **({"fix": fix} if fix else {})})

    def _tell_standstill(self) -> None:
        """Records that the run hangs for a known reason, or progresses again."""
        before, now = self.standstill, self.feed.stalls.found
        self.standstill = now
        if now is None and before is not None:
            self.events.add(Note(f"the run continues: {before.title}, for {duration(clock.now() - before.since)}"))
        elif now is not None and (before is None or before.reason != now.reason):
            self.events.add(Note(f"the run hangs: {now.title}; see {self.attempt.stall.absolute()}"))
            self._tell({"kind": "stall", "t": now.noticed, **now.to_json()})

    def _tell(self, event: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the folder was removed
            told = {"run": self.id, "name": self.name, "dir": str(Path.cwd())} | self.feed.displayed(event)
            self.messages.send(told)
            if event["kind"] != "exit" or event["state"] in ("failed", "ended"):
                self.alert_command.send(told)

    def _finish(self) -> None:
        """Handles the driver's end or the run's removal: ends processes, reads remaining output, records the exit."""
        assert self.driver is not None
        if self.driver.running():
            self.driver.stop_orphan()
        status, self.requested_by = self.driver.status(), self.requested_by or self.driver.stopped_by
        if left := self.driver.clear():
            self.events.add(Note(f"could not kill these processes of the run: {', '.join(left)}"))
        with self._guard("log"):
            self.feed.read()
        stopped = self.requested_by is not None and self.launch.follow is not None  # the remaining log is not needed
        while self.feed.behind and not stopped and not self._gone():
            self._write()
            with self._guard("log"):
                self.feed.read()
        self.feed.close()
        self._progress()
        trouble = self.driver.trouble
        self._end(*status, Outcome("lost" if status[0] is None else "failed", None, trouble) if trouble else None)

    def _end(self, code: int | None, name: str | None, ended: Outcome | None = None) -> None:
        with contextlib.suppress(OSError):
            self.attempt.ray_token.unlink()
        record = self.attempt.read_exit() or Exit(code, name, self.requested_by, self._ended_at(), self._machine())
        self.exit = record
        self.reserve.retry(lambda: self._record(record))
        self.feed.monitor.checklist.ended(record.code)
        self.events.add(DriverExit(record.code, record.signal, record.requested_by))
        if ended is None:
            ended = Outcome(record.state)
            with self._guard("diagnosis"), contextlib.suppress(UserError):  # a log that cannot be read
                ended = self._outcome(record)
        self.events.add(StateChange(self.state, ended.state))
        self.state = ended.state
        self.reserve.retry(lambda: self._replace_state(ended))
        if ended.state in ("failed", "finished", "ended"):
            # alerts about the end: `on_alert` only after a failure, the targets also after success
            event = {"kind": "exit", "t": record.t, "code": record.code, "error": ended.error, "state": ended.state}
            verdict = str(self.feed.monitor.checklist.verdict)
            self._tell({**event, "step": self.feed.monitor.step, "verdict": verdict})
        self.alert_command.close()
        self.messages.close()
        for write in (self.feed.sink.flush, self.events.flush, self.failures.write):
            self.reserve.retry(write)
        self.reserve.release()
        if self._replaced:
            follow_again(self.run, Path.cwd())
        if ended.state == "failed":
            with self._guard("retry"):
                self._retry(ended.cause)

    def _outcome(self, record: Exit) -> Outcome:
        """The driver's outcome, by its log."""
        followed, framework = self.launch.follow, described(self.run.read_info().framework)
        if followed and record.state == "stopped":  # the following, not the training; its log may be long
            return Outcome("stopped", "stopped")
        ended = outcome(self.attempt, record, self.feed.monitor.total, framework, followed=followed is not None)
        if ended.state == "ended" and self.feed.monitor.complete:
            return Outcome("finished", "finished")
        if ended.state == "ended" and followed and self._replaced:
            return replace(ended, error=f"replaced by another log; 'ppo-tui attach {followed.path}' shows its run")
        return ended

    @property
    def _replaced(self) -> bool:
        return isinstance(self.driver, FileDriver) and self.driver.replaced

    def _retry(self, cause: str | None) -> None:
        """Continues the run after a delay, unless a user cancels this, continues it or removes it."""
        seconds = wait_before_retry(self.run, self.retries, cause, self.feed.monitor.step)
        if seconds is None:
            return
        self.events.add(Note(f"the run continues from its newest checkpoint in {seconds:.0f} s ({cause})"))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(TICK)
            last = self.run.last_attempt()
            if self._gone() or last is None or last.number != self.attempt.number:
                return
            if self.terminated or any(request.verb == "stop" for request in control.take(self.run)):
                self.events.add(Note("the retry was cancelled"))
                return
        if (wrong := untrusted(RunDir(Path.cwd()))) is not None:
            self.events.add(Note(f"the run is not continued: {wrong}"))
            return
        self.events.add(Action("retry", f"retry after {cause}", step=self.feed.monitor.step))
        self.retried = True
        retry(self.run, Path.cwd())

    def _ended_at(self) -> float:
        """The driver's end: now, its last sign of life elsewhere, or a time before this supervisor began."""
        if isinstance(self.driver, FileDriver):
            return self.driver.grown
        with contextlib.suppress(OSError):
            if self.late:
                return clock.now() - max(0.0, time.time() - self.attempt.console.stat().st_mtime)
        return clock.now()

    def _machine(self) -> MachineEnd | None:
        """The machine at the end of the driver; None if it ended earlier or elsewhere."""
        if self.late or self.launch.job is not None or self.launch.follow is not None:
            return None
        before = self.launch.oom_kills
        after = oom_kills(before.counter) if before else None
        saved = self.launch.keys.get("trainer.default_local_dir")
        folders = [self.run.path, *([Path(self.launch.cwd, saved)] if isinstance(saved, str) else [])]
        return MachineEnd(before, after, self.feed.fullest, disks(folders))

    def _record(self, record: Exit) -> None:
        make_folder(self.attempt.path)  # may have been removed, with the console
        record.write(self.attempt.exit)

    def _enter(self, state: str) -> None:
        self.events.add(StateChange(self.state, state))
        self.state = state
        self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the next look tries again
            self._replace_state(Outcome(self.state))

    def _replace_state(self, outcome: Outcome) -> None:
        known = self.driver.id if self.driver else None
        if self.before and self.feed.catching_up:  # figures that are behind are not shown
            state = self.before
        else:
            begun = RunState(
                outcome.state,
                attempt=self.attempt.number,
                created=self.launch.run_created,
                started=self.launch.created,
                stall=self.driver.away if self.driver else None,
            )
            state = self.feed.state(begun)
        state = replace(state, state=outcome.state, error=outcome.error, cause=outcome.cause, exit=self.exit)
        self.state_file.write(replace(state, supervisor=_ME, driver=known, failures=self.failures.summary))


_ME = ProcessId.of(os.getpid()) or ProcessId(os.getpid(), clock.now())
