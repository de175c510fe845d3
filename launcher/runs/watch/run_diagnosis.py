"""Why a run or log ended."""

import contextlib
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from launcher.console.diagnose import diagnose, errors_so_far
from launcher.console.diagnosis import Diagnosis
from launcher.core.format import SHORT_ID
from launcher.core.tail import chunks, records
from launcher.metrics.frameworks import Framework, described
from launcher.metrics.records import StepRecord
from launcher.preset.settle import configuration, of_log, offers
from launcher.record.attempt import Exit
from launcher.record.fix import Fix, Offer
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.problem import Problem
from launcher.record.ray_session import RaySession
from launcher.record.state import RunState, current
from launcher.runs.watch.checkpoints import latest_checkpoint
from launcher.runs.watch.log import Log
from launcher.runs.watch.possible import completion
from launcher.runs.watch.run_settings import last_settings

_STOPPERS = {
    "user": "with `ppo-tui stop`",
    "screen": "with a key on the screen",
    "agent": "by an agent, through `ppo-tui mcp`",
}
_LATEST = "/tmp/ray/session_latest"  # the folder in fixes of causes


@dataclass(frozen=True)
class Outcome:
    """The state of an ended run, its cause, and a sentence about an error, if any."""

    state: str
    cause: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Explanation:
    """A diagnosis with the fixes that change something in the run."""

    diagnosis: Diagnosis
    offers: tuple[Offer, ...] = ()

    @property
    def problem(self) -> Problem:
        """The failure in the form of all problems."""
        return self.diagnosis.problem(self.offers)

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as in `diagnose --json`, with only these fixes."""
        texts = [each.text for each in self.offers]
        records = [asdict(each.fix) | each.fix.to_json() | {"text": each.text} for each in self.offers]
        return {**self.diagnosis.to_json(), "fixes": texts, "fix_records": records}


def outcome(
    attempt: AttemptDir,
    record: Exit,
    steps_total: int | None = None,
    framework: Framework | None = None,
    *,
    followed: bool = False,
) -> Outcome:
    """The outcome of an attempt with this exit record, from the console if the exit code is unknown.

    A requested stop is never a failure, but earlier errors are still reported. For a `followed` log only the end is
    known.
    """
    if record.code == 0:
        return Outcome("finished", "finished")
    asked = record.requested_by
    total, settled = _plan(attempt, steps_total)
    result = diagnose(
        chunks(attempt.console),
        exit_code=record.code,
        requested_by=asked,
        alive=None if followed else False,
        steps_total=total,
        settled=settled,
        machine=record.machine,
        framework=framework,
    )
    if record.code is None and not asked and result.cause == "finished":
        return Outcome("finished", "finished")
    if record.code is None and not asked and (result.lost or result.cause == "running"):
        return Outcome("ended", result.cause) if followed else Outcome("lost", result.cause, result.title)
    if result.cause == "stopped" or (asked and result.cause in ("finished", "unknown")):
        return Outcome("stopped", "stopped")  # requested, or SIGTERM from elsewhere
    return Outcome("stopped" if asked else "failed", result.cause, result.title)


def _plan(attempt: AttemptDir, total: int | None) -> tuple[int | None, bool | None]:
    """The planned last step, and whether it completes with its planned validation and checkpoint; None if the driver's
    settings are unknown.
    """
    keys, last = attempt.read_launch().keys, StepRecord(0, 0.0, None, {})
    for line in deque(records(attempt.steps), maxlen=1):
        last = StepRecord.from_line(line) or last
    total, kept = (
        total or _count(keys, "trainer.total_training_steps"),
        latest_checkpoint(RunDir(attempt.path.parents[1])),
    )
    validated = any(key == "timing_s/testing" or key.startswith("val-") for key in last.data)
    later = any(name.endswith(".async_save") and value for name, value in keys.items())
    saved = "timing_s/save_checkpoint" in last.data and not later
    saved = saved or (kept is not None and kept[0] >= last.step)
    done = total is not None and 0 < total <= last.step
    done = done and (validated or not _count(keys, "trainer.test_freq"))
    done = done and (saved or not _count(keys, "trainer.save_freq"))
    return total, done if keys else None


def _count(keys: Mapping[str, Any], name: str) -> int | None:
    value = keys.get(name)
    return value if isinstance(value, int) and value > 0 else None


def diagnosis(source: RunDir | Log) -> Diagnosis:
    """The reason why a source ended, or that it runs."""
    if isinstance(source, Log):
        return diagnose(source.text(), exit_code=source.exit_code, framework=source.framework)
    attempt, state = source.last_attempt(), current(source)
    if attempt is None:
        return diagnose(())
    info = source.read_info()
    framework = described(info.framework)
    ended = attempt.read_exit() or Exit()
    if state.state in ("imported", "ended"):
        code, total = ended.code, state.total
        found = diagnose(chunks(attempt.console), exit_code=code, steps_total=total, framework=framework)
        return found.of_run(source.id[:SHORT_ID])
    total, settled = _plan(attempt, state.total)
    result = diagnose(
        chunks(attempt.console),
        exit_code=ended.code,
        requested_by=ended.requested_by,
        alive=state.going,
        stalled_for=_age(attempt.console) if state.going else None,
        steps_total=total,
        settled=settled,
        machine=ended.machine,
        framework=framework,
        versions=info.versions,
    )
    if result.cause == "stopped":
        result = _with_stopper(result, ended.requested_by, state)
    if info.followed and result.cause == "running":
        result = replace(result, meaning="Its log is followed, and has no line that marks the end of the run.")
    return _in_session(result, attempt).of_run(source.id[:SHORT_ID])


def _with_stopper(result: Diagnosis, by: str | None, state: RunState) -> Diagnosis:
    """The diagnosis of a stopped run with the requester, and the flags at that time."""
    who = "by a signal whose sender is not recorded" if by is None else _STOPPERS.get(by, f"by {by}")
    flags = ", ".join(f"{each.level.words} {each.rule}" for each in state.checks if each.on and not each.muted)
    then = f" Flags at that time: {flags}." if flags else " It had no flag at that time." if state.checks else ""
    return replace(result, title=f"{result.title} {who}", meaning=result.meaning + then)


def explained(source: RunDir | Log) -> Explanation:
    """The diagnosis of a source with the fixes that it can use."""
    return _settled(source, diagnosis(source))


def explanation(run: RunDir) -> Explanation | None:
    """Why a run failed, who stopped it, or a live run's errors; else None. Raises UserError for unreadable logs."""
    attempt, state = run.last_attempt(), current(run, checks=False)
    if attempt is None:
        return None
    framework = described(run.read_info().framework)
    result = errors_so_far(chunks(attempt.console), framework) if state.going else diagnosis(run)
    if result is None or result.cause in ("finished", "running"):
        return None
    return _settled(run, _in_session(result, attempt).of_run(run.id[:SHORT_ID]))


def _settled(source: RunDir | Log, found: Diagnosis) -> Explanation:
    if isinstance(source, Log):
        return Explanation(found, offers(found.fixes, of_log(found.settings), imported=True))
    info, state, kept = last_settings(source)[0], current(source, checks=False), latest_checkpoint(source)
    config = of_log(found.settings) if info.preset is None else configuration(info.preset)
    complete = kept is not None and completion(kept[0], state.total) is not None
    fixes = tuple(dict.fromkeys(_again(fix, source, kept[0] if kept else None) for fix in found.fixes))
    return Explanation(found, offers(fixes, config, imported=info.from_log, complete=complete))


def _again(fix: Fix, run: RunDir, kept: int | None) -> Fix:
    """The fix with the newest checkpoint to resume from, or for a run without one."""
    if fix.fits != "steps left":
        return fix
    if kept is not None:
        return replace(fix, why=f"from checkpoint {kept}")
    command = f"`ppo-tui fork {run.id[:SHORT_ID]} --checkpoint 0`"
    return replace(fix, do=f"start it again with {command}: no checkpoint was found", why="")


def _in_session(result: Diagnosis, attempt: AttemptDir) -> Diagnosis:
    """The diagnosis with the run's own Ray session folder in its fixes; the latest may be another run's."""
    session = RaySession.read(attempt.ray)
    if session is None:
        return result
    fixes = tuple(replace(fix, do=fix.do.replace(_LATEST, session.path)) for fix in result.fixes)
    return replace(result, fixes=fixes)


def _age(path: Path) -> float | None:
    """Seconds since the last growth of a log."""
    with contextlib.suppress(OSError):
        return max(0.0, time.time() - path.stat().st_mtime)
    return None
