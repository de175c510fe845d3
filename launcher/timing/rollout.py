"""What would shorten a rollout: an engine takes so many requests at a time, and reward workers score what has ended.

Both take whoever comes first as soon as a place is free. So the spans show how long each request took by itself, and a
replay with other places, or with faster tokens, shows when the last response would be scored.
"""

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from typing import NamedTuple

from launcher.record.spans import TRAINER, Span
from launcher.timing.anatomy import StepTime
from launcher.timing.evidence import Evidence, Prediction, Row
from launcher.timing.limits import decoding
from launcher.timing.stages import GENERATE, REWARD, ROLLOUT
from launcher.verl.config import BATCH, TENSOR, N

_PROCESSES = 4  # times as many
_HUNG = 4  # times the usual time: what takes longer is a hang
_ALONE = 1.1  # calls at once on average, below which each had its processor for itself
_SURE = 0.25  # the largest standard error of the slope of their times at which it counts
_MANY = 1e6  # places where their number is unknown
_ASSUMED = 0.5  # where neither the spans nor the GPU's table has it: the middle between the two extremes


class Job(NamedTuple):
    """When it comes, and the seconds that it takes."""

    comes: float
    seconds: float


def alone(spans: Iterable[Span], places: int) -> list[Job]:
    """What each of the spans takes from the moment in which one of the places was free for it."""
    found, busy = list[Job](), list[float]()
    for begin, end in sorted((span.start, span.end) for span in spans if span.end is not None):
        free = heappop(busy) if len(busy) >= places else begin
        found.append(Job(begin, max(end - max(begin, free), 0.0)))
        heappush(busy, end)
    return found


def ends(jobs: Iterable[Job], places: int) -> list[float]:
    """When each of the jobs ends with so many places."""
    found, busy = list[float](), list[float]()
    for comes, seconds in sorted(jobs):
        free = heappop(busy) if len(busy) >= places else comes
        found.append(max(comes, free) + seconds)
        heappush(busy, found[-1])
    return found


@dataclass(frozen=True)
class Rollout:
    """The requests of a step by replica, and the calls of the reward function; without those of a validation."""

    requests: Mapping[str, Sequence[Span]]
    calls: Sequence[Span]

    @property
    def ended(self) -> list[float]:
        """When each request was answered."""
        return [span.end or 0.0 for spans in self.requests.values() for span in spans]

    @property
    def places(self) -> int:
        """The most calls at once."""
        changes = sorted([(span.start, 1) for span in self.calls] + [(span.end or 0.0, -1) for span in self.calls])
        return max(accumulate((change for _, change in changes)), default=1)

    def scored(self, generated: Iterable[float] | None = None, places: int | None = None) -> float:
        """When the last response has its score, if they are `generated` then and so many are scored at a time."""
        ready = sorted(self.ended if generated is None else generated)
        if len(ready) != len(self.calls):  # several requests for a response: which of them is the last is not known
            return ready[-1]
        jobs = (Job(at, (call.end or 0.0) - call.start) for at, call in zip(ready, self.calls, strict=True))
        return max(ends(jobs, places or self.places))


def rollout(step: StepTime) -> Rollout | None:
    """None for a step without requests."""
    trainer = next((lane for lane in step.lanes if lane.kind == TRAINER), None)
    times = [(piece.start, piece.end) for piece in (trainer.pieces if trainer else ()) if piece.stage == ROLLOUT]
    requests: defaultdict[str, list[Span]] = defaultdict(list)
    calls = []
    for span in sorted(step.spans, key=lambda span: span.start):
        if span.end is None or not any(begin <= (span.start + span.end) / 2 <= end for begin, end in times):
            continue
        if span.name in GENERATE:
            requests[span.lane].append(span)
        elif span.name == REWARD:
            calls.append(span)
    return Rollout(requests, calls) if requests else None


class More(NamedTuple):
    """A stage in `wanted` processes: the share of its work that each of them saves, and its times without hangs."""

    wanted: int
    saved: float
    times: Sequence[float]


def more_processes(row: Row, evidence: Evidence) -> More | None:
    """None where more of them would compete with the training for its cores."""
    now = int(evidence.number(row.key) or 1)
    if evidence.config.on_cpu and now >= _PROCESSES:
        return None
    times = evidence.stage(row.stage)
    most = _HUNG * statistics.median(times)
    return More(now * _PROCESSES, 1 - 1 / _PROCESSES, [min(seconds, most) for seconds in times])


def scores(row: Row, evidence: Evidence) -> Prediction | None:
    """A reward function in more processes.

    A call that waits for something else takes as long with others around it: only the time without a free place is
    saved. Calls that share a processor take a part of it each, so more processes divide all of it.
    """
    more = more_processes(row, evidence)
    if more is None:
        return None
    found = [rollout(step) for step in evidence.steps]
    shared = _shared([each for each in found if each])
    saved = []
    for seconds, worked, each in zip(evidence.stage(row.stage), more.times, found, strict=True):
        waited = max(each.scored() - each.scored(places=each.places * _PROCESSES), 0.0) if each else 0.0
        saved.append(worked * more.saved * shared + min(waited, seconds) * (1 - shared))
    return Prediction(str(more.wanted), saved)


def _shared(rollouts: Iterable[Rollout]) -> float:
    """How much longer a call takes with others next to it: 0 not at all, 1 as many times as there are."""
    around, took = list[float](), list[float]()
    for each in rollouts:
        lanes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for call in each.calls:
            if call.end is not None and call.end > call.start:
                lanes[call.lane].append((call.start, call.end))
        for spans in lanes.values():
            moments = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
            counts = accumulate(change for _, change in moments)
            areas = (count * (after[0] - at[0]) for count, (at, after) in zip(counts, pairwise(moments), strict=False))
            sums, when = [0.0, *accumulate(areas)], [moment for moment, _ in moments]
            for start, end in spans:
                took.append(end - start)
                around.append((sums[bisect_left(when, end)] - sums[bisect_left(when, start)]) / (end - start))
    if not took or (mean := statistics.fmean(around)) < _ALONE:
        return 0.0
    usual = statistics.fmean(took)
    differ, wide = statistics.pstdev(around) / mean, statistics.pstdev(took) / usual
    if wide > _SURE * differ * math.sqrt(len(took)) or not differ:
        return _ASSUMED
    return min(max(statistics.linear_regression(around, took).slope * mean / usual, 0.0), 1.0)


def groups(row: Row, evidence: Evidence) -> Prediction | None:
    """All responses at once. A token costs an engine almost the same for few and for many, up to the GPU's limits."""
    now, each = evidence.number(row.key), _each(evidence)
    if now is None or each is None or each <= now:
        return None
    saved = []
    for step in evidence.steps:
        found = rollout(step)
        if found is None:
            return None
        jobs = [job for spans in found.requests.values() for job in alone(spans, int(now))]
        longest = max(job.seconds for job in jobs)
        more = (_bound(evidence, step, each) or 0.0) - (_bound(evidence, step, now) or 0.0)
        factor = 1 + more / longest if longest else 1.0
        saved.append(found.scored() - found.scored(job.comes + job.seconds * factor for job in jobs))
    return Prediction(str(int(each)), saved)


def graphs(row: Row, evidence: Evidence) -> Prediction | None:
    """CUDA graphs: what the engine needs beyond reading weights, keys and values is mostly the starting of kernels."""
    at_once = min(evidence.number("rollout.max_num_seqs") or math.inf, _each(evidence) or _MANY)
    saved = []
    for step in evidence.steps:
        found = rollout(step)
        if found is None:
            return None
        begin = min(span.start for spans in found.requests.values() for span in spans)
        longest = max(job.seconds for spans in found.requests.values() for job in alone(spans, int(at_once)))
        bound = _bound(evidence, step, at_once)
        kept = _ASSUMED if bound is None else min(bound / longest, 1.0) if longest else 1.0
        generated = (begin + (end - begin) * kept for end in found.ended)
        saved.append(found.scored() - found.scored(generated))
    return Prediction(row.to, saved)


def _each(evidence: Evidence) -> float | None:
    """Responses that an engine gets in a step."""
    batch = evidence.config.whole(BATCH)
    engines = max(1, evidence.gpus // (evidence.config.whole(TENSOR) or 1))
    return float(-(-batch * (evidence.config.whole(N) or 1) // engines)) if batch else None


def _bound(evidence: Evidence, step: StepTime, sequences: float) -> float | None:
    """Seconds that the longest response takes at least, with so many others next to it."""
    figures = evidence.figures.get(step.step, {})
    longest = figures.get("response_length/max")
    if longest is None or evidence.model is None:
        return None
    context = figures.get("prompt_length/mean", 0.0) + figures.get("response_length/mean", 0.0) / 2
    each = decoding(evidence.model, evidence.gpu, sequences, context, evidence.config.whole(TENSOR) or 1)
    return None if each is None else longest * each
