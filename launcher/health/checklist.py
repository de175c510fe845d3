"""The checklist: feeds every rule, keeps the rows, reports level changes."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from operator import methodcaller
from typing import Any

from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.health import keys, rivals, verdict
from launcher.health.applies import fitting
from launcher.health.catalogue import rules
from launcher.health.clauses import bounds
from launcher.health.config import RunConfig
from launcher.health.frame import Frame
from launcher.health.keys import SUMMED
from launcher.health.known import Known
from launcher.health.rules import ALL
from launcher.health.rules.base import Rule, Setup
from launcher.health.rules.declared import Declared
from launcher.health.settings import read
from launcher.health.signals import Signals
from launcher.health.state import Reading, State
from launcher.metrics.frameworks import Framework
from launcher.record.check import Check
from launcher.record.events import LevelChange
from launcher.record.levels import N_A, OK, WARM, WARN, Level
from launcher.verl.config import DYNAMIC, Ranges

_JUDGES = (Rule.judge, Declared.judge)  # methods that return no reading if a metric that the rule needs is missing


class _Entry:
    """A rule with its state."""

    def __init__(self, kind: type[Rule], setup: Setup) -> None:
        limits = setup.limits
        reason = kind.not_applicable(setup) if limits.enabled else "disabled in the settings"
        if reason is not None:
            setup = replace(setup, signals=Signals(setup.config))  # signals that are never updated
        self.rule, self.data = kind(setup), rules()[kind.id].of(setup.config.supervised)
        self.state = State(limits.count, limits.window, limits.release)
        self.muted = limits.muted
        self.judged = 0  # the last step with a judgement
        self.without = -1  # the number of metrics logged so far, where one that it needs is not among them
        self.error: Exception | None = None  # the exception that the rule raised
        self.off = reason is not None  # disabled by the user, the configuration, or a failure of the rule
        if reason is not None:
            self.state.set(0, N_A, reason)

    def ask(
        self, step: int, judge: Callable[[Rule], Reading | None], logged: Set[str] | None = None
    ) -> LevelChange | None:
        """Takes in the rule's reading, if any; returns the change of its level, if any.

        A rule that raises an exception is disabled and reported once, so that the other rules still run. `logged` are
        the keys seen so far: they explain why a rule cannot judge.
        """
        state, before = self.state, self.state.level
        self.rule.flag = max(before, OK)
        try:
            reading = judge(self.rule)
            if reading is None and logged is not None and before < OK:
                reading = _missing(self.rule, logged)
                self.without = len(logged) if reading.raw == N_A and type(self.rule).judge in _JUDGES else -1
            if reading is not None:
                state.push(step, reading)
                self.judged = step if reading.raw >= OK else self.judged
            message = "" if state.level == before else state.message
        except Exception as error:
            message = self._failed(step, error)
        return None if state.level == before else LevelChange(step, self.rule.id, before, state.level, message)

    def _failed(self, step: int, error: Exception) -> str:
        self.off, self.error = True, error
        self.state.set(step, N_A, f"rule failed: {type(error).__name__}: {error}")
        return self.state.message

    def check(self, config: RunConfig, logged: Set[str], step: int) -> Check:
        """The rule's row at a step. `logged`: the metrics seen so far; the row draws one per group."""
        state, rule = self.state, self.rule
        try:
            message = state.message
        except Exception as error:  # made only now
            message = self._failed(0, error)
        if state.level >= OK and self.judged < step:
            message += f"; as of {rule.config.numbering.place(self.judged)}"
        groups = (next((key for key in group if key in logged), None) for group in rule.needs + rule.also)
        keys = tuple(dict.fromkeys(key for key in groups if key is not None))
        limits, reading = rule.limits, state.reading if state.level >= OK else None
        drawn = keys if config.summed is None else ["" if key in SUMMED else key for key in keys]
        return Check(
            rule=rule.id,
            name=self.data.title,
            level=state.level,
            message=message,
            since=state.since,
            cleared=state.cleared,
            was=state.was if state.cleared is not None else None,
            family=self.data.family,
            muted=self.muted,
            keys=keys,
            bounds=bounds(reading.raising, reading.releasing, state.level, drawn) if reading else (),
            debounce=(limits.count, limits.window, limits.release),
            fixes=fitting(rule.fixes(), config, logged),
            usual=reading.usual if reading else None,
        )


def _missing(rule: Rule, logged: Set[str]) -> Reading:
    """Why a rule that has never judged cannot judge this step."""
    for group in rule.needs:
        if logged.isdisjoint(group):
            return Reading(N_A, f"{group[0]} is not logged")
        if logged & {*group} <= rule.config.shares:
            return Reading(N_A, f"{group[0]} is a share per micro-batch, of an unknown number ({DYNAMIC})")
    return Reading(WARM, "waiting for a finite value")


class Checklist:
    """Judges a run step by step, live or replayed, in constant memory.

    `config`: flattened veRL keys, may be empty. `settings`: the preset's `health:` block. `usual`: usual ranges of the
    preset. Memory sizes are in GiB, vocabulary in tokens, validation data in rows; None: unknown. `framework`: the
    run's, if not veRL. `clock=False` disables the hang rule (log files). Raises UserError for invalid settings.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        gpu_total_gb: float | None = None,
        host_total_gb: float | None = None,
        clock: bool = True,
        vocabulary: int | None = None,
        validation_rows: int | None = None,
        framework: Framework | None = None,
        usual: Ranges | None = None,
    ) -> None:
        self.config = RunConfig(config, framework, usual)
        limits = read(settings)
        self._signals = Signals(self.config)
        self._known = Known(self.config)
        self._explained: Mapping[str, rivals.Explained] = {}  # the flags, as of the last change of one
        machine = ({"GPU": gpu_total_gb, "host": host_total_gb}, clock, vocabulary, validation_rows)
        self._entries = {
            kind.id: _Entry(kind, Setup(self.config, limits[kind.id], self._signals, *machine)) for kind in ALL
        }
        self._harmful = [entry for entry in self._entries.values() if entry.data.harm]
        self._others = [entry for entry in self._entries.values() if not entry.data.harm]
        # a program that screams has a million lines for them
        self._readers = [each for each in self._entries.values() if type(each.rule).log_line is not Rule.log_line]
        self._watchers = [each for each in self._entries.values() if type(each.rule).tick is not Rule.tick]
        self._interesting = {key for kind in ALL for group in kind.needs + kind.also for key in group}
        self._logged: set[str] = set()  # logged keys among the interesting ones
        self._names: tuple[str, ...] = ()  # keys of the last record, usually equal in the next one
        self._training = False  # whether the last record was a training step
        self._step = 0
        self._steps = 0
        self._ended = False
        self._code: int | None = None
        self._checks: list[Check] | None = None  # None until something is judged

    def step(
        self, step: int, data: Mapping[str, float], *, t: float | None = None, three_decimals: bool = False
    ) -> list[LevelChange]:
        """Judges one record: a training step, or a separate validation (for VAL-1 alone).

        `t`: unix time when it was read. Invalid numbers are nan, never left out and never 0.
        """
        names = tuple(data)
        if others := names != self._names:
            self._names, self._training = names, any(map(keys.is_training, names))
            self._logged.update(self._interesting & data.keys() if self._training else ())
        if training := self._training:
            self._step = step
            self._steps += 1
            self._known.see(data)
        self._checks = None
        frame = Frame(step, self._steps, data, three_decimals, t, self.config.summed, self.config.shares)
        self._signals.update(frame, training, others)
        changes = self._judge(self._harmful, frame, training)
        self._signals.harm = self._harm()
        changes += self._judge(self._others, frame, training)  # these depend on the harm
        return self._with_causes(changes)

    def _with_causes(self, changes: list[LevelChange]) -> list[LevelChange]:
        """Updates the causes of the flags after a change, and adds them to alarming changes."""
        if not any(change.notable for change in changes):
            return changes
        self._explain()
        found = [(each, self._explained.get(each.rule) if each.alarming else None) for each in changes]
        return [replace(each, cause=why.cause, lead=why.title) if why else each for each, why in found]

    def _explain(self) -> None:
        if self.config.supervised:  # the causes apply to reinforcement learning
            return
        states = {name: entry.state for name, entry in self._entries.items() if not entry.muted}
        on = {name: (each.level, each.since) for name, each in states.items() if each.level > OK}
        self._explained = rivals.explain(on, self._known)

    def _judge(self, entries: Sequence[_Entry], frame: Frame, training: bool) -> list[LevelChange]:
        logged = len(self._logged)
        asked = [
            each
            for each in entries
            if not each.off and each.without != logged and (training or each.rule.judges_validations)
        ]
        judge = methodcaller("judge", frame)
        changes = [each.ask(frame.step, judge, self._logged) for each in asked]
        return [change for change in changes if change is not None]

    def _harm(self) -> str:
        """The harm of the worst harmful flag at this step, in words; "" without one."""
        seen = {
            entry.state.level: entry.data.harm
            for entry in reversed(self._harmful)
            if not entry.off and not entry.muted and entry.rule.harms()
        }
        worst = max(seen, default=OK)
        return seen[worst] if worst >= WARN else ""

    def log_line(self, text: str, line: int, *, step: int | None = None) -> list[LevelChange]:
        """Judges a log line. `line`: its number. `step`: the run's step [default: the last one]."""
        return self._between_steps(self._readers, step, lambda rule: rule.log_line(text, line))

    def tick(
        self,
        now: float,
        *,
        gpu: tuple[float, float] | None = None,
        host: tuple[float, float] | None = None,
        written_here: bool | None = None,
        first_step: tuple[float, float | None] | None = None,
    ) -> list[LevelChange]:
        """Judges the time since the last step of a live run, and memory as (used, total) bytes; `gpu`: its fullest GPU.

        `written_here`: whether a local process writes the followed log. `first_step`: start and usual duration in
        seconds of the first step, until it ends.
        """
        if self._ended:
            return []
        self._signals.written_here, self._signals.first_step = written_here, first_step
        memory = {"GPU": gpu or (0, 0), "host": host or (0, 0)}
        shares = {place: used / total if total else None for place, (used, total) in memory.items()}
        return self._between_steps(self._watchers, None, lambda rule: rule.tick(now, shares))

    def ended(self, code: int | None) -> None:
        """Ends the run: stops judging the time since the last step."""
        self._ended = True
        self._code = code

    def checks(self) -> list[Check]:
        """All rows, worst first."""
        if self._checks is None:
            checks = {name: entry.check(self.config, self._logged, self._step) for name, entry in self._entries.items()}
            for rule, why in self._explained.items():
                head = why.cause or rule
                own = fitting(self._explained[head].fixes, self.config, self._logged)
                checks[rule] = replace(
                    checks[rule], cause=why.cause, lead=why.lead, rivals=why.rivals, fixes=own or checks[head].fixes
                )
            self._checks = verdict.sort(checks.values())
        return self._checks

    def take_errors(self) -> list[Exception]:
        """Returns and clears the exceptions that rules raised."""
        errors = [entry.error for entry in self._entries.values() if entry.error is not None]
        for entry in self._entries.values():
            entry.error = None
        return errors

    @property
    def verdict(self) -> Level:
        """The highest active level; without one, WARM before step 20."""
        return verdict.verdict(self.checks(), self._steps)

    @property
    def outcome(self) -> str:
        """`running`, `finished` or `failed`, by the exit code given to `ended`."""
        return "running" if self._code is None else "failed" if self._code else "finished"

    def mute(self, rule: str, muted: bool = True) -> None:
        """Excludes a rule from the verdict; it is still judged, and shown as muted."""
        self._entry(rule).muted = muted
        self._checks = None
        self._explain()

    @property
    def muted(self) -> frozenset[str]:
        """Muted rules, by the settings or since the start."""
        return frozenset(name for name, entry in self._entries.items() if entry.muted)

    def _between_steps(
        self, entries: list[_Entry], step: int | None, ask: Callable[[Rule], Reading | None]
    ) -> list[LevelChange]:
        at, self._checks = self._step if step is None else step, None
        changes = [entry.ask(at, ask) for entry in entries if not entry.off]
        return self._with_causes([change for change in changes if change is not None])

    def _entry(self, rule: str) -> _Entry:
        if rule not in self._entries:
            raise UserError(f"no health rule named {rule!r}", near_hint(rule.upper(), self._entries))
        return self._entries[rule]
