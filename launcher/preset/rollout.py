"""The group of a preset about the engine that writes the responses."""

from __future__ import annotations

from typing import Literal

from launcher.preset.fields import Group, verl

_ROLLOUT = "actor_rollout_ref.rollout"


class Rollout(Group, title="Rollout"):
    """The engine that writes the responses."""

    engine: str = verl(
        f"{_ROLLOUT}.name", "Inference engine: vllm, sglang, hf (our CPU platform).", "vllm", essential=True
    )
    mode: Literal["async", "sync"] | None = verl(
        f"{_ROLLOUT}.mode", "sync is for veRL before 0.7, which has it as default; newer ones refuse it."
    )
    n: int | None = verl(
        f"{_ROLLOUT}.n",
        "Responses to each prompt: 1 for PPO, 4 to 16 for GRPO.",
        unit="responses",
        essential=True,
        ge=1,
    )
    temperature: float | None = verl(
        f"{_ROLLOUT}.temperature",
        "Sampling temperature; 0 would teach nothing.",
        essential=True,
        scale="step",
        step=0.1,
        gt=0,
    )
    top_p: float | None = verl(
        f"{_ROLLOUT}.top_p", "Nucleus sampling; 1 keeps all tokens.", scale="step", step=0.05, gt=0, le=1
    )
    top_k: int | None = verl(f"{_ROLLOUT}.top_k", "Sample from that many tokens; -1 is all.", unit="tokens", ge=-1)
    do_sample: bool | None = verl(f"{_ROLLOUT}.do_sample", "Sample instead of taking the likeliest token.")
    seed: int | None = verl(f"{_ROLLOUT}.seed", "Seed of the engine.", ge=0)
    full_determinism: bool | None = verl(
        f"{_ROLLOUT}.full_determinism", "The same responses in every run, more slowly."
    )
    gpu_memory_utilization: float | None = verl(
        f"{_ROLLOUT}.gpu_memory_utilization",
        "Share of GPU memory the engine reserves.",
        essential=True,
        scale="step",
        step=0.05,
        gt=0,
        lt=1,
    )
    tensor_model_parallel_size: int = verl(
        f"{_ROLLOUT}.tensor_model_parallel_size",
        "GPUs that share one engine.",
        1,
        unit="GPUs",
        essential=True,
        scale="divisor",
        ge=1,
    )
    data_parallel_size: int | None = verl(
        f"{_ROLLOUT}.data_parallel_size", "Copies within one engine.", scale="divisor", ge=1
    )
    expert_parallel_size: int | None = verl(
        f"{_ROLLOUT}.expert_parallel_size", "GPUs that share the experts.", unit="GPUs", scale="divisor", ge=1
    )
    pipeline_model_parallel_size: int | None = verl(
        f"{_ROLLOUT}.pipeline_model_parallel_size", "Stages of a pipeline; vllm takes only 1.", ge=1
    )
    max_num_batched_tokens: int | None = verl(
        f"{_ROLLOUT}.max_num_batched_tokens", "Tokens in one pass of the engine.", unit="tokens", scale="double", ge=1
    )
    max_model_len: int | None = verl(
        f"{_ROLLOUT}.max_model_len",
        "Longest prompt and response together; the model's when null.",
        unit="tokens",
        scale="double",
        ge=1,
    )
    max_num_seqs: int | None = verl(
        f"{_ROLLOUT}.max_num_seqs", "Responses written at once.", unit="responses", scale="double", ge=1
    )
    enforce_eager: bool | None = verl(
        f"{_ROLLOUT}.enforce_eager", "No CUDA graphs: starts sooner, needs less memory, writes slower."
    )
    cudagraph_capture_sizes: list[int] | None = verl(
        f"{_ROLLOUT}.cudagraph_capture_sizes", "Batch sizes with a CUDA graph; fewer need less memory."
    )
    free_cache_engine: bool | None = verl(
        f"{_ROLLOUT}.free_cache_engine", "Give the engine's memory back during updates."
    )
    enable_chunked_prefill: bool | None = verl(f"{_ROLLOUT}.enable_chunked_prefill", "Prefill long prompts in pieces.")
    enable_prefix_caching: bool | None = verl(
        f"{_ROLLOUT}.enable_prefix_caching", "Keep what equal beginnings of prompts have in common."
    )
    load_format: str | None = verl(
        f"{_ROLLOUT}.load_format", "How the engine gets its first weights; safetensors with LoRA."
    )
    layered_summon: bool | None = verl(f"{_ROLLOUT}.layered_summon", "Send the weights layer by layer: less memory.")
    update_weights_bucket_megabytes: int | None = verl(
        f"{_ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes",
        "Weights sent to the engine at once.",
        unit="MB",
        scale="double",
        ge=1,
    )
    dtype: str | None = verl(f"{_ROLLOUT}.dtype", "Type of the engine's weights.")
    ignore_eos: bool | None = verl(f"{_ROLLOUT}.ignore_eos", "Write on after the end mark; for measurements.")
    disable_log_stats: bool | None = verl(f"{_ROLLOUT}.disable_log_stats", "Keep the engine's figures quiet.")
    calculate_log_probs: bool | None = verl(
        f"{_ROLLOUT}.calculate_log_probs", "Keep the engine's own probabilities, to compare them with the trainer's."
    )
    logprobs_mode: str | None = verl(
        f"{_ROLLOUT}.logprobs_mode", "Whether these count temperature and top-p: processed_logprobs, or not."
    )
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu",
        "Responses for one log-probability pass; needed unless dynamic.",
        unit="responses",
        scale="divisor",
        ge=1,
    )
    log_prob_use_dynamic_bsz: bool | None = verl(
        f"{_ROLLOUT}.log_prob_use_dynamic_bsz", "Fill these passes by tokens; the actor's choice when null."
    )
    log_prob_max_token_len_per_gpu: int | None = verl(
        f"{_ROLLOUT}.log_prob_max_token_len_per_gpu",
        "Tokens in one dynamic pass; the actor's when null.",
        unit="tokens per GPU",
        scale="double",
        ge=1,
    )
    agent_workers: int | None = verl(
        f"{_ROLLOUT}.agent.num_workers", "Processes that feed the engine.", unit="processes", ge=1
    )
    agent_loop: str | None = verl(
        f"{_ROLLOUT}.agent.default_agent_loop", "How a prompt becomes a response: single_turn_agent, tool_agent."
    )
    multi_turn: bool | None = verl(f"{_ROLLOUT}.multi_turn.enable", "Let the model use tools over several turns.")
    max_assistant_turns: int | None = verl(
        f"{_ROLLOUT}.multi_turn.max_assistant_turns", "Turns of the model at most.", unit="turns", ge=1
    )
    max_user_turns: int | None = verl(
        f"{_ROLLOUT}.multi_turn.max_user_turns", "Turns of tools or a user at most.", unit="turns", ge=1
    )
    tool_config_path: str | None = verl(
        f"{_ROLLOUT}.multi_turn.tool_config_path", "File that describes the tools.", kind="path"
    )
    trace: Literal["weave", "mlflow"] | None = verl(
        f"{_ROLLOUT}.trace.backend", "Where whole conversations are traced; nowhere when null."
    )
    trace_text: bool | None = verl(f"{_ROLLOUT}.trace.token2text", "Trace the texts beside the tokens.")
    trace_max_samples: int | None = verl(
        f"{_ROLLOUT}.trace.max_samples_per_step_per_worker",
        "Samples traced in a step by each worker; all when null.",
        unit="samples",
        ge=1,
    )
    val_n: int | None = verl(f"{_ROLLOUT}.val_kwargs.n", "Responses to each validation prompt.", unit="responses", ge=1)
    val_do_sample: bool | None = verl(
        f"{_ROLLOUT}.val_kwargs.do_sample", "Sample in validation instead of taking the likeliest token."
    )
    val_temperature: float | None = verl(
        f"{_ROLLOUT}.val_kwargs.temperature", "Temperature in validation.", scale="step", step=0.1, ge=0
    )
    val_top_p: float | None = verl(
        f"{_ROLLOUT}.val_kwargs.top_p", "Nucleus sampling in validation.", scale="step", step=0.05, gt=0, le=1
    )
    val_top_k: int | None = verl(
        f"{_ROLLOUT}.val_kwargs.top_k", "Tokens sampled from in validation; -1 is all.", unit="tokens", ge=-1
    )
