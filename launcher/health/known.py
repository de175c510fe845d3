"""Facts about a run at a change of its flags, as words for the clues of rivals.toml."""

import math
from collections.abc import Mapping

from launcher.core.format import number, yaml_number
from launcher.health import keys
from launcher.health.config import RunConfig
from launcher.health.rivals import names
from launcher.verl.config import ACTOR, BATCH, MINI
from launcher.verl.usual import beyond, usual_of

_FIRST = 3  # steps averaged as the starting value


class Known:
    """Settings, and the metrics of all steps so far."""

    def __init__(self, config: RunConfig) -> None:
        self.config, self.verl = config, config.framework is None
        self.settings = {key: str(value) for key, value in config.items()}
        self.beyond: dict[str, tuple[bool, str]] = {}
        """Per setting with a usual range: whether it is the furthest above reported values, and the comparison."""
        self._words = _updates(config)
        self._compare(config)
        self._last: Mapping[str, float] = {}
        self._sums: dict[str, tuple[int, float]] = dict.fromkeys(names("early/"), (0, 0.0))
        self._most: dict[str, float] = dict.fromkeys(names("most/"), -math.inf)
        self._moved = math.nan

    def see(self, data: Mapping[str, float]) -> None:
        """Takes in the metrics of a training step."""
        moves = (_moved(data), _distance(data) - _distance(self._last))
        self._moved = max(filter(math.isfinite, (self._moved, *moves)), default=math.nan)
        self._last = data
        for key, (count, total) in self._sums.items():
            if count < _FIRST and math.isfinite(value := data.get(key, math.nan)):
                self._sums[key] = count + 1, total + value
        for key, most in self._most.items():
            if data.get(key, -math.inf) > most:
                self._most[key] = data[key]

    @property
    def words(self) -> dict[str, str]:
        """Names and values as text, without unknown ones."""
        early = {f"early/{key}": total / count for key, (count, total) in self._sums.items() if count}
        most = {f"most/{key}": value for key, value in self._most.items() if value > -math.inf}
        most |= {"moved": self._moved} if math.isfinite(self._moved) else {}
        return self._words | {name: number(value) for name, value in {**self._last, **early, **most}.items()}

    def _compare(self, config: RunConfig) -> None:
        """Compares settings with usual values and with values reported to work."""
        above: dict[str, float] = {}
        for key in names("beyond: "):
            value, range_ = config.number(key), usual_of(config, key)
            if value is None or range_ is None:
                continue
            self.beyond[key] = False, f"{key}={yaml_number(value)}, usual: {range_.words}"
            if value > range_.high and not range_.allows(value):
                above[key] = value / range_.high
                self._words[f"beyond/{key}"] = number(beyond(key, value, config))
        if above:
            furthest = max(above, key=lambda key: above[key])
            self.beyond[furthest] = True, self.beyond[furthest][1]


def _moved(data: Mapping[str, float]) -> float:
    """The KL of a step's policy updates; nan if not logged."""
    return abs(data.get(keys.PPO_KL[0], math.nan))


def _distance(data: Mapping[str, float]) -> float:
    """The KL to the reference; nan if not logged."""
    return next((data[key] for key in keys.KL if key in data), math.nan)


def _updates(config: RunConfig) -> dict[str, str]:
    """The number of policy updates per batch."""
    batch, mini, epochs = (config.number(key) for key in (BATCH, MINI, f"{ACTOR}.ppo_epochs"))
    if not batch or not mini or mini < 0:
        return {}
    return {"updates": number(math.ceil(batch / mini) * (epochs or 1))}
