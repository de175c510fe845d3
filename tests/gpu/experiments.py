"""What is tried on the GPUs, in queues by worth, one queue a GPU."""

from collections.abc import Sequence

from conduct import KIT, Experiment, looked_at, resumed, watched

SMALL = f"model.path={KIT}/model"  # 135M parameters, real weights
HALF, ONE_AND_A_HALF = f"model.path={KIT}/qwen-0.5b", f"model.path={KIT}/qwen-1.5b"  # random ones
HOST = (
    f"data.train={KIT}/train.parquet",
    f"data.val={KIT}/test.parquet",
    "data.max_prompt_length=384",
    "model.use_remove_padding=false",  # there is no flash-attn on the host
    "rollout.enforce_eager=true",  # half a minute less of start-up
    "rollout.gpu_memory_utilization=0.3",
    "trainer.validate_every=20",
    "cluster.cpus=16",  # Ray starts a process for each, and several runs share the host
    "data.train_batch_size=32",
    "actor.ppo_mini_batch_size=16",  # 128 take half a minute a step here
)
# vLLM measures the free memory when it starts, which a run beside it changes: one that is told does not.
BESIDE = "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=8589934592"
BRIEF = (*HOST, "trainer.validate_every=-1", "trainer.validate_first=false", "trainer.save_every=-1")
REWARDED, PPO = "gsm8k-format-reward", "gsm8k-0.5b-24gb"
LORA, GRPO, ONE_AND_A_HALF_PPO = "gsm8k-1.5b-lora-24gb", "gsm8k-grpo-24gb", "gsm8k-1.5b-24gb"

LEARNING = Experiment(
    "learning",
    REWARDED,
    (SMALL, *HOST, "trainer.save_every=20"),
    step=42,
    patience=900,
    at=24,
    first=looked_at,
    after=resumed,
)
# Each step is the same work: a model of random weights never ends an answer, and there is one question only.
# veRL's own buffer, which looks for finished answers every 2 s, would blur a step of 8 s by as much.
OVERHEAD = Experiment(
    "overhead",
    PPO,
    (
        HALF,
        *BRIEF,
        f"data.train={KIT}/one-question.parquet",
        "rollout.gpu_memory_utilization=0.4",
        "data.max_response_length=64",
        "env.PPO_TUI_POLL_INTERVAL=0.1",
    ),
    step=4,
    patience=720,
    at=3,
    first=watched,
)
BLOW_UP = Experiment(
    "blow-up", REWARDED, (SMALL, *BRIEF, BESIDE, "actor.lr=1e-4"), step=25, patience=600, at=18, first=looked_at
)
COLLAPSE = Experiment(
    "collapse",
    REWARDED,
    (SMALL, *BRIEF, BESIDE, "actor.entropy_coeff=-0.2", "actor.lr=2e-5"),
    step=25,
    patience=600,
    at=18,
    first=looked_at,
)
LORA_RUN = Experiment("lora", LORA, (ONE_AND_A_HALF, *BRIEF, "trainer.save_every=3"), step=4, patience=420)
LORA_MERGED = Experiment("lora-merged", LORA, (ONE_AND_A_HALF, *BRIEF, "model.lora_merge=true"), step=3, patience=420)
GRPO_RUN = Experiment(
    "grpo", GRPO, (SMALL, *BRIEF, "rollout.n=4", "data.max_response_length=256"), step=10, patience=360
)
SIZE_ONE_AND_A_HALF = Experiment(
    "size-1.5b",
    ONE_AND_A_HALF_PPO,
    (ONE_AND_A_HALF, *BRIEF, "rollout.gpu_memory_utilization=0.4"),
    step=3,
    patience=420,
)
NO_FLASH_ATTENTION = Experiment("fail-no-flash-attn", PPO, (SMALL, *BRIEF), patience=240, without_plugin=True)
NO_KV_CACHE = Experiment("fail-kv-cache", PPO, (SMALL, *BRIEF, "rollout.gpu_memory_utilization=0.005"), patience=240)
OUT_OF_MEMORY = Experiment(
    "fail-oom",
    PPO,
    (
        HALF,
        *BRIEF,
        "data.train_batch_size=512",
        "actor.ppo_mini_batch_size=512",
        "actor.use_dynamic_bsz=false",
        "actor.ppo_micro_batch_size_per_gpu=512",
        "critic.ppo_micro_batch_size_per_gpu=512",
        "ref.log_prob_micro_batch_size_per_gpu=512",
        "rollout.log_prob_micro_batch_size_per_gpu=512",
    ),
    patience=300,
)
TWO_GPUS = Experiment("two-gpus", REWARDED, (SMALL, *BRIEF, "trainer.gpus=2"), step=5, patience=420)
PACKED = Experiment("remove-padding", PPO, (SMALL, *BRIEF, "model.use_remove_padding=true"), step=3, patience=240)
GRAPHS = Experiment(
    "cuda-graphs", PPO, (SMALL, *BRIEF, "rollout.enforce_eager=false"), step=5, patience=300, at=3, first=looked_at
)

FIXED = ("update", "rollout")  # kinds of fixed work, beside which watching is measured

Queue = Sequence[Sequence[Experiment]]  # one after the other, those of a stage side by side on one GPU

QUEUES: Sequence[Queue] = (
    ((LORA_RUN,), (BLOW_UP, COLLAPSE), (GRPO_RUN,), (NO_KV_CACHE, NO_FLASH_ATTENTION)),
    ((LEARNING,), (SIZE_ONE_AND_A_HALF,), (LORA_MERGED,), (OUT_OF_MEMORY,)),
)
TOGETHER = (TWO_GPUS,)  # when the queues are done, on the first two GPUs
ALONE = (OVERHEAD,)  # then, with nothing beside it on the host: what runs there would be measured, too
SPARE: Sequence[Queue] = (((PACKED,),), ((GRAPHS,),))  # if there is time left

REHEARSAL: Queue = (
    (
        Experiment(
            "learning",
            "toy-cpu",
            ("trainer.steps=60", "trainer.save_every=4"),
            step=14,
            patience=300,
            at=3,
            first=looked_at,
            after=resumed,
        ),
    ),
    (Experiment("size", "toy-cpu", ("trainer.steps=60",), step=13, patience=300, first=watched),),
    (
        Experiment("fail-missing-parquet", "toy-cpu", ("data.train=/nowhere/train.parquet",), patience=120),
        Experiment("alone", "toy-cpu", ("data.val=/nowhere/test.parquet",), patience=120, without_plugin=True),
    ),
)
