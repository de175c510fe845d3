"""The runs of this machine, each in a line; read again only where something changed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher import paths
from launcher.metrics.records import StepRecord
from launcher.run.directory import RunDir, all_runs
from launcher.run.state import current
from tui.charts import REWARD
from tui.run_words import is_live

_TAIL = 1 << 16  # bytes: a step of 112 figures takes 5 kB


@dataclass(frozen=True)
class RunSummary:
    """What the list shows of a run. `reward` is that of its last step; None before the first."""

    path: Path
    state: dict[str, Any]
    reward: float | None
    written: int  # when state.json was written, in nanoseconds

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def name(self) -> str:
        return self.id.partition("-")[2] or self.id


class RunList:
    """Follows the folder of runs. Looking again costs a `stat` a run, and a read of those that live."""

    def __init__(self) -> None:
        self.runs: list[RunSummary] = []
        self._folder = -1

    def refresh(self) -> bool:
        """Looks again; whether anything changed."""
        before, folder = self.runs, _written(paths.runs_dir())
        if folder != self._folder:
            self._folder = folder
            known = {run.path: run for run in before}
            self.runs = [_summary(run, known.get(run.path)) for run in all_runs()]
        else:
            self.runs = [_summary(RunDir(run.path), run) for run in before]
        return self.runs != before


def _summary(run: RunDir, before: RunSummary | None) -> RunSummary:
    written = _written(run.state)
    if before is not None and before.written == written and not is_live(before.state):
        return before
    state = {key: value for key, value in current(run).items() if key != "heartbeat"}
    if before is not None and before.state.get("step") == state.get("step"):
        return RunSummary(run.path, state, before.reward, written)
    return RunSummary(run.path, state, _last_reward(run), written)


def _last_reward(run: RunDir) -> float | None:
    for number in reversed(run.attempt_numbers()):  # a resumed attempt may have no step yet
        steps = run.attempt(number).steps
        if not steps.exists():
            continue
        with steps.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().splitlines()
        for line in reversed(lines):
            record = StepRecord.from_line(line)
            for key in REWARD.keys if record else ():
                if record is not None and key in record.data:
                    return record.data[key]
    return None


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
