"""What the runs of a GPU experiment share, and the experiments that are no judged runs."""

from collections.abc import Sequence
from pathlib import Path

from conduct import KIT, Experiment
from harm import disk_frozen, disk_full, hanging, starting, tried, unmounted

HERE = Path(__file__).parent
REWARDED, SUMS = "gsm8k-format-reward", str(HERE / "sums.yaml")
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
FULL = (*PAIRS, "trainer.save_every=2", "trainer.max_actor_ckpt_to_keep=2", "trainer.max_critic_ckpt_to_keep=2")
SHOWN = (  # what learns from sums in half an hour; its usual learning rates are those of the preset
    *(each for each in BASE if not each.startswith(("trainer.", "data.max"))),
    *("actor.lr_warmup_steps=20", "trainer.validate_first=false"),
)
LATER, LAST = 150.0, 340.0  # seconds: after the first step of the first start, after those of the second ones


def _hang(name: str, *kinds: str, delay: float) -> Experiment:
    words = (*BOTH, *SCORED)
    return Experiment(
        name, REWARDED, words, step=1, patience=900, at=4, first=hanging(*kinds), gpus=(0, 1), delay=delay
    )


def _start(name: str, *settings: str, delay: float = LAST) -> Experiment:
    """The show once more, to its first step."""
    return Experiment(
        name, SUMS, (*SHOWN, *settings), step=1, at=0, first=starting, gpus=(1,), delay=delay, patience=600
    )


EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        "show",
        SUMS,
        (*SHOWN, "actor.lr=4e-4"),
        step=40,
        patience=1400,
        until_critical=True,
        after=tried(most=2, further=25),
        apart=True,
    ),
    _start("start-second", delay=LATER),
    _hang("hang-ranks", "reward", "rank", "engine", delay=LATER),
    _hang("hang-stopped", "stopped", "engine-stopped", delay=LATER + 20),
    Experiment(
        "frozen-disk", SUMS, SHOWN, 1, 900, at=1, first=disk_frozen(5), after=unmounted, gpus=(1,), delay=LATER + 40
    ),
    Experiment(  # when the GPU has room again
        "killed-disk", REWARDED, FULL, None, 900, at=1, first=disk_full("256m"), after=unmounted, gpus=(1,), delay=520
    ),
    _start("start-third"),
    _start("start-graphs", "rollout.enforce_eager=false"),
    _start("start-dashboard", "+ray_kwargs.ray_init.include_dashboard=true"),
    _start("start-bytecode", "env.PYTHONPYCACHEPREFIX=/nowhere", "env.PYTHONDONTWRITEBYTECODE=1"),
)
TOY = ("trainer.steps=60", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=1")
REHEARSED: Sequence[Experiment] = (
    Experiment(
        "hang-ranks", "toy-cpu", (*TOY, *SCORED, ASLEEP), step=1, at=4, first=hanging("reward", "rank", "stopped")
    ),
    Experiment("frozen-disk", "toy-cpu", TOY, step=1, at=1, first=disk_frozen(5), after=unmounted),
    Experiment("start-second", "toy-cpu", TOY, step=1, at=0, first=starting),
    Experiment(
        "show",
        "toy-cpu",
        (*TOY, "actor.lr=0.03"),
        step=12,
        until_critical=True,
        after=tried(settings=("--steps", "3"), further=4),
        apart=True,
    ),
)
