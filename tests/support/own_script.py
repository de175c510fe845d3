"""A typical training script: variables, arrays, older keys, a secret, and parts that no preset can hold."""

SCRIPT = r"""#!/bin/bash
# one GPU, a small model
set -xeuo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
CRITIC=${CRITIC:-$MODEL}   # from the same weights
BATCH=${BATCH:-128}
LONGEST=$((512 + 256))
TRAIN=${TRAIN:-$HOME/data/gsm8k/train.parquet}
export NCCL_DEBUG=WARN HF_TOKEN=hf_secret
export WANDB_MODE="offline"

DATA=(
  data.train_files="['$TRAIN']"
  data.val_files=$HOME/data/gsm8k/test.parquet   # one file
  data.train_batch_size=${BATCH}
)
ACTOR=(
  actor_rollout_ref.model.path="$MODEL"
  actor_rollout_ref.actor.optim.lr=1e-6
  actor_rollout_ref.actor.ppo_mini_batch_size=64
  actor_rollout_ref.actor.use_dynamic_bsz=True
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=${LONGEST}
)
ACTOR+=(actor_rollout_ref.actor.clip_ratio=0.2)
OLD="critic.model.fsdp_config.param_offload=True custom_reward_function.path=rewards/mine.py"

mkdir -p logs
CUDA_VISIBLE_DEVICES=0 python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=gae \
  "${DATA[@]}" \
  "${ACTOR[@]}" $OLD \
  critic.model.path="$CRITIC" \
  trainer.logger='["console","wandb"]' \
  trainer.experiment_name=ppo_$(date +%Y) \
  trainer.n_gpus_per_node=1 actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  trainer.default_local_dir=/ckpt trainer.total_epochs=abc no.such.key=1 \
  +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_log_requests=True \
  "$@" 2>&1 | tee logs/train.log
"""
