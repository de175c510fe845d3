"""Usual values of fields: the ranges of usual.toml with their sources, and those declared in a preset."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from launcher.core.format import yaml_number
from launcher.core.tables import record, tables_of
from launcher.verl.config import ACTOR, CRITIC, KL_IN_LOSS, KL_IN_REWARD, LOSS_MODE, MODEL, ROLLOUT, VerlConfig

DECLARED = "VALUE-17"
"""The finding for a range declared only in a preset."""

_ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "AdamW8bit", "_AdamW")
_RANKS = {ACTOR: f"{MODEL}.lora_rank", CRITIC: f"{CRITIC}.model.lora_rank"}
_CONTROLLER, _SAMPLES = "algorithm.kl_ctrl.type", f"{ROLLOUT}.val_kwargs.do_sample"
_SWITCHES = {f"{ACTOR}.kl_loss_coef": KL_IN_LOSS, "algorithm.kl_ctrl.kl_coef": KL_IN_REWARD}


@dataclass(frozen=True)
class UsualRange:
    """Values of some veRL keys that train well; usual.toml explains them."""

    id: str
    keys: tuple[str, ...]
    low: float
    high: float
    usual: tuple[float, float]
    below: str = ""
    above: str = ""
    source: str = ""
    runs: str = "any"
    of: str = ""
    off: tuple[float, ...] = ()
    """Values that disable the setting."""

    @property
    def words(self) -> str:
        """`1e-7 to 5e-6 for full fine-tuning`."""
        return " to ".join(dict.fromkeys(map(yaml_number, self.usual))) + (f" {self.of}" if self.of else "")

    def allows(self, value: float) -> bool:
        """Whether the value is reported to work."""
        return value in self.off or self.low <= value <= self.high


def usual_of(config: VerlConfig, key: str) -> UsualRange | None:
    """The range for a veRL key in this configuration, first the preset's own; None without one."""
    if key.startswith(f"{CRITIC}.") and not config.has_critic:
        return None
    known = BY_VERL_KEY.get(key, ())
    fitting = next((each for each in known if _RUNS[each.runs](config, key)), None)
    if key not in config.usual or (known and fitting is None):
        return fitting
    low, high = config.usual[key]
    return UsualRange(known[0].id if known else DECLARED, (key,), low, high, (low, high), of="of this preset")


def beyond(key: str, value: float, config: VerlConfig) -> float | None:
    """The ratio of a veRL key's value to its usual range: 1 within, 10 at ten times the highest, 0.1 at a tenth of the
    lowest; None for a key without a usual range in this configuration.
    """
    range_ = usual_of(config, key)
    if range_ is None:
        return None
    end = min(max(value, range_.usual[0]), range_.usual[1])
    if value == end or value in range_.off:
        return 1.0
    return value / end if end > 0 else math.copysign(math.inf, value - end)


def _trains(config: VerlConfig, key: str, *, lora: bool) -> bool:
    """Whether the key is the learning rate of Adam for a pretrained model, with or without an adapter."""
    block = key.removesuffix(".optim.lr")
    adapts = config.get(f"{block}.optim.optimizer", "AdamW") in _ADAPTIVE and config.get(key) != 0
    return adapts and bool(config.number(_RANKS[block])) == lora


_RUNS: Mapping[str, Callable[[VerlConfig, str], bool]] = {
    "any": lambda config, key: True,
    "full fine-tuning": lambda config, key: _trains(config, key, lora=False),
    "LoRA": lambda config, key: _trains(config, key, lora=True),
    "adapter": lambda config, key: bool(config.number(_RANKS[CRITIC if key.startswith(CRITIC) else ACTOR])),
    "KL": lambda config, key: bool(config.flag(_SWITCHES[key])),
    "adaptive KL": lambda config, key: bool(config.kl_in_reward) and config.get(_CONTROLLER) == "adaptive",
    "vanilla loss": lambda config, key: config.get(LOSS_MODE, "vanilla") == "vanilla",
    "GSPO loss": lambda config, key: config.get(LOSS_MODE) == "gspo",
    "discounting": lambda config, key: bool(config.discounts),
    "critic": lambda config, key: bool(config.has_critic),
    "cosine": lambda config, key: config.get(f"{key.rpartition('.')[0]}.lr_scheduler_type") == "cosine",
    "asynchronous": lambda config, key: config.trainer_mode != "sync",
    "sampled validation": lambda config, key: config.flag(_SAMPLES, False),
}

_TABLES = tables_of(__file__, "usual.toml")

RANGES = tuple(record(UsualRange, row) for row in _TABLES["ranges"])
"""In the order of their rules."""

BY_VERL_KEY: Mapping[str, tuple[UsualRange, ...]] = {
    key: tuple(each for each in RANGES if key in each.keys) for range_ in RANGES for key in range_.keys
}

WITHOUT: Mapping[str, str] = {name: row["why"] for row in _TABLES["without"] for name in row["fields"]}
"""Numeric fields without a usual range, with the reason."""
