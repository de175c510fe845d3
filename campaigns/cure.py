"""`make cure`: plants faults in the CPU toy, waits for their flags, and tries the advised fixes.

python campaigns/cure.py [-j RUNS] [NAME ...]

Everything goes through the product: a healthy run of 24 steps (`ppo-tui run`), a fork of it with each fault (`ppo-tui
fork`), and `ppo-tui try` on what was flagged, whose trials are runs of the queue. Of several strengths of a fault the
first that is flagged is tried. Two minutes a run on two cores, so hours for all of them; campaigns/cpu-host runs 24
side by side. Results are kept in tests/data/cure.json as they come, with the day and the machine; `make pages` puts
them into docs/evidence/advice.md. With names, only these faults are run again; without names, those without a result.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cure_faults import BASES, FAULTS, FORK, HEALTHY, MOST, RESULTS, SAVE, STEPS, Fault, read

from launcher.compare.trial_runs import TrialPlan, carry_out
from launcher.compare.trial_verdicts import alarms, trials_of
from launcher.core import paths
from launcher.record.layout import RunDir, all_runs
from launcher.record.levels import Level
from launcher.record.state import current
from launcher.runs.act.stop import stop
from launcher.runs.watch.history import Onset, first_onset

PPO_TUI = os.environ.get("PPO_TUI") or str(Path(sys.executable).parent / "ppo-tui")
ATTEMPTS = 2
TAKEN = f"{time.strftime('%F')}, {os.cpu_count()} cores"
QUICK = ("trainer.validate_first=false", "trainer.validate_every=-1", "cluster.cpus=6")


class Study:
    """The results by fault, stored in a file one by one; other processes may add theirs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def keep(self, name: str, row: dict[str, Any]) -> None:
        with self._lock:
            found = read() | {name: row | {"taken": TAKEN}}
            RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
            print(f"{time.strftime('%T')} {name}: {_brief(row)}", flush=True)


def ppo_tui(*words: str) -> str:
    """The output of a command. Raises RuntimeError with its message if it fails."""
    done = subprocess.run([PPO_TUI, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-400:]}")
    return done.stdout


def begun(*words: str) -> RunDir:
    """Starts a run by a command, and returns it."""
    return RunDir(Path(json.loads(ppo_tui(*words, "--json").splitlines()[0])["dir"]))


def ended(run: RunDir) -> RunDir:
    """Waits for the end of the run, or for two steps after a CRITICAL flag; returns the run."""
    while (state := current(run, checks=False)).going:
        onset = first_onset(run)
        if onset is not None and onset.level == Level.CRITICAL and (state.step or 0) >= onset.rose + 2:
            stop(run, by="experiment: flagged", wait=True)
        time.sleep(1)
    return run


def own_home(jobs: int) -> None:
    """Lets the queue start so many runs at a time, in a private home, so that no user's settings are overwritten."""
    ours = paths.settings_file()
    if "PPO_TUI_HOME" not in os.environ or (ours.exists() and not ours.read_text().startswith("cpu_runs:")):
        sys.exit("cure.py: set PPO_TUI_HOME to an empty folder")
    ours.parent.mkdir(parents=True, exist_ok=True)
    ours.write_text(f"cpu_runs: {jobs}\n")


def conduct(wanted: Sequence[Fault], healthy: bool, jobs: int, most: int) -> None:
    """Runs the faults, several runs side by side, and stores each result at once."""
    study, begin = Study(), time.monotonic()
    own_home(jobs)
    ppo_tui("data", "toy")
    needed = sorted({fault.base for fault in wanted} | ({"toy"} if healthy else set()))
    with ThreadPoolExecutor(jobs) as pool:
        parents = dict(zip(needed, pool.map(_parent, needed), strict=True))
        forks = {
            (fault.name, place): pool.submit(_planted, parents[fault.base], strength, fault.at, fault.steps)
            for fault in wanted
            for place, strength in enumerate(fault.strengths)
        }
        well = pool.submit(_planted, parents["toy"], ()) if healthy else None
        planted = {key: run for key, each in forks.items() if (run := _without_error(each, key[0])) is not None}
        sound = well and _without_error(well, HEALTHY)
    print(f"{time.strftime('%T')} planted after {time.monotonic() - begin:.0f} s", flush=True)
    tasks: list[Callable[[], None]] = [
        lambda fault=fault: study.keep(fault.name, _tried(fault, planted, most))  # type: ignore[misc]
        for fault in wanted
    ]
    if sound is not None:
        tasks.append(lambda: study.keep(HEALTHY, _nothing_to_cure(sound, jobs)))
    with ThreadPoolExecutor(len(tasks)) as pool:  # the queue decides how many runs there are at a time
        for each in [pool.submit(task) for task in tasks]:
            _without_error(each, "")
    print(f"{time.strftime('%T')} all after {time.monotonic() - begin:.0f} s", flush=True)


def _without_error(task: Future[Any], name: str) -> Any:
    """The result of a task; a failing task must not end the others."""
    try:
        return task.result()
    except Exception as error:
        print(f"{time.strftime('%T')} {name}: {error!r}", flush=True)
        return None


def _parent(base: str) -> RunDir:
    settings = (*QUICK, f"trainer.steps={FORK}", f"trainer.save_every={SAVE}", *BASES[base])
    for _ in range(ATTEMPTS):
        whole = (each for each in all_runs() if each.read_info().overrides == settings)
        run = next((each for each in whole if current(each).state == "finished"), None)
        if run is not None:
            break
        run = ended(begun("run", "toy-cpu", *settings))
    flags = sorted(alarms(run))
    print(f"{time.strftime('%T')} {base}: {current(run).state}, flags: {' '.join(flags) or 'none'}", flush=True)
    return run


def _planted(parent: RunDir, strength: Sequence[str], at: int = FORK, count: int = STEPS) -> RunDir:
    plan = (f"trainer.steps={at + count}", "trainer.save_every=-1")
    for _ in range(ATTEMPTS):
        run = ended(begun("fork", parent.id, "--at", str(at), "--force", *plan, *strength))
        if current(run).step is not None:  # else the machine was too busy to start it
            break
    return run


def _tried(fault: Fault, planted: dict[tuple[str, int], RunDir], most: int) -> dict[str, Any]:
    """The row of a fault: its strengths with their flags, and the trials of the first flagged strength."""
    runs = [planted.get((fault.name, place)) for place in range(len(fault.strengths))]
    strengths = [
        {"settings": _shown(settings), "run": run.id, "state": current(run).state, **_flag(run), "score": _scores(run)}
        for settings, run in zip(fault.strengths, runs, strict=True)
        if run is not None
    ]
    flagged = next((_run(each["run"]) for each in strengths if each.get("rule")), None)
    row: dict[str, Any] = {"strengths": strengths, "from": fault.at}
    if flagged is None:
        return row
    for _ in range(ATTEMPTS):
        row.pop("refused", None)
        try:
            ppo_tui("try", flagged.id, "--yes", "--force", "--most", str(most), "--json")
            break
        except RuntimeError as error:
            row["refused"] = str(error)
            if "did not start" not in str(error):
                break
    return row | {"trials": _arms(flagged)}


def _nothing_to_cure(run: RunDir, jobs: int) -> dict[str, Any]:
    """For a healthy run, `try` does nothing, and trials of KL-1's advice that are made anyway change nothing."""
    row: dict[str, Any] = {
        "from": FORK,
        "run": run.id,
        "state": current(run).state,
        **_flag(run),
        "score": _scores(run),
    }
    try:
        ppo_tui("try", run.id, "--yes")
    except RuntimeError as error:
        row["refused"] = str(error)
    arms = ((), ("actor.lr=6e-5",), ("kl.loss_coef=0.005",))
    carry_out(
        TrialPlan(run, Onset("KL-1", FORK + 1, FORK + 1, Level.WARN), FORK, FORK + STEPS, arms, None, 0, jobs),
        force=True,
    )
    return row | {"trials": _arms(run)}


def _flag(run: RunDir) -> dict[str, Any]:
    """The flag that `try` chooses, the step after the fault at which it rose, and all other flags."""
    onset = first_onset(run)
    if onset is None:
        return {}
    others, origin = sorted(alarms(run) - {onset.rule}), run.read_info().parent
    begun = origin.step or 0 if origin is not None else 0
    return {"rule": onset.rule, "level": onset.level.name, "rose": onset.rose - begun, "others": others}


def _scores(run: RunDir) -> list[float]:
    from launcher.runs.watch.steps import Scores

    scores = Scores(run)
    scores.poll()
    return [round(value, 3) for value in scores.series.values]


def _arms(run: RunDir) -> list[dict[str, Any]]:
    """The trials, without those that could not start on a busy machine and were repeated."""
    found = [arm.to_json() | {"score": _scores(_run(arm.run))} for each in trials_of(run.id) for arm in each.arms]
    return [each for each in found if each["score"]]


def _run(id: str) -> RunDir:
    return RunDir(paths.runs_dir() / id)


def _shown(settings: Iterable[str]) -> list[str]:
    return [each for each in settings if not each.startswith("reward.path") and "micro_batch" not in each]


def _brief(row: dict[str, Any]) -> str:
    flags = [str(each.get("rule")) for each in row.get("strengths", [])]
    arms = [f"{' '.join(arm['changes']) or 'control run'}: {arm['verdict']}" for arm in row.get("trials", [])]
    return "; ".join([" ".join(flags), *arms, row.get("refused", "")])


def main() -> None:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("names", nargs="*", help="words of the names of faults, or 'healthy'")
    reader.add_argument("-j", "--jobs", type=int, default=1)
    reader.add_argument("--most", type=int, default=MOST, help="fixes that are tried of each flag")
    args = reader.parse_args()

    def chosen(name: str) -> bool:
        return any(word in name for word in args.names) if args.names else name not in read()

    wanted = [fault for fault in FAULTS if chosen(fault.name)]
    conduct(wanted, chosen(HEALTHY), args.jobs, args.most)


if __name__ == "__main__":
    main()
