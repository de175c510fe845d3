"""state.json: the state of a run as written by its supervisor, and the state that a reader derives from it.

queued -> starting -> running -> stopping -> stopped | finished | failed
lost: the supervisor is gone without an exit record (derived); written by the next supervisor if the driver's end is
      unknown
ended: the followed log no longer grows; the end of its program was not observed
imported: a log from elsewhere; its `outcome` is how it ended
"""

import contextlib
import dataclasses
import functools
import math
import time
from dataclasses import dataclass, field

import orjson

from launcher.core import clock
from launcher.core.format import counted, duration
from launcher.record import control
from launcher.record.attempt import Exit
from launcher.record.check import Check, flags_of
from launcher.record.damage import Failure, damage, later, schema_of
from launcher.record.json import RARE, SCHEMA, Record
from launcher.record.layout import RunDir
from launcher.record.numbering import STEPS, Numbering
from launcher.record.process import ProcessId, run_processes, session_members
from launcher.record.standstill import Standstill

ENDED = frozenset({"stopped", "finished", "failed", "lost", "ended", "imported"})
ALIVE = frozenset({"queued", "starting", "running", "stopping"})
HEARTBEAT = 5.0  # seconds between two writes when nothing changed
START_PATIENCE = 180.0  # seconds a queued run may lack a supervisor; a busy machine needs 40
_HEARD = 60.0  # seconds since the last heartbeat of a supervisor elsewhere, after which it is gone
_QUIET = 600.0  # seconds in which the console of a driver elsewhere has not grown, after which it is gone
REMOVED = "the run's folder was removed"


@dataclass(frozen=True, slots=True)
class Rollout(Record):
    """Responses of the current step: finished, dropped, and requested."""

    finished: int = 0
    failed: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class TrackedRun(Record):
    """The run in a tracker: its address or, for an offline run, the folder and the uploading `command`."""

    tracker: str
    url: str | None = field(default=None, metadata=RARE)
    folder: str | None = field(default=None, metadata=RARE)
    command: str | None = field(default=None, metadata=RARE)

    @property
    def words(self) -> str:
        """`wandb https://...`, or for an offline run `wandb sync FOLDER`."""
        return f"{self.tracker} {self.url}" if self.url else self.command or f"{self.tracker} {self.folder}"


@dataclass(frozen=True, slots=True)
class Elsewhere(Record):
    """Signs of a run in another container or on another machine, where pids are not valid.

    `locked`: whether its supervisor holds its lock (None without locks). `silent`, `quiet`: seconds since its last sign
    of life, and since the console grew (None without one). `processes`: those visible from here.
    """

    silent: float
    quiet: float | None = None
    locked: bool | None = None
    processes: int = 0

    @property
    def driver_seen(self) -> bool:
        """Whether the driver shows signs of life."""
        return self.processes > 0 or (self.quiet is not None and abs(self.quiet) < _QUIET)

    @property
    def words(self) -> str:
        """`its supervisor's lock is free, its last write was 2 min ago, its console last grew 12 min ago`."""
        said = [
            "no lock shows whether its supervisor is alive" if self.locked is None else "its supervisor's lock is free"
        ]
        said.append(f"its last write was {duration(self.silent)} ago")
        said.append("it has no console" if self.quiet is None else f"its console last grew {duration(self.quiet)} ago")
        said += [f"{counted(self.processes, 'process')} of it visible from here"] if self.processes else []
        return ", ".join(said)


@dataclass(frozen=True)
class RunState(Record):
    """The state of a run. Times are unix seconds; `eta`, `step_seconds` and `phase_usual` are seconds.

    `done`: when the last step will end. `step`: counts logged lines if the log has no step numbers; `numbering` has the
    steps. `phase`: current since `phase_since`, usually for `phase_usual`; empty if the log shows no phases. `stall`:
    why the run seems to hang; `standstill`: the same with evidence. `verdict`: the highest level. `flags`: the flagged
    rules, worst first. `trackers`: where else the run is recorded. Scores: see `watch.steps.Scores`. `heartbeat`: the
    supervisor's last sign of life, at `beat` of `launcher.core.clock`. `failures`: errors inside the supervisor, which
    make the run damaged. `outcome`, `ended`: how and when an imported run ended.

    A reader derives the last fields, which are never written: veRL still trains in a lost run; minutes since a live
    supervisor last wrote; seconds that an ended run took; signs of a lost run elsewhere; damaged files and fields;
    whether a later ppo-tui wrote it, so that it is read-only.
    """

    state: str
    outcome: str | None = None
    attempt: int | None = None
    created: float | None = None
    started: float | None = None
    ended: float | None = field(default=None, metadata=RARE)
    supervisor: ProcessId | None = None
    driver: ProcessId | None = None
    exit: Exit | None = None
    error: str | None = None
    cause: str | None = None
    phase: str | None = None
    phase_since: float | None = None
    phase_usual: float | None = None
    step: int | None = None
    total: int | None = None
    numbering: Numbering = field(default=STEPS, metadata=RARE)
    eta: float | None = None
    done: float | None = field(default=None, metadata=RARE)
    step_seconds: float | None = None
    rollout: Rollout | None = None
    stalled: bool = False
    stall: str | None = None
    standstill: Standstill | None = field(default=None, metadata=RARE)
    verdict: str | None = None
    flags: tuple[str, ...] = ()
    trackers: tuple[TrackedRun, ...] = field(default=(), metadata=RARE)
    best_score: float | None = field(default=None, metadata=RARE)
    last_score: float | None = field(default=None, metadata=RARE)
    checks: tuple[Check, ...] = ()
    failures: tuple[Failure, ...] = field(default=(), metadata=RARE)
    updated: float | None = None
    heartbeat: float | None = field(default=None, compare=False)
    beat: float | None = field(default=None, compare=False, metadata=RARE)
    driver_alive: bool | None = field(default=None, metadata=RARE)
    silent_minutes: int | None = field(default=None, metadata=RARE)
    seconds: float | None = field(default=None, metadata=RARE)
    elsewhere: Elsewhere | None = field(default=None, metadata=RARE)
    damaged: tuple[str, ...] = field(default=(), metadata=RARE)
    later: str | None = field(default=None, metadata=RARE)

    @property
    def shown(self) -> "RunState":
        """The state with steps instead of logged lines, if known."""
        checks = tuple(map(self.numbering.shown, self.checks))
        return dataclasses.replace(self.numbering.shown(self), checks=checks)

    @property
    def at(self) -> str:
        """`12/80`; without known steps `line 12`."""
        if self.step is not None and not self.numbering.every:
            return f"line {self.step}"
        return f"{'–' if self.step is None else self.step}/{self.total or '–'}"

    @property
    def progress(self) -> str:
        """`12 of 80`; without known steps `line 12`; for a run that has a step."""
        return f"{self.step} of {self.total or '?'}" if self.numbering.every else self.at

    @property
    def live(self) -> bool:
        """Whether the run has not ended: it can be stopped, and its metrics change."""
        return self.state in ALIVE

    @property
    def going(self) -> bool:
        """Whether a part of the run still works: it lives, or veRL does without its supervisor."""
        return self.live or bool(self.driver_alive)

    @property
    def over(self) -> bool:
        """Whether the run's end is recorded; one that may still work has no leftovers."""
        return not self.live and self.driver_alive is None

    @property
    def has_ended(self) -> bool:
        """Whether its end is known: an imported log may stop earlier."""
        return self.over and self.outcome != "running"

    @property
    def failed(self) -> bool:
        """Whether the run ended with an error, even if stopped after it."""
        bad = self.state in ("failed", "lost") or self.outcome == "failed"
        return (bad or (self.state == "stopped" and self.error is not None)) and not self.going

    @property
    def muted(self) -> frozenset[str]:
        """The muted rules."""
        return frozenset(check.rule for check in self.checks if check.muted)


class StateFile:
    """Writes state.json after changes, and regularly as a sign of life."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.state
        self._last: RunState | None = None
        self._updated, self._beat = 0.0, -math.inf

    def write(self, state: RunState) -> None:
        """Replaces state.json, with `updated` and `heartbeat`. Raises OSError; the next call then tries again."""
        now, beat = clock.now(), clock.beat()
        changed = state != self._last
        if not changed and beat - self._beat < HEARTBEAT:
            return
        updated = now if changed else self._updated
        dataclasses.replace(state, updated=updated, heartbeat=now, beat=beat, damaged=(), later=None).write(self._path)
        self._last, self._updated, self._beat = state, updated, beat


def current(run: RunDir, *, checks: bool = True, settings: bool = True, supervising: bool = False) -> RunState:
    """The state of a run for readers; a list of hundreds leaves out `checks`.

    `checks` and `settings`: also examines run.yaml for damage. Without a live supervisor the state becomes `lost`, with
    `driver_alive`; or the end in exit.json, if the supervisor was killed while it read the log for the cause.
    `supervising`: this process has the supervisor's lock, which otherwise shows that another one lives.
    """
    state = known(run, checks=checks, supervising=supervising)
    damaged = (*state.damaged, *map(str, state.failures), *damage(run, state.attempt, settings=checks and settings))
    return dataclasses.replace(state, damaged=damaged) if damaged else state


def known(run: RunDir, *, checks: bool = True, supervising: bool = False) -> RunState:
    """As `current`, but only state.json is examined for damage."""
    try:
        state = _maintained(run, _parsed(run.state.read_bytes(), checks), supervising)
    except (OSError, ValueError):
        removed = not run.path.is_dir()
        error, damaged = (REMOVED, ()) if removed else (f"{run.state.name} is damaged", (run.state.name,))
        return RunState("lost", driver_alive=bool(control.supervised(run)), error=error, damaged=damaged)
    if state.state == "lost" and state.driver_alive is not None and state.attempt is not None:
        record = Exit.read(run.attempt(state.attempt).exit)
        if record is not None:
            alive = state.driver_alive and state.elsewhere is None  # there the record shows that the driver has ended
            return dataclasses.replace(state, state=record.state, exit=record, driver_alive=alive)
    return state


def stored(run: RunDir) -> RunState | None:
    """The last written state; None if missing or damaged."""
    return RunState.read(run.state)


@functools.lru_cache(maxsize=8)
def _parsed(content: bytes, checks: bool) -> RunState:
    """Cached: readers ask twice per second, and the file seldom changes."""
    value = orjson.loads(content)
    if not checks and isinstance(value, dict):
        value["checks"] = []
    schema = schema_of(value)
    state, fields = RunState.examine(value)
    if state is None:
        raise ValueError(fields)
    flags = flags_of(state.checks) if state.checks else state.flags  # 0.3.0 did not write the worst first
    if not fields and flags == state.flags and schema <= SCHEMA:
        return state
    damaged = tuple(f"state.json: {name}" for name in fields)
    return dataclasses.replace(state, flags=flags, damaged=damaged, later=later(schema) if schema > SCHEMA else None)


def silence(state: RunState) -> float:
    """Seconds since the supervisor last wrote the state."""
    if (
        state.supervisor is not None and state.supervisor.this_boot and state.beat is not None
    ):  # the clock may have been set
        return clock.beat() - state.beat
    now = time.time()
    return now - (state.heartbeat or now)


def supervised(run: RunDir, state: RunState) -> bool:
    """Whether the supervisor that wrote `state` lives: by its pid, or by its lock where pids are not valid."""
    supervisor = state.supervisor
    return supervisor is not None and (supervisor.alive() or (not supervisor.here and bool(control.supervised(run))))


def _maintained(run: RunDir, state: RunState, supervising: bool) -> RunState:
    """`state` with the current word: `lost` if its supervisor is gone, `starting` before it wrote.

    `silent_minutes`: since the last sign of a live supervisor (it is stopped, or its disk hangs); the values are then
    old. In this pid namespace its pid decides. Otherwise (another container, another machine that shares this folder,
    an earlier boot, or no recorded namespace) a held lock shows that it lives; without locks its heartbeat does, and
    the console shows whether the driver lives.
    """
    if not state.live:
        return state
    if state.state == "queued":  # until its supervisor writes; a run in the queue has no folder
        state = dataclasses.replace(state, state="starting")
    supervisor, silent = state.supervisor, silence(state)
    alive = supervisor is not None and supervisor.alive()
    # a killed process keeps its lock until its last thread has ended
    by_pid = alive or (supervisor is not None and supervisor.here and supervisor.namespace is not None)
    held = None if by_pid else False if supervising else control.supervised(run)
    if supervisor is None:
        alive = abs(time.time() - (state.updated or 0.0)) < START_PATIENCE
    elif not supervisor.here:
        alive = abs(silent) < _HEARD
    if alive or held:
        return dataclasses.replace(state, silent_minutes=int(silent // 60)) if silent >= 60 else state
    if supervisor is not None and not supervisor.here:
        elsewhere = _elsewhere(run, state, supervisor, held)
        return dataclasses.replace(state, state="lost", driver_alive=elsewhere.driver_seen, elsewhere=elsewhere)
    driver = state.driver
    alive = driver is not None and (driver.alive() or bool(session_members(driver)))
    return dataclasses.replace(state, state="lost", driver_alive=alive)


def _elsewhere(run: RunDir, state: RunState, supervisor: ProcessId, held: bool | None) -> Elsewhere:
    attempt = run.last_attempt() if state.attempt is None else run.attempt(state.attempt)
    quiet = None
    if attempt is not None:
        with contextlib.suppress(OSError):
            quiet = time.time() - attempt.console.stat().st_mtime
    # from a host those of its containers are visible; on another machine no pid is of the run
    processes = len(run_processes(run.read_id())) if supervisor.this_boot else 0
    return Elsewhere(silence(state), quiet, held, processes)
