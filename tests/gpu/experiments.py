"""What the runs of a GPU experiment share, and the experiments that are no judged runs."""

from collections.abc import Sequence
from pathlib import Path

from conduct import KIT, Experiment
from harm import disk_full, hanging, killed, tried, unmounted

HERE = Path(__file__).parent
REWARDED = "gsm8k-format-reward"
BASE = (  # several runs on one GPU
    f"model.path={KIT}/model",  # 135M parameters, real weights
    f"data.train={KIT}/sums-train.parquet",
    f"data.val={KIT}/sums-test.parquet",
    *("rollout.agent_workers=1", "reward.workers=1", "cluster.cpus=12", "env.OMP_NUM_THREADS=1"),
    *("trainer.validate_every=-1", "trainer.validate_first=false", "trainer.save_every=-1"),
    "rollout.gpu_memory_utilization=0.02",  # vLLM has its KV cache in bytes, or it would measure what the others do
    "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=1073741824",
    "rollout.enforce_eager=true",  # half a minute less of start-up
    "rollout.free_cache_engine=false",  # vLLM's sleep fails when another run takes memory at that moment
    "model.use_remove_padding=false",  # there is no flash-attn on the host
    *("data.max_prompt_length=128", "data.max_response_length=96"),
)
GROUPS = ("data.train_batch_size=16", "actor.ppo_mini_batch_size=8", "rollout.n=4")
PAIRS = (  # with a critic
    *BASE,
    *("data.train_batch_size=32", "actor.ppo_mini_batch_size=16", "actor.ppo_max_token_len_per_gpu=2048"),
    *("actor.lr=5e-6", "critic.lr=5e-5"),
)
ASLEEP = "env.VERL_USE_EXTERNAL_MODULES=asleep"
BOTH = (*PAIRS, "trainer.gpus=2", "cluster.cpus=16", ASLEEP)
SCORED = (f"reward.path={HERE}/hang/asleep.py", "reward.function=score")
SAVED = ("trainer.save_every=2", "trainer.max_actor_ckpt_to_keep=2", "trainer.max_critic_ckpt_to_keep=2")
BREAKS = (*PAIRS, *SAVED, "actor.entropy_coeff=-0.5", "actor.lr=5e-5")


def _hang(name: str, *kinds: str) -> Experiment:
    words = (*BOTH, *SCORED)
    return Experiment(name, REWARDED, words, step=1, patience=900, at=4, first=hanging(*kinds), gpus=(0, 1))


EXPERIMENTS: Sequence[Experiment] = (
    _hang("hang-ranks", "reward", "rank"),
    _hang("hang-stopped", "stopped"),
    Experiment("killed-peer", REWARDED, BOTH, patience=900, at=3, first=killed("WorkerDict"), gpus=(0, 1)),
    Experiment("killed-disk", REWARDED, (*PAIRS, *SAVED), patience=900, at=1, first=disk_full("256m"), after=unmounted),
    Experiment(
        "collapse", REWARDED, BREAKS, step=40, patience=1400, until_critical=True, after=tried(most=2), apart=True
    ),
)
TOY = ("trainer.steps=60", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=1")
REHEARSED: Sequence[Experiment] = (
    Experiment(
        "hang-ranks", "toy-cpu", (*TOY, *SCORED, ASLEEP), step=1, at=4, first=hanging("reward", "rank", "stopped")
    ),
    Experiment(
        "collapse",
        "toy-cpu",
        (*TOY, "actor.lr=0.03"),
        step=12,
        until_critical=True,
        after=tried(settings=("--steps", "3")),
        apart=True,
    ),
)
