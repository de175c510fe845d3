"""The stages of a step, and the stage of each of veRL's timers and spans."""

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.core.tables import record, tables_of

ROLLOUT, TAIL, REWARD, AGENT = "rollout", "tail", "reward", "agent"
CRITIC, UPDATE, SYNC, CHECKPOINT, VALIDATION = "critic", "update", "sync", "checkpoint", "validation"
OTHER, WAITING = "other", "waiting"
MICRO_BATCHES = "micro_batches"  # a span inside the others


@dataclass(frozen=True)
class Stage:
    """A row of stages.toml."""

    words: str
    timers: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()


STAGES: Mapping[str, Stage] = {name: record(Stage, table) for name, table in tables_of(__file__).items()}
OF_TIMER = {timer: name for name, stage in STAGES.items() for timer in stage.timers}
OF_SPAN = {span: name for name, stage in STAGES.items() for span in stage.spans}
GENERATE = frozenset(STAGES[ROLLOUT].spans)


def ordered(seconds: Mapping[str, float]) -> dict[str, float]:
    """The stages that took time, in their order."""
    return {name: seconds[name] for name in STAGES if seconds.get(name, 0.0) > 0}
