"""Measures how late veRL's replay buffer notices that all rollouts of a step have finished:
docs/evidence/performance.md.

`PPO_TUI_POLL_INTERVAL=0 python campaigns/poll_interval.py` for veRL's own interval. The buffer and the plugin are the
real ones; TransferQueue is replaced by a stand-in that reports 64 finished prompts after a random time.
"""

import os
import random
import statistics
import sys
import threading
import time
from pathlib import Path

WAITS, PROMPTS, LONGEST = 64, 64, 20.0
local = threading.local()


class Answers:
    """Replaces the module `transfer_queue`."""

    def kv_list(self) -> dict[str, dict[str, dict[str, object]]]:
        """The states of a step's prompts."""
        status = "finished" if time.perf_counter() >= local.end else "running"
        prompts = {f"p{n}": {"is_prompt": True, "global_steps": 1, "status": status} for n in range(PROMPTS)}
        return {"train": {**prompts, **{f"p{n}_0": {} for n in range(PROMPTS)}}}

    def kv_clear(self, **_: object) -> None:
        """Does nothing."""


def main() -> None:
    """Prints the mean and the longest delay of WAITS waits, which run side by side."""
    sys.path.append(str(Path(__file__).parents[1] / "launcher" / "inside"))
    os.environ |= {"VERL_USE_EXTERNAL_MODULES": "ppo_tui_inside.plugin", "PPO_TUI_RUN": "experiment"}
    import verl  # noqa: F401
    from verl.trainer.ppo.v1 import replay_buffer

    replay_buffer.tq = Answers()
    chance, late = random.Random(1), list[float]()

    def wait(seconds: float) -> None:
        settings = {"trainer_mode": "sync", "trainer_config": {}, "sampler_kwargs": {}}
        buffer = replay_buffer.ReplayBuffer(**settings, max_off_policy_threshold=None, max_off_policy_strategy="drop")
        local.end = time.perf_counter() + seconds
        buffer.sample(1, "train", PROMPTS)
        late.append(time.perf_counter() - local.end)

    threads = [threading.Thread(target=wait, args=(chance.uniform(0.5, LONGEST),)) for _ in range(WAITS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    print(f"{len(late)} waits, mean {statistics.mean(late):.2f} s, longest {max(late):.2f} s")


if __name__ == "__main__":
    main()
