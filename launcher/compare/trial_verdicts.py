"""Verdicts of trials: forks of a flagged run from before the flag, one unchanged and one per fix; or of a failed run.

All facts come from run directories: a trial is a run whose run.yaml names its parent and the rule.
"""

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from launcher.compare.isolation import ISOLATION, Failure, failure_of, isolation
from launcher.core import paths
from launcher.core.format import counted
from launcher.metrics import intervals
from launcher.metrics.store import Series
from launcher.preset.yaml_text import text_of
from launcher.record import queued
from launcher.record.events import LevelChange, read_kind
from launcher.record.info import Origin, RunInfo
from launcher.record.layout import RunDir, all_runs
from launcher.record.levels import Level
from launcher.record.queued import Queued
from launcher.record.state import RunState, current
from launcher.runs.watch.history import alarms, check_counts
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.steps import Scores

# set by every trial, including the control run
PLAN = ("trainer.steps", "trainer.save_every", "health.stop_on", "env.CUDA_VISIBLE_DEVICES")

FIXED, PARTLY, NO_EFFECT, HARMFUL = "fixed", "partly fixed", "no effect", "harmful"
REPEATED, DIFFERENT = "repeated", "not repeated"  # the control run's verdicts
GOING, UNFINISHED, INCONCLUSIVE = "running", "unfinished", "inconclusive"


@dataclass(frozen=True)
class TrialFacts:
    """The facts of one trial: level of the tried rule at its end, worst level before, and other new flags.

    `critical`, `warned`: the other flags at this level at its end. `last`, `planned`: its last and planned step.
    `scores`: reward by step. `undoes` as in `Origin`. `started`: unix seconds. `release`: number of good steps that
    clear the flag.
    """

    run: str
    changes: tuple[str, ...]
    state: RunState
    level: Level
    worst: Level
    others: frozenset[str]
    last: int
    planned: int
    scores: Series
    critical: frozenset[str] = frozenset()
    warned: frozenset[str] = frozenset()
    undoes: str | None = None
    started: float = 0.0
    release: int = 1

    @property
    def control(self) -> bool:
        """Whether this is the control run."""
        return not self.changes

    @property
    def own_reward(self) -> bool:
        """Whether it changes the reward function, so that its rewards are not comparable."""
        return any(change.lstrip("+").startswith(("reward", "custom_reward")) for change in self.changes)


@dataclass(frozen=True)
class Arm:
    """One trial and its verdict, with the reason in words. `reward`: its mean gain over the control run."""

    run: str
    changes: tuple[str, ...]
    state: str
    step: int
    planned: int
    level: str
    verdict: str
    why: str
    reward: float | None = None
    undoes: str | None = None

    @property
    def told(self) -> str:
        """What it undoes, and the reason of its verdict, in words."""
        return "; ".join(filter(None, (self.undoes and f"undoes {self.undoes}", self.why)))

    def to_json(self) -> Mapping[str, object]:
        """For `--json`."""
        return asdict(self)


@dataclass(frozen=True)
class Trials:
    """The trials of one rule from one checkpoint of a run; the control run first, then the fixes, best first.

    Trials that isolate a failure have no control run, and the rule ISOLATION.
    """

    parent: str
    rule: str
    step: int
    arms: tuple[Arm, ...]


def trials_of(parent: str | None = None) -> list[Trials]:
    """The trials of a run [default: of all runs], newest first."""
    groups: dict[tuple[str, str, int], list[TrialFacts]] = {}
    for run in all_runs():
        info = _trial_info(run)
        if info is None or info.parent is None or (parent is not None and info.parent.run != parent):
            continue
        origin = info.parent
        place = (origin.run, origin.trial or "", origin.step or 0)
        groups.setdefault(place, []).append(_facts(run, info, origin))
    return [Trials(*place, tuple(_arms(place[0], place[1], each))) for place, each in groups.items()]


def _arms(parent: str, rule: str, trials: Sequence[TrialFacts]) -> list[Arm]:
    run = RunDir(paths.runs_dir() / Path(parent).name)
    if rule != ISOLATION:
        return judge(trials, alarms(run))
    failure = failure_of(Parent(run))
    return [_arm(each, *_isolated(each, failure)) for each in trials]


def _isolated(facts: TrialFacts, failure: Failure | None) -> tuple[str, str]:
    if facts.state.going:
        return GOING, ""
    found = isolation(facts.state, facts.last, failure) if failure is not None else None
    return found or (UNFINISHED, f"ended at step {facts.last} of {facts.planned}")


def waiting_trials(parent: str | None = None) -> list[Queued]:
    """The waiting trials of a run [default: of all runs]."""
    trials = [each for each in queued.entries() if each.origin and each.origin.trial]
    return [each for each in trials if parent is None or (each.origin and each.origin.run == parent)]


def judge(trials: Sequence[TrialFacts], known: frozenset[str] = frozenset()) -> list[Arm]:
    """The verdicts of the trials of one rule from one checkpoint; `known`: rules that rose in their parent.

    A control run is stopped when its flag returns, since its parent shows which flags would have followed. Order among
    equal verdicts: trials whose reward no other exceeds by more than the noise, then one that undoes a change, then the
    order of the plan.
    """
    control = next((each for each in trials if each.control), None)
    order = (REPEATED, DIFFERENT, FIXED, PARTLY, HARMFUL, NO_EFFECT)
    ranks = {verdict: place for place, verdict in enumerate(order)}
    judged = [(each, _judged(each, control, known)) for each in trials]

    def place(pair: tuple[TrialFacts, Arm]) -> tuple[bool, int, int, bool, float]:
        facts, arm = pair
        rivals = [other for other, own in judged if own.verdict == arm.verdict and not other.own_reward]
        better = 0 if facts.own_reward else sum(worse_reward(facts.scores, other.scores)[0] for other in rivals)
        return not facts.control, ranks.get(arm.verdict, len(order)), better, facts.undoes is None, facts.started

    return [arm for _, arm in sorted(judged, key=place)]


def settled(facts: TrialFacts) -> bool:
    """Whether more steps would not change the verdict: the flag is CRITICAL again, or at WARN with too few steps left
    to clear it. A control run at WARN continues for its rewards.
    """
    lasts = facts.level >= Level.WARN and facts.planned - facts.last < facts.release
    return facts.level == Level.CRITICAL or (lasts and not facts.control)


def facts_of(run: RunDir) -> TrialFacts | None:
    """The facts of a trial; None for a run that is not a trial."""
    info = _trial_info(run)
    return _facts(run, info, info.parent) if info is not None and info.parent is not None else None


def _judged(facts: TrialFacts, control: TrialFacts | None, known: frozenset[str]) -> Arm:
    alone = control is None or facts.control or facts.own_reward
    worse, difference = (False, None) if alone or control is None else worse_reward(facts.scores, control.scores)
    verdict, why = _verdict(facts, control, known, worse=worse)
    return _arm(facts, verdict, why, difference)


def _arm(facts: TrialFacts, verdict: str, why: str, reward: float | None = None) -> Arm:
    state, level = facts.state.state, facts.level.words
    return Arm(facts.run, facts.changes, state, facts.last, facts.planned, level, verdict, why, reward, facts.undoes)


def _verdict(facts: TrialFacts, control: TrialFacts | None, known: frozenset[str], *, worse: bool) -> tuple[str, str]:
    ended = not facts.state.going
    if facts.control:
        if trouble := _trouble(facts, known):
            return REPEATED, trouble
        if not ended:
            return GOING, ""
        if facts.last < facts.planned:
            return UNFINISHED, facts.state.error or ""
        return DIFFERENT, "the flag did not rise again, so fixes cannot be judged"
    if ended and facts.state.failed:
        reason = facts.state.error or facts.state.state
        started = len(facts.scores.steps) > 0
        return (HARMFUL, f"the run failed: {reason}") if started else (UNFINISHED, f"the run did not start: {reason}")
    if facts.level >= Level.WARN and (ended or settled(facts)):
        return NO_EFFECT, f"still {facts.level.words}"
    if not ended:
        return GOING, ""
    well = control is not None and not control.state.going and not _trouble(control, known)
    if facts.last < facts.planned and not well:
        return UNFINISHED, f"ended at step {facts.last} of {facts.planned}"
    if new := sorted((facts.critical | facts.warned) - known - (control.others if control else frozenset())):
        return HARMFUL, f"{' '.join(new)} rose only with this change"
    if worse:
        return HARMFUL, "the reward is worse than in the control run"
    if control is None:
        return INCONCLUSIVE, "there is no control run"
    if not _trouble(control, known):
        whole = control.last >= control.planned
        return INCONCLUSIVE, "no flag in the control run either" if whole else "the control run did not finish"
    if facts.critical:
        return PARTLY, f"flag cleared, but CRITICAL: {' '.join(sorted(facts.critical))}"
    if facts.warned:
        return PARTLY, f"flag cleared, but still WARN: {' '.join(sorted(facts.warned))}"
    shared = len(set(facts.scores.steps) & set(control.scores.steps))
    flag = "no flag" if facts.level <= Level.OK else f"only {facts.level.words}"
    if facts.own_reward:
        return FIXED, f"{flag}; rewards not compared (different reward functions)"
    few = f"{counted(shared, 'step')}: too few to compare the reward with the control run"
    return FIXED, f"{flag}, {few if shared < intervals.FEWEST else 'reward not worse than in the control run'}"


def _trouble(control: TrialFacts, known: frozenset[str]) -> str:
    """How the control run repeats its parent's flags (`known`), in words; "" if it does not.

    Sampling on a GPU is not repeatable, so the control run may raise another one of several flags.
    """
    if (level := max(control.level, control.worst)) >= Level.WARN:
        return f"the flag rose again ({level.words})"
    same = " ".join(sorted(control.critical & known))
    return f"{same} is CRITICAL, which also rose in the run" if same else ""


def worse_reward(scores: Series, control: Series) -> tuple[bool, float | None]:
    """Whether the reward is worse than the control run's by more than the noise, and the mean difference.

    Steps are compared in pairs, as in `compare`: both trials see the same prompts. A non-finite reward is worse than a
    finite one.
    """
    pairs = [(scores.at(step), control.at(step)) for step in scores.steps]
    both = [(own, other) for own, other in pairs if own is not None and other is not None and math.isfinite(other)]
    if any(not math.isfinite(own) for own, _ in both):
        return True, None
    gaps = [own - other for own, other in both]
    if not gaps:
        return False, None
    mean, error = statistics.fmean(gaps), intervals.of_steps(gaps)
    return error is not None and mean + error.reach() < 0, mean


def _trial_info(run: RunDir) -> RunInfo | None:
    """run.yaml of a trial."""
    try:
        return _of_trial(run.run_yaml, run.run_yaml.stat().st_mtime_ns)
    except OSError:
        return None


@functools.lru_cache(maxsize=4096)
def _of_trial(path: Path, written: int) -> RunInfo | None:
    """Caches run.yaml: parsing takes 40 ms, and a page reads all every few seconds; `written` changes with it."""
    if b"trial:" not in path.read_bytes():
        return None
    info = RunInfo.read(path)
    return info if info.parent is not None and info.parent.trial else None


def _facts(run: RunDir, info: RunInfo, origin: Origin) -> TrialFacts:
    state, scores = current(run), Scores(run)
    scores.poll()
    alarms = [change for change in read_kind(run.events, LevelChange) if change.alarming]
    rule = origin.trial or ""
    worst = max((change.after for change in alarms if change.rule == rule), default=Level.OK)
    ours = {check.rule for check in state.checks if not check_counts(check)} | {rule}
    critical, warned = (
        {check.rule for check in state.checks if check.level == level} for level in (Level.CRITICAL, Level.WARN)
    )
    level = next((check.level for check in state.checks if check.rule == rule), Level.N_A)
    begun = origin.step or 0
    trainer = (info.preset or {}).get("trainer")
    planned = trainer.get("steps") if isinstance(trainer, dict) else None
    return TrialFacts(
        run=run.id,
        changes=tuple(f"{each.key}={text_of(each.now)}" for each in origin.diff if each.key not in PLAN),
        state=state,
        level=level,
        worst=worst,
        others=frozenset(change.rule for change in alarms) - ours,
        last=state.step if state.step is not None else begun,
        planned=planned if isinstance(planned, int) else state.total or begun,
        scores=scores.series,
        critical=frozenset(critical - ours),
        warned=frozenset(warned - ours),
        undoes=origin.undoes,
        started=info.created or 0.0,
        release=next((check.debounce[2] for check in state.checks if check.rule == rule and check.debounce), 1),
    )
