"""Settings that could shorten a step, by the share of their stage; `try --faster` measures them."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from launcher.core.format import number
from launcher.core.tables import record, tables_of
from launcher.metrics.host import HostLoad
from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import FIELDS
from launcher.preset.settle import offers, settings_of
from launcher.record.fix import Fix, Offer, fixes_of
from launcher.record.levels import Level
from launcher.record.problem import Problem
from launcher.verl.config import BATCH, ENGINE, MINI, TENSOR, N

_TOKENS = "perf/total_num_tokens"
_TOOLS, _ROLLOUT = "timing_s/agent_loop/tool_calls/max", "rollout"
_MOST = 4  # advices that are shown


@dataclass(frozen=True)
class Row:
    """A row of advice.toml, which describes its fields."""

    id: str
    title: str
    stage: str
    fixes: tuple[Fix, ...]
    least: float = 0.1
    only: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    most: str = ""
    """The field with the maximum of the new value."""
    work: str = ""
    """The work that must exceed the value: "responses" per engine; "tokens" per GPU and step, or per "mini-batch"."""
    processes: bool = False
    """More processes on the host, which do not help if tasks wait for a core."""


@dataclass(frozen=True)
class Advice:
    """A stage with a large share of the recent steps, and settings to try against it."""

    id: str
    title: str
    stage: str
    share: float
    offers: tuple[Offer, ...]
    of: str = "the recent steps"

    @property
    def settings(self) -> tuple[str, ...]:
        """KEY=VALUE of the first thing to try; empty if it is not a setting."""
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
    tables = tables_of(__file__)[kind]
    return tuple(record(Row, row, fixes=tuple(fixes_of(row["fixes"], {}))) for row in tables)


def advise(
    stages: Sequence[Mapping[str, float]], config: EffectiveConfig | None, metrics: Mapping[str, float]
) -> tuple[Advice, ...]:
    """Advice for steps with these seconds per stage, the largest first; without values for an unknown configuration.

    `metrics`: the last step's.
    """
    whole = sum(sum(step.values()) for step in stages)
    if whole <= 0:
        return ()
    shares = {row.stage: sum(step.get(row.stage, 0.0) for step in stages) / whole for row in rows()}
    tools = metrics.get(_TOOLS, 0.0)  # of the longest-waiting response
    if _ROLLOUT in shares and tools > 0:
        waits = min(tools / max(stages[-1].get(_ROLLOUT, 0.0), tools), 1.0)
        shares |= {"tools": shares[_ROLLOUT] * waits, _ROLLOUT: shares[_ROLLOUT] * (1 - waits)}
    crowded = (host := HostLoad.of(metrics)) is not None and host.crowded
    able = [row for row in rows() if not (crowded and row.processes) and _needed(row, config, metrics.get(_TOKENS))]
    worth = sorted(able, key=lambda row: -shares[row.stage])
    return tuple(_advised(worth, shares, config))[:_MOST]


def advise_start(stages: Mapping[str, float], config: EffectiveConfig | None) -> tuple[Advice, ...]:
    """Advice for a start with these seconds per stage; without any, each stage that a setting shortens."""
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
        return not (row.only or row.where)
    engine = not config.on_cpu and config.text(ENGINE) in ("vllm", "sglang")
    if (row.only == "gpu" and config.on_cpu) or (row.only == "engine" and not engine):
        return False
    return all(config.get(FIELDS[name].key) == value for name, value in row.where.items())


def _needed(row: Row, config: EffectiveConfig | None, tokens: float | None) -> bool:
    """Whether there is more work than the setting handles at a time, so that a larger one has an effect."""
    if not row.work or config is None:
        return not row.work
    prompts = config.number(BATCH) or 1
    if row.work == "responses":
        work = prompts * (config.number(N) or 1) / max(config.gpus // (config.whole(TENSOR) or 1), 1)
    else:
        part = (config.number(MINI) or 0) / prompts if row.work == "mini-batch" else 1
        work = (tokens or 0) * part / max(config.gpus, 1)
    now = config.number(FIELDS[row.fixes[0].changes[0].key].key)
    return now is not None and work > now


def _within(row: Row, offer: Offer, config: EffectiveConfig | None) -> bool:
    """Whether the new value does not exceed the limiting field."""
    most = config.number(FIELDS[row.most].key) if config and row.most else None
    return most is None or all(edit.now <= most for edit in offer.edits)
