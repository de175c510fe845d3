"""`make cure`: does the advice cure? Faults are planted in the CPU toy, flagged, and their advised fixes tried.

    python tests/support/cure.py [-j RUNS] [--again] [--page] [NAME ...]

All through the product: a healthy run of 24 steps (`ppo-tui run`), a fork of it with each fault (`ppo-tui fork`), and
`ppo-tui try` on what was flagged, whose trials are runs of the queue. Of several strengths of a fault the first that is
flagged is tried. Two minutes a run on two cores, so hours for all of them; tests/cpu-host runs 24 side by side.
Results are kept in tests/data/cure.json as they come; docs/cure.md is written from them. Faults that are there already
are not run again without `--again`.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from launcher import paths
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import current
from launcher.run.actions.stop import stop
from launcher.run.actions.trials import Plan, carry_out
from launcher.run.reading.onset import Onset, first_onset
from launcher.run.reading.trials import DIFFERENT, HEALED, REPEATED, UNTOLD, alarms, trials_of

ROOT = Path(__file__).parents[2]
RESULTS = Path(os.environ.get("CURE") or ROOT / "tests" / "data" / "cure.json")
PAGE = ROOT / "docs" / "cure.md"
PPO_TUI = os.environ.get("PPO_TUI") or str(Path(sys.executable).parent / "ppo-tui")
REWARDS = ROOT / "tests" / "cpu-host" / "rewards.py"
FORK, STEPS, MOST = 24, 14, 4  # the step at which a fault is planted, steps with it, advised fixes that are tried
QUICK = ("trainer.validate_first=false", "trainer.validate_every=-1", "cluster.cpus=6")
HEALTHY = "healthy"


def _reward(function: str) -> tuple[str, ...]:
    return (f"reward.path={REWARDS}", f"reward.function={function}")


BASES: dict[str, tuple[str, ...]] = {
    "toy": (),
    "gamed": (*_reward("long"), "kl.loss_coef=5", "data.max_response_length=16"),
}


class Fault(NamedTuple):
    """What is planted, in strengths that are tried in turn, and the settings of which one undoes it.

    `base` is the healthy run that it is planted in, `why` the reason why no advised setting can undo it.
    """

    name: str
    strengths: tuple[tuple[str, ...], ...]
    undo: tuple[str, ...] = ()
    base: str = "toy"
    why: str = ""


_ONE = ("actor.ppo_mini_batch_size=1", *(f"{part}_micro_batch_size_per_gpu=1" for part in ("actor.ppo", "critic.ppo")))
_CODE = "the reward function is wrong, which is code and no setting"
FAULTS = (
    Fault("actor learning rate x300", (("actor.lr=9e-2",),), ("actor.lr",)),
    Fault("critic learning rate x100", (("critic.lr=0.1",), ("critic.lr=0.3",)), ("critic.lr",)),
    Fault(
        "no KL, a reward to game",
        (("kl.loss_coef=0",), ("kl.loss_coef=0", "actor.lr=1e-3")),
        ("kl.loss_coef",),
        "gamed",
    ),
    Fault(
        "entropy coefficient below 0",
        (("actor.entropy_coeff=-0.2",), ("actor.entropy_coeff=-1",), ("actor.entropy_coeff=-5",)),
        ("actor.entropy_coeff",),
    ),
    Fault(
        "entropy coefficient too high",
        (("actor.entropy_coeff=0.3",), ("actor.entropy_coeff=1",)),
        ("actor.entropy_coeff",),
    ),
    Fault(
        "clip ratio 5, six epochs",
        (("actor.clip_ratio=5", "actor.ppo_epochs=6"),),
        ("actor.clip_ratio", "actor.ppo_epochs"),
    ),
    Fault("temperature 3", (("rollout.temperature=3",),), ("rollout.temperature",)),
    Fault("wrong gamma", (("advantage.gamma=0.1",), ("advantage.gamma=2",)), ("advantage.gamma",)),
    Fault("reward with the wrong sign", (_reward("negative"),), why=_CODE),
    Fault("constant reward", (_reward("zero"),), why=_CODE),
    Fault("response limit too short", (("data.max_response_length=4",),), ("data.max_response_length",)),
    Fault("batch of one", (("data.train_batch_size=1", *_ONE),), ("data.train_batch_size",)),
)


class Study:
    """The results by fault, kept in a file as they come."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self._lock = threading.Lock()

    def keep(self, name: str, row: dict[str, Any]) -> None:
        with self._lock:
            self.found[name] = row
            RESULTS.write_text(json.dumps(self.found, indent=1, sort_keys=True) + "\n")
            print(f"{time.strftime('%T')} {name}: {_brief(row)}", flush=True)


def ppo_tui(*words: str) -> str:
    """What a command prints. Raises RuntimeError with its words where it fails."""
    done = subprocess.run([PPO_TUI, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-400:]}")
    return done.stdout


def begun(*words: str) -> RunDir:
    """The run that a command starts."""
    return RunDir(Path(json.loads(ppo_tui(*words, "--json").splitlines()[0])["dir"]))


def ended(run: RunDir) -> RunDir:
    """The run, when it has come to its end, or two steps after a flag was CRITICAL."""
    while (state := current(run, checks=False)).going:
        onset = first_onset(run)
        if onset is not None and onset.level == Level.CRITICAL and (state.step or 0) >= onset.rose + 2:
            stop(run, by="cure: flagged", wait=True)
        time.sleep(1)
    return run


def own_home(jobs: int) -> None:
    """Lets the queue have so many runs at a time, in a home of ours: nobody's settings are written over."""
    ours = paths.settings_file()
    if "PPO_TUI_HOME" not in os.environ or (ours.exists() and not ours.read_text().startswith("cpu_runs:")):
        sys.exit("cure.py: set PPO_TUI_HOME to an empty folder")
    ours.parent.mkdir(parents=True, exist_ok=True)
    ours.write_text(f"cpu_runs: {jobs}\n")


def conduct(wanted: Sequence[Fault], healthy: bool, jobs: int, most: int) -> None:
    """Runs the faults, several runs side by side, and keeps each result at once."""
    study, begin = Study(), time.monotonic()
    own_home(jobs)
    ppo_tui("data", "toy")
    needed = {fault.base for fault in wanted} | ({"toy"} if healthy else set())
    with ThreadPoolExecutor(jobs) as pool:
        parents = dict(zip(needed, pool.map(_parent, needed), strict=True))
        forks = {
            (fault.name, place): pool.submit(_planted, parents[fault.base], strength)
            for fault in wanted
            for place, strength in enumerate(fault.strengths)
        }
        well = pool.submit(_planted, parents["toy"], ()) if healthy else None
        planted = {key: each.result() for key, each in forks.items()}
        sound = well.result() if well else None
    print(f"{time.strftime('%T')} planted after {time.monotonic() - begin:.0f} s", flush=True)
    tasks: list[Callable[[], None]] = [
        lambda fault=fault: study.keep(fault.name, _tried(fault, planted, most))  # type: ignore[misc]
        for fault in wanted
    ]
    if sound is not None:
        tasks.append(lambda: study.keep(HEALTHY, _nothing_to_cure(sound, jobs)))
    with ThreadPoolExecutor(len(tasks)) as pool:  # the queue decides how many runs there are at a time
        for each in [pool.submit(task) for task in tasks]:
            each.result()
    print(f"{time.strftime('%T')} all after {time.monotonic() - begin:.0f} s", flush=True)


def _parent(base: str) -> RunDir:
    run = ended(begun("run", "toy-cpu", *QUICK, f"trainer.steps={FORK}", f"trainer.save_every={FORK}", *BASES[base]))
    flags = sorted(alarms(run))
    print(f"{time.strftime('%T')} {base}: {current(run).state}, flags: {' '.join(flags) or 'none'}", flush=True)
    return run


def _planted(parent: RunDir, strength: Sequence[str]) -> RunDir:
    plan = (f"trainer.steps={FORK + STEPS}", "trainer.save_every=-1")
    return ended(begun("fork", parent.id, "--at", str(FORK), "--force", *plan, *strength))


def _tried(fault: Fault, planted: dict[tuple[str, int], RunDir], most: int) -> dict[str, Any]:
    """The row of a fault: its strengths with their flags, and the trials of the first that was flagged."""
    runs = [planted[fault.name, place] for place in range(len(fault.strengths))]
    strengths = [
        {"settings": _shown(settings), "run": run.id, "state": current(run).state, **_flag(run), "score": _scores(run)}
        for settings, run in zip(fault.strengths, runs, strict=True)
    ]
    flagged = next((run for run, each in zip(runs, strengths, strict=True) if each.get("rule")), None)
    row: dict[str, Any] = {"strengths": strengths}
    if flagged is None:
        return row
    try:
        ppo_tui("try", flagged.id, "--yes", "--force", "--most", str(most), "--json")
    except RuntimeError as error:
        row["refused"] = str(error)
    return row | {"trials": _arms(flagged)}


def _nothing_to_cure(run: RunDir, jobs: int) -> dict[str, Any]:
    """Of a healthy run `try` has nothing to do; trials of KL-1's advice, made all the same, change nothing."""
    row: dict[str, Any] = {"run": run.id, "state": current(run).state, **_flag(run), "score": _scores(run)}
    try:
        ppo_tui("try", run.id, "--yes")
    except RuntimeError as error:
        row["refused"] = str(error)
    arms = ((), ("actor.lr=6e-5",), ("kl.loss_coef=0.005",))
    carry_out(Plan(run, Onset("KL-1", FORK + 1, FORK + 1, Level.WARN), FORK, FORK + STEPS, arms, None, 0, jobs))
    return row | {"trials": _arms(run)}


def _flag(run: RunDir) -> dict[str, Any]:
    """The flag that `try` takes, the step after the fault at which it rose, and all others."""
    onset = first_onset(run)
    if onset is None:
        return {}
    others = sorted(alarms(run) - {onset.rule})
    return {"rule": onset.rule, "level": onset.level.name, "rose": onset.rose - FORK, "others": others}


def _scores(run: RunDir) -> list[float]:
    from launcher.run.reading.scores import Scores

    scores = Scores(run)
    scores.poll()
    return [round(value, 3) for value in scores.series.values]


def _arms(run: RunDir) -> list[dict[str, Any]]:
    return [arm.to_json() | {"score": _scores(_run(arm.run))} for each in trials_of(run.id) for arm in each.arms]


def _run(id: str) -> RunDir:
    return RunDir(paths.runs_dir() / id)


def _shown(settings: Iterable[str]) -> list[str]:
    return [each for each in settings if not each.startswith("reward.path") and "micro_batch" not in each]


def _brief(row: dict[str, Any]) -> str:
    flags = [str(each.get("rule")) for each in row.get("strengths", [])]
    arms = [f"{' '.join(arm['changes']) or 'twin'}: {arm['verdict']}" for arm in row.get("trials", [])]
    return "; ".join([" ".join(flags), *arms, row.get("refused", "")])


def text() -> str:
    """The page, from the results."""
    found = Study().found
    rows = [_line(fault, found.get(fault.name)) for fault in FAULTS]
    head = ("fault", "planted", "flag", "twin", "healed by", "place of the fix that undoes it")
    table = "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))
    known = [(fault, found[fault.name]) for fault in FAULTS if fault.name in found]
    flagged = [(fault, row) for fault, row in known if row.get("trials")]
    repeated = sum(_twin(row) == REPEATED for _, row in flagged)
    curable = [(fault, row) for fault, row in flagged if fault.undo]
    first = sum(_place(fault, row) == 1 for fault, row in curable)
    counts = (
        f"{len(flagged)} of {len(known)} faults were flagged, the twin repeated {repeated} of these. The fix that undoes the "
        f"fault ranks first in {first} of the {len(curable)} that a setting can undo."
    )
    not_healed = [_not_healed(fault, row) for fault, row in known if not _healed(row)]
    return PAGE_TEXT.format(
        table=table,
        counts=counts,
        unhealed="\n".join(f"* {each}" for each in not_healed) or "Nothing.",
        trials="\n\n".join(_details(fault, row) for fault, row in known),
        healthy=_sound(found.get(HEALTHY)),
        fork=FORK,
        steps=STEPS,
    )


def _tested(row: dict[str, Any]) -> dict[str, Any] | None:
    """The strength that was flagged first and tried."""
    return next((each for each in row["strengths"] if each.get("rule")), None)


def _twin(row: dict[str, Any]) -> str:
    return next((arm["verdict"] for arm in row.get("trials", []) if not arm["changes"]), "not run")


def _fixes(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [arm for arm in row.get("trials", []) if arm["changes"]]


def _healed(row: dict[str, Any]) -> list[str]:
    return [" ".join(arm["changes"]) for arm in _fixes(row) if arm["verdict"] == HEALED]


def _place(fault: Fault, row: dict[str, Any]) -> int | None:
    """The rank, from 1, of a trial that healed by undoing the fault."""
    for place, arm in enumerate(_fixes(row), 1):
        undoes = any(change.partition("=")[0] in fault.undo for change in arm["changes"])
        if undoes and arm["verdict"] == HEALED:
            return place
    return None


def _line(fault: Fault, row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return [fault.name, "", "not run", "", "", ""]
    tested = _tested(row)
    if tested is None:
        return [fault.name, _code(row["strengths"][-1]["settings"]), "none", "", "", ""]
    flag = f"{tested['rule']} {tested['level']}, step {tested['rose']}"
    healed = "<br>".join(f"`{each}`" for each in _healed(row)) or "nothing"
    place = str(_place(fault, row) or "–") if fault.undo else "none can"
    return [fault.name, _code(tested["settings"]), flag, _twin(row), healed, place]


def _not_healed(fault: Fault, row: dict[str, Any]) -> str:
    if not _tested(row):
        return f"**{fault.name}** raises no flag in {STEPS} steps."
    tried = ", ".join(f"`{' '.join(arm['changes'])}` ({arm['why'] or arm['verdict']})" for arm in _fixes(row))
    reason = f": {fault.why}" if fault.why else ""
    return f"**{fault.name}**{reason}. Tried: {tried or row.get('refused', 'nothing')}."


def _details(fault: Fault, row: dict[str, Any]) -> str:
    lines = [f"**{fault.name}**", ""]
    for each in row["strengths"]:
        flag = f"{each['rule']} {each['level']} at step {each['rose']}" if each.get("rule") else "no flag"
        others = f" ({' '.join(each['others'])} too)" if each.get("others") else ""
        lines.append(f"* {_code(each['settings'])}: {flag}{others}; reward {_reward_words(each['score'])}")
    for arm in row.get("trials", []):
        change = _code(arm["changes"]) or "twin"
        why = f" ({arm['why']})" if arm["why"] else ""
        lines.append(f"* {change}: {arm['verdict']}{why}; reward {_reward_words(arm['score'])}")
    return "\n".join(lines)


def _sound(row: dict[str, Any] | None) -> str:
    if row is None:
        return "Not run."
    arms = [f"{_code(arm['changes']) or 'the twin'}: {arm['verdict']}" for arm in row["trials"]]
    broke = not all(arm["verdict"] in (DIFFERENT, UNTOLD) for arm in row["trials"])
    flag = row.get("rule") or "no flag"
    refusal = row.get("refused", "").partition("try: ")[2]
    said = "; ".join(arms)
    return (
        f"The same {STEPS} steps without a fault: {flag}. `ppo-tui try` says: {refusal!r}. Trials of the advice of KL-1, made \
all the same: {said}. {'They broke something.' if broke else 'Nothing is said to heal, nothing to break.'}"
    )


def _code(settings: Sequence[str]) -> str:
    return " ".join(f"`{each}`" for each in settings)


def _reward_words(scores: Sequence[float]) -> str:
    """The mean of the first and of the last three steps."""
    if not scores:
        return "–"
    first, last = (sum(part) / len(part) for part in (scores[:3], scores[-3:]))
    return f"{first:.2f} → {last:.2f}"


PAGE_TEXT = """# Does the advice cure?

`make cure` plants faults in a healthy run, waits for a flag, and lets `ppo-tui try` work on it: an untouched twin and up to
four fixes that the rule advises, from the checkpoint before the flag. All of it runs on the CPU toy (`toy-cpu`, veRL
0.9.1, a model of 111,000 parameters) through the product. The healthy run trains for {fork} steps and saves a
checkpoint; `ppo-tui fork` continues it with the fault for up to {steps} steps. tests/support/cure.py writes this page
from tests/data/cure.json.

{table}

{counts} Steps are counted from the fault on. What heals more than once is ranked by its reward in the second half of
its steps.

**What is proved, and what not.** The advice names a key; that this key is the right one is what the table shows. Its value
comes from the run before the fork, where the setting had another one in the advised direction, for `try` looks
there first; without such a run it would be a fifth or half of the present one (docs/fork.md). One run each of a
tiny task: the next seed may differ.

## What could not be healed

{unhealed}

## A healthy run

{healthy}

## All trials

{trials}
"""


def main() -> None:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("names", nargs="*", help="words of the names of faults, or 'healthy'; default: all")
    reader.add_argument("-j", "--jobs", type=int, default=1)
    reader.add_argument("--most", type=int, default=MOST, help="advised fixes that are tried of each flag")
    reader.add_argument("--again", action="store_true", help="run faults that are there, too")
    reader.add_argument("--page", action="store_true", help="only write the page")
    args = reader.parse_args()

    def chosen(name: str) -> bool:
        named = not args.names or any(word in name for word in args.names)
        return named and (args.again or name not in Study().found)

    if not args.page:
        wanted = [fault for fault in FAULTS if chosen(fault.name)]
        conduct(wanted, chosen(HEALTHY), args.jobs, args.most)
    if PAGE.parent.is_dir():
        PAGE.write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
