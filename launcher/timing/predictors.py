"""What a setting would save: one function per kind of cause, as advice.toml names them."""

import contextlib
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from launcher.record.spans import Span
from launcher.runs.watch.responses import dumps, read
from launcher.timing.anatomy import StepTime
from launcher.timing.evidence import Evidence, Prediction, Row
from launcher.timing.rollout import graphs, groups, more_processes, rollout, scores
from launcher.timing.stages import MICRO_BATCHES, OF_SPAN, ROLLOUT, TAIL
from launcher.verl.config import N

_TIMES = 8  # how much larger micro-batches may become at once
_NICE = (5, 10, 20, 50, 100)  # steps between two checkpoints or validations
_WORTH = 0.03  # of a step: what may remain of them
_KEPT = 0.98  # of the responses that stay whole under a shorter limit
_SPREAD = 0.15  # of the rollout: requests that end further apart than that end one by one
_DIFFER = 0.1  # of the mean tokens: below it a fit says nothing
_KINDS = {"update": 3.0, "critic": 3.0, "log-prob": 1.0, "reference": 1.0}  # products of a token, in forward passes
_LINK = 25e9  # bytes per second between GPU and host: PCIe 4.0 x16, measured


def spread(row: Row, evidence: Evidence) -> Prediction | None:
    """Work of a few processes in more: each takes its part of the time, apart from veRL's own and a hang."""
    more = more_processes(row, evidence)
    if more is None:
        return None
    saved = []
    for step, seconds in zip(evidence.steps, more.times, strict=True):
        counts = Counter(span.lane for span in step.spans if OF_SPAN.get(span.name) == row.stage)
        own = row.own * max(counts.values(), default=0)
        saved.append(max(seconds - own, 0.0) * more.saved)
    return Prediction(str(more.wanted), saved)


def less_often(row: Row, evidence: Evidence) -> Prediction | None:
    """A stage that comes every so many steps comes less often."""
    every = evidence.number(row.key)
    taken = [seconds for seconds in evidence.stage(row.stage) if seconds > 0]
    if every is None or not taken:
        return None
    once = statistics.fmean(taken)
    step = evidence.seconds - once * len(taken) / len(evidence.steps)
    wanted = next((nice for nice in _NICE if nice >= 2 * every and once / nice <= _WORTH * step), None)
    wanted = wanted or next((nice for nice in reversed(_NICE) if nice >= 2 * every), None)
    return Prediction(str(wanted), [each / every - each / wanted for each in taken]) if wanted else None


def micro(row: Row, evidence: Evidence) -> Prediction | None:
    """Larger micro-batches: what each costs apart from its tokens is paid less often."""
    now = evidence.number(row.key)
    if now is None or evidence.value(row.dynamic):
        return None
    most = now * _headroom(evidence)
    if row.mini and (mini := evidence.number(row.mini)) is not None:
        responses = mini * (evidence.config.whole(N) or 1) / evidence.gpus
        most = min(most, responses)
    wanted = int(now)
    while wanted * 2 <= most:
        wanted *= 2
    return _fewer(row, evidence, now / wanted, str(wanted)) if wanted > now else None


def budget(row: Row, evidence: Evidence) -> Prediction | None:
    """A larger token budget, as with `micro`."""
    now = evidence.number(row.key)
    if now is None or (row.dynamic and not evidence.value(row.dynamic)):
        return None
    wanted = int(now * _headroom(evidence))
    return _fewer(row, evidence, now / wanted, str(wanted)) if wanted > now else None


def _fewer(row: Row, evidence: Evidence, factor: float, value: str) -> Prediction | None:
    """Seconds saved with `factor` times as many micro-batches: each costs some seconds whatever its tokens are."""
    passes = [list(_passes(step, row.stage)) for step in evidence.steps]
    parts = [part for step in passes for each in step for part in each.parts]
    cost = _fixed_cost(parts, _per_token(row.stage, parts, evidence))
    if cost is None:
        return None
    saved = []
    for step in passes:
        fewer = [(each.count - max(math.ceil(each.count * factor), 1), _around(each)) for each in step]
        saved.append(sum(max(count, 0) * (cost + around) for count, around in fewer))
    return Prediction(value, saved)


def _passes(step: StepTime, stage: str) -> Iterator[Span]:
    """The passes of the first rank in a stage, with their micro-batches."""
    rank = next((lane for lane in step.lanes if lane.kind == "rank"), None)
    pieces = [piece for piece in (rank.pieces if rank else ()) if piece.stage == stage]
    for span in step.spans:
        if span.name == MICRO_BATCHES and rank and span.lane == f"rank_{rank.number}" and span.end is not None:
            middle = (span.start + span.end) / 2
            if any(piece.start <= middle <= piece.end for piece in pieces):
                yield span


def _around(span: Span) -> float:
    """Seconds per micro-batch for cutting the batch up and joining the results."""
    timed = [part[1] for part in span.parts if len(part) == 2]
    if not timed or span.end is None or not span.count:
        return 0.0
    return max(0.0, span.end - span.start - statistics.fmean(timed) * span.count) / span.count


def _fixed_cost(parts: Sequence[tuple[float, ...]], per_token: float | None) -> float | None:
    """Seconds of a micro-batch without tokens: by least squares where their tokens differ, otherwise by `per_token`.

    Slow outliers (a busy machine) are left out, and more tokens take no less time. None where both are missing.
    """
    pairs = [(part[0], part[1]) for part in parts if len(part) == 2]
    if len(pairs) < 8:
        return None
    limit = 4 * statistics.median(seconds for _, seconds in pairs)
    pairs = [pair for pair in pairs if pair[1] <= limit]
    tokens, seconds = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    mean, middle = statistics.fmean(seconds), statistics.fmean(tokens)
    if statistics.pstdev(tokens) >= _DIFFER * middle:
        slope = max(statistics.linear_regression(tokens, seconds).slope, 0.0)
    elif per_token is None:
        return None
    else:
        slope = per_token
    return max(mean - slope * middle, 0.0)


def _per_token(stage: str, parts: Sequence[tuple[float, ...]], evidence: Evidence) -> float | None:
    """Seconds per token in the large micro-batches of other stages, where a token costs more than its batch.

    An update takes three times a forward pass: its backward pass has twice the products.
    """
    large = 4 * statistics.fmean([part[0] for part in parts]) if parts else 0.0
    rates = []
    for other in _KINDS:
        found = [part for step in evidence.steps for span in _passes(step, other) for part in span.parts]
        times = [part[1] / part[0] for part in found if len(part) == 2 and part[0] >= large > 0]
        if other != stage and times:
            rates.append(statistics.median(times) * _KINDS[stage] / _KINDS[other])
    return min(rates, default=None)


def limit(row: Row, evidence: Evidence) -> Prediction | None:
    """A shorter limit: the step does not wait for the longest responses."""
    now = evidence.number(row.key)
    longest = max((figures.get("response_length/max", 0.0) for figures in evidence.figures.values()), default=0.0)
    quantile = _length_quantile(evidence, longest)
    if now is None or quantile is None:
        return None
    wanted = 8 * math.ceil(quantile / 8)
    if wanted > 0.75 * now or not longest:
        return None
    saved = []
    for step in evidence.steps:
        found = rollout(step)
        if found is None:
            return None
        ended = sorted(found.ended)
        spent = step.stages.get(ROLLOUT, 0.0) + step.stages.get(TAIL, 0.0)
        own = evidence.figures.get(step.step, {}).get("response_length/max", longest)
        if ended[-1] - ended[0] > _SPREAD * spent:  # a response that ends makes room: only the last ones are waited for
            whole = ended[int(_KEPT * (len(ended) - 1))]
            saved.append(found.scored() - found.scored(min(each, whole) for each in ended))
        else:  # an engine that answers a batch as a whole
            saved.append(spent * max(0.0, 1 - wanted / own) if own else 0.0)
    return Prediction(str(wanted), saved)


def _length_quantile(evidence: Evidence, longest: float) -> float | None:
    """Tokens within which most responses end, by the letters of the newest ones that the run kept."""
    found = [dump for dump in dumps(evidence.run) if dump.kind == "rollout"]
    with contextlib.suppress(OSError):
        letters = sorted(len(sample.response) for dump in found[-3:] for sample in read(dump)[0])
        if letters and letters[-1]:
            return longest * letters[int(_KEPT * (len(letters) - 1))] / letters[-1]
    return None


def share(row: Row, evidence: Evidence) -> Prediction:
    """A part of a stage, by experience: `low` and `high` say which."""
    return Prediction(row.to, evidence.stage(row.stage))


def moved(row: Row, evidence: Evidence) -> Prediction | None:
    """Bytes that would not move between GPU and host."""
    if evidence.model is None:
        return None
    seconds = evidence.model.parameters * row.bytes / evidence.gpus / _LINK
    return Prediction(row.to, [min(seconds, each) for each in evidence.stage(row.stage)])


def _headroom(evidence: Evidence) -> float:
    """How many times as large a micro-batch may become: on a GPU, as its free memory allows."""
    if evidence.config.on_cpu:
        return _TIMES
    used = max((figures.get("perf/max_memory_allocated_gb", 0.0) for figures in evidence.figures.values()), default=0.0)
    if not used or evidence.gpu_gb is None:
        return 2.0
    return min(float(_TIMES), max(1.0, evidence.gpu_gb / used))


PREDICTORS: Mapping[str, Callable[[Row, Evidence], Prediction | None]] = {
    each.__name__: each for each in (spread, scores, less_often, micro, budget, limit, share, groups, graphs, moved)
}
