"""The second campaign: as many runs side by side as the host has memory for, then a queue with each GPU to one run.

A 135M model needs 10 GB of a GPU, and a start is imports and waiting: six runs share one, or ten. What needs a GPU for
itself is in the queue, which is tried by it, or has the last GPU from the beginning: the presets in 24 GB.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

from cluster import JOINS, SUBMITS
from conduct import KIT, Experiment, looked_at
from experiments import HALF, LORA, ONE_AND_A_HALF, ONE_AND_A_HALF_PPO, PPO, REWARDED, SMALL
from harm import (
    disk_full,
    evaluated,
    every_step_once,
    holding,
    killed,
    memory_taken,
    supervisor_killed,
    tried,
    unmounted,
)

# seconds from the start of the suite, of which 300 are the starts: about 25 steps; more where no queue is to follow
TOGETHER_BY = float(os.environ.get("TOGETHER_BY", "580"))
LATEST = 300  # what could not begin by then comes after the queue
MEMORY, MORE = 16, 8  # GB of the host that a run takes, and another engine of it

FEW = ("rollout.agent_workers=1", "reward.workers=1", "cluster.cpus=12", "env.OMP_NUM_THREADS=1")
NOTHING_ELSE = ("trainer.validate_every=-1", "trainer.validate_first=false", "trainer.save_every=-1")
SHARED = (  # several on one GPU: vLLM is told its KV cache, or it would measure what the others do
    "rollout.gpu_memory_utilization=0.02",
    "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=1073741824",
    "rollout.enforce_eager=true",
    "rollout.free_cache_engine=false",  # vLLM's sleep fails when another run takes memory at that moment
    "model.use_remove_padding=false",  # there is no flash-attn on the host
)
SUMS = (f"data.train={KIT}/sums-train.parquet", f"data.val={KIT}/sums-test.parquet")
SHORT = (
    SMALL,
    *SUMS,
    *FEW,
    *NOTHING_ELSE,
    *SHARED,
    "data.max_prompt_length=128",
    "data.max_response_length=96",
    "data.train_batch_size=32",
    "actor.ppo_mini_batch_size=16",
    "actor.ppo_max_token_len_per_gpu=2048",
    "actor.lr=5e-6",
)
PAIRS = (*SHORT, "critic.lr=5e-5")  # with a critic
GROUPS = ("data.train_batch_size=16", "actor.ppo_mini_batch_size=8", "rollout.n=4")
BREAKS = "actor.lr=1e-4"
PATIENCE = 900.0


def _run(name: str, settings: Sequence[str], by: float = TOGETHER_BY, **more: object) -> Experiment:
    return Experiment(name, REWARDED, tuple(settings), patience=PATIENCE, by=by, **more)  # type: ignore[arg-type]


def _algorithm(name: str, recipe: str, *more: str) -> Experiment:
    return _run(name, (*SHORT, f"recipe={recipe}", *GROUPS, *more), step=24, gpus=(0,))


def _sampling(recipe: str) -> Sequence[str]:
    """A critic, or several responses a prompt."""
    return GROUPS if recipe != "ppo" else ("critic.lr=5e-5",)


def _broken(name: str, *settings: str, recipe: str = "ppo", **more: object) -> Experiment:
    words = (*SHORT, f"recipe={recipe}", *_sampling(recipe), *settings)
    return _run(name, words, step=40, gpus=(1,), until_critical=True, **more)


def _long(name: str, gpu: int, recipe: str, lr: str, *settings: str) -> Experiment:
    """Healthy, for as many steps as the time has, with room for the responses to grow."""
    longer = ("data.max_response_length=160", f"actor.lr={lr}")
    words = (*SHORT, f"recipe={recipe}", *_sampling(recipe), *longer, *settings)
    return replace(_run(name, words, step=2000, gpus=(gpu,)), patience=1500.0)


SAVED = ("trainer.save_every=2", "trainer.max_actor_ckpt_to_keep=2", "trainer.max_critic_ckpt_to_keep=2")
SIDE_BY_SIDE: Sequence[Experiment] = (  # by worth; which GPU is theirs
    _broken("break-blow-up", BREAKS, *SAVED, after=tried(), apart=True),
    _broken("break-collapse", "actor.entropy_coeff=-0.5", "actor.lr=5e-5", *SAVED, after=tried(most=3), apart=True),
    _run(
        "learning",
        (
            *PAIRS,
            "actor.lr=2e-5",
            "data.train_batch_size=64",
            "actor.ppo_mini_batch_size=16",
            "trainer.validate_every=10",
            "trainer.validate_first=true",
            "trainer.save_every=10",
            "trainer.max_actor_ckpt_to_keep=1",
            "trainer.max_critic_ckpt_to_keep=1",
        ),
        step=200,
        gpus=(0,),
        at=20,
        first=looked_at,
        after=evaluated,
        by=TOGETHER_BY - 250,  # which that takes
    ),
    replace(_algorithm("dapo", "dapo", "filter.metric=reward"), at=8, first=looked_at),
    _algorithm("gspo", "gspo"),
    _broken("break-cispo", BREAKS, recipe="cispo"),
    _algorithm("rloo", "rloo"),
    _broken("break-reinforce-pp", BREAKS, recipe="reinforce-pp"),
    _algorithm("reinforce-pp", "reinforce-pp"),
    _broken("break-entropy", "actor.entropy_coeff=0.3", "actor.lr=2e-5"),
    _algorithm("cispo", "cispo"),
    _broken(
        "break-length", "actor.lr=2e-5", f"reward.path={KIT}/repo/tests/gpu/rewards.py", "reward.function=long_ones"
    ),
    _algorithm("remax", "remax"),
    _run(
        "separate-async",
        (
            *PAIRS,
            "trainer.mode=separate_async",
            "trainer.parameter_sync_step=2",
            "rollout.gpus=1",
            "rollout.nodes=1",
            "rollout.weight_transfer=nccl",
            "rollout.update_weights_bucket_megabytes=512",
            "cluster.cpus=16",
        ),
        step=24,
        gpus=(0, 1),
        at=8,
        first=looked_at,
    ),
    _long("long-ppo", 0, "ppo", "5e-6"),
    _long("long-grpo", 1, "grpo", "5e-6"),
    _long("long-rloo", 0, "rloo", "2e-6"),
    _long("long-dapo", 1, "dapo", "5e-6", "filter.metric=reward"),
    _long("long-ppo-fast", 0, "ppo", "1e-5"),
    _long("long-gspo", 1, "gspo", "5e-6"),
    _long("long-reinforce-pp", 0, "reinforce-pp", "2e-6"),
    _long("long-dr-grpo", 1, "dr-grpo", "1e-5"),
    _run("colocate-async", (*PAIRS, "trainer.mode=colocate_async"), step=24, gpus=(0,)),
    _run(
        "killed-worker",
        (*PAIRS, "trainer.save_every=2", "trainer.max_actor_ckpt_to_keep=1", "health.retry=1"),
        step=1,
        gpus=(1,),
        at=3,
        first=killed("WorkerDict", retried=True),
    ),
    _run("killed-disk", (*PAIRS, "trainer.save_every=2"), gpus=(0,), at=1, first=disk_full("256m"), after=unmounted),
    _run("killed-peer", (*PAIRS, "trainer.gpus=2", "cluster.cpus=16"), gpus=(0, 1), at=3, first=killed("WorkerDict")),
)
JOINED = (
    _run("joined", (*PAIRS, *JOINS), step=3),
    # veRL's new trainer names its queue once for the whole cluster, so the second one is the old trainer
    _run("joined-legacy", (*PAIRS, *JOINS, "trainer.use_v1=false"), step=3),
)
SUBMITTED = replace(_run("submitted", (*PAIRS, *SUBMITS), step=3, at=1), by=TOGETHER_BY + 60)

CARD = 24_207  # MiB that torch has of an RTX 4090
SHARE = round(0.4 * CARD / float(os.environ.get("GPU_MIB", "143166")), 4)  # of the GPU that is lent, an H200
SHIPPED = (  # as the presets are, with flash-attn (FLASH=1); the share of vLLM is of the whole GPU that is lent
    f"data.train={KIT}/train.parquet",
    f"data.val={KIT}/test.parquet",
    "rollout.agent_workers=2",  # processes of the host: its memory is not what is tried
    "reward.workers=2",
    f"rollout.gpu_memory_utilization={SHARE}",  # 0.4 of such a card
    "trainer.validate_first=false",
    "trainer.validate_every=-1",
)
KEPT = ("trainer.save_every=2", "trainer.max_actor_ckpt_to_keep=1", "trainer.max_critic_ckpt_to_keep=1")
ALONE = "rollout.gpu_memory_utilization=0.1"
QUEUE: Sequence[Experiment] = (  # in its order
    Experiment(
        "killed-supervisor",
        REWARDED,
        (*PAIRS, ALONE),
        step=12,
        at=3,
        first=supervisor_killed,
        after=every_step_once,
        patience=420,
    ),
    Experiment("killed-memory", REWARDED, (*PAIRS, ALONE), at=3, first=memory_taken, patience=420),
    Experiment("refused-data", REWARDED, (*PAIRS, "data.train=/nowhere/train.parquet"), refused=True),
    Experiment("refused-gpus", REWARDED, (*PAIRS, "trainer.gpus=3"), refused=True),
)
FEWER = ("data.train_batch_size=32", "actor.ppo_mini_batch_size=32")  # one update a step: Adam on the CPU takes minutes
CARDS: Sequence[Experiment] = tuple(  # one after another on the last GPU, beside all others
    Experiment(name, preset, (*SHIPPED, *more), step=steps, patience=480, beside=holding(CARD))
    for name, preset, steps, more in (
        ("card-0.5b", PPO, 3, (HALF, *KEPT)),
        ("card-lora", LORA, 3, (ONE_AND_A_HALF, *KEPT)),
        ("card-1.5b", ONE_AND_A_HALF_PPO, 2, (ONE_AND_A_HALF, *FEWER, "trainer.save_every=-1")),
    )
)

TOY = ("trainer.steps=60", "trainer.validate_first=false", "trainer.validate_every=-1")
REHEARSED: Sequence[Experiment] = (
    Experiment("learning", "toy-cpu", (*TOY, "trainer.save_every=2"), step=4, patience=400, after=evaluated),
    Experiment(
        "break-toy",
        "toy-cpu",
        (*TOY, "actor.lr=0.03", "trainer.save_every=1"),
        step=12,
        patience=400,
        until_critical=True,
        first=looked_at,
        after=tried(settings=("--steps", "3")),
        apart=True,
    ),
    Experiment(
        "killed-worker",
        "toy-cpu",
        (*TOY, "trainer.save_every=1", "health.retry=1"),
        step=1,
        patience=400,
        at=2,
        first=killed("WorkerDict", retried=True),
    ),
)
REHEARSED_CLUSTER = (
    Experiment("joined", "toy-cpu", (*TOY, *JOINS), step=2, patience=400),
    Experiment("submitted", "toy-cpu", (*TOY, *SUBMITS), step=3, at=1, patience=400),
)
REHEARSED_QUEUE: Sequence[Experiment] = (
    Experiment(
        "killed-supervisor", "toy-cpu", TOY, step=10, at=2, first=supervisor_killed, after=every_step_once, patience=400
    ),
    Experiment("refused-data", "toy-cpu", (*TOY, "data.train=/nowhere/train.parquet"), refused=True),
    Experiment(
        "killed-disk",
        "toy-cpu",
        (*TOY, "trainer.save_every=2"),
        at=1,
        first=disk_full("256k"),
        after=unmounted,
        patience=400,
    ),
)
