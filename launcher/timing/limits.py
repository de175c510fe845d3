"""Tokens per second against the GPUs' limits: MFU of the updates, MBU of the rollout.

MFU (Chowdhery et al., PaLM, arXiv 2204.02311, appendix B): the model's floating-point operations over the GPUs' maximum
in that time. A token of an update takes 6 N + 12 L H Q T of them (N parameters, L layers, H heads of size Q, T tokens
of its sequence); recomputation of activations does not count.

MBU (Agarwal et al., "LLM Inference Performance Engineering", Databricks, 2023): the minimum bytes that generation reads
over the memory's maximum in that time. Each token of the longest response reads all weights once, for each group of
responses that the engine handles in turn; each token of each response reads its own keys and values.
"""

import contextlib
import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.core.errors import UserError
from launcher.core.tables import record, tables_of
from launcher.estimate.models import ModelFacts, facts, table
from launcher.timing.stages import ROLLOUT, TAIL, UPDATE

_BYTES = 2  # bytes per weight, key or value: bfloat16
VERL_MFU = "perf/mfu/actor"
FORMULAS = {
    "mfu": "update tokens x (6 N + 12 L H Q T) / (update seconds x GPUs x FLOPs of one)",
    "mbu": "(longest response x groups x weights + keys and values) / (rollout seconds x bandwidth)",
}
_COUNT = re.compile(rb"(\w+) contains (\d+\.\d\d)([KMBT]?) parameters")  # veRL's print_model_size
_CRITIC = b"TokenClassification"
_SCALE = {b"": 1.0, b"K": 1e3, b"M": 1e6, b"B": 1e9, b"T": 1e12}
_HEAD = 4 << 20  # bytes of a console in which the models are loaded


@dataclass(frozen=True)
class Gpu:
    """A row of gpus.toml."""

    match: str
    flops: float
    bandwidth: float
    source: str
    url: str


@dataclass(frozen=True)
class Limits:
    """Tokens per second of a step's parts, and their shares of the GPU's limit; None if unknown.

    `gpu`: NVML's name, "" without one. `why`: the missing facts; `mfu` may then be veRL's.
    """

    gpu: str
    rollout_tokens: float | None
    update_tokens: float | None
    mfu: float | None = None
    mbu: float | None = None
    source: str = ""
    why: str = ""


@dataclass(frozen=True)
class Size:
    """Parameters, layers, and the widths of all query heads and all key heads.

    If only the parameters are known, the others are 0: attention and its cache are left out.
    """

    parameters: int
    layers: int = 0
    query: int = 0
    kv: int = 0

    @classmethod
    def of(cls, model: ModelFacts) -> "Size":
        """The size of a known model."""
        return cls(model.parameters, model.sizes.layers, model.sizes.query, model.sizes.kv)


@functools.cache
def peak(name: str) -> Gpu | None:
    """The limits of a GPU, by name; None if the table lacks it."""
    rows = (record(Gpu, row) for row in tables_of(__file__, "gpus.toml")["gpu"])
    return next((row for row in rows if re.search(row.match, name)), None)


def limits(
    metrics: Mapping[str, float],
    stages: Mapping[str, float],
    model: Size | None,
    gpu: str,
    gpus: int | None,
    sequences: int | None,
    at_once: int | None,
    tensor_parallel: int = 1,
) -> Limits:
    """The limits for one step with these metrics and seconds by stage, on `gpus` GPUs of this name: 0 on a CPU, None if
    unknown.

    `sequences`: responses per step. `at_once`: responses that an engine handles at a time (None: all).
    """
    responses = metrics.get("response_length/mean", math.nan)
    total = metrics.get("perf/total_num_tokens", math.nan)
    generated = responses * sequences if sequences else math.nan
    rollout, update = stages.get(ROLLOUT, 0.0) + stages.get(TAIL, 0.0), stages.get(UPDATE, 0.0)
    speeds = _rate(generated, rollout), _rate(total, update)
    known = peak(gpu) if gpu else None
    nothing = "no GPU recorded" if gpus != 0 else "no GPU"
    missing = nothing if not gpu else "the GPU is not in the table" if known is None else ""
    if known is None or model is None or not gpus:
        logged = (metrics.get(VERL_MFU) or None) if gpus != 0 else None  # 0 if veRL does not support the GPU
        why = missing or ("model size not found" if gpus else "no settings recorded")
        return Limits(gpu, *speeds, mfu=logged, source=f"veRL ({VERL_MFU})" if logged else "", why=why)
    prompt = metrics.get("prompt_length/mean", 0.0)
    attention = 12 * model.layers * model.query * (prompt + responses)
    done = total * (6 * model.parameters + attention)
    mfu = _share(done, update * gpus * known.flops)
    engines = max(1, gpus // max(tensor_parallel, 1))
    groups = math.ceil((sequences or 0) / engines / at_once) if at_once else 1
    longest = metrics.get("response_length/max", math.nan)
    weights = longest * max(groups, 1) * model.parameters * _BYTES * engines
    cache = generated * (prompt + responses / 2) * 2 * model.layers * model.kv * _BYTES
    mbu = _share(weights + cache, rollout * gpus * known.bandwidth)
    return Limits(gpu, *speeds, mfu=mfu, mbu=mbu, source=known.source)


def _rate(tokens: float, seconds: float) -> float | None:
    return tokens / seconds if math.isfinite(tokens) and seconds > 0 else None


def _share(done: float, possible: float) -> float | None:
    return done / possible if math.isfinite(done) and possible > 0 else None


def size_of(path: str, console: Path | None) -> Size | None:
    """The size of a run's model `path`, from its files or this console; None without either."""
    with contextlib.suppress(OSError, UserError):
        if found := facts(path):
            return Size.of(found)
    if console is None:
        return None
    with contextlib.suppress(OSError), console.open("rb") as file:
        for name, count, scale in _COUNT.findall(file.read(_HEAD)):
            if _CRITIC not in name:
                # the model of the table that has so many parameters, otherwise no more than their number
                parameters, rounded = float(count) * _SCALE[scale], 0.005 * _SCALE[scale]
                for sizes in table().values():
                    if abs(sizes.count() - parameters) <= rounded:
                        return Size(sizes.count(), sizes.layers, sizes.query, sizes.kv)
                return Size(round(parameters))
    return None
