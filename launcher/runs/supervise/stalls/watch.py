"""Detects a hang and finds its reason, in a thread: if that hangs, the supervisor continues."""

import contextlib
import re
import threading
from collections import deque
from dataclasses import replace
from pathlib import Path

from launcher.console import phases
from launcher.core import clock
from launcher.core.files import write_atomic
from launcher.record.attempt import LaunchRecord
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.process import ProcessId
from launcher.record.standstill import HangFacts, Standstill
from launcher.runs.judge.monitor import Monitor
from launcher.runs.supervise.failures import Guard
from launcher.runs.supervise.stalls.activity import QUIET, Activity, Patience, Stage
from launcher.runs.supervise.stalls.collectives import standing
from launcher.runs.supervise.stalls.evidence import Judgement
from launcher.runs.supervise.stalls.judging import judge
from launcher.runs.supervise.stalls.looking import look
from launcher.runs.supervise.stalls.report import report
from launcher.runs.supervise.stalls.work import Work
from launcher.runs.watch.stalls import UNKNOWN
from launcher.runs.watch.startup import STAGES, Usual, usual_start

EVERY = 2.0  # seconds between two looks at the activity
_MOVING = 3  # consecutive looks with activity before a run counts as moving
_BEFORE = 60.0  # seconds before the last progress in which a GPU may have failed
_AGAIN = 60.0  # seconds before the next look for an unknown reason
_REMEMBERED = 200  # lines
# Times, pids and addresses: a line that differs only in them is not news.
_TIMES = re.compile(
    rb"\d{4}-\d\d-\d\d|\d\d-\d\d \d|\d+:\d\d(?::\d\d)?(?:[.,]\d+)?|\+\d+[smh]\S*|pid=\d+|0x[0-9a-f]+|\x1b\[[\d;]*m"
)
# Statistics that TransferQueue prints every five minutes, whatever the run does.
_STATISTICS = re.compile(rb"transfer_queue\.utils\.perf_utils|Time range: last |Per-operation statistics: ")


class News:
    """Detects new output: some programs repeat the same counts every few seconds while they wait."""

    def __init__(self) -> None:
        self.at: float | None = None
        self._seen: deque[bytes] = deque(maxlen=_REMEMBERED)

    def note(self, chunk: bytes, now: float) -> None:
        """Takes in printed output; of a long output only the end."""
        lines = [_TIMES.sub(b"", line).strip() for line in chunk[-(16 << 10) :].replace(b"\r", b"\n").splitlines()]
        fresh = [line for line in lines if line and line not in self._seen and not _STATISTICS.search(line)]
        self._seen.extend(fresh)
        if fresh:
            self.at = now


class StallWatch:
    """The watch over one attempt. `found`: why the run hangs, None while it progresses."""

    def __init__(
        self, run: RunDir, attempt: AttemptDir, launch: LaunchRecord, monitor: Monitor, news: News, guard: Guard
    ) -> None:
        self._run, self._attempt, self._launch = run, attempt, launch
        self._monitor, self._news, self._guard = monitor, news, guard
        self._usual: Usual | None = None
        self._work_done = Work(attempt.startup, launch)
        self._ended = threading.Event()
        self._asked = False
        self._thread: threading.Thread | None = None
        self.gpu_busy = False  # a GPU works for the run; one that waits for another rank does, too
        self.found: Standstill | None = None

    def watch(self, driver: ProcessId, id: str) -> None:
        """Follows the processes of a local driver from now on."""
        self._thread = threading.Thread(target=self._work, args=(driver, id), name="stalls", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Requests a look at the processes even if the run seems active, after STALL-1 rose."""
        self._asked = True

    def close(self) -> None:
        self._ended.set()

    def silence(self, now: float) -> str | None:
        """For a run on other machines: a sentence about its missing output, and the likely reason."""
        monitor = self._monitor
        if self._thread is not None or monitor.step is not None or monitor.last_output is None:
            return None
        return phases.stall(monitor.phase, now - monitor.last_output)

    def _work(self, driver: ProcessId, id: str) -> None:
        with self._guard("stalls"):
            self._usual = usual_start(self._run, self._run.read_head())
        left = Standstill.read(self._attempt.standstill)
        if left is not None and left.until is None:  # found by a killed supervisor
            self._record(replace(left, until=clock.now()))
        looking = _Looking(Activity(driver, id), clock.now())
        while not self._ended.wait(EVERY):
            with self._guard("stalls"):
                self._turn(looking)

    def _turn(self, state: "_Looking") -> None:
        now, stage, patience = clock.now(), self.stage(), state.patience
        used = state.activity.used()
        busy = bool(used.busy) or self.gpu_busy
        if self._monitor.step is None:
            self._work_done.add(stage.name, used, quiet=not busy and now - patience.moved > QUIET)
        patience.note(now, busy=busy, printed=self._news.at, stage=stage, stood=self.found is not None)
        state.moving = state.moving + 1 if busy else 0
        found = self.found
        if found is not None:
            if patience.progressed > found.since or (state.quiet and state.moving >= _MOVING):
                self.found = None
                patience.ended(found.title, now - found.since)
                self._record(replace(found, until=now))
            elif found.reason == UNKNOWN and now - found.noticed > _AGAIN and not state.again:
                state.again = True
                self._look(state, now, stage, quiet=True)
            return
        state.again = False
        if patience.stands(now, stage):
            self._look(state, now, stage, quiet=True)
        elif self._asked or patience.worth_a_look(now, stage):
            self._look(state, now, stage, quiet=False)

    def _look(self, state: "_Looking", now: float, stage: Stage, *, quiet: bool) -> None:
        asked, self._asked = self._asked, False
        python = self._launch.argv[0] if self._launch.argv else "python"
        progressed = state.patience.progressed
        since = progressed - _BEFORE
        saved = self._launch.keys.get("trainer.default_local_dir") if stage.name == "save" else None
        saves = str(Path(self._launch.cwd, saved)) if isinstance(saved, str) else None
        facts = look(self._attempt, state.activity.pids, stage.name, python=python, since=since, saves=saves)
        state.activity.used()  # the look's own activity does not count
        state.patience.note(now, busy=False, printed=self._news.at, stage=self.stage())
        if state.patience.progressed > progressed:
            return
        judgement = judge(facts, busy=not quiet and not standing(facts, state.facts))
        state.facts = facts
        since = state.patience.moved if quiet else progressed
        if judgement is not None and state.patience.too_soon(clock.now(), judgement.title, since):
            judgement = None
        if judgement is not None:
            state.quiet, self.found = quiet, _standstill(judgement, since, stage)
            self._monitor.stood_still = self.found.noticed
            self._record(self.found)
        if judgement is not None or asked:
            self._write(facts)

    def _record(self, found: Standstill) -> None:
        with contextlib.suppress(OSError):
            found.write(self._attempt.standstill)

    def _write(self, facts: HangFacts) -> None:
        with contextlib.suppress(OSError):
            facts.write(self._attempt.stall_facts)
            text = report(facts, self._attempt.console, self._run.machine, self.found)
            write_atomic(self._attempt.stall, text.encode())

    @property
    def first_step(self) -> float | None:
        """The usual maximum seconds of the first step; None if unknown."""
        span = self._usual.spans.get(STAGES[-1]) if self._usual is not None else None
        return span[1] if span is not None else None

    def stage(self) -> Stage:
        """The current stage of the run, and its usual duration."""
        monitor = self._monitor
        begun = self._launch.created or 0.0
        if monitor.step is None or (monitor.pace is None and monitor.phase in STAGES):
            usual = self._usual
            known = usual.spans.get(monitor.phase) if usual is not None and usual.starts else None
            return Stage(monitor.phase, monitor.phase_since or begun, known[1] if known else None)
        since, usually, longest = monitor.stage
        return Stage(monitor.phase, since or begun, usually, longest)


class _Looking:
    """The thread's knowledge between two turns."""

    def __init__(self, activity: Activity, now: float) -> None:
        self.activity, self.patience = activity, Patience(now)
        self.moving, self.again, self.quiet = 0, False, True
        self.facts: HangFacts | None = None  # facts of the previous look


def _standstill(judgement: Judgement, since: float, stage: Stage) -> Standstill:
    return Standstill(
        judgement.reason,
        judgement.title,
        since=since,
        noticed=clock.now(),
        stage=stage.name,
        usual=stage.usual,
        evidence=judgement.evidence,
        command=judgement.command,
    )
