"""The facts about a run or log, for texts for strangers: the bundle and the case file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from launcher.console.diagnosis import Diagnosis
from launcher.core.format import counted, gib
from launcher.core.secrets import Redactor
from launcher.core.tail import records
from launcher.metrics.frameworks import Framework, described
from launcher.metrics.store import SeriesStore
from launcher.preset.effective import EffectiveConfig
from launcher.preset.settle import configuration, of_log
from launcher.record.events import Action, Event
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import MachineSample
from launcher.record.state import RunState
from launcher.report.anonymous import Anonymous
from launcher.runs.watch.history import ended, stall_report
from launcher.runs.watch.log import Log
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import Explanation, explained, explanation
from launcher.runs.watch.run_settings import compared_settings, foreign
from launcher.runs.watch.steps import shown_steps

LINE = 2000  # characters of one
_DUMP = re.compile(r"Fatal Python error|(?:Current thread|Thread) 0x[0-9a-f]+|^\S*(?:\([^)]*\) )?Stack \(most recent")
_IN_DUMP = re.compile(
    r"^(?:\([^)]*pid=\d+[^)]*\) ?)?(?:\s+File \"|(?:Current thread|Thread) 0x|\s*$|Extension modules)"
)


@dataclass(frozen=True)
class Facts:
    """The facts of a run, or of a log without `run`; `settings`: the newest resume's."""

    found: Explanation
    console: Path | None
    framework: Framework | None
    run: RunDir | None = None
    info: RunInfo = field(default_factory=RunInfo)
    settings: tuple[str, ...] = ()
    state: RunState = field(default_factory=lambda: RunState("ended"))
    attempt: AttemptDir | None = None
    machine: MachineSample | None = None
    series: SeriesStore = field(default_factory=SeriesStore)
    events: Sequence[Event] = ()

    @classmethod
    def read(cls, source: RunDir | Log) -> Facts:
        """Reads all of a source. Raises UserError if it is unreadable."""
        if isinstance(source, Log):
            numbering, rows = shown_steps(source)
            series = SeriesStore(numbering.unit)
            series.add_all([record for _, record in rows])
            return cls(explained(source), source.console, source.framework, series=series)
        reader = RunReader(source.path)
        while reader.poll() - {"log"}:
            pass
        (info, settings), attempt = compared_settings(source), source.last_attempt()
        found, console = explanation(source) or explained(source), attempt.console if attempt else None
        more = (info, settings, reader.state, attempt, reader.machine.latest, reader.series, tuple(reader.events))
        return cls(found, console, described(info.framework), source, *more)

    @property
    def config(self) -> EffectiveConfig | None:
        """Its configuration, as far as known; None for a log without one."""
        if self.info.preset is not None and not foreign(self.info):
            return configuration(self.info.preset)
        keys = self.attempt.read_launch().keys if self.attempt is not None else {}
        return of_log({**{key: str(value) for key, value in keys.items()}, **self.diagnosis.settings})

    @property
    def ended(self) -> datetime:
        """When the run ended, UTC."""
        return datetime.fromtimestamp(ended(self.state), timezone.utc).replace(tzinfo=None, microsecond=0)

    @property
    def actions(self) -> list[Action]:
        """The requests to the run."""
        return [event.what for event in self.events if isinstance(event.what, Action)]

    @property
    def diagnosis(self) -> Diagnosis:
        """Why it ended, or that it runs."""
        return self.found.diagnosis

    def lines(self) -> Iterator[str]:
        """The lines of the console; hides a private key that began before the part."""
        keys, raw = Redactor(), records(self.console) if self.console is not None else ()
        return (keys.without_keys(line.decode(errors="replace")) for line in raw)

    def versions(self) -> list[str]:
        """Package versions at the start of the run, or in its log."""
        host = [f"{name}: {self.info.host[name]}" for name in ("system", "cpus") if self.info.host.get(name)]
        known = self.info.versions or self.diagnosis.versions
        return [*(f"{name}: {version}" for name, version in known.items()), *host]

    def stacks(self) -> Iterator[str]:
        """The stall report, and the output of faulthandler in the console."""
        stalled = stall_report(self.run) if self.run is not None else None
        if stalled is not None:
            yield from stalled[1]
        inside = False
        for line in self.lines():
            began = _DUMP.search(line) is not None
            if began and not inside:
                yield "\n## Printed into the console\n"
            inside = began or (inside and _IN_DUMP.match(line) is not None)
            if inside:
                yield line[:LINE]

    def devices(self) -> list[str]:
        """GPUs and host in the last sample."""
        sample = self.machine
        if sample is None:
            return ["GPUs: no samples were taken"]
        lines = []
        for gpu in sample.gpus:
            others = [each for each in gpu.holders or () if each.whose != "run"]
            words = [gpu.name or "GPU", f"{gib(gpu.used)} of {gib(gpu.total)} GiB", f"the run's {gib(gpu.run_used)}"]
            words += [counted(len(others), "other process")] if others else []
            lines.append(f"GPU {gpu.index}: {', '.join(words)}")
        lines = lines or [f"GPUs: {sample.missing or 'none'}"]
        return [*lines, f"host memory: {gib(sample.host.used)} of {gib(sample.host.total)} GiB"]

    def anonymous(self, texts: Iterable[str]) -> Anonymous:
        """Replaces names of people and machines of this run, and of home folders in these texts."""
        hidden = Anonymous(self._users(), self._hosts(), filter(None, [str(self.info.env.get("HOME") or "")]))
        hidden.learn(texts)
        hidden.learn(self.info.argv)
        return hidden

    def _users(self) -> list[str]:
        """User names in a run's files, except in paths."""
        env = [str(self.info.env.get(name) or "") for name in ("USER", "LOGNAME", "SLURM_JOB_USER")]
        gpus = self.machine.gpus if self.machine else ()
        return list(filter(None, [*env, *(each.user or "" for gpu in gpus for each in gpu.holders or ())]))

    def _hosts(self) -> list[str]:
        launch = self.attempt.read_launch() if self.attempt else None
        nodes = [node.name for node in self.machine.nodes] if self.machine else []
        return list(filter(None, [str(self.info.host.get("name") or ""), (launch and launch.host) or "", *nodes]))
