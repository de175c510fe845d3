"""One step in parts: the work of each lane, and the step's waits at each moment.

The trainer calls stage after stage, so its timers are the critical path. Inside a stage, moments without work of any
rank (during generation: of any replica, reward function or agent loop) are waiting.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from launcher.record.spans import STEP, TRAINER, Span, within
from launcher.timing.stages import (
    AGENT,
    GENERATE,
    MICRO_BATCHES,
    OF_SPAN,
    OF_TIMER,
    OTHER,
    REWARD,
    ROLLOUT,
    TAIL,
    VALIDATION,
    WAITING,
    ordered,
)

KINDS = (TRAINER, "rank", "replica", "agent", "reward")
_TAIL = 0.25  # share of a replica's maximum requests; with fewer, and without new ones, it is the tail
_CALL = 0.01  # seconds between two calls of a reward function by one worker
_OWN_WORK = {OTHER, "data", VALIDATION}  # stages that need no rank
_ALWAYS = frozenset({ROLLOUT, TAIL, AGENT, REWARD})


class Piece(NamedTuple):
    """A stage of a lane, in unix seconds."""

    stage: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Lane:
    """A process and its work, without overlaps; `kind` is one of KINDS, `number` counts within it."""

    kind: str
    number: int
    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        return self.kind if self.kind == TRAINER else f"{self.kind} {self.number}"

    @property
    def busy(self) -> float:
        """Seconds of work in the lane."""
        return sum(piece.seconds for piece in self.pieces)


@dataclass(frozen=True)
class StepTime:
    """A step from its start to the next one's. `path` has its time in order, each moment under one stage.

    `spans`: the step's spans. `running`: not over yet; `end` is then now.
    """

    step: int
    start: float
    end: float
    running: bool
    lanes: tuple[Lane, ...]
    path: tuple[Piece, ...]
    spans: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def stages(self) -> dict[str, float]:
        """Seconds per stage on the critical path; together they are the step."""
        found: defaultdict[str, float] = defaultdict(float)
        for piece in self.path:
            found[piece.stage] += piece.seconds
        return ordered(found)

    def idle(self) -> dict[int, float]:
        """Idle share of the step per rank's GPU, without work of the rank and of its replica.

        A replica on the ranks' GPUs uses as many of them as there are ranks per replica.
        """
        ranks = [lane for lane in self.lanes if lane.kind == "rank"]
        replicas = [lane for lane in self.lanes if lane.kind == "replica"]
        found = {}
        for place, rank in enumerate(ranks):
            shared = replicas[place * len(replicas) // len(ranks)].pieces if replicas else ()
            busy = sum(end - start for start, end in _union([*rank.pieces, *shared]))
            found[rank.number] = max(0.0, 1 - busy / self.seconds) if self.seconds > 0 else 0.0
        return found


def step_times(spans: Iterable[Span], now: float | None = None) -> list[StepTime]:
    """Every step that the trainer's spans cover completely; with `now` also the running one."""
    found = list(closed(spans))
    trainer = sorted((s for s in found if s.lane == TRAINER), key=lambda span: span.start)
    begins = {s.step: s for s in trainer if s.name == STEP and s.step is not None}
    steps = sorted(begins, key=lambda step: begins[step].start)
    last = max((s.end or s.start for s in trainer), default=0.0)
    starts = [begins[step].start for step in steps]
    parts: list[list[Span]] = [[] for _ in steps]
    for span in found:
        for place in range(max(bisect_right(starts, span.start) - 1, 0), len(steps)):
            if starts[place] > (span.end or now or last):
                break
            parts[place].append(span)
    timers = [{s.name for s in part if s.lane == TRAINER} for part in parts]
    if len(steps) > 1 and set.intersection(*timers[:-1]) - timers[-1] and begins[steps[-1]].end is not None:
        steps.pop()  # a stop or an error ended its timer early
    result = []
    for place, step in enumerate(steps):
        whole = place + 1 < len(starts)
        open_ = not whole and begins[step].end is None
        if open_ and now is None:
            continue  # without an end: the run was stopped, or continues
        end = starts[place + 1] if whole else now if open_ and now is not None else last
        result.append(step_time(step, starts[place], max(end, starts[place]), open_, parts[place]))
    return result


def step_time(step: int, start: float, end: float, running: bool, spans: Sequence[Span]) -> StepTime:
    """The step between two moments, from its spans."""
    lanes = list(_lanes(spans, start, end))
    return StepTime(step, start, end, running, tuple(lanes), tuple(_path(spans, lanes, start, end)), tuple(spans))


def closed(spans: Iterable[Span]) -> Iterator[Span]:
    """Each span once: the line of its end replaces the line of its start."""
    begun: dict[tuple[str, str, float], Span] = {}
    for span in spans:
        key = span.name, span.lane, span.start
        if span.end is None:
            begun.setdefault(key, span)
            continue
        begun.pop(key, None)
        yield span
    yield from begun.values()


def _lanes(spans: Sequence[Span], start: float, end: float) -> Iterator[Lane]:
    """The lanes in the order of KINDS. Agent loop and reward processes are numbered by id."""
    grouped: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        kind, _, name = span.lane.partition("_")
        if span.name == MICRO_BATCHES:
            continue
        if kind == "process":
            kind = {REWARD: "reward", "session": "agent"}.get(span.name, "")
        if kind in KINDS:
            grouped[kind, name].append(span)
    for kind in KINDS:
        names = sorted((name for each, name in grouped if each == kind), key=lambda name: (len(name), name))
        for place, name in enumerate(names):
            own = grouped[kind, name]
            number = int(name) if kind in ("rank", "replica") and name.isdigit() else place
            if kind == TRAINER:
                pieces = list(_trainer(own, start, end))
            elif kind == "replica":
                pieces = _replica(own, start, end)
            elif kind == "rank":
                pieces = _outermost(own, start, end)
            else:
                stage = REWARD if kind == "reward" else AGENT
                pieces = [Piece(stage, *each) for each in _union(_cut(stage, own, start, end))]
            if pieces:
                yield Lane(kind, number, tuple(pieces))


def _cut(stage: str, spans: Iterable[Span], start: float, end: float) -> list[Piece]:
    """Spans as pieces between two moments; an open one ends at the second."""
    pieces = (Piece(stage, max(s.start, start), min(end if s.end is None else s.end, end)) for s in spans)
    return sorted((piece for piece in pieces if piece.end > piece.start), key=lambda piece: piece.start)


def _union(pieces: Iterable[Piece], gap: float = 0.0) -> list[tuple[float, float]]:
    """The ranges with any piece, joined over shorter gaps."""
    found: list[tuple[float, float]] = []
    for _, start, end in sorted(pieces, key=lambda piece: piece.start):
        if found and start <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _trainer(spans: Sequence[Span], start: float, end: float) -> Iterator[Piece]:
    """The timers inside the step, and `other` between them. Before responses are collected, prompts are sent."""
    timers = [piece for s in spans if s.name != STEP for piece in _cut(OF_TIMER.get(s.name, OTHER), [s], start, end)]
    at = start
    for stage, begin, until in sorted(timers, key=lambda piece: (piece.start, -piece.end)):
        if until <= at:
            continue  # inside the one before it
        if begin > at:
            yield Piece(ROLLOUT if stage == ROLLOUT else OTHER, at, begin)
        yield Piece(stage, max(begin, at), until)
        at = until
    if end > at and timers:
        yield Piece(OTHER, at, end)


def _outermost(spans: Sequence[Span], start: float, end: float) -> list[Piece]:
    """The work of a rank; a span inside another one is a part of it."""
    pieces = [piece for s in spans if s.name in OF_SPAN for piece in _cut(OF_SPAN[s.name], [s], start, end)]
    kept: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        if not kept or piece.end > kept[-1].end:
            begin = max(piece.start, kept[-1].end) if kept else piece.start
            kept.append(Piece(piece.stage, begin, piece.end))
    return kept


def _replica(spans: Sequence[Span], start: float, end: float) -> list[Piece]:
    """Generation of a replica, and the time when only its last requests are left."""
    requests = _cut(ROLLOUT, (s for s in spans if s.name in GENERATE), start, end)
    changes = sorted([(piece.start, 1) for piece in requests] + [(piece.end, -1) for piece in requests])
    most = count = 0
    for _, change in changes:
        count += change
        most = max(most, count)
    newest = max((piece.start for piece in requests), default=end)
    left, tail = 0, end
    for moment, change in changes:
        left += change
        if moment > newest and left < most * _TAIL:
            tail = moment
            break
    return [
        piece
        for begin, until in _union(requests)
        for piece in (Piece(ROLLOUT, begin, min(until, tail)), Piece(TAIL, max(begin, tail), until))
        if piece.seconds > 0
    ]


def _path(spans: Sequence[Span], lanes: Sequence[Lane], start: float, end: float) -> Iterator[Piece]:
    """The step's waits, moment by moment."""
    trainer = next((lane for lane in lanes if lane.kind == TRAINER), None)
    if trainer is None:
        return
    working: Mapping[str, list[tuple[float, float]]] = {
        stage: _union(
            (piece for lane in lanes if lane.kind == kind for piece in lane.pieces if piece.stage == stage),
            _CALL if stage == REWARD else 0.0,
        )
        for kind, stage in (("replica", ROLLOUT), ("replica", TAIL), ("reward", REWARD), ("agent", AGENT))
    }
    ranks = _union(piece for lane in lanes if lane.kind == "rank" for piece in lane.pieces)
    replicas = any(lane.kind == "replica" for lane in lanes)
    for stage, begin, until in trainer.pieces:
        if stage == ROLLOUT and replicas:
            layers = [(each, working[each]) for each in (TAIL, ROLLOUT, REWARD, AGENT)]
        elif stage not in _OWN_WORK and stage not in _ALWAYS and ranks:
            layers = [(stage, ranks)]
        else:
            yield Piece(stage, begin, until)
            continue
        yield from _layered(layers, begin, until)


def _layered(
    layers: Sequence[tuple[str, Sequence[tuple[float, float]]]], begin: float, until: float
) -> Iterator[Piece]:
    """Each moment under the first layer that covers it, otherwise under `waiting`."""
    edges = {begin, until}
    for _, stretches in layers:
        edges.update(edge for stretch in stretches for edge in stretch if begin < edge < until)
    moments = sorted(edges)
    before: Piece | None = None
    for at, following in pairwise(moments):
        middle = (at + following) / 2
        stage = next((name for name, stretches in layers if within(stretches, middle)), WAITING)
        if before is not None and before.stage == stage:
            before = Piece(stage, before.start, following)
            continue
        if before is not None:
            yield before
        before = Piece(stage, at, following)
    if before is not None:
        yield before
