"""The main metrics with their names in order of preference, and the user's pinned metrics."""

from typing import Literal, NamedTuple

from launcher.core.files import foreign, make_folder, obeyed, read_json, write_json
from launcher.core.paths import layout_file
from launcher.metrics.store import Series, SeriesStore

SCORE = ("critic/score/mean", "critic/rewards/mean")
KL = ("actor/reward_kl_penalty", "critic/kl", "actor/kl_loss")
ENTROPY = ("actor/entropy", "actor/entropy_loss")
THROUGHPUT = ("perf/throughput",)
STALENESS = ("training/off_policy/trajectory_staleness/mean",)
LENGTH = ("response_length/mean",)
GRADIENT = ("actor/grad_norm",)
PPO_KL = ("actor/ppo_kl",)
CLIPPED = ("actor/pg_clipfrac",)
MOST_PINS = 4


class Chart(NamedTuple):
    """A metric of the main charts: its title, its word in running text, its names.

    `rules`: its families of health rules. `other`: a second number next to the value (best, usual or first value,
    number of GPUs, longest response). `missing`: the replacement if a run never logs it. `proves`: the rule whose flag
    it is drawn for.
    """

    title: str
    word: str
    keys: tuple[str, ...]
    rules: tuple[str, ...]
    other: Literal["best", "usual", "start", "gpus", "longest"]
    missing: str = ""
    proves: str = ""


_OF_DRIFT = ("KL", "CLIP")
_NO_KL = "no KL logged"
FROM_REFERENCE = Chart("KL to reference", "KL", KL, _OF_DRIFT, "usual", _NO_KL)
OF_RESPONSES = Chart("staleness", "staleness", STALENESS, ("STALE", "EVICT", "WAIT"), "usual")
WITHIN_STEP = Chart("policy drift (ppo_kl)", "ppo_kl", PPO_KL, _OF_DRIFT, "usual", _NO_KL)
OF_CLIPPED = Chart("clipped tokens", "clipped", CLIPPED, _OF_DRIFT, "usual", _NO_KL)
_DRIFTS = (FROM_REFERENCE, OF_RESPONSES, WITHIN_STEP, OF_CLIPPED)
REWARD = Chart("reward", "reward", SCORE, ("REW", "SIG", "HACK", "VAL"), "best")
FEW = 4  # charts, where there is little room


def charts(*stores: SeriesStore) -> tuple[Chart, ...]:
    """The main charts of these runs, most important first; drift and the last chart depend on the logged metrics."""
    second = drift(*stores)
    stale = second is not OF_RESPONSES and any(map(asynchronous, stores))
    return (
        REWARD,
        second._replace(rules=(*second.rules, *_OF_DRIFT)) if second is OF_RESPONSES else second,
        Chart("entropy", "entropy", ENTROPY, ("ENT",), "start"),
        Chart("throughput", "throughput", THROUGHPUT, ("THR", "STALL"), "gpus"),
        Chart("response length", "length", LENGTH, ("LEN", "TRUNC"), "longest"),
        OF_RESPONSES if stale else Chart("gradient norm", "gradient", GRADIENT, ("GRAD",), "usual"),
    )


def drift(*stores: SeriesStore) -> Chart:
    """The metric for the policy's drift in these runs: the KL to the reference, if one run logs it.

    Otherwise the first of these that varies: age of the responses (asynchronous runs), drift within a step, share of
    clipped tokens. The last two are always 0 with one update per batch.
    """
    for metric in _DRIFTS:
        logged = [series[1] for store in stores if (series := store.first_of(*metric.keys))]
        if any(metric is FROM_REFERENCE or _moves(series) for series in logged):
            return metric
    return FROM_REFERENCE


def asynchronous(store: SeriesStore) -> bool:
    """Whether a run trains on responses of older weights."""
    staleness = store.first_of(*STALENESS)
    return staleness is not None and _moves(staleness[1])


def _moves(series: Series) -> bool:
    """Whether a metric was ever nonzero."""
    span = series.span(0, series.steps[-1]) if len(series) else None
    return span is not None and (span.low != 0 or span.high != 0)


def pinned() -> list[str]:
    """The pinned keys in order; empty if the file is missing, invalid or owned by another user."""
    keys = None if foreign(layout_file()) else read_json(layout_file()).get("pins")
    good = [key for key in keys if isinstance(key, str) and key] if isinstance(keys, list) else []
    return list(dict.fromkeys(good))[:MOST_PINS]


def toggle(key: str) -> bool:
    """Pins or unpins a key; beyond `MOST_PINS`, unpins the oldest. Returns whether it is pinned. Raises UserError,
    OSError.
    """
    path, keys = obeyed(layout_file()), pinned()
    now = key not in keys
    keys = [*keys, key][-MOST_PINS:] if now else [other for other in keys if other != key]
    make_folder(path.parent)
    write_json(path, {"schema": 1, "pins": keys})
    return now
