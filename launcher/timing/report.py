"""The time of a run's steps, from its spans or roughly from veRL's timers."""

import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from launcher.console.evidence import Evidence
from launcher.core.tail import chunks
from launcher.metrics.frameworks import Framework, described
from launcher.metrics.host import HostLoad, slow_together
from launcher.metrics.store import SeriesStore
from launcher.metrics.timing import STEP as WHOLE
from launcher.preset.effective import EffectiveConfig
from launcher.preset.settle import configuration, of_log
from launcher.record.layout import AttemptDir, RunDir
from launcher.record.machine import GpuSample
from launcher.record.spans import Span, SpanTail
from launcher.runs.watch.run_settings import last_settings
from launcher.runs.watch.startup import start_times
from launcher.timing.advice import Advice, advise, advise_start
from launcher.timing.anatomy import StepTime, closed, step_times
from launcher.timing.limits import FORMULAS, Limits, Size, limits, size_of
from launcher.timing.stages import OF_TIMER, OTHER, ordered
from launcher.verl.config import BATCH, ENGINE, MODEL_PATH, TENSOR, N

RECENT = 20  # steps that are "usual", and that the advice is made from
FEWEST = 2  # recent steps that advice needs
_KEPT = 60  # maximum number of steps with spans in memory
_SEQUENCES = "actor_rollout_ref.rollout.max_num_seqs"
NO_SPANS = "times from the log: this step has no trace"
SWITCHED_OFF = "spans are off (PPO_TUI_SPANS=0 or `spans: false`)"


@dataclass(frozen=True)
class Report:
    """One step. `lanes` and `idle` are empty without spans; `rough` is the reason.

    `stages`: its seconds; `usual`: medians of the recent steps. `together`: all its stages are slow. `advice`: from
    `recent` steps; empty for a step slowed by others on the `host`. `start`: seconds of the stages up to the first step
    of attempt `start_attempt`.
    """

    step: int
    seconds: float
    running: bool
    stages: Mapping[str, float]
    usual: Mapping[str, float]
    time: StepTime | None
    limits: Limits
    advice: tuple[Advice, ...]
    rough: str = ""
    host: HostLoad | None = None
    together: bool = False
    recent: int = 0
    start: Mapping[str, float] = field(default_factory=dict)
    start_attempt: int = 1
    start_advice: tuple[Advice, ...] = ()
    of_verl: bool = True

    @property
    def crowded(self) -> bool:
        """Whether others on the host explain the slow step."""
        return self.together and self.host is not None and self.host.crowded

    def to_json(self) -> Mapping[str, object]:
        """For `--json`."""
        found, told = self.time, self.limits
        start = found.start if found else 0.0
        speeds = {"rollout": told.rollout_tokens, "update": told.update_tokens}
        return {
            "step": self.step,
            "source": "spans" if found else "timers",
            "rough": self.rough or None,
            "running": self.running,
            "seconds": round(self.seconds, 4),
            "stages": {name: round(seconds, 4) for name, seconds in self.stages.items()},
            "usual": {name: round(seconds, 4) for name, seconds in self.usual.items()},
            "critical_path": [
                {"stage": p.stage, "start": round(p.start - start, 4), "seconds": round(p.seconds, 4)}
                for p in (found.path if found else ())
            ],
            "lanes": [
                {
                    "lane": lane.name,
                    "busy": round(lane.busy, 4),
                    "pieces": [[p.stage, round(p.start - start, 4), round(p.end - start, 4)] for p in lane.pieces],
                }
                for lane in (found.lanes if found else ())
            ],
            "idle": {str(rank): round(share, 4) for rank, share in (found.idle() if found else {}).items()},
            "tokens_per_second": {name: speed for name, speed in speeds.items() if speed is not None},
            "gpu": told.gpu or None,
            "mfu": told.mfu,
            "mbu": told.mbu,
            "formulas": FORMULAS,
            "limits_source": told.source or None,
            "limits_missing": told.why or None,
            "host": self.host._asdict() if self.host else None,
            "slow_together": self.together,
            "recent_steps": self.recent,
            "start": {name: round(seconds, 3) for name, seconds in self.start.items()},
            "advice": [each.to_json() for each in self.advice],
        }


class Timing:
    """Follows the time of a run, or of an external log (None). `poll` reads new data; `report` describes one step.

    `series`: the run's metrics, from its reader. A log's configuration is in its `console`.
    """

    def __init__(
        self,
        run: RunDir | None,
        *,
        whole: bool = False,
        framework: Framework | None = None,
        console: Iterable[bytes] = (),
    ) -> None:
        framework = described(run.read_info().framework) if run is not None else framework
        self._of_verl = framework is None or framework.own
        self.run, self._whole = run, whole
        self._attempt: AttemptDir | None = None
        self._tail: SpanTail | None = None
        self._done: dict[int, StepTime] = {}
        self._open: list[Span] = []
        self._now: StepTime | None = None
        self._config = None if run is not None else _configuration(console, framework)
        self._model: Size | None = None
        self._searched: AttemptDir | None = None
        self._start: tuple[int, Mapping[str, float]] = (0, {})

    def poll(self, live: bool) -> bool:
        """Reads new spans; returns whether there were any, or the running step grew."""
        numbers = self.run.attempt_numbers() if self.run is not None else []
        if self.run is None or not numbers:
            return False
        if self._start[0] != numbers[-1]:
            self._start = start_times(self.run)
        first = self._attempt.number if self._attempt else numbers[0]
        unread = (self.run.attempt(number) for number in numbers if number >= first)
        fresh = [self._read(each, live and each.number == numbers[-1]) for each in unread]  # each one is read
        return any(fresh)

    def _read(self, attempt: AttemptDir, live: bool) -> bool:
        if self._attempt is None or attempt.number != self._attempt.number:
            self._attempt, self._open, self._now = attempt, [], None
            self._tail = SpanTail(attempt, whole=self._whole)
            resumed = attempt.read_launch().resume_step or 0  # later steps are repeated
            self._done = {step: each for step, each in self._done.items() if step <= resumed}
        assert self._tail is not None
        fresh = list(self._tail.read())
        if not fresh and not (live and self._now):
            return False
        self._open += fresh
        found = step_times(self._open, time.time() if live else None)
        self._now = found[-1] if found and found[-1].running else None
        done = {**self._done, **{each.step: each for each in found if not each.running}}
        kept = sorted(done)[0 if self._whole else -_KEPT :]
        self._done = {step: done[step] for step in kept}  # replaced at once: the page reads it concurrently
        if len(found) > 2:  # the last whole one may still get spans that end after it
            begin = found[-2].start
            self._open = [span for span in closed(self._open) if (span.end or math.inf) > begin]
        return True

    def seconds(self) -> dict[int, float]:
        """Seconds per complete step."""
        return {step: each.seconds for step, each in self._done.items()}

    def steps(self, series: SeriesStore) -> list[int]:
        """Every displayable step, oldest first."""
        timed = series.first_of(*WHOLE)
        found = {*self._done, *(timed[1].steps if timed else ())}
        if self._now:
            found.add(self._now.step)
        return sorted(found)

    def report(self, series: SeriesStore, step: int | None = None, gpu: GpuSample | None = None) -> Report | None:
        """The report on a step (None: the newest); None without data. `gpu`: one of the run's."""
        known = self.steps(series)
        if not known or (step is not None and step not in known):
            return None
        step = known[-1] if step is None else step
        found = self._now if self._now and self._now.step == step else self._done.get(step)
        stages = found.stages if found else rough(series, step)
        if not stages:
            return None
        others = [each.stages for each in list(self._done.values())[-RECENT:]] if found else []
        others = others or [*filter(None, (rough(series, each) for each in known[-RECENT:]))]
        usual = {name: statistics.median(each.get(name, 0.0) for each in others) for name in stages} if others else {}
        config, model = self._settings()
        sequences = (config.whole(BATCH) or 0) * (config.whole(N) or 1) if config else None
        gpus = None if config is None else 0 if config.on_cpu else config.gpus
        at_once = config.whole(_SEQUENCES) if config and config.text(ENGINE) in ("vllm", "sglang") else None
        parallel = (config.whole(TENSOR) or 1) if config else 1
        figures = _at(series, step)
        told = limits(figures, stages, model, gpu.name if gpu else "", gpus, sequences, at_once, parallel)
        host, together, (attempt, start) = HostLoad.of(figures), slow_together(stages, usual), self._start
        crowded = together and host is not None and host.crowded
        return Report(
            step=step,
            seconds=found.seconds if found else sum(stages.values()),
            running=found.running if found else False,
            stages=stages,
            usual=usual,
            time=found,
            limits=told,
            advice=() if crowded else self.advice(series),
            rough="" if found else self._why(),
            host=host,
            together=together,
            recent=len(self._recent(series)),
            start=start,
            start_attempt=attempt,
            start_advice=advise_start(start, config) if start else (),
            of_verl=self._of_verl,
        )

    def advice(self, series: SeriesStore) -> tuple[Advice, ...]:
        """Advice for the recent steps without the first one, by veRL's settings; empty with fewer than two."""
        config, _ = self._settings()
        recent, known = self._recent(series), self.steps(series)
        if not self._of_verl or len(recent) < FEWEST or not known:
            return ()
        return advise(recent, config, _at(series, known[-1]))

    def _recent(self, series: SeriesStore) -> Sequence[Mapping[str, float]]:
        """Seconds per stage of the recent steps, without the first step."""
        recent = [self._done[step].stages for step in sorted(self._done)[1:]]
        return recent[-RECENT:] or list(
            filter(None, (rough(series, step) for step in self.steps(series)[1:][-RECENT:]))
        )

    def _settings(self) -> tuple[EffectiveConfig | None, Size | None]:
        attempt = self._attempt or (self.run.last_attempt() if self.run is not None else None)
        if self._config is None and self.run is not None and attempt != self._searched:
            self._searched = attempt
            info = last_settings(self.run)[0]
            if info is not None and info.preset is not None:
                self._config = configuration(info.preset)
            elif info is not None and attempt is not None:
                self._config = _configuration(chunks(attempt.console), described(info.framework))
            if self._config is not None:
                self._model = size_of(str(self._config.get(MODEL_PATH)), attempt.console if attempt else None)
        return self._config, self._model

    def _why(self) -> str:
        switch = self._attempt.read_launch().env.get("PPO_TUI_SPANS") if self._attempt else None
        return SWITCHED_OFF if switch in ("0", "") else NO_SPANS


def _configuration(console: Iterable[bytes], framework: Framework | None) -> EffectiveConfig | None:
    """The settings in a log; None without any."""
    log = Evidence(framework)
    log.read(console)
    return of_log(log.facts.settings)


def rough(series: SeriesStore, step: int) -> dict[str, float]:
    """Seconds per stage of a step by veRL's timers; empty if not logged."""
    whole = series.finite(step, *WHOLE)
    if whole is None:
        return {}
    found: dict[str, float] = {}
    for name, stage in OF_TIMER.items():
        if (value := series.finite(step, f"timing_s/{name}")) is not None:
            found[stage] = found.get(stage, 0.0) + value
    inside = sum(seconds for stage, seconds in found.items() if stage != "validation")
    found[OTHER] = found.get(OTHER, 0.0) + max(whole - inside, 0.0)
    return ordered(found)


def _at(series: SeriesStore, step: int) -> dict[str, float]:
    """All metrics of a step."""
    found = ((key, series.get(key)) for key in series.keys())  # noqa: SIM118 (not a mapping)
    return {key: value for key, one in found if one is not None and (value := one.at(step)) is not None}
