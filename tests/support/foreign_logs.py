"""Writes steps with veRL's metric names in the form of other frameworks; shares no code with the readers.

`NAMES` (tests/data/frameworks/names.toml) maps their names to ours. `FORMS` writes a whole log. All forms were copied
by hand from the frameworks' printing code.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tomllib

Steps = Sequence[tuple[int, Mapping[str, float]]]
_TABLE = tomllib.loads((Path(__file__).parents[1] / "data/frameworks/names.toml").read_text("utf-8"))
NAMES: dict[str, dict[str, tuple[str, float]]] = {
    framework: {theirs: (ours, 1) if isinstance(ours, str) else tuple(ours) for theirs, ours in names.items()}
    for framework, names in _TABLE.items()
}


def theirs(framework: str, data: Mapping[str, float]) -> dict[str, float]:
    """The metrics of a step that the framework has, under its names."""
    names = NAMES[framework].items()
    return {name: data[ours] * scale for name, (ours, scale) in names if ours in data}


def ours(framework: str, data: Mapping[str, float]) -> dict[str, float]:
    """The metrics of a step that the framework has, under our names."""
    kept = {key for key, _ in NAMES[framework].values()}
    return {key: value for key, value in data.items() if key in kept}


def slime(steps: Steps, head: str = "") -> str:
    """slime's output, numbered from 0; Megatron's training metrics come before the step time."""
    lines = []
    for number, data in steps:
        row = theirs("slime", data)
        parts = {part: {k: v for k, v in row.items() if k.startswith(part)} for part in ("rollout/", "train/", "perf/")}
        sampled = {k: v for k, v in parts["rollout/"].items() if "raw_reward" not in k}
        scored = {k: v for k, v in parts["rollout/"].items() if "raw_reward" in k}
        for writer, place, kind, part in (
            ("RolloutManager pid=5", "rollout_metrics.py:268", "perf", sampled | {"perf/rollout_time": 33.1}),
            ("MegatronTrainRayActor pid=6", "train_metric_utils.py:221", "rollout", scored | {"rollout/rewards": 0.0}),
            ("MegatronTrainRayActor pid=6", "model.py:918", "step", parts["train/"] | {"train/loss": 0.5}),
            ("MegatronTrainRayActor pid=6", "train_metric_utils.py:401", "perf", parts["perf/"] | {"perf/wait": 0.5}),
        ):
            lines.append(f"({writer}) [2026-08-20 03:01:22] {place} - {kind} {number - 1}: {part!r}")
    return "\n".join(lines) + "\n"


def miles(steps: Steps) -> str:
    return (
        slime(steps)
        .replace("rollout_metrics.py:268", "metrics.py:89")
        .replace("train_metric_utils.py:221", "log_utils.py:123")
        .replace("model.py:918", "log_utils.py:542")
        .replace("train_metric_utils.py:401", "train_metric_utils.py:56")
    )


def trl(steps: Steps) -> str:
    """TRL's terminal output: no step number, after a redrawn bar; numbers are strings with 4 digits."""
    total = len(steps)
    lines = [f"  0%|          | 0/{total} [00:00<?, ?it/s]"]
    for done, (_, data) in enumerate(steps, 1):
        words = {name: f"{value:.12g}" for name, value in ({"loss": 0.1} | theirs("TRL", data)).items()}
        bar = f"\r {100 * done // total:2}%|#  | {done}/{total} [00:00<00:26,  2.26it/s]"
        lines.append(f"{bar}\r{' ' * 46}\r{words!r}\n{bar}")
    return "".join(lines) + "\n{'train_runtime': '15.1', 'train_loss': '0.01', 'epoch': '0.6'}\n"


def trainer_state(steps: Steps) -> str:
    rows = [{"loss": 0.1} | theirs("TRL", data) | {"step": number} for number, data in steps]
    return json.dumps({"epoch": 0.6, "global_step": steps[-1][0], "log_history": rows}, indent=2)


def prime_rl(steps: Steps) -> str:
    """Trainer and orchestrator in one log."""
    lines = []
    for number, data in steps:
        row = {name: f"{value:.12g}" for name, value in theirs("prime-rl", data).items()}
        reward, cut = row.pop("Reward", None), row.pop("Truncation", None)
        quality = [f"Reward {reward}"] if reward is not None else []
        quality += [f"Trainable 8/16 (50.0%) | Turns 1.0 | Truncation {cut}%"] if cut is not None else []
        lines.append(f"03:01:22 SUCCESS Step {number} |    5.1s | " + " | ".join(quality))
        parts = " | ".join(f"{name} {value}" for name, value in row.items())
        lines.append(
            f"03:01:23 SUCCESS Step {number} |    5.1s | Loss 0.0004 | {parts} | Throughput 12031 tokens/s | MFU 40.1%"
        )
    return "\n".join(lines) + "\n"


def prime_rl_file(steps: Steps) -> str:
    """Non-finite values are omitted; each kind of metrics has its own line."""
    lines = []
    for number, data in steps:
        row = {name: value for name, value in theirs("prime-rl file", data).items() if math.isfinite(value)}
        for part in ("optim/", "", "time/"):
            some = {
                k: v for k, v in row.items() if k.startswith(part) and (part or not k.startswith(("optim/", "time/")))
            }
            lines.append(json.dumps({"step": number, "time": 1.7e9, **some}))
    return "\n".join(lines) + "\n"


def nemo_rl(steps: Steps) -> str:
    lines = []
    for number, data in steps:
        row = {name: f"{value:.12g}" for name, value in theirs("NeMo-RL", data).items()}
        time, training, speed = (row.pop(name, None) for name in list(NAMES["NeMo-RL"])[-3:])
        lines += [
            "",
            f"{'=' * 25} Step {number}/{len(steps)} {'=' * 25}",
            "▶ Generating responses...",
            "",
            "📊 Training Results:",
        ]
        lines += [f"  • {name}: {value}" for name, value in {"Loss": "0.1", **row}.items()]
        lines += ["", "⏱️  Timing:"] + ([f"  • Total step time: {time}s"] if time else [])
        lines += [f"  • policy_training: {training}s (31.0%)"] if training else []
        lines += ["", "🔍 Performance Metrics:", "  • Throughputs (per GPU):"]
        lines += [f"    - E2E (Tokens/sec/gpu): {speed}"] if speed else []
    return "\n".join(lines) + "\n"


def openrlhf(steps: Steps) -> str:
    line = "(PPOTrainer pid=7) INFO 08-20 03:01:22 ppo_trainer.py:547] ✨ Global step {}: {!r}"
    return "\n".join(line.format(number, theirs("OpenRLHF", data)) for number, data in steps) + "\n"


def skyrl(steps: Steps) -> str:
    lines = []
    for number, data in steps:
        row = theirs("SkyRL", data) | {"trainer/epoch": 0, "trainer/global_step": number}
        shown = {k: f"{v:.12g}" if isinstance(v, float) else v for k, v in sorted(row.items())}
        entries = [f"{k!r}: {v!r}" for k, v in shown.items()]
        lines.append(f"2026-08-20 03:01:22.123 | INFO     | skyrl.train.utils.tracking:log:166 - Step {number}: ")
        lines += ["{" + entries[0] + ",", *(f" {entry}," for entry in entries[1:-1]), f" {entries[-1]}}}"]
    return "\n".join(f"(skyrl_entrypoint pid=9) {line}" for line in lines) + "\n"


def areal(steps: Steps) -> str:
    lines = []
    for number, data in steps:
        cells = [f" {name:<40} │ {value:>20.12e} " for name, value in theirs("AReaL", data).items()]
        lines.append(
            f"(AReaL) 20260820-03:01:22.123 StatsLogger INFO: Epoch 1/1 Step {number}/{len(steps)} "
            f"Train step {number}/{len(steps)} done."
        )
        lines += ["(AReaL) 20260820-03:01:22.124 StatsLogger INFO: ", "╒════╤════╕"]
        lines += ["│" + "│".join(cells[at : at + 4]) + "│" for at in range(0, len(cells), 4)]
        lines.append("╘════╧════╛")
    return "\n".join(lines) + "\n"


def roll(steps: Steps) -> str:
    head = "[2026-08-20 03:01:22] [rlvr_pipeline.py (838)] [INFO] [DRIVER 0 / 1][PID 77] "
    lines = []
    for number, data in steps:
        row = theirs("ROLL", data) | {"time/step_total": 3.0, "system/global_step": number}
        lines += [
            f"{head}pipeline step {number} start...",
            f"{head}{json.dumps(row)}",
            f"{head}pipeline step {number} finished",
        ]
    return "\n".join(lines) + "\n"


def table(steps: Steps) -> str:
    """A CSV with TRL's names."""
    rows = [{"step": number, **theirs("TRL", data)} for number, data in steps]
    file = io.StringIO()
    writer = csv.DictWriter(file, sorted({name for row in rows for name in row}))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


FORMS: dict[str, tuple[str, Callable[[Steps], str], str]] = {
    "slime": ("slime", slime, "console.log"),
    "miles": ("slime", miles, "console.log"),
    "trl": ("TRL", trl, "console.log"),
    "trainer_state": ("TRL", trainer_state, "trainer_state.json"),
    "csv": ("TRL", table, "metrics.csv"),
    "prime-rl": ("prime-rl", prime_rl, "console.log"),
    "prime-rl file": ("prime-rl file", prime_rl_file, "metrics.jsonl"),
    "nemo-rl": ("NeMo-RL", nemo_rl, "console.log"),
    "openrlhf": ("OpenRLHF", openrlhf, "console.log"),
    "skyrl": ("SkyRL", skyrl, "console.log"),
    "areal": ("AReaL", areal, "console.log"),
    "roll": ("ROLL", roll, "console.log"),
}
"""Per form: the names, the writer, the file."""
