"""The checklist of a run or log: its limits, machine and judged steps."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from launcher.core.errors import UserError
from launcher.core.files import read_json
from launcher.core.format import GIB
from launcher.core.progress import Meter, Progress, unseen
from launcher.core.tail import chunks, records
from launcher.estimate.models import folder_of
from launcher.health.checklist import Checklist
from launcher.machine.host import host_memory
from launcher.machine.sampler import Sampler
from launcher.metrics.frameworks import Framework, described
from launcher.metrics.records import StepRecord
from launcher.preset.alerting import limits_of
from launcher.preset.flow import rows_of
from launcher.preset.settle import configuration
from launcher.record.check import Check
from launcher.record.events import LevelChange
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.machine import MachineSample
from launcher.record.numbering import Numbering
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.sink import Sink
from launcher.runs.watch.log import Log, LogClock
from launcher.runs.watch.responses import ToldByResponses
from launcher.runs.watch.steps import earlier_steps, numbering_of
from launcher.verl.config import MODEL_PATH

_MEMORY_SIZES = ("gpu_total_gb", "host_total_gb")


def checklist_maker(
    info: RunInfo, sizes: Mapping[str, float], framework: Framework | None, *, clock: bool = False
) -> Callable[[Mapping[str, Any]], Checklist]:
    """Makes checklists for these memory sizes; with a `clock` it judges silence. `framework`: if not veRL."""
    other = None if framework is None or framework.own else framework
    usual = configuration(info.preset).usual if info.preset else None

    def make(keys: Mapping[str, Any]) -> Checklist:
        return Checklist(
            config=keys,
            settings=limits_of(info.health),
            gpu_total_gb=sizes.get("gpu_total_gb"),
            host_total_gb=sizes.get("host_total_gb"),
            clock=clock,
            vocabulary=_vocabulary(keys),
            validation_rows=_validation_rows(keys),
            framework=other,
            usual=usual,
        )

    return make


def _vocabulary(keys: Mapping[str, Any]) -> int | None:
    """Vocabulary size of the policy, from its model's configuration; None if that is not available."""
    path = keys.get(MODEL_PATH)
    try:
        folder = folder_of(path) if isinstance(path, str) else None
    except OSError:  # no name of a file
        folder = None
    size = read_json(folder / "config.json").get("vocab_size") if folder else None
    return size if type(size) is int and size > 1 else None


def _validation_rows(keys: Mapping[str, Any]) -> int | None:
    """Number of validation rows, from the run's files; None if they are not available."""
    rows, most = rows_of(keys.get("data.val_files")), keys.get("data.val_max_samples")
    return min(rows, most) if rows and isinstance(most, int) and most > 0 else rows


def machine_sizes(sampler: Sampler) -> dict[str, float]:
    """Memory of this machine in GiB, in the form for the checklist."""
    sizes = {"host_total_gb": host_memory()[1] / GIB}
    if gpu := sampler.smallest_gpu:
        sizes["gpu_total_gb"] = gpu / GIB
    return sizes


def recorded_sizes(run: RunDir) -> dict[str, float]:
    """Memory of the run's machine in GiB, from its first sample; empty without one."""
    sample = next((found for line in records(run.machine) if (found := MachineSample.from_line(line))), None)
    if sample is None:
        return {}
    gpus = [gpu.total for gpu in sample.gpus if gpu.total]
    sizes = {"host_total_gb": sample.host.total / GIB} if sample.host.total else {}
    return sizes | ({"gpu_total_gb": min(gpus) / GIB} if gpus else {})


class Judged(Sink):
    """A judged source: its level changes, and the checklist after its last step."""

    checklist: Checklist

    def __init__(self, numbering: Numbering) -> None:
        self.numbering, self.changes = numbering, list[LevelChange]()

    def health(self, changes: Iterable[LevelChange], t: float) -> None:
        self.changes.extend(map(self.numbering.shown, changes))

    @property
    def checks(self) -> list[Check]:
        """All rows, worst first."""
        return [*map(self.numbering.shown, self.checklist.checks())]


def judged(source: RunDir | Log, config: Sequence[str], progress: Progress = unseen) -> Judged:
    """Judges every step of a source.

    `config`: KEY=VALUE settings over the console's configuration dump, and memory sizes over those of the run's
    machine.
    """
    sink = Judged(numbering_of(source))
    pinned = dict(setting(text) for text in config)
    sizes = {name: _size(name, pinned.pop(name)) for name in _MEMORY_SIZES if name in pinned}
    if isinstance(source, Log):
        sink.checklist = judge_log(source, sink, sizes, pinned, source.clock(), progress).checklist
        return sink
    info = source.read_info()
    recorded = {} if info.from_log else recorded_sizes(source)  # a log may have the memory of another machine
    framework = described(info.framework)
    make = checklist_maker(info, recorded | sizes, framework)
    sink.checklist = make(pinned)
    for number in source.attempt_numbers():
        attempt = source.attempt(number)
        launch = attempt.read_launch()
        console, metrics = attempt.logs()
        log = Log(attempt.path, console, metrics)
        both, tell = log.both, ToldByResponses(source, attempt).add
        before = launch.resume_step
        monitor = Monitor(
            sink, make, launch.keys, file_logger=both, framework=framework, pinned=pinned, tell=tell, before=before
        )
        monitor.written_here = None if launch.followed is None else False
        monitor.numbered = sink.numbering
        monitor.history(earlier_steps(source, number, launch.resume_step))
        if console or metrics:
            _feed(monitor, log, log.clock(), progress)
        sink.checklist = monitor.checklist
        if ended := attempt.read_exit():
            sink.checklist.ended(ended.code)
    return sink


def judge_log(
    log: Log,
    sink: Sink,
    sizes: Mapping[str, float],
    pinned: Mapping[str, Any],
    clock: LogClock,
    progress: Progress = unseen,
    before: Sequence[StepRecord] = (),
) -> Monitor:
    """The monitor after reading a whole log, as in `judged`; it continues the steps `before`."""
    make = checklist_maker(RunInfo(), sizes, log.framework)
    both, resumed = log.both, before[-1].step if before else None
    monitor = Monitor(
        sink, make, log.config, file_logger=both, framework=log.framework, pinned=pinned, clock=clock, before=resumed
    )
    monitor.numbered = log.numbering
    monitor.history([*before])
    _feed(monitor, log, clock, progress)
    return monitor


def _feed(monitor: Monitor, log: Log, clock: LogClock, progress: Progress) -> None:
    """Feeds a whole log to a monitor; `progress` gets the judged share (not for compressed files of unknown length)."""
    paths = [path for path in (log.console, log.table) if path is not None]
    known = all(path.suffix != ".gz" for path in paths)
    meter = Meter(progress if known else unseen, sum(path.stat().st_size for path in paths), "judging")
    lines = log.lines(meter)
    batch = list(itertools.islice(lines, 256))
    alone = log.console is None or not batch
    for chunk in chunks(log.console, meter) if log.console else ():
        monitor.feed_console(chunk, clock.now)
        if alone:
            monitor.collect(clock.now)
    while batch:
        monitor.feed_file(batch, clock.now)
        if alone:
            monitor.collect(clock.now)
        batch = list(itertools.islice(lines, 256))
    monitor.close(clock.now)


def setting(text: str) -> tuple[str, Any]:
    """Key and value of KEY=VALUE."""
    from launcher.verl import hydra

    _, key, value = hydra.split(text)
    return key, hydra.parse(value)


def _size(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise UserError(f"--config {name}={value} is not allowed", "use a number of GiB above 0")
    return float(value)
