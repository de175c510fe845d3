"""The figures that people look at first, each with its names in order of preference."""

from typing import NamedTuple

from launcher.metrics.store import Series, SeriesStore

SCORE = ("critic/score/mean", "critic/rewards/mean")
KL = ("actor/reward_kl_penalty", "critic/kl", "actor/kl_loss")
ENTROPY = ("actor/entropy", "actor/entropy_loss")
THROUGHPUT = ("perf/throughput",)
STALENESS = ("training/off_policy/trajectory_staleness/mean",)
PPO_KL = ("actor/ppo_kl",)
CLIPPED = ("actor/pg_clipfrac",)


class Drift(NamedTuple):
    """A figure of how far the policy moves: its title, a word for it in a line of text, its names."""

    title: str
    word: str
    keys: tuple[str, ...]


FROM_REFERENCE = Drift("KL to reference", "KL", KL)
OF_RESPONSES = Drift("staleness", "staleness", STALENESS)
WITHIN_STEP = Drift("policy drift (ppo_kl)", "ppo_kl", PPO_KL)
_DRIFTS = (FROM_REFERENCE, OF_RESPONSES, WITHIN_STEP, Drift("clipped tokens", "clipped", CLIPPED))


def drift(*stores: SeriesStore) -> Drift:
    """What shows how far the policy of these runs moves: the KL to the reference, if one of them has it.

    Without a reference it is the age of the responses where they have one (asynchronous), else the drift within
    a step, else the share of clipped tokens; the last two are always 0 with one update per batch.
    """
    for found in _DRIFTS:
        logged = [series[1] for store in stores if (series := store.first_of(*found.keys))]
        if any(found is FROM_REFERENCE or _moves(series) for series in logged):
            return found
    return FROM_REFERENCE


def asynchronous(store: SeriesStore) -> bool:
    """Whether a run trained on responses of older weights."""
    found = store.first_of(*STALENESS)
    return found is not None and _moves(found[1])


def _moves(series: Series) -> bool:
    """Whether a figure was ever anything but 0."""
    span = series.span(0, series.steps[-1]) if len(series) else None
    return span is not None and (span.low != 0 or span.high != 0)
