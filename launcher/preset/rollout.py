"""The group of a preset about the engine that writes the responses."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl

TRANSFERS = {
    "naive": "within the GPUs that both share",
    "nccl": "by NCCL, which requires cupy; between NPUs by HCCL",
    "nixl": "by NIXL; requires nixl and cupy",
    "mooncake": "by Mooncake's transfer engine; requires mooncake",
    "kimi_ckpt_engine": "by Moonshot's checkpoint-engine; requires that package",
    "delta_sharded": "only what changed; requires SGLang or vLLM",
    "gloo": "over the CPU; ppo-tui's own, for its CPU platform",
}


class Rollout(Group, title="Rollout"):
    """The engine that writes the responses."""

    prefix: ClassVar[str] = "actor_rollout_ref.rollout"

    engine: str = verl(
        "Inference engine: vllm, sglang or hf (for the CPU).", key=".name", default="vllm", essential=True
    )
    gpus: int | None = verl(
        "GPUs per machine for the engine alone, beside those of the trainer (separate_async).",
        key=".n_gpus_per_node",
        unit="GPUs",
        scale="double",
        ge=0,
    )
    nodes: int | None = verl("Machines with these GPUs (separate_async).", key=".nnodes", unit="machines", ge=0)
    weight_transfer: str | None = verl(
        "How new weights reach an engine on other GPUs; naive: it shares them with the trainer.",
        key=".checkpoint_engine.backend",
        offers=TRANSFERS,
    )
    mode: Literal["async", "sync"] | None = verl(
        "Rollout mode; sync is the default before veRL 0.7 and not supported since."
    )
    n: int | None = verl("Responses per prompt: 1 for PPO, 4 to 16 for GRPO.", unit="responses", essential=True, ge=1)
    temperature: float | None = verl("Sampling temperature; with 0 nothing is learned.", essential=True, step=0.1, gt=0)
    top_p: float | None = verl("Nucleus sampling threshold; 1: all tokens.", step=0.05, gt=0, le=1)
    top_k: int | None = verl("Sample from the k most likely tokens; -1: all.", unit="tokens", ge=-1)
    do_sample: bool | None = verl("Sample instead of greedy decoding.")
    seed: int | None = verl("Seed for the engine.", ge=0)
    full_determinism: bool | None = verl("Deterministic responses: slower.")
    gpu_memory_utilization: float | None = verl(
        "Share of GPU memory to reserve for the engine.", essential=True, step=0.05, gt=0, lt=1
    )
    tensor_model_parallel_size: int = verl(
        "Tensor-parallel GPUs per engine.", default=1, unit="GPUs", essential=True, scale="divisor", ge=1
    )
    data_parallel_size: int | None = verl("Data-parallel copies within one engine.", scale="divisor", ge=1)
    expert_parallel_size: int | None = verl("Expert-parallel GPUs.", unit="GPUs", scale="divisor", ge=1)
    pipeline_model_parallel_size: int | None = verl("Pipeline stages; vllm supports only 1.", ge=1)
    max_num_batched_tokens: int | None = verl("Maximum tokens per engine pass.", unit="tokens", scale="double", ge=1)
    max_model_len: int | None = verl(
        "Maximum length of prompt plus response; null: that of the model.", unit="tokens", scale="double", ge=1
    )
    max_num_seqs: int | None = verl("Maximum responses generated concurrently.", unit="responses", scale="double", ge=1)
    enforce_eager: bool | None = verl("Disable CUDA graphs: faster start, less memory, slower generation.")
    cudagraph_capture_sizes: list[int] | None = verl("Batch sizes with a CUDA graph; fewer need less memory.")
    free_cache_engine: bool | None = verl("Free engine memory during updates.")
    enable_chunked_prefill: bool | None = verl("Prefill long prompts in chunks.")
    enable_prefix_caching: bool | None = verl("Cache the common prefix of prompts.")
    load_format: str | None = verl("How the engine loads its initial weights; safetensors with LoRA.")
    layered_summon: bool | None = verl("Send the weights layer by layer: less memory.")
    update_weights_bucket_megabytes: int | None = verl(
        "Size of each bucket of weights sent to the engine.",
        key=".checkpoint_engine.update_weights_bucket_megabytes",
        unit="MB",
        scale="double",
        ge=1,
    )
    dtype: str | None = verl("Data type of the engine weights.")
    quantization: str | None = verl("Quantize the engine's weights: fp8 (vLLM, SGLang), torchao (vLLM).")
    ignore_eos: bool | None = verl("Continue after the end-of-sequence token; for benchmarks.")
    disable_log_stats: bool | None = verl("Do not log engine statistics.")
    calculate_log_probs: bool | None = verl("Return the engine's log-probabilities to compare them with the trainer's.")
    logprobs_mode: str | None = verl("Log-probabilities after temperature and top-p (processed_logprobs) or before.")
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        "Responses per log-probability pass; required unless dynamic.", unit="responses", scale="divisor", ge=1
    )
    log_prob_use_dynamic_bsz: bool | None = verl("Size log-probability passes by tokens; null: as for the actor.")
    log_prob_max_token_len_per_gpu: int | None = verl(
        "Tokens per dynamic pass; null: as for the actor.", unit="tokens per GPU", scale="double", ge=1
    )
    agent_workers: int | None = verl(
        "Processes that send requests to the engine.", key=".agent.num_workers", unit="processes", ge=1
    )
    agent_loop: str | None = verl(
        "Agent loop that writes a response, unless the data have a column agent_name.",
        key=".agent.default_agent_loop",
        offers={"single_turn_agent": "one answer to the prompt", "tool_agent": "calls tools over several turns"},
    )
    agent_loop_config_path: str | None = verl(
        "File that lists your own agent loops.", key=".agent.agent_loop_config_path", kind="path"
    )
    multi_turn: bool | None = verl(
        "Several turns; since veRL 0.7 only rollout.agent_loop decides that.", key=".multi_turn.enable"
    )
    max_assistant_turns: int | None = verl(
        "Maximum number of model turns.", key=".multi_turn.max_assistant_turns", unit="turns", ge=1
    )
    max_user_turns: int | None = verl(
        "Maximum number of tool or user turns.", key=".multi_turn.max_user_turns", unit="turns", ge=1
    )
    tool_config_path: str | None = verl(
        "File that describes the tools.", key=".multi_turn.tool_config_path", kind="path"
    )
    function_tool_path: str | None = verl(
        "Python file whose functions are tools.", key=".multi_turn.function_tool_path", kind="path"
    )
    tool_format: str | None = verl("How the model writes tool calls: hermes, gpt-oss, ...", key=".multi_turn.format")
    max_parallel_calls: int | None = verl(
        "Maximum tool calls in one turn.", key=".multi_turn.max_parallel_calls", unit="calls", ge=1
    )
    max_tool_response_length: int | None = verl(
        "Maximum length of a tool's answer; the rest is cut.",
        key=".multi_turn.max_tool_response_length",
        unit="characters",
        scale="double",
        ge=1,
    )
    trace: Literal["weave", "mlflow"] | None = verl(
        "Backend for conversation traces; null: none.", key=".trace.backend"
    )
    trace_text: bool | None = verl("Trace text as well as tokens.", key=".trace.token2text")
    trace_max_samples: int | None = verl(
        "Samples traced per step and worker; null: all.",
        key=".trace.max_samples_per_step_per_worker",
        unit="samples",
        ge=1,
    )
    val_n: int | None = verl("Responses per validation prompt.", key=".val_kwargs.n", unit="responses", ge=1)
    val_do_sample: bool | None = verl("Sample in validation instead of greedy decoding.", key=".val_kwargs.do_sample")
    val_temperature: float | None = verl(
        "Sampling temperature in validation.", key=".val_kwargs.temperature", step=0.1, ge=0
    )
    val_top_p: float | None = verl(
        "Nucleus sampling threshold in validation.", key=".val_kwargs.top_p", step=0.05, gt=0, le=1
    )
    val_top_k: int | None = verl(
        "Sample from the k most likely tokens in validation; -1: all.", key=".val_kwargs.top_k", unit="tokens", ge=-1
    )
