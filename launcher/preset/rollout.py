"""The group of a preset about the engine that writes the responses."""

from typing import ClassVar, Literal

from launcher.preset.fields import Group, verl


class Rollout(Group, title="Rollout"):
    """The engine that writes the responses."""

    prefix: ClassVar[str] = "actor_rollout_ref.rollout"

    engine: str = verl(
        "Inference engine: vllm, sglang, hf (our CPU platform).", key=".name", default="vllm", essential=True
    )
    mode: Literal["async", "sync"] | None = verl(
        "sync is for veRL before 0.7, which has it as default; newer ones refuse it."
    )
    n: int | None = verl(
        "Responses to each prompt: 1 for PPO, 4 to 16 for GRPO.", unit="responses", essential=True, ge=1
    )
    temperature: float | None = verl("Sampling temperature; 0 would teach nothing.", essential=True, step=0.1, gt=0)
    top_p: float | None = verl("Nucleus sampling; 1 keeps all tokens.", step=0.05, gt=0, le=1)
    top_k: int | None = verl("Sample from that many tokens; -1 is all.", unit="tokens", ge=-1)
    do_sample: bool | None = verl("Sample instead of taking the likeliest token.")
    seed: int | None = verl("Seed of the engine.", ge=0)
    full_determinism: bool | None = verl("The same responses in every run, more slowly.")
    gpu_memory_utilization: float | None = verl(
        "Share of GPU memory the engine reserves.", essential=True, step=0.05, gt=0, lt=1
    )
    tensor_model_parallel_size: int = verl(
        "GPUs that share one engine.", default=1, unit="GPUs", essential=True, scale="divisor", ge=1
    )
    data_parallel_size: int | None = verl("Copies within one engine.", scale="divisor", ge=1)
    expert_parallel_size: int | None = verl("GPUs that share the experts.", unit="GPUs", scale="divisor", ge=1)
    pipeline_model_parallel_size: int | None = verl("Stages of a pipeline; vllm takes only 1.", ge=1)
    max_num_batched_tokens: int | None = verl("Tokens in one pass of the engine.", unit="tokens", scale="double", ge=1)
    max_model_len: int | None = verl(
        "Longest prompt and response together; the model's when null.", unit="tokens", scale="double", ge=1
    )
    max_num_seqs: int | None = verl("Responses written at once.", unit="responses", scale="double", ge=1)
    enforce_eager: bool | None = verl("No CUDA graphs: starts sooner, needs less memory, writes slower.")
    cudagraph_capture_sizes: list[int] | None = verl("Batch sizes with a CUDA graph; fewer need less memory.")
    free_cache_engine: bool | None = verl("Give the engine's memory back during updates.")
    enable_chunked_prefill: bool | None = verl("Prefill long prompts in pieces.")
    enable_prefix_caching: bool | None = verl("Keep what equal beginnings of prompts have in common.")
    load_format: str | None = verl("How the engine gets its first weights; safetensors with LoRA.")
    layered_summon: bool | None = verl("Send the weights layer by layer: less memory.")
    update_weights_bucket_megabytes: int | None = verl(
        "Weights sent to the engine at once.",
        key=".checkpoint_engine.update_weights_bucket_megabytes",
        unit="MB",
        scale="double",
        ge=1,
    )
    dtype: str | None = verl("Type of the engine's weights.")
    ignore_eos: bool | None = verl("Write on after the end mark; for measurements.")
    disable_log_stats: bool | None = verl("Keep the engine's figures quiet.")
    calculate_log_probs: bool | None = verl("Keep the engine's own probabilities, to compare them with the trainer's.")
    logprobs_mode: str | None = verl("Whether these count temperature and top-p: processed_logprobs, or not.")
    log_prob_micro_batch_size_per_gpu: int | None = verl(
        "Responses for one log-probability pass; needed unless dynamic.", unit="responses", scale="divisor", ge=1
    )
    log_prob_use_dynamic_bsz: bool | None = verl("Fill these passes by tokens; the actor's choice when null.")
    log_prob_max_token_len_per_gpu: int | None = verl(
        "Tokens in one dynamic pass; the actor's when null.", unit="tokens per GPU", scale="double", ge=1
    )
    agent_workers: int | None = verl(
        "Processes that feed the engine.", key=".agent.num_workers", unit="processes", ge=1
    )
    agent_loop: str | None = verl(
        "How a prompt becomes a response: single_turn_agent, tool_agent.", key=".agent.default_agent_loop"
    )
    multi_turn: bool | None = verl("Let the model use tools over several turns.", key=".multi_turn.enable")
    max_assistant_turns: int | None = verl(
        "Turns of the model at most.", key=".multi_turn.max_assistant_turns", unit="turns", ge=1
    )
    max_user_turns: int | None = verl(
        "Turns of tools or a user at most.", key=".multi_turn.max_user_turns", unit="turns", ge=1
    )
    tool_config_path: str | None = verl(
        "File that describes the tools.", key=".multi_turn.tool_config_path", kind="path"
    )
    trace: Literal["weave", "mlflow"] | None = verl(
        "Where whole conversations are traced; nowhere when null.", key=".trace.backend"
    )
    trace_text: bool | None = verl("Trace the texts beside the tokens.", key=".trace.token2text")
    trace_max_samples: int | None = verl(
        "Samples traced in a step by each worker; all when null.",
        key=".trace.max_samples_per_step_per_worker",
        unit="samples",
        ge=1,
    )
    val_n: int | None = verl("Responses to each validation prompt.", key=".val_kwargs.n", unit="responses", ge=1)
    val_do_sample: bool | None = verl(
        "Sample in validation instead of taking the likeliest token.", key=".val_kwargs.do_sample"
    )
    val_temperature: float | None = verl("Temperature in validation.", key=".val_kwargs.temperature", step=0.1, ge=0)
    val_top_p: float | None = verl("Nucleus sampling in validation.", key=".val_kwargs.top_p", step=0.05, gt=0, le=1)
    val_top_k: int | None = verl(
        "Tokens sampled from in validation; -1 is all.", key=".val_kwargs.top_k", unit="tokens", ge=-1
    )
