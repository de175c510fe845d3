"""Values that veRL accepts but that train badly: VALUE-1 to VALUE-11. Usual ranges, and what happens outside them.

The ranges with their sources are in usual.toml.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.check.config.base import warning
from launcher.check.finding import Finding
from launcher.core.tables import read_tables, record
from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import BY_KEY
from launcher.preset.yaml_text import text_of
from launcher.verl.config import ACTOR, CRITIC, KL_IN_LOSS, KL_IN_REWARD, LOSS_MODE, MODEL

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "AdamW8bit", "_AdamW")
_RANKS = {ACTOR: f"{MODEL}.lora_rank", CRITIC: f"{CRITIC}.model.lora_rank"}
_SWITCHES = {f"{ACTOR}.kl_loss_coef": KL_IN_LOSS, "algorithm.kl_ctrl.kl_coef": KL_IN_REWARD}


@dataclass(frozen=True)
class UsualRange:
    """The values of some veRL keys that train well, as usual.toml explains them."""

    keys: tuple[str, ...]
    low: float
    high: float
    usual: tuple[float, float]
    below: str
    above: str
    source: str
    runs: str = "any"
    of: str = ""

    @property
    def words(self) -> str:
        """`1e-7 to 5e-6 for full fine-tuning`."""
        return " to ".join(dict.fromkeys(map(text_of, self.usual))) + (f" {self.of}" if self.of else "")


@dataclass(frozen=True)
class Unusual(Finding):
    """`now` is the value and what is usual, without the key: `3, above the usual 0.6 to 1.2`."""

    now: str = ""


def _adapts(config: EffectiveConfig, key: str, *, lora: bool) -> bool:
    """Whether the key is the learning rate of Adam, of a pretrained model with or without an adapter."""
    block = key.removesuffix(".optim.lr")
    return not config.on_cpu and bool(config.number(_RANKS[block])) == lora and _is_adam(config, key)


def _is_adam(config: EffectiveConfig, key: str) -> bool:
    optimizer = config.get(f"{key.removesuffix('.lr')}.optimizer", "AdamW")
    return optimizer in _ADAPTIVE and config.get(key) != 0


_RUNS: Mapping[str, Callable[[EffectiveConfig, str], bool]] = {
    "any": lambda config, key: True,
    "small model": lambda config, key: config.on_cpu and _is_adam(config, key),
    "full fine-tuning": lambda config, key: _adapts(config, key, lora=False),
    "LoRA": lambda config, key: _adapts(config, key, lora=True),
    "KL": lambda config, key: config.get(_SWITCHES[key]) is True,
    "vanilla loss": lambda config, key: config.get(LOSS_MODE, "vanilla") == "vanilla",
    "GSPO loss": lambda config, key: config.get(LOSS_MODE) == "gspo",
    "discounting": lambda config, key: bool(config.discounts),
    "critic": lambda config, key: bool(config.has_critic),
}


def unusual(config: EffectiveConfig) -> list[Unusual]:
    """The settings that nobody reports to work, each with the nearest usual value as its change."""
    return [finding for rule in RULES for finding in rule(config) if finding.change]


def _outside(config: EffectiveConfig, id: str, range_: UsualRange) -> Iterator[Unusual]:
    """The keys of a range whose values lie outside."""
    for key in range_.keys:
        value = config.number(key)
        known = config.has_critic or not key.startswith(f"{CRITIC}.")
        if value is None or range_.low <= value <= range_.high or not (known and _RUNS[range_.runs](config, key)):
            continue
        low = value < range_.low
        side, happens = ("below", range_.below) if low else ("above", range_.above)
        nearest = range_.usual[0 if low else 1]
        now = f"{text_of(int(value) if value.is_integer() else value)}, {side} the usual {range_.words}"
        change = {BY_KEY[key].name: nearest} if key in BY_KEY else None
        finding = warning(id, f"{key} is {now}: {happens}", f"set {key} to {text_of(nearest)}", [key], change)
        yield Unusual(**vars(finding), now=now)


def _rule(table: Mapping[str, Any]) -> Callable[[EffectiveConfig], Iterator[Unusual]]:
    ranges = [record(UsualRange, row) for row in table["ranges"]]

    def check(config: EffectiveConfig) -> Iterator[Unusual]:
        for range_ in ranges:
            yield from _outside(config, table["id"], range_)

    check.__doc__ = f"{table['id']}: {table['about']}"
    return check


RULES = tuple(_rule(table) for table in read_tables(Path(__file__).with_name("usual.toml"))["rules"])
