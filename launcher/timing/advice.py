"""Settings that could shorten a step, by the share of the stage that each is about; `try --faster` measures them."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from launcher.core.format import number
from launcher.core.tables import read_tables, record
from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import FIELDS
from launcher.preset.settle import offers, settings_of
from launcher.record.fix import Fix, Offer, fixes_of
from launcher.record.levels import Level
from launcher.record.problem import Problem
from launcher.verl.config import BATCH, ENGINE, TENSOR, N

_SEQUENCES = "actor_rollout_ref.rollout.max_num_seqs"
_MOST = 4  # advices that are shown


@dataclass(frozen=True)
class Row:
    """A row of advice.toml, where its fields are described."""

    id: str
    title: str
    stage: str
    fixes: tuple[Fix, ...]
    least: float = 0.1
    only: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    waves: bool = False
    """More responses per engine than it takes at a time."""
    most: str = ""
    """The field whose value the new one may not exceed."""
    budget: str = ""
    """The field with tokens per GPU that a step, or its mini-batches of `part` prompts, must have more of."""
    part: str = ""
    processes: bool = False
    """More processes on the host, which do not help where tasks wait for a core."""


@dataclass(frozen=True)
class Advice:
    """A stage that takes a large share of the recent steps, and what to try against it."""

    id: str
    title: str
    stage: str
    share: float
    offers: tuple[Offer, ...]
    of: str = "the recent steps"

    @property
    def settings(self) -> tuple[str, ...]:
        """KEY=VALUE of the first thing to try; empty where it is not a setting."""
        return settings_of(self.offers[0].edits)

    @property
    def problem(self) -> Problem:
        """The advice in the form of all problems."""
        share = f"{number(100 * self.share, 2)} % of {self.of}"
        return Problem("slow step", self.id, Level.NOTICE, self.title, share, offers=self.offers)

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        edits = self.offers[0].edits
        told = {"id": self.id, "cause": self.title, "stage": self.stage, "share": round(self.share, 4)}
        told |= {"do": self.offers[0].text, "setting": " ".join(self.settings) or None}
        return told | {"now": edits[0].before if edits else None}


@functools.cache
def rows(kind: str = "advice") -> tuple[Row, ...]:
    """All rows of advice.toml about steps, or about the "start"."""
    tables = read_tables(Path(__file__).with_suffix(".toml"))[kind]
    return tuple(record(Row, row, fixes=tuple(fixes_of(row["fixes"], {}))) for row in tables)


def advise(
    stages: Sequence[Mapping[str, float]],
    config: EffectiveConfig | None,
    tokens: float | None = None,
    *,
    crowded: bool = False,
) -> tuple[Advice, ...]:
    """What could shorten steps with these seconds per stage, the largest first; no values without a configuration.

    `tokens` are those that a step trains on. `crowded`: tasks wait for a core of the host.
    """
    whole = sum(sum(step.values()) for step in stages)
    if whole <= 0:
        return ()
    shares = {row.stage: sum(step.get(row.stage, 0.0) for step in stages) / whole for row in rows()}
    able = [row for row in rows() if not (crowded and row.processes) and _exceeded(row, config, tokens)]
    worth = sorted(able, key=lambda row: -shares[row.stage])
    return tuple(_advised(worth, shares, config))[:_MOST]


def advise_start(stages: Mapping[str, float], config: EffectiveConfig | None) -> tuple[Advice, ...]:
    """What could shorten a start with these seconds per stage; without any, each stage that a setting shortens."""
    whole = sum(stages.values())
    shares = {stage: seconds / whole for stage, seconds in stages.items()} if whole else {}
    shares |= {"engine": shares.get("engine", 0.0) + shares.get("graphs", 0.0)} if shares else {}
    found = _advised(rows("start"), shares or {row.stage: 1.0 for row in rows("start")}, config)
    return tuple(replace(each, of="the start") for each in found)


def _advised(worth: Sequence[Row], shares: Mapping[str, float], config: EffectiveConfig | None) -> Iterator[Advice]:
    for row in worth:
        if (share := shares.get(row.stage, 0.0)) >= row.least and _applies(row, config):
            found = [offer for offer in offers(row.fixes, config) if _within(row, offer, config)]
            if found:
                yield Advice(row.id, row.title, row.stage, share, tuple(found))


def _applies(row: Row, config: EffectiveConfig | None) -> bool:
    if config is None:
        return not (row.only or row.where or row.waves)
    engine = not config.on_cpu and config.text(ENGINE) in ("vllm", "sglang")
    if (row.only == "gpu" and config.on_cpu) or (row.only == "engine" and not engine):
        return False
    if row.waves:
        engines = max(config.gpus // (config.whole(TENSOR) or 1), 1)
        responses = (config.whole(BATCH) or 0) * (config.whole(N) or 1) / engines
        return responses > (config.whole(_SEQUENCES) or responses)
    return all(config.get(FIELDS[name].key) == value for name, value in row.where.items())


def _exceeded(row: Row, config: EffectiveConfig | None, tokens: float | None) -> bool:
    """Whether there are more tokens than the budget, so that a larger one changes something."""
    if not row.budget or config is None:
        return not row.budget
    if row.part:
        tokens = (tokens or 0) * (config.number(FIELDS[row.part].key) or 0) / (config.number(BATCH) or 1)
    budget = config.number(FIELDS[row.budget].key)
    return budget is not None and (tokens or 0) / max(config.gpus, 1) > budget


def _within(row: Row, offer: Offer, config: EffectiveConfig | None) -> bool:
    """Whether the new value does not exceed the field that limits it."""
    most = config.number(FIELDS[row.most].key) if config and row.most else None
    return most is None or all(edit.now <= most for edit in offer.edits)
