"""The bank of real runs: what is planted in each, the settings that make it, and the half it belongs to.

    bank.py lines KIT FOLDER RUNS  for `run.sh many`: a line for each run that neither FOLDER nor RUNS has
    bank.py pack RUNS FOLDER   adds the metrics of the runs in a folder of run directories, as tests/data/bank has them
    bank.py add RESULTS FOLDER the same with those of a campaign of tests/gpu: RESULTS has `results` and `runs`

A name decides the half: it holds everything but the seed, and the seeds are the smallest that put one run of each
kind into either half. Nothing of this list may change after its runs were seen.
"""

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from launcher.metrics.records import StepRecord, trains
from launcher.record.layout import AttemptDir, RunDir

HALVES = ("calibration", "unseen")
STRENGTHS = ("actor.lr", "actor.entropy_coeff")
GPU, VOCABULARY, LEAST_STEPS = "gpu", 49152, 5
PPO = ()
GROUP = ("data.train_batch_size=32", "actor.ppo_mini_batch_size=16", "rollout.n=4")
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "ppo": PPO,
    **{
        name: (f"recipe={name}", *GROUP)
        for name in ("grpo", "rloo", "reinforce-pp", "cispo", "dapo", "dr-grpo", "gspo", "reinforce-pp-baseline")
    },
    "remax": ("recipe=remax",),
}
# A long run: the old trainer and 32 responses a step cost a third of the CPU of a step of the others
LONG = ("trainer.use_v1=false", "data.train_batch_size=32", "actor.ppo_mini_batch_size=32", "trainer.save_every=110")
LONG_GROUP = (*LONG, "data.train_batch_size=8", "actor.ppo_mini_batch_size=8")
STEPS_LONG, FORKED_AT, STEPS_FORK = 220, 110, 40
QUICK = {"trainer.validate_first=false", "trainer.validate_every=-1", "cluster.cpus=6"}  # what many.py adds
STEPS_HEALTHY, STEPS_FAULT = 36, 20


class Planted(NamedTuple):
    """One fault at one strength. `critic`: it applies only to PPO."""

    fault: str
    strength: str
    settings: tuple[str, ...]
    critic: bool = False


def _reward(function: str) -> tuple[str, ...]:
    return ("reward.path=@KIT/code/campaigns/cpu-host/rewards.py", f"reward.function={function}")


def _batch(prompts: int) -> tuple[str, ...]:
    micro = ("actor.ppo_", "critic.ppo_", "ref.log_prob_", "rollout.log_prob_")
    return (
        f"data.train_batch_size={prompts}",
        f"actor.ppo_mini_batch_size={prompts}",
        *(f"{which}micro_batch_size_per_gpu={prompts}" for which in micro),
    )


FAULTS = (
    Planted("actor lr", "x30", ("actor.lr=9e-3",)),
    Planted("actor lr", "x300", ("actor.lr=9e-2",)),
    Planted("critic lr", "x30", ("critic.lr=3e-2",), critic=True),
    Planted("critic lr", "x300", ("critic.lr=3e-1",), critic=True),
    Planted("no KL, actor lr", "x3", ("kl.loss_coef=0", "actor.lr=1e-3")),
    Planted("no KL, actor lr", "x10", ("kl.loss_coef=0", "actor.lr=3e-3")),
    Planted("entropy coefficient", "-0.05", ("actor.entropy_coeff=-0.05",)),
    Planted("entropy coefficient", "-0.2", ("actor.entropy_coeff=-0.2",)),
    Planted("entropy coefficient", "0.1", ("actor.entropy_coeff=0.1",)),
    Planted("entropy coefficient", "0.3", ("actor.entropy_coeff=0.3",)),
    Planted("clip ratio 5, epochs", "2", ("actor.clip_ratio=5", "actor.ppo_epochs=2")),
    Planted("clip ratio 5, epochs", "6", ("actor.clip_ratio=5", "actor.ppo_epochs=6")),
    Planted("temperature", "2", ("rollout.temperature=2",)),
    Planted("temperature", "3", ("rollout.temperature=3",)),
    Planted("gamma", "0.5", ("advantage.gamma=0.5",), critic=True),
    Planted("gamma", "0.1", ("advantage.gamma=0.1",), critic=True),
    Planted("reward sign", "half", _reward("flipped_half")),
    Planted("reward sign", "all", _reward("flipped")),
    Planted("constant reward", "mostly", _reward("constant_mostly")),
    Planted("constant reward", "all", _reward("constant")),
    Planted("response limit", "4", ("data.max_response_length=4",)),
    Planted("response limit", "2", ("data.max_response_length=2",)),
    Planted("batch", "4", _batch(4)),
    Planted("batch", "1", _batch(1)),
    Planted("unlearnable task", "all", ()),
)
HEALTHY = (
    *((algorithm, "add", rate) for algorithm in ("ppo", "grpo") for rate in ("1e-4", "3e-4")),
    *((algorithm, task, "3e-4") for algorithm in ("ppo", "grpo") for task in ("copy", "sort", "count", "hard")),
    *((algorithm, "add", "3e-4") for algorithm in ALGORITHMS if algorithm not in {"ppo", "grpo"}),
)
LONG_HEALTHY = (
    *((algorithm, task) for algorithm in ("ppo", "grpo") for task in ("add", "copy", "sort", "count", "hard")),
    *((algorithm, "add") for algorithm in ("rloo", "reinforce-pp", "cispo", "dr-grpo", "gspo", "remax")),
)
LATE = (  # planted in the middle of a long healthy run, by a fork
    ("actor lr", "x30"),
    ("actor lr", "x300"),
    ("critic lr", "x300"),
    ("no KL, actor lr", "x10"),
    ("entropy coefficient", "-0.2"),
    ("entropy coefficient", "0.3"),
    ("clip ratio 5, epochs", "6"),
    ("temperature", "2"),
    ("temperature", "3"),
    ("reward sign", "all"),
    ("constant reward", "all"),
    ("response limit", "4"),
)


class Run(NamedTuple):
    name: str
    seed: int
    algorithm: str
    task: str
    steps: int
    settings: tuple[str, ...]
    fault: str = ""  # of a healthy run, as its strength
    strength: str = ""
    parent: str = ""  # name of the run that this one is a fork of, in whose half it is

    @property
    def half(self) -> str:
        return half(self.parent or self.name)

    @property
    def line(self) -> list[str]:
        """The settings for `ppo-tui run toy-cpu` or `ppo-tui fork`: those of the fault come last, so they apply."""
        if self.parent:
            return [f"trainer.steps={self.steps}", *self.settings]
        settings = [*ALGORITHMS[self.algorithm], f"trainer.steps={self.steps}", f"data.seed={self.seed}"]
        if self.task != "add":
            parts = (("model.path", "model"), ("data.train", "data/train.parquet"), ("data.val", "data/test.parquet"))
            settings += [f"{key}=$PPO_TUI_CACHE/tasks/{self.task}/{part}" for key, part in parts]
        return [*settings, *self.settings]


def half(name: str) -> str:
    """The half of a run, by a hash of its name."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] & 1]


def _seed(stem: str, wanted: str) -> int:
    return next(seed for seed in range(1, 100) if half(f"{stem} {seed}") == wanted)


def runs() -> Iterator[Run]:
    """All runs in the order of a hash, so that a lack of time drops a random part."""
    yield from sorted(
        (*_healthy(), *_faulty(), *_long(), *_late()), key=lambda run: hashlib.sha256(run.name.encode()).hexdigest()[2:]
    )


def _healthy() -> Iterator[Run]:
    for algorithm, task, rate in HEALTHY:
        stem = f"healthy {algorithm} {task} {rate}"
        for wanted in HALVES:
            seed = _seed(stem, wanted)
            yield Run(f"{stem} {seed}", seed, algorithm, task, STEPS_HEALTHY, (f"actor.lr={rate}",))


def _faulty() -> Iterator[Run]:
    for place, planted in enumerate(FAULTS):
        algorithms = ("ppo", "ppo") if planted.critic else ("ppo", "grpo")
        for algorithm, wanted in zip(algorithms, HALVES[:: 1 - 2 * (place % 2)], strict=True):
            stem = f"{planted.fault} {planted.strength} {algorithm}"
            seed, task = _seed(stem, wanted), "unlearnable" if planted.fault.startswith("unl") else "add"
            yield Run(
                f"{stem} {seed}", seed, algorithm, task, STEPS_FAULT, planted.settings, planted.fault, planted.strength
            )


def _long() -> Iterator[Run]:
    for algorithm, task in LONG_HEALTHY:
        stem, sizes = f"long {algorithm} {task}", LONG if algorithm in {"ppo", "remax"} else LONG_GROUP
        for wanted in HALVES:
            seed = _seed(stem, wanted)
            yield Run(f"{stem} {seed}", seed, algorithm, task, STEPS_LONG, sizes)


def _late() -> Iterator[Run]:
    parents = {(run.algorithm, run.half): run for run in _long() if run.task == "add"}
    faults = {(planted.fault, planted.strength): planted for planted in FAULTS}
    for place, planted in enumerate(faults[which] for which in LATE):
        algorithms = ("ppo", "ppo") if planted.critic else ("ppo", "grpo")
        for algorithm, wanted in zip(algorithms, HALVES[:: 1 - 2 * (place % 2)], strict=True):
            parent = parents[algorithm, wanted]
            name, last = f"late {planted.fault} {planted.strength} {algorithm} {parent.seed}", FORKED_AT + STEPS_FORK
            yield Run(name, parent.seed, algorithm, "add", last, planted.settings, *planted[:2], parent.name)


def made(folder: Path) -> dict[str, RunDir]:
    """The runs of the list that exist in a folder of run directories, by name."""
    planned = {(run.parent, *(word for word in run.line if "@KIT" not in word)): run.name for run in runs()}
    found = dict[str, RunDir]()
    infos = {path.name: RunDir(path).read_info() for path in folder.glob("*-toy-cpu")}
    names = dict[str, str]()  # by directory
    for of_forks in (False, True):  # whose parents have their names then
        for directory, info in infos.items():
            if (info.after is not None) is of_forks:
                asked = (word for word in info.overrides if word not in QUICK and "cpu-host" not in word)
                name = planned.get((names.get(info.after.run, "?") if info.after else "", *asked))
                if name is not None:
                    names[directory], found[name] = name, RunDir(folder / directory)
    return found


def lines(kit: str, to: Path, folder: Path) -> Iterator[list[str]]:
    """The lines for many.py about the runs that neither the bank nor `folder` has; a fork only if its parent exists."""
    known, there = json.loads((to / "manifest.json").read_text())["runs"], made(folder)
    for run in runs():
        if run.name in known or run.name in there or (run.parent and run.parent not in there):
            continue
        start = ["fork", there[run.parent].id, "--at", str(FORKED_AT)] if run.parent else []
        yield [word.replace("@KIT", kit) for word in (*start, *run.line)]


def pack(folder: Path, to: Path) -> None:
    """Adds every run of the list that has steps: one row per step in metrics.parquet, the rest in manifest.json."""
    planned = {run.name: run for run in runs()}
    common: dict[str, Any] = json.loads((to / "manifest.json").read_text())["config"]
    rows, kept = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    for name, path in sorted(made(folder).items()):
        attempt, run = path.attempt(1), planned[name]
        if not attempt.steps.exists():
            continue
        keys = {key: value for key, value in attempt.read_launch().keys.items() if "/kit/" not in str(value)}
        steps = _steps(attempt)
        rows += _rows(run.name, steps)
        kept[run.name] = {
            "half": run.half,
            "fault": run.fault,
            "strength": run.strength,
            "algorithm": run.algorithm,
            "task": run.task,
            "seed": run.seed,
            "asked": run.steps,
            "steps": len(steps),
            "settings": run.line,
            "config": {key: value for key, value in keys.items() if common.get(key, ...) != value}
            | {key: None for key in common if key not in keys},
        } | ({"parent": run.parent, "at": FORKED_AT} if run.parent else {})
    write(rows, kept, to)


def add(campaign: Path, to: Path, called: str = "") -> None:
    """Adds the runs of a campaign with five steps or more: healthy ones, and the broken ones by their names.

    Their half is `gpu`, their model one of 135M with real weights. `called` is the end of their names; runs of the bank
    with other names stay. Trials from the first step of a broken run count as runs: the control run has the fault, one
    with a fix is healthy.
    """
    rows, kept = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    for path in sorted((campaign / "results").glob("*.json")):
        result = json.loads(path.read_text())
        if not isinstance(result, dict) or "killed" in result or not result.get("run"):
            continue
        if not result["preset"].endswith("format-reward"):
            continue
        what = result["name"].removesuffix("-again")
        fault = what.removeprefix("break-") if what.startswith("break-") else ""
        for part, directory, changes in ((None, result["run"], []), *_trials(result)):
            attempt = RunDir(campaign / "runs" / directory).attempt(1)
            if not attempt.steps.exists():
                continue
            if len(steps := _steps(attempt)) < LEAST_STEPS:
                continue
            name, broken = " ".join(filter(None, (GPU, what, part, called))), fault if not changes else ""
            settings = [*result["settings"], *changes]
            strength = {key: f"{key}={value}" for key, _, value in map(_parted, settings) if key in STRENGTHS}
            rows += _rows(name, steps)
            kept[name] = {
                "half": GPU,
                "fault": broken,
                "strength": " ".join(strength.values()) if broken else "",
                "steps": len(steps),
                "vocabulary": VOCABULARY,
                "settings": [word for word in settings if "/kit/" not in word],
                "config": {k: value for k, value in attempt.read_launch().keys.items() if "/kit/" not in str(value)},
                "alone": True,  # nothing of what the toy's runs have in common holds for it
            }
    write(rows, kept, to)


def _steps(attempt: AttemptDir) -> list[StepRecord]:
    records = filter(None, map(StepRecord.from_line, attempt.steps.read_bytes().splitlines()))
    return [record for record in records if trains(record.data)]


def _rows(name: str, steps: Iterable[StepRecord]) -> list[dict[str, Any]]:
    return [{"run": name, "step": each.step, "t": each.t, **rounded(each.data)} for each in steps]


def _trials(result: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Name, run and changes of each trial from the start."""
    for told in result.get("try", {}).get("told", []):
        for trial in told["trials"] if not told["step"] else ():
            yield "fixed" if trial["changes"] else "twin", trial["run"], trial["changes"]


def _parted(setting: str) -> tuple[str, str, str]:
    return setting.partition("=")


def write(rows: list[dict[str, Any]], kept: Mapping[str, Any], to: Path) -> None:
    """Adds these runs to the bank; its other runs stay."""
    manifest = json.loads((to / "manifest.json").read_text())
    manifest["runs"] = dict(sorted((manifest["runs"] | kept).items()))
    (to / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    before = [row for row in pq.read_table(to / "metrics.parquet").to_pylist() if row["run"] not in kept]
    rows += [{key: value for key, value in row.items() if value is not None} for row in before]
    rows.sort(key=lambda row: (row["run"], row["step"]))
    names = sorted({name for row in rows for name in row} - {"run", "step", "t"})
    schema = pa.schema(
        [("run", pa.string()), ("step", pa.int32()), ("t", pa.float64()), *((name, pa.float64()) for name in names)]
    )
    table = pa.Table.from_pylist(rows, schema=schema)  # null: not logged; nan: logged as nan
    pq.write_table(table, to / "metrics.parquet", compression="zstd", compression_level=19)


def rounded(data: Mapping[str, float]) -> dict[str, float]:
    """Rounds to six digits, which halves the file."""
    return {key: float(f"{value:.6g}") for key, value in data.items()}


def main() -> None:
    if sys.argv[1] == "lines":
        for words in lines(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])):
            print(shlex.join(words))
    elif sys.argv[1] == "pack":
        pack(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1] == "add":
        add(Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:5])


if __name__ == "__main__":
    main()
