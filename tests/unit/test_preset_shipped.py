"""The shipped presets, composed by Hydra against the installed veRL, have the values they are known for.

veRL is never imported (that takes half a minute): its configuration tree is found without it.
"""

import importlib.util
import sys
from importlib import metadata
from pathlib import Path

import pytest
from verl_wheels import compose

from launcher.inside import BY_PATH
from launcher.preset.files import load, shipped, summary
from launcher.preset.translate import Launch, RunFolders, build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("shipped presets"),  # one composes all
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL is not installed"),
]

MODEL, ACTOR, ROLLOUT, REF = (f"actor_rollout_ref.{part}" for part in ("model", "actor", "rollout", "ref"))
GSM8K = {
    "data.train_files": str(Path.home() / "data/gsm8k/train.parquet"),
    "data.val_files": str(Path.home() / "data/gsm8k/test.parquet"),
    "reward.custom_reward_function.path": None,
    "trainer.nnodes": 1,
}
FROM_1 = {  # tutorial 001, the single-GPU script
    **GSM8K,
    "algorithm.adv_estimator": "gae",
    "algorithm.use_kl_in_reward": True,
    "algorithm.kl_ctrl.kl_coef": 0.001,
    "algorithm.kl_ctrl.type": "fixed",
    f"{MODEL}.path": "Qwen/Qwen2.5-0.5B-Instruct",
    f"{MODEL}.use_remove_padding": True,
    f"{MODEL}.enable_gradient_checkpointing": True,
    "data.train_batch_size": 128,
    "data.max_prompt_length": 512,
    "data.max_response_length": 256,
    "data.filter_overlong_prompts": True,
    f"{ACTOR}.optim.lr": 1e-6,
    f"{ACTOR}.ppo_mini_batch_size": 64,
    f"{ACTOR}.use_dynamic_bsz": True,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 16384,
    f"{ACTOR}.entropy_coeff": 0,
    f"{ACTOR}.clip_ratio": 0.2,
    f"{ACTOR}.fsdp_config.param_offload": False,
    f"{ACTOR}.fsdp_config.optimizer_offload": False,
    f"{ROLLOUT}.name": "vllm",
    f"{ROLLOUT}.tensor_model_parallel_size": 1,
    f"{ROLLOUT}.gpu_memory_utilization": 0.4,
    f"{ROLLOUT}.n": 1,
    f"{ROLLOUT}.log_prob_use_dynamic_bsz": True,
    f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 16384,
    f"{REF}.log_prob_use_dynamic_bsz": True,
    f"{REF}.log_prob_max_token_len_per_gpu": 16384,
    f"{REF}.fsdp_config.param_offload": True,
    "critic.model.path": "Qwen/Qwen2.5-0.5B-Instruct",
    "critic.model.use_remove_padding": True,
    "critic.model.enable_gradient_checkpointing": True,
    "critic.optim.lr": 1e-5,
    "critic.use_dynamic_bsz": True,
    "critic.ppo_infer_max_token_len_per_gpu": 16384,  # the key that 0.9 reads
    "critic.fsdp.param_offload": False,
    "critic.fsdp.optimizer_offload": False,
    "trainer.balance_batch": True,
    "trainer.critic_warmup": 0,
    "trainer.n_gpus_per_node": 1,
    "trainer.save_freq": 20,
    "trainer.test_freq": 5,
    "trainer.total_epochs": 20,
}
FP32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
KNOWN = {  # of the others, every value is in their files
    "gsm8k-0.5b-24gb": FROM_1,
    "gsm8k-1.5b-24gb": {  # 001, option 2, with Adam on the CPU: 25 GB a model do not fit
        **FROM_1,
        f"{MODEL}.path": "Qwen/Qwen2.5-1.5B-Instruct",
        "critic.model.path": "Qwen/Qwen2.5-1.5B-Instruct",
        "data.train_batch_size": 64,
        f"{ACTOR}.ppo_mini_batch_size": 16,
        f"{ACTOR}.ppo_max_token_len_per_gpu": 8192,
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 8192,
        f"{REF}.log_prob_max_token_len_per_gpu": 8192,
        "critic.ppo_infer_max_token_len_per_gpu": 8192,
        f"{ACTOR}.strategy": "fsdp2",
        f"{REF}.strategy": "fsdp2",
        "critic.strategy": "fsdp2",
        f"{ACTOR}.fsdp_config.offload_policy": True,
        "critic.fsdp.offload_policy": True,
    },
    "gsm8k-1.5b-lora-24gb": {  # 001, extended: LoRA of rank 16 with offloaded parameters
        **FROM_1,
        f"{MODEL}.path": "Qwen/Qwen2.5-1.5B-Instruct",
        f"{MODEL}.lora_rank": 16,
        f"{MODEL}.target_modules": "all-linear",
        "critic.model.path": "Qwen/Qwen2.5-1.5B-Instruct",
        "critic.model.lora_rank": 16,
        "data.train_batch_size": 64,
        f"{ACTOR}.ppo_mini_batch_size": 16,
        f"{ACTOR}.optim.lr": 1e-5,  # about ten times the rate of full fine-tuning
        "critic.optim.lr": 5e-5,
        f"{ACTOR}.ppo_max_token_len_per_gpu": 8192,
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 8192,
        f"{REF}.log_prob_max_token_len_per_gpu": 8192,
        "critic.ppo_infer_max_token_len_per_gpu": 8192,
        f"{ACTOR}.fsdp_config.param_offload": True,
        "critic.fsdp.param_offload": True,
        f"{ROLLOUT}.load_format": "safetensors",  # dummy leaves random weights in the engine
        f"{ACTOR}.strategy": "fsdp2",  # seen on an H200: FSDP 1 hands the engine an empty adapter
        "critic.strategy": "fsdp2",
        f"{REF}.strategy": "fsdp2",
    },
    "gsm8k-format-reward": {  # 001, advanced reward
        **FROM_1,
        "reward.custom_reward_function.path": str(BY_PATH / "gsm8k_format.py"),
        "reward.custom_reward_function.name": "compute_score",
    },
    "gsm8k-math-mixed": {  # 001, extended: both training sets
        **FROM_1,
        "data.train_files": [str(Path.home() / f"data/{name}/train.parquet") for name in ("gsm8k", "math")],
        "data.val_files": [str(Path.home() / f"data/{name}/test.parquet") for name in ("gsm8k", "math")],
        "data.max_prompt_length": 1024,  # MATH's, as in 002
        "data.max_response_length": 512,
        "trainer.total_epochs": 10,
        "trainer.test_freq": 20,
    },
    "gsm8k-grpo-24gb": {  # 003
        **GSM8K,
        "algorithm.adv_estimator": "grpo",
        "algorithm.use_kl_in_reward": False,
        f"{MODEL}.path": "Qwen/Qwen2.5-0.5B-Instruct",
        f"{MODEL}.use_remove_padding": True,
        f"{MODEL}.enable_gradient_checkpointing": True,
        "data.train_batch_size": 16,
        "data.max_prompt_length": 512,
        "data.max_response_length": 1024,
        "data.filter_overlong_prompts": True,
        "data.truncation": "error",
        f"{ACTOR}.optim.lr": 1e-6,
        f"{ACTOR}.ppo_mini_batch_size": 16,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 4,
        f"{ACTOR}.use_kl_loss": True,
        f"{ACTOR}.kl_loss_coef": 0.001,
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        f"{ACTOR}.entropy_coeff": 0,
        f"{ACTOR}.fsdp_config.param_offload": False,
        f"{ACTOR}.fsdp_config.optimizer_offload": False,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8,
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        f"{ROLLOUT}.gpu_memory_utilization": 0.7,
        f"{ROLLOUT}.n": 5,
        f"{REF}.log_prob_micro_batch_size_per_gpu": 8,
        f"{REF}.fsdp_config.param_offload": True,
        "trainer.save_freq": 20,
        "trainer.test_freq": 5,
        "trainer.total_epochs": 5,
    },
    "toy-cpu": {  # the recorded run of cpu-smoke
        "data.train_batch_size": 64,
        "data.max_prompt_length": 64,
        "data.max_response_length": 8,
        "data.dataloader_num_workers": 0,
        f"{MODEL}.use_remove_padding": False,
        f"{MODEL}.enable_gradient_checkpointing": False,
        f"{MODEL}.override_config.attn_implementation": "eager",
        f"{ACTOR}.strategy": "fsdp2",
        f"{REF}.strategy": "fsdp2",
        "critic.strategy": "fsdp2",
        f"{ACTOR}.optim.lr": 3e-4,
        f"{ACTOR}.ppo_mini_batch_size": 32,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 32,
        f"{ACTOR}.use_kl_loss": True,
        f"{ACTOR}.kl_loss_coef": 0.001,
        f"{ACTOR}.fsdp_config.mixed_precision": FP32,
        f"{REF}.fsdp_config.mixed_precision": FP32,
        "critic.fsdp.mixed_precision": FP32,
        f"{ACTOR}.fsdp_config.use_torch_compile": False,
        f"{REF}.fsdp_config.use_torch_compile": False,
        "critic.fsdp.use_torch_compile": False,
        f"{REF}.log_prob_micro_batch_size_per_gpu": 32,
        f"{ROLLOUT}.name": "hf",
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        f"{ROLLOUT}.free_cache_engine": False,
        f"{ROLLOUT}.agent.num_workers": 1,
        f"{ROLLOUT}.val_kwargs.do_sample": True,
        f"{ROLLOUT}.val_kwargs.temperature": 1.0,
        f"{ROLLOUT}.val_kwargs.n": 4,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 32,
        "critic.model.use_remove_padding": False,
        "critic.model.enable_gradient_checkpointing": False,
        "critic.model.override_config.attn_implementation": "eager",
        "critic.optim.lr": 1e-3,
        "critic.ppo_micro_batch_size_per_gpu": 32,
        "algorithm.adv_estimator": "gae",
        "reward.num_workers": 1,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        "trainer.device": "cpu",
        "trainer.n_gpus_per_node": 1,
        "trainer.total_epochs": 1000,
        "trainer.total_training_steps": 60,
        "trainer.val_before_train": True,
        "trainer.test_freq": 10,
        "trainer.save_freq": 10,
        "trainer.max_actor_ckpt_to_keep": 3,
        "trainer.max_critic_ckpt_to_keep": 3,
        "trainer.resume_mode": "disable",
        "ray_kwargs.ray_init.num_cpus": 16,
        "ray_kwargs.ray_init.num_gpus": 1,
    },
}


def launch(name: str) -> Launch:
    run = Path("/runs/it's (1)")
    folders = RunFolders(run / "checkpoints", run / "rollouts", run / "validations", run / "m.jsonl", run / "hydra")
    return build(load(name), version=metadata.version("verl"), folders=folders, python=sys.executable, environ={})


@pytest.fixture(scope="module")
def composed():
    """The configuration that veRL would see, by preset."""
    spec = importlib.util.find_spec("verl")
    root = Path(spec.submodule_search_locations[0]) / "trainer" / "config"
    configs = compose(root, [launch(name).argv[4:] for name in shipped()])
    return dict(zip(shipped(), configs, strict=True))


def at(config, key):
    for name in key.split("."):
        config = config[name]
    return config


@pytest.mark.parametrize("name", KNOWN)
def test_verl_sees_the_values_the_preset_is_known_for(composed, name):
    wrong = {key: found for key, value in KNOWN[name].items() if (found := at(composed[name], key)) != value}
    assert wrong == {}


@pytest.mark.parametrize("name", shipped())
def test_verl_sees_every_value_that_the_launch_speaks_of(composed, name):
    wrong = {key: found for key, value in launch(name).keys.items() if (found := at(composed[name], key)) != value}
    assert wrong == {}


@pytest.mark.parametrize("name", shipped())
def test_each_says_what_it_is_and_what_it_needs(name):
    found = summary(name)
    assert found.error is None
    assert found.description
    assert found.needs
