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

from launcher.core.tables import read_tables
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
TABLES = read_tables(Path(__file__).with_suffix(".toml"))  # what some need; trainers and rollouts


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
        settings = (f"algorithm={algorithm}", *GROUP[: each.group], *TABLES["needs"].get(each.name, ()))
        yield Cell("estimator", each.name, settings)
        if each.lacks:
            yield Cell("estimator", f"{each.name}, legacy trainer", (*settings, "trainer.use_v1=false"))
    for each in losses().values():
        settings = ("algorithm=grpo", *GROUP, f"actor.loss_mode={each.name}", *TABLES["needs"].get(each.name, ()))
        yield Cell("loss", each.name, settings)
    for kind in ("trainer", "rollout"):
        yield from (Cell(kind, name, tuple(row["settings"])) for name, row in TABLES[kind].items())


def tried(cell: Cell) -> dict[str, Any]:
    """The row of a cell: `check`: the rules that refuse it; `outcome`: `runs` or veRL's message."""
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


def _modes(kind: str) -> str:
    known = TABLES[kind]
    rows = [(f"`{c.name}`", known[c.name]["meaning"], _settings(c.settings), _said(row)) for c, row in _rows(kind)]
    return table((kind, "meaning", "settings", "on the CPU"), rows)


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
    "trainers": lambda: _modes("trainer"),
    "rollouts": lambda: _modes("rollout"),
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
