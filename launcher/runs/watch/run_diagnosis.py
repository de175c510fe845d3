"""Why a run or a log ended."""

import contextlib
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from launcher.console.diagnose import diagnose, errors_so_far
from launcher.console.diagnosis import Diagnosis
from launcher.core.format import SHORT_ID
from launcher.metrics.frameworks import Framework, described
from launcher.preset.settle import configuration, of_log, offers
from launcher.record.attempt import Exit
from launcher.record.fix import Fix, Offer
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.problem import Problem
from launcher.record.ray_session import RaySession
from launcher.record.state import current
from launcher.runs.watch.checkpoints import latest_checkpoint
from launcher.runs.watch.possible import completion
from launcher.runs.watch.run_settings import last_settings
from launcher.runs.watch.source import LogFile, chunks

_LATEST = "/tmp/ray/session_latest"  # as the fixes of causes name it


@dataclass(frozen=True)
class Outcome:
    """State of the ended run, the diagnosis' cause, and one sentence where something had gone wrong."""

    state: str
    cause: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Explanation:
    """A diagnosis, and its fixes as far as they change something in the run."""

    diagnosis: Diagnosis
    offers: tuple[Offer, ...] = ()

    @property
    def problem(self) -> Problem:
        """The failure in the form of all problems."""
        return self.diagnosis.problem(self.offers)

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as `diagnose --json` has it, with these fixes instead of all."""
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
    """The outcome of an attempt with this exit record, from the console if the exit code is unknown. A requested stop
    is never a failure, but earlier errors are still reported. Of a `followed` log only the end is known.
    """
    if record.code == 0:
        return Outcome("finished", "finished")
    asked = record.requested_by
    result = diagnose(
        chunks(attempt.console),
        exit_code=record.code,
        requested_by=asked,
        alive=None if followed else False,
        steps_total=steps_total,
        machine=record.machine,
        framework=framework,
    )
    if record.code is None and not asked and result.cause == "finished":
        return Outcome("finished", "finished")
    if record.code is None and not asked and (result.lost or result.cause == "running"):
        return Outcome("ended", result.cause) if followed else Outcome("lost", result.cause, result.title)
    if result.cause == "stopped" or (asked and result.cause in ("finished", "unknown")):
        return Outcome("stopped", "stopped")  # asked for, or SIGTERM from somebody else
    return Outcome("stopped" if asked else "failed", result.cause, result.title)


def diagnosis(source: RunDir | LogFile) -> Diagnosis:
    """Why a source ended, or that it runs."""
    if isinstance(source, LogFile):
        return diagnose(() if source.file_logger else chunks(source.path), framework=source.framework)
    attempt, state = source.last_attempt(), current(source)
    if attempt is None:
        return diagnose(())
    info = source.read_info()
    framework = described(info.framework)
    if state.state in ("imported", "ended"):
        return diagnose(chunks(attempt.console), steps_total=state.total, framework=framework).of_run(
            source.id[:SHORT_ID]
        )
    ended = attempt.read_exit() or Exit()
    result = diagnose(
        chunks(attempt.console),
        exit_code=ended.code,
        requested_by=ended.requested_by,
        alive=state.going,
        stalled_for=_age(attempt.console) if state.going else None,
        steps_total=state.total,
        machine=ended.machine,
        framework=framework,
        versions=info.versions,
    )
    return _in_session(result, attempt).of_run(source.id[:SHORT_ID])


def explained(source: RunDir | LogFile) -> Explanation:
    """The diagnosis of a source with the fixes that it can use."""
    return _settled(source, diagnosis(source))


def explanation(run: RunDir) -> Explanation | None:
    """Why a run failed, or the cause of a live one's errors; None without any. Raises UserError for unreadable logs."""
    attempt, state = run.last_attempt(), current(run, checks=False)
    if attempt is None:
        return None
    framework = described(run.read_info().framework)
    result = errors_so_far(chunks(attempt.console), framework) if state.going else diagnosis(run)
    if result is None or not result.failed:
        return None
    return _settled(run, _in_session(result, attempt).of_run(run.id[:SHORT_ID]))


def _settled(source: RunDir | LogFile, found: Diagnosis) -> Explanation:
    if isinstance(source, LogFile):
        return Explanation(found, offers(found.fixes, of_log(found.settings), imported=True))
    info, state, kept = last_settings(source)[0], current(source, checks=False), latest_checkpoint(source)
    config = of_log(found.settings) if info.preset is None else configuration(info.preset)
    complete = kept is not None and completion(kept[0], state.total) is not None
    fixes = found.fixes if kept else tuple(dict.fromkeys(_again(fix, source) for fix in found.fixes))
    return Explanation(found, offers(fixes, config, imported=info.from_log, complete=complete))


def _again(fix: Fix, run: RunDir) -> Fix:
    """The fix for a run without a checkpoint to resume from."""
    command = f"`ppo-tui fork {run.id[:SHORT_ID]} --checkpoint 0`"
    return (
        replace(fix, do=f"start it again with {command}: no checkpoint was found") if fix.fits == "steps left" else fix
    )


def _in_session(result: Diagnosis, attempt: AttemptDir) -> Diagnosis:
    """The diagnosis with the folder of the run's own Ray session in its fixes; the latest may be of another run."""
    session = RaySession.read(attempt.ray)
    if session is None:
        return result
    fixes = tuple(replace(fix, do=fix.do.replace(_LATEST, session.path)) for fix in result.fixes)
    return replace(result, fixes=fixes)


def _age(path: Path) -> float | None:
    """Seconds since a log grew."""
    with contextlib.suppress(OSError):
        return max(0.0, time.time() - path.stat().st_mtime)
    return None
