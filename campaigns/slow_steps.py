"""Plants slowdowns in the CPU toy and measures what the first advice of `ppo-tui time` saves.

    python campaigns/slow_steps.py [NAME ...]
    python campaigns/slow_steps.py --of SLOW FIXED

Each fault is run for six steps, then for six more with the advised value; 3 minutes on two quiet cores. The second form
compares two existing runs. docs/evidence/time.md has the results.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from launcher.record.layout import RunDir, find
from launcher.timing.report import Timing

PPO_TUI = os.environ.get("PPO_TUI") or str(Path(sys.executable).parent / "ppo-tui")
FILES = Path(__file__).with_name("slow")
QUIET = ("trainer.steps=6", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=-1")
AGENT = (f"rollout.agent_loop_config_path={FILES}/slow_agent.yaml", "rollout.agent_loop=slow_agent")
FAULTS = {
    "reward": (f"reward.path={FILES}/slow_reward.py", "reward.function=compute_score"),
    "agent": (f"env.PYTHONPATH={FILES}", *AGENT),
    "update-micro": ("actor.ppo_micro_batch_size_per_gpu=1",),
    "critic-tokens": ("critic.ppo_max_token_len_per_gpu=40",),  # one response each
    "log-prob-micro": ("rollout.log_prob_micro_batch_size_per_gpu=1",),
    "validation": ("trainer.validate_every=1",),
    "tail": ("data.max_response_length=64",),
}


def run(*settings: str) -> RunDir:
    """A toy run with these settings, to its end."""
    words = [PPO_TUI, "run", "toy-cpu", *QUIET, *settings, "--force", "--detach"]
    id = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([PPO_TUI, "watch", id, "--plain"], capture_output=True, check=True)
    return find(id)


def seconds(found: RunDir) -> float:
    """The mean of the steps after the first one."""
    timing = Timing(found, whole=True)
    timing.poll(live=False)
    steps = timing.seconds()
    return statistics.fmean(value for step, value in steps.items() if step > min(steps))


def advice(found: RunDir) -> dict[str, object]:
    """What `ppo-tui time` advises."""
    words = [PPO_TUI, "time", found.id, "--json"]
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return next(iter(told["advice"]), {})  # type: ignore[no-any-return]


def report(name: str, slow: RunDir, fixed: RunDir) -> None:
    """One line: the fault, the advice, seconds per step of both, and the gain."""
    told, before, after = advice(slow), seconds(slow), seconds(fixed)
    row = {"fault": name, "advice": told.get("id"), "setting": told.get("setting"), "before": round(before, 2)}
    print(json.dumps(row | {"after": round(after, 2), "saved": round(before - after, 2)}), flush=True)


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--of"]:
        report("", find(words[1]), find(words[2]))
        return
    for name in words or FAULTS:
        slow = run(*FAULTS[name])
        setting = advice(slow).get("setting")
        if setting is None:
            print(json.dumps({"fault": name, "advice": None}), flush=True)
        else:
            report(name, slow, run(*FAULTS[name], str(setting)))


if __name__ == "__main__":
    main()
