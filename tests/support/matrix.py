"""`make matrix`: every estimator, every loss with GRPO and every trainer for three steps on the CPU toy, through the
product; docs/algorithms.md is written from it. About a minute and a half a run on two cores.

A run that the preflight refuses is not started: its rule and reason stand in the table. `ARGS=rloo` runs some.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from launcher.algorithms import ESTIMATORS, LOSSES

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"
PPO_TUI = Path(sys.executable).parent / "ppo-tui"
SHORT = ("trainer.steps=3", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=-1")
GROUP = ("rollout.n=4",)
NEEDS = {
    "optimal_token_baseline": ("actor_rollout_ref.actor.calculate_sum_pi_squared=true",),
    "tir_optimal_token_baseline": ("actor_rollout_ref.actor.calculate_sum_pi_squared=true",),
    "gspo": ("actor.clip_ratio_low=3e-4", "actor.clip_ratio_high=4e-4"),
    "bypass_mode": ("correction.bypass_mode=true",),
    "remax": ("trainer.use_v1=false",),
    "dro": ("actor_rollout_ref.actor.policy_loss.dro_beta=0.1",),
}


class Cell(NamedTuple):
    """What one run trains, and the settings that it takes."""

    kind: str
    name: str
    settings: tuple[str, ...]


def cells() -> list[Cell]:
    """Estimators with the newest trainer, losses with GRPO, trainers with PPO."""
    found = []
    for each in ESTIMATORS.values():
        name = "ppo" if each.name == "gae" else each.name
        found.append(
            Cell("estimator", each.name, (f"algorithm={name}", *GROUP[: each.group], *NEEDS.get(each.name, ())))
        )
    for each in LOSSES.values():
        settings = ("algorithm=grpo", *GROUP, f"actor.loss_mode={each.name}", *NEEDS.get(each.name, ()))
        found.append(Cell("loss", each.name, settings))
    for name, settings in (
        ("sync", ()),
        ("colocate_async", ("trainer.v1.trainer_mode=colocate_async",)),
        ("separate_async", ("trainer.v1.trainer_mode=separate_async",)),
        ("legacy", ("trainer.use_v1=false",)),
    ):
        found.append(Cell("trainer", name, settings))
    return found


def tried(cell: Cell) -> str:
    """`runs`, or why not: a rule of the preflight, or the diagnosis of the run."""
    words = ["run", "toy-cpu", *cell.settings, *SHORT, "--plain", "--json"]
    done = subprocess.run([PPO_TUI, *words], capture_output=True, text=True, check=False)
    if not done.stdout:
        refused = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith("x error")]
        return (
            f"refused: {refused[0].removeprefix('x error ')}" if refused else f"refused: {done.stderr.strip()[-200:]}"
        )
    run = json.loads(done.stdout.splitlines()[0])["run"]
    status = json.loads(_said("status", run))
    if status["state"] == "finished" and status["step"] == 3:
        return "runs"
    cause = json.loads(_said("diagnose", run))
    evidence = cause["evidence"][0]["text"] if cause["evidence"] else ""
    return f"{status['state']} at step {status['step']}: {cause['title']} `{evidence[:160]}`"


def _said(command: str, run: str) -> str:
    return subprocess.run([PPO_TUI, command, run, "--json"], capture_output=True, text=True, check=True).stdout


def main() -> None:
    wanted = set(sys.argv[1:])
    known = json.loads(PAGE.with_suffix(".json").read_text()) if PAGE.with_suffix(".json").exists() else {}
    for cell in cells():
        if not wanted or cell.name in wanted:
            known[f"{cell.kind} {cell.name}"] = outcome = tried(cell)
            print(f"{cell.kind:10} {cell.name:30} {outcome}", flush=True)
    print(json.dumps(known))


if __name__ == "__main__":
    main()
