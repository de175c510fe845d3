"""`make matrix`: every estimator, every loss with GRPO, every trainer and every recipe for three steps on the CPU toy,
through the product. Results are stored in tests/data/matrix.json one by one; `make pages` puts them into
docs/reference/algorithms.md.

PYTHONPATH=tools python campaigns/matrix.py [-j RUNS] [--again] [NAME ...]

Two minutes a run on two cores; `-j` runs several side by side, which takes 2 GB of memory and two cores each. Existing
rows are run again only with `--again`. Presets that the preflight refuses are forced, to confirm that veRL cannot run
them. campaigns/cpu-host runs all of it in minutes on a larger host.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from page_words import table

from launcher.preset.files import recipe_about, recipes
from launcher.record.layout import RunDir
from launcher.record.state import ALIVE, current
from launcher.runs.act.stop import stop
from launcher.verl.algorithms import Algorithm, estimators, losses

ROOT = Path(__file__).parents[1]
RESULTS = Path(os.environ.get("MATRIX") or ROOT / "tests" / "data" / "matrix.json")
PPO_TUI = os.environ.get("PPO_TUI") or str(Path(sys.executable).parent / "ppo-tui")
PATIENCE = float(os.environ.get("MATRIX_PATIENCE") or 1800)  # seconds, then a run hangs
SHORT = ("trainer.steps=3", "trainer.validate_first=false", "trainer.validate_every=-1", "cluster.cpus=6")
GROUP = ("rollout.n=4",)
SQUARES = ("actor_rollout_ref.actor.calculate_sum_pi_squared=true",)
NEEDS = {
    "optimal_token_baseline": SQUARES,
    "tir_optimal_token_baseline": SQUARES,
    "gdpo": (
        "reward.path=$PPO_TUI_REWARDS/gsm8k_format.py",
        "reward.function=compute_score",
        "reward.manager=gdpo",
        "+algorithm.gdpo_reward_keys=[acc,form]",
    ),
    "dro": ("actor_rollout_ref.actor.policy_loss.dro_beta=0.1",),
    "gspo": ("actor.clip_ratio_low=3e-4", "actor.clip_ratio_high=4e-4"),
    "bypass_mode": ("correction.bypass_mode=true", "rollout.calculate_log_probs=true"),
}
SEPARATE = (
    "trainer.v1.trainer_mode=separate_async",
    "trainer.v1.separate_async.parameter_sync_step=2",
    "actor_rollout_ref.rollout.n_gpus_per_node=1",
    "actor_rollout_ref.rollout.nnodes=1",
    "actor_rollout_ref.rollout.checkpoint_engine.backend=gloo",
    "cluster.cpus=12",
)
TRAINERS = {
    "sync": ((), "rollouts, then the update"),
    "colocate_async": (
        ("trainer.mode=colocate_async",),
        "rollouts of the next batch are requested ahead and pause during the update, on the same GPUs",
    ),
    "separate_async": (SEPARATE, "rollouts on GPUs of their own"),
    "legacy": (("trainer.use_v1=false",), "the legacy trainer (veRL 0.8 and older)"),
}


TOOLS = (
    "rollout.agent_loop=tool_agent",
    "rollout.function_tool_path=$PPO_TUI_TOOLS/toy_check.py",
    "rollout.tool_format=toy",
    "rollout.max_assistant_turns=2",
    "data.max_response_length=32",
)
WEIGHED = ("rollout.calculate_log_probs=true", "correction.rollout_is=token", "correction.rollout_is_threshold=2.0")
REJECTING = (
    "rollout.calculate_log_probs=true",
    "correction.rollout_rs=token_k1",
    "correction.rollout_rs_threshold=0.5_2.0",
)
ROLLOUTS = {
    "several turns with a tool": (TOOLS, "each answer calls a tool, whose result the model answers again"),
    "weighed": (WEIGHED, "truncated importance weights for the difference between engine and trainer"),
    "rejecting": (REJECTING, "tokens whose probability differs too much between engine and trainer are not learned"),
}


class Cell(NamedTuple):
    """The subject of one run, and its settings."""

    kind: str
    name: str
    settings: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.kind} {self.name}"


def cells() -> Iterator[Cell]:
    """Estimators with the v1 trainer, losses with GRPO, trainers with PPO, recipes as they are."""
    for name in recipes():
        yield Cell("recipe", name, (f"recipe={name}",))
    for each in estimators().values():
        algorithm = "ppo" if each.name == "gae" else each.name
        settings = (f"algorithm={algorithm}", *GROUP[: each.group], *NEEDS.get(each.name, ()))
        yield Cell("estimator", each.name, settings)
        if each.lacks:
            yield Cell("estimator", f"{each.name}, legacy trainer", (*settings, "trainer.use_v1=false"))
    for each in losses().values():
        settings = ("algorithm=grpo", *GROUP, f"actor.loss_mode={each.name}", *NEEDS.get(each.name, ()))
        yield Cell("loss", each.name, settings)
    for name, (settings, _) in TRAINERS.items():
        yield Cell("trainer", name, settings)
    for name, (settings, _) in ROLLOUTS.items():
        yield Cell("rollout", name, settings)


def tried(cell: Cell) -> dict[str, Any]:
    """The row of a cell: `check` names the rules that refuse it, `outcome` is `runs` or veRL's message."""
    begin, check = time.monotonic(), ""
    words = [PPO_TUI, "run", "toy-cpu", *SHORT, *cell.settings, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout:
        said = [line.split()[1].rstrip(":") for line in done.stderr.splitlines() if line.strip().startswith("error ")]
        check = ", ".join(dict.fromkeys(said)) or done.stderr.strip()[-200:]
        done = subprocess.run([*words, "--force"], capture_output=True, text=True, check=False)
    if done.stdout:
        outcome = _outcome(RunDir(Path(json.loads(done.stdout.splitlines()[0])["dir"])))
    else:
        outcome = done.stderr.strip()[-200:]
    seconds = round(time.monotonic() - begin)
    return {"settings": list(cell.settings), "check": check, "outcome": outcome, "seconds": seconds}


def _outcome(run: RunDir) -> str:
    begin = time.monotonic()
    while (state := current(run)).state in ALIVE:
        if time.monotonic() - begin > PATIENCE:
            stop(run, wait=True)
            return f"hangs in step {(current(run).step or 0) + 1}"
        time.sleep(1)
    if state.state == "finished" and state.step == 3:
        return "runs"
    done = subprocess.run([PPO_TUI, "diagnose", run.id, "--json"], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    evidence = (found.get("evidence") or [{"text": found.get("title", "")}])[0]["text"].strip()
    return f"{state.state} in step {(state.step or 0) + 1}: {evidence[:160]}"


def run(wanted: Sequence[Cell], jobs: int) -> None:
    """Runs the cells, several side by side, and stores each result at once."""
    known, lock = read(), threading.Lock()
    subprocess.run([PPO_TUI, "data", "toy"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def one(cell: Cell) -> None:
        found = tried(cell)
        with lock:
            known[cell.key] = found
            RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
            print(f"{cell.key:42} {found['seconds']:4} s  {found['check']:8} {found['outcome']}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, wanted))


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def _rows(kind: str) -> list[tuple[Cell, Any]]:
    known = read()
    return [(cell, known.get(cell.key)) for cell in cells() if cell.kind == kind]


def _recipes() -> str:
    rows = [(f"`{cell.name}`", recipe_about(cell.name).rstrip("."), _said(row)) for cell, row in _rows("recipe")]
    return table(("recipe", "meaning", "on the CPU"), rows)


def _modes(kind: str, known: dict[str, tuple[tuple[str, ...], str]], rows: Sequence[tuple[Cell, Any]]) -> str:
    return table(
        (kind, "meaning", "settings", "on the CPU"),
        [(f"`{cell.name}`", known[cell.name][1], _settings(cell.settings), _said(row)) for cell, row in rows],
    )


def _algorithms(rows: Sequence[tuple[Cell, Any]], known: dict[str, Algorithm]) -> str:
    head = ("name", "meaning", "arXiv", "veRL", "further settings", "on the CPU")
    return table(
        head,
        [
            (
                f"`{_bare(cell)}`{_trainer(cell)}",
                known[_bare(cell)].meaning,
                f"[{known[_bare(cell)].paper}](https://arxiv.org/abs/{known[_bare(cell)].paper})",
                known[_bare(cell)].since,
                _settings([each for each in cell.settings if not each.startswith(("algorithm=", "actor.loss_mode="))]),
                _said(row),
            )
            for cell, row in rows
        ],
    )


def _bare(cell: Cell) -> str:
    return cell.name.partition(",")[0]


def _trainer(cell: Cell) -> str:
    return ", legacy trainer" if cell.name != _bare(cell) else ""


def _settings(settings: Sequence[str]) -> str:
    return " ".join(f"`{each}`" for each in settings)


def _said(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not run"
    if row["outcome"] == "runs":
        return f"runs, but {row['check']} refuses it" if row["check"] else "runs"
    outcome = row["outcome"].replace("|", "\\|").replace("\n", " ")
    return f"refused by {row['check']}; veRL: {outcome}" if row["check"] else outcome


PARTS: dict[str, Callable[[], str]] = {
    "recipes": _recipes,
    "estimators": lambda: _algorithms(_rows("estimator"), estimators()),
    "losses": lambda: _algorithms(_rows("loss"), losses()),
    "trainers": lambda: _modes("trainer", TRAINERS, _rows("trainer")),
    "rollouts": lambda: _modes("rollout", ROLLOUTS, _rows("rollout")),
}
"""The tables of docs/reference/algorithms.md."""


def main() -> None:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("names", nargs="*", help="kinds or names; default: all")
    reader.add_argument("-j", "--jobs", type=int, default=1)
    reader.add_argument("--again", action="store_true", help="also run rows that exist")
    args = reader.parse_args()
    chosen = [cell for cell in cells() if not args.names or {cell.kind, _bare(cell)} & set(args.names)]
    done = read()
    run([cell for cell in chosen if args.again or cell.key not in done], args.jobs)


if __name__ == "__main__":
    main()
