"""The runs of proof.toml, under a supervisor; the first fix of each that has a fault starts as soon as it has ended.

What comes home beside judged/NAME: flags/NAME.json, the last line of `ppo-tui health RUN --json`, which the script
reads and no reader before the verdicts are committed; fixes/NAME-fix of the fixes; the run directories.
"""

import json
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from host import PPO_TUI, RESULTS, Lane, told
from judged import STUCK, Row, Run

from launcher.record.layout import RunDir
from launcher.record.state import current


class Watched(Run):
    """A row as a user starts it, or the fork from the start that is its fix."""

    place: RunDir | None = None  # once it has been started

    def _start(self, lane: Lane) -> None:
        row, self.lane, self.flags = self.row, lane, dict[str, Any]()
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
        self._keep(self.place.rollouts.glob("*.jsonl"), ended and ended.code)
        shutil.copy(self.metrics, self.folder)
        asked = [PPO_TUI, "health", self.id, "--json"]
        said = subprocess.run(asked, env=self.lane.env(), capture_output=True, text=True, timeout=300, check=False)
        self.flags = json.loads((said.stdout.splitlines() or ["{}"])[-1])
        (RESULTS / "flags").mkdir(exist_ok=True)
        (RESULTS / "flags" / f"{self.row.name}.json").write_text(json.dumps(self.flags, indent=1))

    def then(self) -> list[Row]:
        """Its first fix, of the same length and seed."""
        row = self.row
        raised = [check for check in self.flags.get("checks", ()) if check["level"] in ("WARN", "CRITICAL")]
        trial = next((check["trial"]["settings"] for check in raised if "trial" in check), ())
        if not row.fault or row.parent or not trial:
            return []
        return [replace(row, name=f"{row.name}-fix", settings=tuple(trial), parent=self.id)]
