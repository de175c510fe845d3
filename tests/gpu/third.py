"""The third campaign: a run to look at, hangs of two GPUs, memory, slow settings, and a queue on the second GPU.

Each GPU has seven runs at a time at most. The show run has the first GPU to the end; the queue gets the second one when
all others there are over.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from campaign import FEW, GROUPS, PAIRS, SAVED, SHORT, SMALL
from conduct import KIT, Experiment
from experiments import BRIEF, HALF, REWARDED
from harm import faster, hanging, killed, reported, timed, tried

HERE = KIT / "repo/tests/gpu"
QUEUE_FROM = float(os.environ.get("QUEUE_FROM", "850"))  # seconds from the start of the suite
LATEST = 560.0  # what could not begin by then is left out
MOST = 7  # runs on a GPU

SHOW = Experiment(
    "show",
    f"{HERE}/list-numbers.yaml",
    (
        SMALL,
        f"data.train={KIT}/lists-train.parquet",
        f"data.val={KIT}/lists-test.parquet",
        f"reward.path={HERE}/list_numbers.py",
        "rollout.agent_workers=2",
        "reward.workers=1",
        "cluster.cpus=16",
        "rollout.gpu_memory_utilization=0.1",
        "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=4294967296",
        "rollout.free_cache_engine=false",
        "rollout.cudagraph_capture_sizes=[1,2,4,8,16,32,64,128,256]",
    ),
    patience=3000,
    gpus=(0,),
    after=reported,
)


def _of(name: str, gpus: tuple[int, ...], *settings: str, step: int, **more: object) -> Experiment:
    by = QUEUE_FROM if 1 in gpus else float("inf")
    return Experiment(name, REWARDED, settings, step=step, gpus=gpus, by=by, patience=1400, **more)  # type: ignore[arg-type]


BOTH = (*PAIRS, "trainer.gpus=2", "cluster.cpus=16", "env.VERL_USE_EXTERNAL_MODULES=asleep")
JUDGED = f"reward.path={HERE}/hang/asleep.py"
SCORED = (JUDGED, "reward.function=score")
SPEED = (
    *PAIRS,
    "data.train_batch_size=64",
    "actor.ppo_mini_batch_size=32",
    "rollout.cudagraph_capture_sizes=[1,2,4,8,16,32,64]",  # of the trial that turns eager mode off
)
TINY = (
    "actor.use_dynamic_bsz=false",
    "actor.ppo_micro_batch_size_per_gpu=1",
    "critic.ppo_micro_batch_size_per_gpu=16",
    "ref.log_prob_micro_batch_size_per_gpu=16",
    "rollout.log_prob_micro_batch_size_per_gpu=16",
)
GROUPED = (*SHORT, "recipe=grpo", *GROUPS)
ADAPTED = (
    *PAIRS,
    "actor.strategy=fsdp2",
    *("model.lora_rank=16", "model.lora_alpha=16", "model.target_modules=all-linear", "actor.lr=1e-5"),
    *("critic.lora_rank=16", "critic.lora_alpha=16", "rollout.load_format=safetensors"),
)
SLEEPS = "rollout.free_cache_engine=true"

THIRD: Sequence[Experiment] = (  # in the order of their start
    SHOW,
    _of("hang-ranks", (0, 1), *BOTH, *SCORED, step=1, at=4, first=hanging("reward", "rank")),
    _of("slow-eager", (0,), *SPEED, step=6, after=faster, apart=True),
    _of(
        "break-collapse",
        (1,),
        *(*PAIRS, "actor.entropy_coeff=-0.5", "actor.lr=5e-5", *SAVED),
        step=40,
        until_critical=True,
        after=tried(most=2, by=QUEUE_FROM),
        apart=True,
    ),
    _of("slow-micro", (0,), *SPEED, *TINY, step=6, after=faster, apart=True),
    _of("hang-stopped", (0, 1), *BOTH, step=1, at=4, first=hanging("stopped")),
    _of("memory-grpo-keep", (1,), *GROUPED, step=3),
    _of("killed-peer", (0, 1), *BOTH, step=1, at=3, first=killed("WorkerDict")),
    _of("memory-lora-keep", (1,), *ADAPTED, step=3),
    _of("slow-reward", (0,), *SPEED, JUDGED, "reward.function=slow", step=6, after=timed),
    _of("memory-ppo", (1,), *PAIRS, SLEEPS, step=3),
    # when the first ones are over
    _of("slow-sequences", (0,), *SPEED, "rollout.max_num_seqs=4", step=6, after=timed),
    _of("slow-validation", (1,), *SPEED, "trainer.validate_every=1", step=6, after=timed),
    _of("memory-grpo", (1,), *GROUPED, SLEEPS, step=3),
    _of("slow-checkpoint", (1,), *SPEED, *SAVED, "trainer.save_every=1", step=6, after=timed),
    _of("memory-lora", (1,), *ADAPTED, SLEEPS, step=3),
)

SOON = (*SHORT, "env.VERL_USE_EXTERNAL_MODULES=asleep", "env.ENDS_AFTER=12")  # asleep.py
REAL = (HALF, *BRIEF, *FEW, "data.max_response_length=128", "trainer.steps=2")
_QUEUED: Sequence[tuple[str, Sequence[str], bool]] = (
    ("ends-1", SOON, False),
    ("refused-data", (*PAIRS, "data.train=/nowhere/train.parquet"), True),
    ("ends-2", SOON, False),
    ("critic-0.5b", REAL, False),
    ("refused-gpus", (*PAIRS, "trainer.gpus=3"), True),
    ("ends-3", SOON, False),
    ("ends-4", SOON, False),
    ("grpo-0.5b", (*REAL, "recipe=grpo", *GROUPS), False),
    ("ends-5", SOON, False),
)
QUEUED: Sequence[Experiment] = tuple(
    Experiment(name, REWARDED, tuple(settings), refused=refused, patience=420) for name, settings, refused in _QUEUED
)

TOY = ("trainer.steps=60", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=2")
TWO = ("trainer.gpus=2", *(f"{part}.ppo_micro_batch_size_per_gpu=16" for part in ("actor", "critic")))
REHEARSED: Sequence[Experiment] = (
    replace(
        _of("hang-ranks", (), *TOY, *SCORED, "env.VERL_USE_EXTERNAL_MODULES=asleep", step=1, at=4),
        preset="toy-cpu",
        first=hanging("reward", "rank", "stopped"),
    ),
    replace(
        _of("hang-two", (), *TOY, *TWO, "env.VERL_USE_EXTERNAL_MODULES=asleep", step=1, at=4),
        preset="toy-cpu",
        first=hanging("rank", "stopped"),
    ),
    replace(_of("slow-micro", (), *TOY, TINY[1], step=6, apart=True), preset="toy-cpu", after=faster),
    replace(_of("show", (), *TOY, step=3), preset="toy-cpu", after=reported),
)
REHEARSED_QUEUE: Sequence[Experiment] = (
    Experiment("ends-1", "toy-cpu", (*TOY, *SOON[-2:]), patience=200),
    Experiment("refused-data", "toy-cpu", (*TOY, "data.train=/nowhere/train.parquet"), refused=True),
    Experiment("ends-2", "toy-cpu", (*TOY, *SOON[-2:]), patience=200),
    Experiment("real", "toy-cpu", (*TOY, "trainer.steps=1"), patience=300),
)
