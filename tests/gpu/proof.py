"""The runs of proof.toml, under a supervisor; the first fix of each that has a fault starts as soon as it has ended.

What comes home beside judged/NAME: flags/NAME.json, the last line of `ppo-tui health RUN --json`, which the script
reads and no reader before the verdicts are committed; fixes/NAME-fix of the fixes; the run directories.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from host import PPO_TUI, RESULTS, Lane, told
from judged import STUCK, Row, Run

from launcher.core.paths import runs_dir
from launcher.record.check import flags_of
from launcher.record.events import Event, LevelChange, read_events
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.steps import steps


class Watched(Run):
    """A row as a user starts it, or the fork from the start that is its fix."""

    place: RunDir | None = None  # once it has been started

    def _start(self, lane: Lane) -> None:
        row, self.flags = self.row, dict[str, Any]()
        words = ["fork", row.parent, "--checkpoint", "0"] if row.parent else ["run", row.preset, "--name", row.name]
        asked = [PPO_TUI, *words, *row.settings, "--detach", "--force", "--json"]
        with (self.folder / "begun.json").open("wb") as out, (self.folder / "begun.log").open("wb") as errors:
            self.driver = subprocess.Popen(asked, env=lane.env(), stdin=subprocess.DEVNULL, stdout=out, stderr=errors)

    def over(self, waits: bool) -> bool:
        """Whether it has ended, could not start or has no first step: none makes room for another one."""
        if self.driver.poll() is None:
            return False
        if self.place is None and not self.driver.returncode:
            begun = json.loads((self.folder / "begun.json").read_bytes())
            self.id, self.place = begun["run"], RunDir(Path(begun["dir"]))
            self.metrics = self.place.attempt(1).metrics
        stuck = bool(self.lane.gpus) and self.age > STUCK and not self.steps
        return self.place is None or stuck or not current(self.place, checks=False).going

    def end(self) -> None:
        """Stops it if it is going on, and keeps what comes home."""
        if self.place is None:
            return
        if current(self.place, checks=False).going:
            told(self.lane, "stop", self.id, "--wait")
        attempt = self.place.attempt(1)
        self._describe(attempt.read_launch().argv, run=self.id, ended=time.time())
        ended = attempt.read_exit()
        self._keep(self.place.rollouts.glob("*.jsonl"), ended.code if ended else None)
        shutil.copy(self.metrics, self.folder)
        self.flags = flags(self.row, self.id)

    def then(self) -> list[Row]:
        """Its first fix, of the same length and seed."""
        return fix(self.row, self.id, self.flags)


class Held(Watched):
    """One whose fix waits until the rules are final."""

    def then(self) -> list[Row]:
        """None now."""
        return []


def flags(row: Row, run: str) -> dict[str, Any]:
    """What `health --json` prints last, which is kept."""
    asked = [PPO_TUI, "health", run, "--json"]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    found: dict[str, Any] = json.loads((said.stdout.splitlines() or ["{}"])[-1])
    (RESULTS / "flags").mkdir(exist_ok=True)
    (RESULTS / "flags" / f"{row.name}.json").write_text(json.dumps(found, indent=1))
    return found


def fix(row: Row, run: str, found: dict[str, Any]) -> list[Row]:
    """The first fix of a run with a fault, if it has one that is a setting."""
    raised = [check for check in found.get("checks", ()) if check["level"] in ("WARN", "CRITICAL")]
    trial = next((check["trial"]["settings"] for check in raised if "trial" in check), ())
    if not row.fault or row.parent or not trial:
        return []
    return [replace(row, name=f"{row.name}-fix", settings=tuple(trial), parent=run)]


def fixes(rows: Iterable[Row]) -> list[Row]:
    """Those of runs that were held, whose records become what the rules of now would have written."""
    found = []
    for row in rows:
        for folder in sorted((RESULTS / "judged").glob(f"{row.name}*/command.json"))[-1:]:
            about = json.loads(folder.read_text())
            run, own = RunDir(runs_dir() / about["run"]), replace(row, name=about["name"])
            _rejudge(run)
            found += fix(own, run.id, flags(own, run.id))
    return found


def _rejudge(run: RunDir) -> None:
    result = judged(run, [])
    checks = tuple(result.checklist.checks())
    state = replace(current(run), checks=checks, flags=flags_of(checks), verdict=str(result.checklist.verdict))
    state.write(run.state)
    ends = {record.step: record.t for _, record in steps(run)}
    changes = [Event(ends.get(change.step, 0.0), change) for change in result.changes if change.notable]
    others = [event for event in read_events(run.events) if not isinstance(event.what, LevelChange)]
    events = sorted([*others, *changes], key=lambda event: event.t)
    run.events.write_bytes(b"".join(event.to_line() for event in events))
