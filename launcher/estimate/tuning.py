"""Chooses the next probe of `tune` by the memory estimate and earlier measurements: settings of memory and speed.

A point has a power of two for all micro-batches (or token budgets) of the preset, the engine's share of GPU memory, and
the offloaded parts. The search starts at a point that fits by the estimate, then moves from the best point so far.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from launcher.estimate import memory
from launcher.estimate.sizing import PlacedConfig
from launcher.preset.flow import Passes, flow
from launcher.preset.schema import FIELDS
from launcher.verl.config import UTILISATION

SHARE = "rollout.gpu_memory_utilization"
_STEP, _LEAST, _MOST = 0.1, 0.1, 0.9  # shares of GPU memory for the engine
_FAR = 6  # powers of two from the preset, up or down
_BOLD = 2  # powers of two above the preset in the first probe
_SAME = 0.02  # relative: a gain that two equal runs may differ by
_FULL = 0.97  # share of a GPU's memory; a later step may need the remaining part
_TOKENS, _MICRO = "ppo_max_token_len_per_gpu", "ppo_micro_batch_size_per_gpu"
_LOG_PROB_TOKENS, _LOG_PROB = "log_prob_max_token_len_per_gpu", "log_prob_micro_batch_size_per_gpu"
_OFFLOADS = ((), ("optimizer_offload",), ("param_offload", "optimizer_offload"))


@dataclass(frozen=True)
class Point:
    """`batch`: power of two on the preset's micro-batches. `offload`: an index (nothing, Adam, weights and Adam)."""

    batch: int = 0
    share: float | None = None
    offload: int = 0


class Peak(NamedTuple):
    """Peak memory of one GPU in bytes, the GPU's size, and the peak without torch's cache."""

    used: int
    total: int | None
    needed: int


@dataclass(frozen=True)
class Measured:
    """The result of a probe: tokens per second and GPU, and its peak memory.

    `failed`: why it has no result. `memory`: it ran out of memory. `length`: mean response in tokens.
    """

    point: Point
    run: str
    tokens: float | None = None
    peak: Peak | None = None
    length: float | None = None
    failed: str | None = None
    memory: bool = False

    @property
    def usable(self) -> bool:
        """Whether the result is valid."""
        peak = self.peak
        full = peak is not None and peak.total is not None and peak.needed > _FULL * peak.total
        return self.tokens is not None and not full


class Space:
    """The possible points of a preset on one machine."""

    def __init__(self, subject: PlacedConfig) -> None:
        self.subject, self.flow = subject, flow(subject)
        found = memory.estimate(subject)
        engine = found is not None and found.plan.utilisation is not None and found.plan.kv_cache is None
        share = subject.number(UTILISATION) if engine else None
        self.names = ("actor", "critic") if subject.has_critic else ("actor",)
        on = [key for key in _OFFLOADS[-1] if subject.get(FIELDS[f"actor.{key}"].key)]
        self.origin = Point(0, share, 2 if "param_offload" in on else len(on))

    def change(self, point: Point) -> Mapping[str, Any]:
        """The preset fields of a point that differ from the preset."""
        wanted: dict[str, object] = dict(self._batches(point.batch)) if point.batch else {}
        if point.share is not None and point.share != self.origin.share:
            wanted[SHARE] = point.share
        if point.offload != self.origin.offload:
            on = _OFFLOADS[point.offload]
            wanted |= {f"{name}.{key}": key in on for name in self.names for key in _OFFLOADS[-1]}
        return {name: value for name, value in wanted.items() if value != self.subject.get(FIELDS[name].key)}

    def first(self) -> Point:
        """The first point, where everything likely fits: least offloading, then largest batches, then the share."""
        for offload, batch in product(range(len(_OFFLOADS)), range(_BOLD, -_FAR - 1, -1)):
            point = Point(batch, self.origin.share, offload)
            if not self._possible(point) or not self._fits(point):
                continue
            while (more := self._shifted(point, 1)) is not None and self._fits(more):
                point = more
            return point
        return self.origin

    def next(self, probes: Sequence[Measured]) -> Point | None:
        """The next point to probe; None if no move is left. The second one is the unchanged preset."""
        if not probes:
            return self.first()
        tried = [self.change(each.point) for each in probes]
        if len(probes) == 1 and self._possible(self.origin) and {} not in tried:
            return self.origin
        best = best_of(probes)
        moves = self._up(best.point) if best else self._down(probes[0].point if len(probes) < 3 else probes[-1].point)
        return next((each for each in moves if self._possible(each) and self.change(each) not in tried), None)

    def _up(self, point: Point) -> Iterator[Point]:
        """Moves that may be faster."""
        yield Point(point.batch + 1, point.share, point.offload)
        if more := self._shifted(point, 1):
            yield more
        if point.offload:
            yield Point(point.batch, point.share, point.offload - 1)
        yield Point(point.batch - 1, point.share, point.offload)

    def _down(self, point: Point) -> Iterator[Point]:
        """Moves that need less memory."""
        yield Point(point.batch - 1, point.share, point.offload)
        if less := self._shifted(point, -1):
            yield less
        if point.offload + 1 < len(_OFFLOADS):
            yield Point(point.batch, point.share, point.offload + 1)

    def _shifted(self, point: Point, steps: int) -> Point | None:
        share = None if point.share is None else round(point.share + steps * _STEP, 2)
        return None if share is None or not _LEAST <= share <= _MOST else Point(point.batch, share, point.offload)

    def _possible(self, point: Point) -> bool:
        """Whether a point changes the preset as intended, and does not certainly run out of memory."""
        closer = point.batch - 1 if point.batch > 0 else point.batch + 1
        if abs(point.batch) > _FAR or (point.batch and self._batches(point.batch) == self._batches(closer)):
            return False
        found = memory.estimate(self.subject.with_fields(self.change(point)))
        total = found.gpu_total if found else None
        return found is None or total is None or all(phase.gpu <= total for phase in found.phases)

    def _fits(self, point: Point) -> bool:
        """Whether every phase likely fits; without an estimate, only the unchanged preset fits."""
        found = memory.estimate(self.subject.with_fields(self.change(point)))
        if found is None or found.gpu_total is None or not found.phases:
            return point == self.origin
        return all(phase.gpu_high <= found.gpu_total for phase in found.phases)

    def _batches(self, power: int) -> dict[str, int]:
        """Micro-batches or token budgets, each within its limits; a budget beyond all tokens counts as all."""
        sizes = {}
        for field, rows, tokens in self._limits():
            size = self.subject.get(FIELDS[field].key) or tokens
            if not isinstance(size, int):
                continue
            if not tokens:
                wanted = max(1, min(int(size * 2.0**power), rows))  # micro-batches must come out even
                sizes[field] = next(each for each in range(wanted, 0, -1) if rows % each == 0)
                continue
            most = rows * self.flow.longest
            wanted = max(self.flow.longest, min(int(min(size, most) * 2.0**power), most))
            if wanted != min(size, most):
                sizes[field] = wanted
        return sizes

    def _limits(self) -> Iterator[tuple[str, int, int | None]]:
        """The batch-size fields that veRL reads from this preset, each with its maximum number of responses and, if
        sized by tokens, the current budget. From veRL 0.8 on the critic's batches are always sized by tokens.
        """
        for name in self.names:
            passes = self.flow.critic if name == "critic" and self.flow.critic else self.flow.actor
            yield f"{name}.{_TOKENS if passes.tokens else _MICRO}", _rows(passes), passes.tokens
        other = self.flow.log_probs
        for name in ("rollout", "ref"):
            yield f"{name}.{_LOG_PROB_TOKENS if other.tokens else _LOG_PROB}", _rows(other), other.tokens


def best_of(probes: Sequence[Measured]) -> Measured | None:
    """The fastest usable probe; the first among equals."""
    fastest = max((each.tokens or 0.0 for each in probes if each.usable), default=0.0)
    return next((each for each in probes if each.usable and (each.tokens or 0.0) >= fastest * (1 - _SAME)), None)


def _rows(passes: Passes) -> int:
    return max(1, int(passes.per_gpu))
