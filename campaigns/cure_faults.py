"""The faults that `make cure` plants in the CPU toy, and the file of its results."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = Path(os.environ.get("CURE") or ROOT / "tests" / "data" / "cure.json")
REWARDS = ROOT / "campaigns" / "cpu-host" / "rewards.py"
FORK, STEPS, MOST = 24, 14, 4  # the step at which a fault is planted, the steps with it, the number of tried fixes
EARLY, SAVE = 8, 8  # the step at which a fault is planted that only harms what still learns; steps between checkpoints
HEALTHY = "healthy"


def _reward(function: str) -> tuple[str, ...]:
    return (f"reward.path={REWARDS}", f"reward.function={function}")


BASES: dict[str, tuple[str, ...]] = {
    "toy": (),
    "gamed": (*_reward("long"), "kl.loss_coef=5", "data.max_response_length=16"),
}


class Fault(NamedTuple):
    """A planted fault, in strengths that are tried in turn, and the settings that undo it.

    It is planted in the healthy run `base` after step `at`, for `steps` steps.
    """

    name: str
    strengths: tuple[tuple[str, ...], ...]
    undo: tuple[str, ...] = ()
    base: str = "toy"
    at: int = FORK
    steps: int = STEPS


_MICRO = ("actor.ppo", "critic.ppo", "ref.log_prob", "rollout.log_prob")
_ONE = ("actor.ppo_mini_batch_size=1", *(f"{part}_micro_batch_size_per_gpu=1" for part in _MICRO))
FAULTS = (
    Fault("actor learning rate x300", (("actor.lr=9e-2",),), ("actor.lr",)),
    Fault("critic learning rate x100", (("critic.lr=0.1",), ("critic.lr=0.3",)), ("critic.lr",)),
    Fault("no KL, a reward to game", (("kl.loss_coef=0",),), ("kl.loss_coef",), "gamed"),
    Fault("entropy coefficient below 0", (("actor.entropy_coeff=-20",),), ("actor.entropy_coeff",), at=EARLY, steps=24),
    Fault("entropy coefficient too high", (("actor.entropy_coeff=0.3",),), ("actor.entropy_coeff",), steps=18),
    Fault("clip ratio 5, six epochs", (("actor.clip_ratio=5", "actor.ppo_epochs=6"),), ("actor.clip_ratio",)),
    Fault("temperature 3", (("rollout.temperature=3",),), ("rollout.temperature",)),
    Fault("wrong gamma", (("advantage.gamma=0.01",),), ("advantage.gamma",), at=EARLY),
    Fault("reward with the wrong sign", (_reward("negative"),), ("reward.function",)),
    Fault("constant reward", (_reward("zero"),), ("reward.function",)),
    Fault("response limit too short", (("data.max_response_length=4",),), ("data.max_response_length",)),
    Fault(
        "batch of one", (("data.train_batch_size=1", *_ONE),), ("data.train_batch_size", "actor.ppo_mini_batch_size")
    ),
)


def read() -> dict[str, Any]:
    """The results by fault."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results
