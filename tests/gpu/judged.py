"""Forty runs that readers judge by their metrics before any rule sees them: first and usual runs, a third with a fault.

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
from conduct import KIT, RESULTS, left, mark, once
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
    rules: Settings = ()  # any of these would name the fault, said before the run
    useless: bool = False  # nothing is harmed, and nothing can be learned


REWARDS = f"reward.path={KIT}/repo/tests/gpu/rewards.py"
SHARED = (
    *BASE,
    REWARDS,
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


LORA = (
    *("actor.strategy=fsdp2", "rollout.load_format=safetensors"),
    *("model.lora_rank=8", "model.lora_alpha=16", "model.target_modules=all-linear"),
)
DECAYED = ("trainer.steps=24", "actor.lr=2e-5", "actor.lr_scheduler_type=cosine", "actor.min_lr_ratio=0")
TWELVE = ("data.train_batch_size=12", "actor.ppo_mini_batch_size=6")
SIXTEEN = ("data.train_batch_size=4", "actor.ppo_mini_batch_size=4", "rollout.n=16", "rollout.temperature=1.1")


def _fault(
    name: str, fault: str, rules: Sequence[str], *settings: str, steps: int = 22, base: Settings = GROUPED
) -> Row:
    gib = CRITIC_GIB if base is WITH_CRITIC else GROUPED_GIB
    return Row(name, fault, "", (*base, *settings), steps, gib, rules=tuple(rules))


def _useless(name: str, fault: str, rules: Sequence[str], *settings: str, steps: int = 22) -> Row:
    return replace(_fault(name, fault, rules, *settings, steps=steps), useless=True)


def _odd(name: str, odd: str, *settings: str, steps: int = 22, base: Settings = GROUPED) -> Row:
    return replace(_fault(name, "", (), *settings, steps=steps, base=base), odd=odd)


def _reward(function: str) -> str:
    return f"reward.function={function}"


VALIDATED = ("trainer.validate_first=true", "trainer.validate_every=4", "data.val_max_samples=128")
ADAPTED = ("kl.in_loss=false", "kl.in_reward=true", "kl.controller=adaptive", "kl.coef=0.01")
ROWS: Sequence[Row] = (  # those that differ most from each other first; the first twelve begin at once
    _fault("lr-large", "learning rate 3e-4", ("KL-1", "KL-4", "CLIP-1"), "actor.lr=3e-4"),
    _odd("first-ppo", "PPO as the preset has it", "actor.lr=5e-6", "critic.lr=1e-5", base=WITH_CRITIC),
    _fault("critic-lr", "learning rate of the critic 0.01", ("CRIT-1",), "critic.lr=1e-2", base=WITH_CRITIC),
    _odd("first-grpo", "GRPO, learning rate 1e-5", "actor.lr=1e-5", *VALIDATED, steps=24),
    _fault(
        "kl-runs-away",
        "adaptive KL coefficient that doubles every few steps",
        ("KL-3",),
        *(*ADAPTED, "kl.target=0.0005", "kl.horizon=100", "actor.lr=2e-5"),
        steps=26,
    ),
    _fault("no-end", "the end-of-sequence token is ignored", ("TRUNC-1",), "rollout.ignore_eos=true", steps=24),
    _useless("no-reward", "the reward function finds no answer", ("SIG-1", "GROUP-1"), _reward("boxed"), steps=20),
    _odd("rloo", "RLOO with groups of 4", "recipe=rloo", "rollout.n=4"),
    _fault(
        "hashes",
        "in training each mark pays, in validation the answer",
        ("HACK-1", "HACK-2", "VAL-1"),
        _reward("marks_in_training"),
        *VALIDATED,
        steps=26,
    ),
    _odd("lora-small", "LoRA of rank 8", *LORA, "actor.lr=5e-5", steps=24),
    _fault("entropy-bonus", "entropy coefficient 0.3", ("ENT-2",), "actor.entropy_coeff=0.3", steps=24),
    _odd("cool", "temperature 0.8", "rollout.temperature=0.8"),
    _useless(
        "greedy", "greedy decoding, so groups of equal answers", ("GROUP-1",), "rollout.do_sample=false", steps=20
    ),
    _fault("long-pays", "nine tenths of the reward for length", ("HACK-1", "LEN-1", "TRUNC-1"), _reward("long_ones")),
    _odd("dapo", "DAPO with clip-higher", "recipe=dapo", "rollout.n=4"),
    _useless("lr-tiny", "learning rate 1e-10", ("LR-1", "GRAD-2", "KL-2"), "actor.lr=1e-10", steps=26),
    _odd("dr-grpo", "Dr. GRPO with groups of 6", "recipe=dr-grpo", "rollout.n=6", *TWELVE),
    _fault(
        "many-updates",
        "four passes of eight updates each",
        ("KL-1", "CLIP-1", "KL-4", "RATIO-1"),
        *("actor.ppo_epochs=4", "actor.ppo_mini_batch_size=2", "actor.lr=5e-5"),
        steps=20,
    ),
    _odd("slow", "learning rate 3e-6, KL coefficient 0.01", "actor.lr=3e-6", "kl.loss_coef=0.01", steps=26),
    _odd("longer", "8 prompts, 160 tokens", "data.train_batch_size=8", "data.max_response_length=160", steps=20),
    _useless(
        "half-precision",
        "master weights in bf16 with a learning rate of 1e-6",
        ("LR-1", "GRAD-2", "KL-2"),
        *("actor.model_dtype=bfloat16", "actor.lr=1e-6"),
        steps=26,
    ),
    _odd("reinforce", "REINFORCE++ with groups of 2", "recipe=reinforce-pp", "rollout.n=2", "actor.lr=5e-6"),
    _odd("gspo", "GSPO with groups of 4", "recipe=gspo", "rollout.n=4"),
    _odd("decayed", "linear decay to 0 in 24 steps", *DECAYED, steps=24),
    # if there is room
    _odd("warmed", "12 steps of warm-up, PPO", "actor.lr_warmup_steps=12", base=WITH_CRITIC, steps=20),
    _odd("sixteen", "16 answers to 4 prompts, temperature 1.1", *SIXTEEN, steps=20),
)
TOY = ("trainer.steps=40", "trainer.save_every=-1", "trainer.validate_every=8", "data.val_max_samples=128")


def _toy(
    name: str, fault: str, odd: str, *settings: str, rules: Sequence[str] = (), steps: int = 40, useless: bool = False
) -> Row:
    return Row(f"toy-{name}", fault, odd, (*TOY, *settings), steps, 0.0, "toy-cpu", tuple(rules), useless)


TOY_GRPO = ("recipe=grpo", "rollout.n=4", "data.train_batch_size=16", "actor.ppo_mini_batch_size=8")
TOYS: Sequence[Row] = (  # on a host with many cores
    _toy("lr", "learning rate 0.02", "", "actor.lr=2e-2", rules=("KL-1", "KL-4", "SIG-1")),
    _toy("critic", "learning rate of the critic 1", "", "critic.lr=1", rules=("CRIT-1",)),
    _toy("bonus", "entropy coefficient 0.5", "", "actor.entropy_coeff=0.5", rules=("ENT-2",)),
    _toy(
        "kl",
        "adaptive KL coefficient that runs away",
        "",
        *ADAPTED,
        "kl.target=0.0005",
        "kl.horizon=200",
        rules=("KL-3",),
    ),
    _toy(
        "long-pays",
        "a reward for length",
        "",
        REWARDS,
        _reward("long_toys"),
        *TOY_GRPO,
        rules=("REW-1", "TRUNC-1", "HACK-1", "LEN-1"),
    ),
    _toy("constant", "the same reward for all answers", "", REWARDS, _reward("same"), rules=("SIG-1",), useless=True),
    _toy("lr-tiny", "learning rate 1e-12", "", "actor.lr=1e-12", rules=("LR-1", "GRAD-2", "KL-2"), useless=True),
    _toy(
        "no-reward",
        "no answer is found",
        "",
        REWARDS,
        _reward("boxed"),
        *TOY_GRPO,
        rules=("SIG-1", "GROUP-1"),
        useless=True,
    ),
    _toy("as-shipped", "", "the toy as it is"),
    _toy("grpo", "", "GRPO with groups of 4", *TOY_GRPO),
    _toy("rloo", "", "RLOO with groups of 4", "recipe=rloo", *TOY_GRPO[1:]),
    _toy("slow", "", "a third of the learning rate", "actor.lr=1e-4"),
    _toy("small", "", "32 prompts, one update a step", "data.train_batch_size=32"),
    _toy("passes", "", "two passes", "actor.ppo_epochs=2"),
    _toy("cool", "", "temperature 0.8", "rollout.temperature=0.8"),
    _toy("sums", "", "a fifth of the reward for the mark", REWARDS, _reward("sums")),
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
        words = [PPO_TUI, "preset", "show", "--command", self.row.preset, *once(self.row.settings), "--json"]
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
