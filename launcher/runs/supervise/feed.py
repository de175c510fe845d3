"""Feeds the monitor at each poll from console, file logger and samples; returns judgements."""

import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.core import clock
from launcher.core.errors import UserError
from launcher.core.format import GIB
from launcher.core.tail import LineTail, Tail
from launcher.health.keys import RUN_MEMORY
from launcher.metrics.frameworks import described
from launcher.metrics.host import HostLoad
from launcher.metrics.records import StepRecord
from launcher.metrics.timing import date_log
from launcher.preset.alerting import AlertSettings
from launcher.record.attempt import LaunchRecord
from launcher.record.events import Action, EventLog, LevelChange, Note, Removal, read_kind
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import HostSample, MachineSample
from launcher.record.numbering import STEPS
from launcher.record.process import ProcessId
from launcher.record.spans import TimerTail
from launcher.record.state import RunState
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.run_checklist import checklist_maker
from launcher.runs.supervise.adoption import CatchingUp
from launcher.runs.supervise.alerts import StopRule
from launcher.runs.supervise.disk import ConsoleLimit, DiskSink, LowDisk
from launcher.runs.supervise.failures import Guard
from launcher.runs.supervise.follow import written
from launcher.runs.supervise.protection import Keeper
from launcher.runs.supervise.sampling import Sampling, sampling
from launcher.runs.supervise.stalls.watch import News, StallWatch
from launcher.runs.watch.checkpoints import disk_metrics
from launcher.runs.watch.responses import ToldByResponses
from launcher.runs.watch.stalls import sentence
from launcher.runs.watch.steps import Scores, earlier_steps

_GPU_IDLE = 10  # % of its time that a GPU may work without the run doing anything
_LAST = 10  # samples before the end in which the host may have been full
_AT_ONCE, _STEPS = 4, 100  # MiB to read and steps to judge between two checks for a stop request
_TOGETHER = 8  # maximum looks before steps are judged: steps read together are dated together


@dataclass(frozen=True)
class Supervised:
    """The supervised attempt; `before`: its last state, if an earlier supervisor was killed."""

    run: RunDir
    attempt: AttemptDir
    launch: LaunchRecord
    info: RunInfo
    events: EventLog
    before: RunState | None

    @classmethod
    def newest(cls, run: RunDir, before: RunState | None) -> "Supervised":
        """The newest attempt of a run. Raises FileNotFoundError without one."""
        attempt = run.last_attempt()
        if attempt is None:
            raise FileNotFoundError(f"no attempt in {run.attempts}")
        return cls(run, attempt, attempt.read_launch(), run.read_info(), EventLog(run.events, patient=True), before)

    @property
    def id(self) -> str:
        """See `RunDir.read_id`."""
        return self.info.id or self.run.id


class Feed:
    """Feeds the monitor of an attempt, and records its results per step.

    `on_alert` gets each level change, `on_stop` the reason to stop the run at a step. `behind`: more output is waiting
    than one poll reads.
    """

    _now = _dated = 0.0  # the time of this look, and of the last step

    def __init__(
        self,
        of: Supervised,
        alerts: AlertSettings,
        guard: Guard,
        on_alert: Callable[[LevelChange, float], None],
        on_stop: Callable[[str, int], None],
    ) -> None:
        run, attempt, launch, info = of.run, of.attempt, of.launch, of.info
        self._of, self._guard, self._stop = of, guard, on_stop
        self._sampling = sampling(run, attempt, launch, guard)
        self._responses = ToldByResponses(run, attempt, guard)
        self._host: deque[HostSample] = deque(maxlen=_LAST)
        self._loads: list[HostLoad] = []  # loads since the last step
        self._disk: MachineSample | None = None  # the last sample that has one
        self._held: list[int] = []  # bytes of the run's processes, sampled since the last step
        self._past = CatchingUp(run, attempt, of.events, on_alert) if of.before else None
        self.sink = self._past or DiskSink(attempt, of.events, on_alert, patient=True)
        framework = described(info.framework)
        sizes = {} if info.from_log else self._sampling.sizes()  # a log may have the memory of another machine
        self.monitor = Monitor(
            self.sink,
            checklist_maker(info, sizes, framework, clock=True),
            launch.keys,
            framework=framework,
            file_logger="file" in str(launch.keys.get("trainer.logger", "")),
            clock=self._date if self._past or launch.followed else None,
            tell=self._tell,
            before=launch.resume_step,
        )
        self.monitor.played = bool(info.replay_of)
        self._news, self._scores = News(), Scores(run)
        self.stalls = StallWatch(run, attempt, launch, self.monitor, self._news, guard)
        self.keeper = Keeper(run, attempt, info)
        self._stop_rule = StopRule(alerts, launch.keys.get("trainer.save_freq"))
        self._console, self._metrics = Tail(attempt.console), LineTail(attempt.metrics)
        self._timers = TimerTail(attempt)
        self._console_limit = ConsoleLimit(attempt.console, lambda text: of.events.add(Note(text)))
        self.behind, self._judging, self._looks = False, False, 0  # more is printed than read, and read than judged
        self._hung, self._low_disk = False, LowDisk()  # whether hanging samples were reported; a disk with little space

    @property
    def catching_up(self) -> bool:
        """Whether it still reads output that an earlier supervisor read."""
        return self._past is not None and self._past.until is None

    @property
    def fullest(self) -> HostSample | None:
        """The recent sample of this host with the most memory in use; None without one."""
        return max(self._host, key=lambda host: (host.used or 0) / (host.total or 1), default=None)

    def displayed(self, event: Mapping[str, object]) -> dict[str, object]:
        """The JSON of an event with the numbers of steps, or of lines where these are unknown."""
        of = self.monitor.numbering or STEPS
        return dict(of.json({**event, **of.displayed(event)}))

    def watch(self, driver: ProcessId) -> None:
        """Samples the processes of a driver from now on."""
        if isinstance(self._sampling, Sampling):
            self._sampling.watch(driver, self._of.id)
            if not self._of.info.replay_of:  # the player of a log waits between its lines
                self.stalls.watch(driver, self._of.id)

    def recall(self) -> None:
        """Reads the earlier attempts. Judging 10,000 steps takes seconds; the driver starts meanwhile."""
        earlier = earlier_steps(self._of.run, self._of.attempt.number, self._of.launch.resume_step)
        with self._guard("checkpoints"):
            self.keeper.took(earlier)
        self.monitor.history(earlier)
        for action in read_kind(self._of.run.events, Action):  # the user's muted rules
            self.mute(action.verb, action.rule)

    def mute(self, verb: str, rule: str | None) -> None:
        """Mutes or unmutes a rule on request; ignores other verbs."""
        if verb in ("mute", "unmute"):
            with contextlib.suppress(UserError):  # a rule that does not exist, or does not any more
                self.monitor.mute(str(rule), verb == "mute")

    def read(self) -> None:
        """Reads the output since the last poll; only a part of endless output, so that stop requests are noticed."""
        self._now = now = self._past.since if self._past and self.catching_up else clock.now()
        for _ in range(0 if self._judging else _AT_ONCE):
            self.behind, passed = False, self._console.passed  # also not behind if reading fails
            chunk, lines = self._console.read(), self._metrics.read()
            self.behind = bool(chunk or lines)
            with self._guard("console"):
                if self._past and self.catching_up and self._console.passed > passed:
                    self.monitor.feed_records(self._past.recorded(self._console.offset), now)
                if chunk:
                    self._news.note(chunk, now)
                    self.monitor.feed_console(chunk, now, self._console.passed)
            with self._guard("metrics"):
                self.monitor.feed_file(lines, now)
            if not self.behind:
                break
        self._looks = (self._looks + 1) % _TOGETHER if self.behind and not self._judging else 0
        if not self._looks:
            self._judge(now)

    def _judge(self, now: float) -> None:
        with self._guard("steps"):
            records = self.monitor.collect(now, _STEPS)
            self._judging = len(records) == _STEPS
            self._take(records)
        self.behind = self.behind or self._judging
        if self._past and self.catching_up and not self.behind:
            self._past.until = clock.now()
        if not self.catching_up:
            with self._guard("spans"):
                self.monitor.feed_timers(*self._timers.read(), clock.now())
        for error in self.monitor.checklist.take_errors():
            with self._guard("rules"):
                raise error
        with self._guard("scores"):
            self._scores.poll()
        if not self.catching_up:
            with self._guard("console size"):
                self._console_limit.apply()

    def _take(self, records: list[StepRecord]) -> None:
        for record in records:
            levels = {check.rule: check.level for check in self.monitor.checklist.checks() if not check.muted}
            if reason := self._stop_rule.due(levels, record.step):
                self._stop(reason, record.step)
        with self._guard("checkpoints"):
            self.keeper.took(records)
            if records and (gone := self.keeper.removed()):
                self._of.events.add(Removal(records[-1].step, gone), records[-1].t)

    def sample(self) -> None:
        """Judges a new sample of the machine, if there is one."""
        now = clock.now()
        if self._sampling.hangs and not self._hung:
            self._hung = True
            text = "no samples of the machine for a minute: NVML or the disk does not respond"
            self._of.events.add(Note(text), now)
        old = self.catching_up or (self.behind and self._of.launch.follow is not None)  # the last judged step
        sample = None if old else self._sampling.take()
        if sample is not None:
            gpus = [(gpu.used, gpu.total) for gpu in sample.gpus if gpu.total and gpu.used is not None]
            fullest = max(gpus, key=lambda gpu: gpu[0] / gpu[1], default=None)
            self.stalls.gpu_busy = any((gpu.util or 0) > _GPU_IDLE and gpu.only_of_run for gpu in sample.gpus)
            host = sample.host.used or 0, sample.host.total or 0
            self.monitor.tick(now, fullest, host, self.stalls.first_step)
            if not sample.nodes:
                self._host.append(sample.host)
            if self._of.info.replay_of or self.monitor.written_here is False:  # this is not its machine
                return
            if (load := sample.host_load) is not None:
                self._loads.append(load)
            if sample.disk:
                self._disk = sample
                if low := self._low_disk.note(sample.disk):
                    self._of.events.add(Note(low), now)
            if sample.run.rss and not sample.nodes:  # all of the run is here
                self._held.append(sample.run.rss)

    def _date(self, records: Sequence[StepRecord]) -> None:
        """Dates steps: of a followed log by `date_log`, of steps on disk as recorded."""
        if (log := self._of.launch.followed) is not None:
            date_log(records, self._now, self._dated, min(self._now, written(Path(log.path))))
        for record in records:
            record.t = self._past.date(record) if self._past else record.t
            self._dated = record.t

    def _tell(self, record: StepRecord) -> None:
        """Adds ppo-tui's own metrics to a step."""
        with self._guard("responses"):
            self._responses.add(record)
        if self._loads:
            record.data |= HostLoad.mean(self._loads).metrics() | record.data
            self._loads = self._loads[-1:]
        if self._disk is not None:
            record.data |= disk_metrics(self._disk, self.monitor.keys, record.step, self.monitor.total) | record.data
        if self._held:
            record.data.setdefault(RUN_MEMORY[0], max(self._held) / GIB)
            self._held = self._held[-1:]  # several steps may come between two samples

    def close(self) -> None:
        """After the end of an attempt: judges its last step if all output was read, and ends the sampling."""
        with self._guard("steps"):
            if not self.behind:
                self.monitor.close(clock.now())
        with self._guard("scores"):
            self._scores.poll()
        self._sampling.close()
        self.stalls.close()

    def state(self, state: RunState) -> RunState:
        """`state` with the current values of the run, as far as available."""
        now, found = clock.now(), self.stalls.found
        if found is not None and not state.stall:
            state = replace(state, stall=sentence(found, now), standstill=found)
        elif not state.stall and not self._of.info.from_log:
            state = replace(state, stall=self.stalls.silence(now))
        with self._guard("state"):
            state = self.monitor.state(state, now)
        with self._guard("scores"):
            return self._scores.put_into(state)
        return state
