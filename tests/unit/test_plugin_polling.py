"""How often the v1 trainer's real replay buffer looks for finished rollouts."""

import pytest
from verl_process import WITH_VERL, Parent

pytestmark = WITH_VERL

# What the trainer makes, a sampler with an interval of its own, and one that sets it later; then veRL's other defaults.
SCRIPT = """
import verl, inspect
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

class Own(ReplayBuffer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs, poll_interval=5.0)

class Later(ReplayBuffer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.poll_interval = 3.0

words = dict(trainer_mode="sync", trainer_config={}, max_off_policy_threshold=None, max_off_policy_strategy="drop",
             sampler_kwargs={})
made = [kind(**words) for kind in (ReplayBuffer, ReplayBufferAsync, Own, Later)]
print([each.poll_interval for each in made], made[0].max_inflight_gen_batches, made[0].refill_fn)
"""


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        ({"PPO_TUI_RUN": "x"}, "[0.2, 0.2, 5.0, 3.0]"),
        ({"PPO_TUI_RUN": "x", "PPO_TUI_POLL_INTERVAL": "0"}, "[2.0, 2.0, 5.0, 3.0]"),
        ({"PPO_TUI_RUN": "x", "PPO_TUI_POLL_INTERVAL": "0.5"}, "[0.5, 0.5, 5.0, 3.0]"),
        ({"PPO_TUI_RUN": "x", "PPO_TUI_POLL_INTERVAL": "often"}, "[0.2, 0.2, 5.0, 3.0]"),
        ({}, "[2.0, 2.0, 5.0, 3.0]"),  # veRL without ppo-tui, or the change is not needed any more
    ],
)
def test_finished_rollouts_are_noticed_sooner(verl: Parent, env: dict[str, str], seconds: str) -> None:
    done = verl.python(SCRIPT, VERL_USE_EXTERNAL_MODULES="ppo_tui_inside.plugin", **env)
    assert done.stdout.strip().splitlines()[-1:] == [f"{seconds} 1 None"], done.stderr[-2000:]


# A veRL without the class, with another constructor, and with a shorter interval of its own.
OTHERS = """
from types import ModuleType
from ppo_tui_inside.plugin import polling

module = ModuleType("replay_buffer")
polling.look_sooner(module)

class ReplayBuffer:
    def __init__(self, mode, size=3):
        self.size = size

module.ReplayBuffer = ReplayBuffer
polling.look_sooner(module)

class Quick:
    def __init__(self, mode, poll_interval=0.05, *, size=3):
        self.seen = (poll_interval, size)

quick = ModuleType("replay_buffer")
quick.ReplayBuffer = Quick
polling.look_sooner(quick)
print(ReplayBuffer(1).size, Quick(1).seen)
"""


def test_other_versions_stay_as_they_are(verl: Parent) -> None:
    done = verl.python(OTHERS, VERL_USE_EXTERNAL_MODULES="ppo_tui_inside.plugin", PPO_TUI_RUN="x")
    assert done.stdout.strip().splitlines()[-1:] == ["3 (0.05, 3)"], done.stderr[-2000:]
