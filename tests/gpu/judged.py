"""Thirty runs that are judged by a reader of their metrics before any rule sees them: faults and healthy oddities.

Each is the exact command of ppo-tui with its plugin, without a supervisor, so that nothing raises a flag. What comes
home of one, in $KIT/results/judged/NAME: command.json (its argv, which names all veRL keys), metrics.jsonl, the
console, and the answers.
"""

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import psutil
from conduct import KIT, RESULTS, left, mark
from experiments import BASE, GROUPS, REWARDED
from host import PPO_TUI, Lane, members

PLACES, LEAST = 12, 16  # runs at once; steps without which no run makes room for the next one
GROUPED_GIB, CRITIC_GIB, MOST_GIB = 6.1, 7.4, 76.0  # GiB of the GPU that a run takes, with a critic, and all of them
HOST_GB, SPARE_GB, YOUNG = 16, 36, 200.0  # GB of the host: of a run, left to others; seconds in which it takes them
APART = 2.0  # seconds between two starts
CROWDED = 540.0  # seconds before the end from which a run makes room
LATEST = 320.0  # seconds before the end at which the last one begins
STUCK = 480.0  # seconds without a first step
CONSOLE = 900_000  # bytes of a console that come home

Settings = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One run: what is planted in it, or odd about it, and its steps while others wait."""

    name: str
    fault: str  # "" of a healthy one
    odd: str
    settings: Settings
    steps: int = 22
    gib: float = GROUPED_GIB
    preset: str = REWARDED


SHARED = (
    *BASE,
    f"reward.path={KIT}/repo/tests/gpu/rewards.py",
    "reward.function=sums",
    "trainer.steps=80",
    "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=301989888",
    "rollout.max_num_seqs=96",  # vLLM tries out so many at its start, with all their logits
    "rollout.max_num_batched_tokens=2048",
    "rollout.update_weights_bucket_megabytes=256",
    "actor.ppo_max_token_len_per_gpu=1024",
)
GROUPED = (*SHARED, "recipe=grpo", *GROUPS, "actor.lr=1.5e-5")
WITH_CRITIC = (
    *SHARED,
    "data.train_batch_size=32",
    "actor.ppo_mini_batch_size=8",
    "actor.lr=2e-5",
    "critic.lr=5e-5",
    "critic.ppo_max_token_len_per_gpu=1024",
    "actor.optimizer_offload=true",
    "critic.optimizer_offload=true",
)


def _fault(name: str, fault: str, *settings: str, steps: int = 22, base: Settings = GROUPED) -> Row:
    return Row(name, fault, "", (*base, *settings), steps, CRITIC_GIB if base is WITH_CRITIC else GROUPED_GIB)


def _odd(name: str, odd: str, *settings: str, steps: int = 22, base: Settings = GROUPED) -> Row:
    return replace(_fault(name, "", *settings, steps=steps, base=base), odd=odd)


def _reward(function: str) -> str:
    return f"reward.function={function}"


ROWS: Sequence[Row] = (  # by worth; the first twelve begin at once
    _fault("reversed", "reward with the wrong sign from step 15", _reward("reversed_later"), steps=28),
    _fault("value-clip", "clip range of the value 0.001", "critic.cliprange_value=0.001", base=WITH_CRITIC),
    _fault("warm-up", "learning rate to 2e-4 in 30 steps", "actor.lr=2e-4", "actor.lr_warmup_steps=30", steps=28),
    _odd("above-hundred", "100 added to all rewards", _reward("above_hundred")),
    _fault("top-p", "top_p 0.3", "rollout.top_p=0.3", steps=20),
    _fault(
        "prompts-cut",
        "prompts cut to 24 of 53 tokens",
        *("data.max_prompt_length=24", "data.filter_overlong_prompts=false"),
        steps=20,
    ),
    _odd(
        "below-zero",
        "rewards from -10 to 0, RLOO with groups of 5",
        _reward("below_zero"),
        "recipe=rloo",
        "rollout.n=5",
    ),
    _fault("weight-decay", "weight decay 1000", "actor.weight_decay=1000", steps=18),
    _fault("constant", "the same reward for all answers from step 12", _reward("constant_later"), steps=24),
    _odd("short-limit", "response limit 16, of which 5 are needed", "data.max_response_length=16"),
    _odd(
        "lora",
        "LoRA of rank 16, learning rate 1e-4",
        *("actor.strategy=fsdp2", "rollout.load_format=safetensors", "actor.lr=1e-4"),
        *("model.lora_rank=16", "model.lora_alpha=16", "model.target_modules=all-linear"),
        steps=24,
    ),
    _fault("one-question", "one question only", f"data.train={KIT}/same-train.parquet"),
    _fault(
        "many-passes",
        "clip range 5 with 4 passes, learning rate 4e-5",
        *("actor.clip_ratio=5", "actor.ppo_epochs=4", "actor.lr=4e-5"),
        *("data.train_batch_size=8", "actor.ppo_mini_batch_size=4"),
        steps=20,
    ),
    _fault("outliers", "reward of 1000 for one in 50 answers", _reward("outliers"), steps=20, base=WITH_CRITIC),
    _odd(
        "cosine",
        "cosine from 3e-5 to 0 in 26 steps, gradients clipped at 0.1",
        *("trainer.steps=26", "actor.lr=3e-5", "actor.lr_scheduler_type=cosine", "actor.min_lr_ratio=0"),
        "actor.clip_grad=0.1",
        steps=26,
    ),
    _fault("noise", "random reward", _reward("noise"), steps=24),
    _odd("growing", "responses that are meant to grow", _reward("explained"), steps=26),
    _fault("wrong-labels", "80 % wrong labels", _reward("wrong_labels"), steps=24),
    _odd("critic-warm-up", "8 steps of the critic alone", "trainer.critic_warmup=8", steps=24, base=WITH_CRITIC),
    _odd("sparse", "reward for the right number only", _reward("sparse"), steps=26),
    _fault("marks", "reward that is gamed by repeating ####", _reward("marks")),
    _odd(
        "discounted", "gamma 0.99, lambda 0.9", "advantage.gamma=0.99", "advantage.lam=0.9", base=WITH_CRITIC, steps=24
    ),
    _odd(
        "mixed",
        "two tasks",
        f"data.train=[{KIT}/sums-train.parquet,{KIT}/lists-train.parquet]",
        "data.max_prompt_length=320",
        steps=24,
    ),
    _odd("validated", "validation at each step", *("trainer.validate_every=1", "data.val_max_samples=32"), steps=20),
    _odd("hot", "temperature 1.2", "rollout.temperature=1.2", steps=20),
    _fault("frozen-critic", "learning rate of the critic 0", "critic.lr=0", base=WITH_CRITIC),
    _odd("thousandth", "rewards from 0 to 0.001", _reward("thousandth"), steps=20),
    _odd(
        "no-kl",
        "no KL, two passes over one mini-batch",
        *("kl.in_loss=false", "actor.ppo_mini_batch_size=16", "actor.ppo_epochs=2"),
        steps=20,
    ),
    _odd(
        "four-prompts",
        "4 prompts with 16 answers each",
        *("data.train_batch_size=4", "actor.ppo_mini_batch_size=4", "rollout.n=16"),
        steps=20,
    ),
    _fault("half-gamma", "gamma 0.5", "advantage.gamma=0.5", steps=20, base=WITH_CRITIC),
    # if there is room
    _odd(
        "gspo-three",
        "GSPO with groups of 3, entropy coefficient 0.001",
        "recipe=gspo",
        "rollout.n=3",
        "data.train_batch_size=24",
        "actor.ppo_mini_batch_size=6",
        "actor.entropy_coeff=0.001",
        steps=20,
    ),
    _odd("held-back", "KL coefficient 0.1", "kl.loss_coef=0.1", steps=20),
    _odd("ceiling", "reward at its ceiling from the start", _reward("ceiling"), steps=20),
)
TOY = (
    f"reward.path={KIT}/repo/tests/gpu/rewards.py",
    "trainer.steps=20",
    "trainer.validate_first=false",
    "trainer.validate_every=-1",
    "trainer.save_every=-1",
)
REHEARSED: Sequence[Row] = tuple(
    Row(name, fault, odd, (*TOY, f"reward.function={function}"), steps, preset="toy-cpu")
    for name, fault, odd, function, steps in (
        ("toy-reversed", "reward with the wrong sign from step 15", "", "reversed_later", 18),
        ("toy-below-zero", "", "rewards from -10 to 0", "below_zero", 6),
        ("toy-constant", "the same reward for all answers from step 12", "", "constant_later", 18),
    )
)


class Run:
    """A row that has begun."""

    def __init__(self, row: Row, lane: Lane) -> None:
        self.row, self.began = row, time.time()
        self.folder = RESULTS / "judged" / row.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.scratch = KIT / "judged" / row.name
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.id = f"judged-{row.name}"
        self.metrics = self.folder / "metrics.jsonl"
        command = self._command(lane)
        own = {"VERL_FILE_LOGGER_PATH": str(self.metrics), "PPO_TUI_RUN": self.id, "PPO_TUI_ATTEMPT": "1"}
        about = {**asdict(row), "argv": command["argv"], "env": command["env"], "began": self.began}
        (self.folder / "command.json").write_text(json.dumps(about, indent=1))
        with (self.scratch / "console.log").open("wb") as out:
            self.driver = subprocess.Popen(
                command["argv"],
                env={**lane.env(), **command["env"], **own},
                cwd=self.scratch,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        mark(f"{self.id}: starts")

    def _command(self, lane: Lane) -> dict[str, Any]:
        """What ppo-tui would run; it writes below the current folder."""
        words = [PPO_TUI, "command", self.row.preset, *self.row.settings, "--json"]
        said = subprocess.run(words, env=lane.env(), cwd=self.scratch, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(said.stdout)
        return found

    @property
    def steps(self) -> int:
        with suppress(OSError):
            return sum(1 for line in self.metrics.open("rb") if b"actor/lr" in line or b"critic/score" in line)
        return 0

    @property
    def age(self) -> float:
        return time.time() - self.began

    def over(self, waits: bool) -> bool:
        """Whether it has ended, has no first step, or makes room."""
        enough = LEAST if left() < CROWDED else self.row.steps
        stuck = self.age > STUCK and not self.steps
        return self.driver.poll() is not None or stuck or (waits and self.steps >= enough)

    def end(self) -> None:
        """Ends all its processes and keeps what comes home."""
        exited = self.driver.poll()
        for pid in members(self.id):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.driver.wait(10)
        console = (self.scratch / "console.log").read_bytes()
        kept = console if len(console) <= CONSOLE else console[: CONSOLE // 2] + b"\n[cut]\n" + console[-CONSOLE // 2 :]
        (self.folder / "console.log").write_bytes(kept)
        answers = sorted(self.scratch.glob("outputs/*/samples/rollout/*.jsonl"), key=lambda path: int(path.stem))
        with gzip.open(self.folder / "answers.jsonl.gz", "wb") as file:
            file.writelines(path.read_bytes() for path in answers)
        end = {"steps": self.steps, "exited": exited, "seconds": round(self.age)}
        (self.folder / "end.json").write_text(json.dumps(end))
        mark(f"{self.id}: {end}")


def judged(gpu: int | None, rows: Sequence[Row] = ROWS, places: int = PLACES) -> None:
    """Conducts the rows on a GPU (None: the CPU) until the time is up, each as another one makes room."""
    lane = Lane() if gpu is None else Lane((gpu,))
    waiting, going = list(rows), list[Run]()
    again = {row.name for row in rows}
    try:
        while left() > 0 and (waiting or going):
            for run in [each for each in going if each.over(bool(waiting))]:
                going.remove(run)
                _end(run)
                if not run.steps and run.row.name in again and left() > LATEST:
                    again.remove(run.row.name)
                    waiting.append(replace(run.row, name=f"{run.row.name}-again"))
            if waiting and left() < LATEST:
                mark(f"judged: no time for {[row.name for row in waiting]}")
                waiting.clear()
            if waiting and len(going) < places and _room(waiting[0], going, lane):
                _begin(waiting.pop(0), lane, going)
            time.sleep(APART)
    finally:
        for run in going:
            _end(run)
    mark("judged: done")


def _end(run: Run) -> None:
    """Ends a run; what cannot be kept of it ends nothing else."""
    try:
        run.end()
    except OSError as error:
        mark(f"{run.id}: {error}")


def _begin(row: Row, lane: Lane, going: list[Run]) -> None:
    """Begins a run; one that ppo-tui refuses ends nothing else."""
    try:
        going.append(Run(row, lane))
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        mark(f"judged-{row.name}: {error} {getattr(error, 'stderr', '')}")


def _room(row: Row, going: Sequence[Run], lane: Lane) -> bool:
    """Whether the GPU and the host have memory for one run more; those that began just now have not taken theirs."""
    if not lane.gpus:
        return True
    young = HOST_GB * sum(run.age < YOUNG for run in going)
    free = psutil.virtual_memory().available / 1e9
    taken = sum(run.row.gib for run in going)
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        taken = max(taken, lane.memory()[0] / 1024)
    return free > HOST_GB + young + SPARE_GB and row.gib + taken <= MOST_GIB
