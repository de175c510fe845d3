"""The metrics of one step, as steps.jsonl stores them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from launcher.metrics.scores import ScoreCounts

LARGEST_STEP = 2**31 - 1  # the largest that the series store can hold

_LARGEST_FILE = 2**62  # bytes

_WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}


@dataclass(slots=True)
class StepRecord:
    """All metrics of one training step (or of the validation before it, step 0).

    `t`: unix time when the step was read. `log_offset`: byte offset of its line in console.log, None if only veRL's
    file logger has it. `data`: floats, including nan and inf. `scores`: of the responses, if they were counted.
    """

    step: int
    t: float
    log_offset: int | None
    data: dict[str, float]
    scores: ScoreCounts | None = None

    def to_line(self) -> bytes:
        """The record as one line of steps.jsonl, newline included."""
        scores = {} if self.scores is None else {"scores": self.scores}
        return orjson.dumps(
            {"step": self.step, "t": self.t, "log_offset": self.log_offset, "data": jsonable(self.data), **scores},
            option=orjson.OPT_APPEND_NEWLINE,
        )

    @classmethod
    def from_line(cls, line: bytes) -> "StepRecord | None":
        """The record in a line of steps.jsonl; None for other lines."""
        record = parse_object(line)
        if record is None or not is_step(record.get("step")):
            return None
        t, offset = record.get("t"), record.get("log_offset")
        return cls(
            step=record["step"],
            t=float_of(t) if isinstance(t, (int, float)) else 0.0,
            log_offset=offset if isinstance(offset, int) and 0 <= offset <= _LARGEST_FILE else None,
            data=read_metrics(record.get("data")),
            scores=ScoreCounts.read(record.get("scores")),
        )


def float_of(value: float) -> float:
    """A JSON number as a float; infinite beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_step(value: Any) -> bool:
    """Whether a value can be a step number."""
    return type(value) is int and 0 <= value <= LARGEST_STEP


def trains(data: Mapping[str, float]) -> bool:
    """Whether these are metrics of a training step, not only of a validation (step 0)."""
    return any(key.startswith(("actor/", "critic/")) for key in data)


def jsonable(data: Mapping[str, float]) -> dict[str, float | str]:
    """`data` with nan and infinities as the strings "nan", "inf", "-inf", which JSON numbers lack."""
    if math.isfinite(sum(data.values())):  # nearly every step
        return dict(data)
    return {key: value if math.isfinite(value) else str(float(value)) for key, value in data.items()}


def read_metrics(raw: Any) -> dict[str, float]:
    """The numbers of a JSON object: null becomes nan, nan and infinity as words are parsed, others are dropped."""
    if not isinstance(raw, dict):
        return {}
    if {float}.issuperset(map(type, raw.values())):  # nearly every step, of up to a hundred metrics
        return raw
    metrics: dict[str, float] = {}
    for key, value in raw.items():
        kind = type(value)
        if kind is float:
            metrics[key] = value
        elif value is None:
            metrics[key] = math.nan
        elif kind is int or kind is bool:
            metrics[key] = float_of(value)
        elif kind is str and value in _WORDS:
            metrics[key] = _WORDS[value]
    return metrics


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Parses a JSON object; None if invalid. Python's parser comes last: it accepts the bare words NaN and Infinity."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        import json

        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def parse_record(line: bytes) -> tuple[int, dict[str, float]] | None:
    """Step and metrics of a file-logger line `{"step": n, "data": {...}}`, null as nan; None for other lines."""
    record = parse_object(line)
    if record is None or not is_step(record.get("step")) or not isinstance(record.get("data"), dict):
        return None
    return record["step"], read_metrics(record["data"])
