"""Failures of the rollout engine (vLLM) and of what it needs."""

from launcher.console.causes.entry import Cause, Level

UTILISATION = "actor_rollout_ref.rollout.gpu_memory_utilization"
INSTALL = "pip install 'verl[vllm]==0.9.1' (it brings vllm 0.24.0 and torch 2.11.0); check with `ppo-tui doctor`"

CAUSES = (
    Cause(
        "kv-cache",
        "No GPU memory is left for the engine's KV cache",
        "gpu_memory_utilization is the engine's whole share: its weights and a profiling run come off "
        "first, and what remains holds not even one sequence of the maximum length, which is the model's own "
        "unless rollout.max_model_len is set.",
        (
            f"{UTILISATION} ↑ (e.g. 0.5)",
            "actor_rollout_ref.rollout.max_model_len= data.max_prompt_length + data.max_response_length, "
            "all that a run needs",
            "see the estimate: `ppo-tui check PRESET`",
        ),
        raised=r"No available memory for the cache blocks|To serve at least one request with the model"
        r"|larger than the (?:available KV cache memory"
        r"|maximum number of tokens that can be stored in KV cache)",
    ),
    Cause(
        "engine-free-memory",
        "Less GPU memory is free than the engine wants at its start",
        "vLLM compares gpu_memory_utilization times the whole GPU with what is free at that moment: the training "
        "models or another process hold the rest.",
        (
            f"{UTILISATION} ↓ (e.g. 0.3)",
            "actor_rollout_ref.actor.fsdp_config.param_offload=True critic.fsdp.param_offload=True",
            "look for other processes on the GPU: nvidia-smi",
        ),
        raised=r"Free memory on device .*less than desired GPU memory utilization"
        r"|Error in memory profiling\. Initial free memory",
    ),
    Cause(
        "lora-without-weights",
        "The engine got a LoRA adapter without weights, and veRL waits for it for ever",
        "With FSDP 1 on one GPU veRL hands over an empty adapter. The engine refuses it, and the trainer "
        "is never told (seen with veRL 0.9.1, vLLM 0.24.0).",
        ("actor_rollout_ref.actor.strategy=fsdp2",),
        raised=r"StopIteration\s*$",
        where=r"_create_merged_loras_inplace",
        hangs=True,
    ),
    Cause(
        "weights-refused",
        "The engine failed while it took new weights, and veRL waits for it for ever",
        "The trainer sends weights and waits for a receipt; an engine that raises an error never gives one.",
        ("read the error above this line: it is the engine's", "`ppo-tui stop RUN`: the run does not end by itself"),
        line=r"Invocation of collective_rpc method failed",
        level=Level.GENERAL,
        hangs=True,
    ),
    Cause(
        "lora-critic",
        "The critic was asked to leave out a LoRA adapter that it does not have",
        "veRL's v1 trainer forgets to take back what it asked of the reference. ppo-tui's plugin mends it; "
        "this run was started without.",
        ("start it with `ppo-tui run`", "or without a critic: algorithm.adv_estimator=grpo"),
        raised=r"has no attribute 'disable_adapter'",
    ),
    Cause(
        "lora-critic-adapter",
        "The critic's LoRA adapter cannot be built",
        "veRL builds every adapter as one of a language model that writes text, the critic's as well (seen "
        "with veRL 0.9.1). A critic writes none, and lacks what peft asks such a model for. ppo-tui's plugin "
        "mends it in the runs that ppo-tui starts.",
        ("start it with `ppo-tui run`", "or train all of the critic's weights: critic.model.lora_rank=0"),
        raised=r"'(?!LoraModel')\w+' object has no attribute 'prepare_inputs_for_generation'",
        where=r"critic_(?:reset|init_model)",
    ),
    Cause(
        "max-model-len",
        "rollout.max_model_len does not fit the model or the lengths",
        "The engine's context must not exceed what the model was made for, and must hold prompt plus answer.",
        (
            "actor_rollout_ref.rollout.max_model_len= at most the model's max_position_embeddings",
            "data.max_prompt_length + data.max_response_length ↓",
        ),
        raised=r"max_model_len \(?\d+\)? (?:should be less than or equal to|is greater than the derived)"
        r"|is longer than the maximum model length|max_num_batched_tokens \(\d+\) is smaller than max_model_len",
    ),
    Cause(
        "vllm-missing",
        "vLLM is not installed beside veRL",
        "The rollout engine vllm was asked for and Python cannot import it.",
        (INSTALL,),
        raised=r"No module named 'vllm(?:\.[\w.]+)?'|To use vllm rollout, please ensure|vllm version None not supported"
        r"|No package metadata was found for vllm",
    ),
    Cause(
        "vllm-version",
        "This vLLM is not one that this veRL supports",
        "veRL 0.9 needs vLLM 0.18 or newer, 0.4 to 0.8 need 0.7 or newer.",
        (INSTALL,),
        raised=r"vllm version \d\S* not supported|cannot import name '\w+' from 'vllm",
    ),
    Cause(
        "flashinfer",
        "FlashInfer, which vLLM uses for sampling, cannot be built or loaded",
        "FlashInfer compiles its kernels on first use and needs nvcc and a C++ compiler; a run also works without it.",
        ("env: VLLM_USE_FLASHINFER_SAMPLER=0", "or install a CUDA toolkit and set CUDA_HOME"),
        raised=r"[Ff]lash[Ii]nfer|Could not find nvcc|[Nn]inja build failed"
        r"|No such file or directory: '(?:\S*/)?(?:ninja|nvcc)'|Error building extension ",
    ),
    Cause(
        "cuda-alloc-conf",
        "PYTORCH_CUDA_ALLOC_CONF contradicts the engine's sleep mode",
        "expandable_segments:True cannot be used together with vLLM's memory pool.",
        ("unset PYTORCH_CUDA_ALLOC_CONF",),
        raised=r"[Ee]xpandable segments are not compatible",
    ),
    Cause(
        "engine-failed",
        "The rollout engine failed",
        "vLLM runs in processes of its own; the driver only learns that one of them ended. The reason stands earlier "
        "in the log, in the lines of EngineCore or vLLMHttpServer.",
        (
            "look for the first ERROR of (EngineCore ...) or (vLLMHttpServer ...)",
            "env: VLLM_LOGGING_LEVEL=INFO makes the engine say more",
            f"when it is memory: {UTILISATION} ↓, or ↑ for the KV cache",
        ),
        raised=r"Engine core initialization failed|EngineCore (?:failed to start|encountered an issue)|EngineDeadError"
        r"|WorkerProc initialization failed|Engine process failed to start|EngineGenerateError"
        r"|Worker failed with error",
        line=r"EngineCore failed to start|EngineCore encountered a fatal error",
        level=Level.SYMPTOM,
        cause_in=r"(?i:vllm)|Engine|APIServer|Worker|SGLang|raylet|^$",
    ),
)
