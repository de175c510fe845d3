"""Failures while the model, its attention or its tokenizer is loaded."""

from launcher.console.causes.entry import Cause, Level

SDPA = (
    "start the run with ppo-tui: its veRL plugin loads models with PyTorch's own attention instead",
    "for the actor only: +actor_rollout_ref.model.override_config.attn_implementation=sdpa (for the critic veRL "
    "requests flash-attention whatever the key is set to)",
    "set algorithm.adv_estimator=grpo, which needs no critic",
)

CAUSES = (
    Cause(
        "flash-attn-missing",
        "flash-attention is not installed",
        "veRL requests flash_attention_2 from transformers, but the package flash_attn cannot be imported. For a "
        "critic veRL then reports that the model 'is not a value head model', which is misleading.",
        ("install it with pip install 'verl[fsdp]==0.9.1', or flash-attn for your torch and CUDA", *SDPA),
        raised=r"FlashAttention\d? has been toggled on, but it cannot be used(?!.*Ampere)"
        r"|[Ff]lash_?[Aa]ttn\w* (?:seems to be|is) not (?:installed|available)|No module named '(?:flash_attn"
        r"|flash_attn\.\w+|flash_attn_2_cuda)'|FlashAttention\d? (?:is not|seems to be not) installed",
    ),
    Cause(
        "flash-attn-broken",
        "flash-attention built for another torch or CUDA",
        "The compiled part of flash_attn does not match the installed torch and cannot be imported.",
        ("reinstall flash-attn for this torch and CUDA, or uninstall it", *SDPA),
        raised=r"flash_attn\w*\.\S*so.*(?:undefined symbol|cannot open shared object)"
        r"|(?:undefined symbol|cannot open shared object).*flash_attn|DLL load failed.*flash_attn",
        explains="value-head",
    ),
    Cause(
        "transformers-import",
        "transformers could not import the model's code",
        "transformers imports a model's code when it is used, and hides the import error behind its own; the reason "
        "is in the next line or further up.",
        ("look for the first exception above this line", "check the packages with `ppo-tui doctor`"),
        raised=r"Failed to import transformers\.|Could not import module '\w+'\. Are this object's requirements",
        level=Level.SYMPTOM,
        cause_in=r"^(?!AgentLoop|RewardLoop)",
    ),
    Cause(
        "gpu-too-old",
        "GPU too old: Ampere (compute capability 8.0) required",
        "flash-attention and bfloat16 require an Ampere GPU (A100, RTX 30 series) or newer.",
        (*SDPA, "set actor_rollout_ref.rollout.dtype=float16 for bfloat16 errors", "or use a newer GPU"),
        raised=r"only supports? Ampere GPUs or newer|[Bb]float16 is only supported on GPUs with compute capability"
        r"|cannot be used .*Ampere",
    ),
    Cause(
        "value-head",
        "Critic could not be loaded",
        "veRL reports 'is not a value head model, please install trl' whenever loading the critic fails; the "
        "actual reason is not in this log.",
        (
            "look for the exception before 'The above exception was the direct cause'",
            "check critic.model.path: it must be a causal language model of the same family as the actor's",
            "check with `ppo-tui doctor` that flash-attention is installed, the most common reason",
        ),
        raised=r"is not a value head model, please install trl",
        level=Level.SYMPTOM,
        cause_in=r"WorkerDict|^$",
    ),
    Cause(
        "critic-model-missing",
        "Critic model not found",
        "critic.model.path is not a folder on this machine and was not found on the Hugging Face Hub. veRL's "
        "default is ~/models/deepseek-llm-7b-chat, and `~` is not expanded.",
        ("set critic.model.path to the same path as actor_rollout_ref.model.path",),
        raised=r"Repo id must|is not a local folder and is not a valid model identifier|Repository Not Found for url"
        r"|We couldn(?:'|\\')t connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError",
        where=r"full_key: critic|critic_(?:reset|init_model)|config/critic\.py",
    ),
    Cause(
        "model-missing",
        "Model not found",
        "The path is not a folder on this machine, and the model is not in the Hugging Face cache and could not be "
        "downloaded: a misspelt path, no network, or HF_HUB_OFFLINE=1.",
        (
            "set actor_rollout_ref.model.path to a folder with config.json, or to the exact name on the Hub",
            "download it first on a machine with network access: hf download MODEL",
            "unset HF_HUB_OFFLINE and check HF_HOME and HF_ENDPOINT",
        ),
        raised=r"Repo id must|is not a local folder and is not a valid model identifier|Repository Not Found for url"
        r"|We couldn(?:'|\\')t connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError"
        r"|Incorrect path_or_model_id|HFValidationError",
        level=Level.GENERAL,
    ),
    Cause(
        "model-gated",
        "Model requires a login on the Hugging Face Hub",
        "The model is gated or private, and the Hub denied access to this account or without a token.",
        ("accept the model's licence on its page", "run `hf auth login`, or set HF_TOKEN in the preset's env:"),
        raised=r"GatedRepoError|trying to access a gated repo|40[13] Client Error(?!.*wandb)"
        r"|Access to model .* is restricted",
    ),
    Cause(
        "model-incomplete",
        "Model folder incomplete or damaged",
        "A file that transformers requires is missing or invalid: an interrupted download, or git-lfs pointers "
        "instead of weights.",
        ("download the model again: hf download MODEL", "check actor_rollout_ref.model.path"),
        raised=r"does not appear to have (?:a file|files) named|Error no file named|SafetensorError|HeaderTooLarge"
        r"|Unrecognized model in |invalid load key|Can't load tokenizer for"
        r"|Couldn't instantiate the backend tokenizer|Can't load the (?:configuration|model) ",
    ),
    Cause(
        "model-too-new",
        "Model type not supported by this transformers",
        "The model requires a newer transformers (or vLLM) than the one installed with veRL.",
        ("choose a model of a family that this veRL supports", "or upgrade transformers within veRL's pins"),
        raised=r"Transformers does not recognize this architecture"
        r"|Model architectures .* (?:are not|is not) supported|has no vLLM implementation",
    ),
    Cause(
        "trust-remote-code",
        "Model requires trust_remote_code",
        "The model's repository contains Python code, which transformers runs only with trust_remote_code.",
        (
            "if you trust its author, set actor_rollout_ref.model.trust_remote_code=True "
            "critic.model.trust_remote_code=True data.trust_remote_code=True",
        ),
        raised=r"[Pp]lease pass the argument .{0,3}trust_remote_code=True|requires you to execute the .* file"
        r"|contains custom code which must be executed|consider setting `trust_remote_code=True`"
        r"|set the option `trust_remote_code=True`",
        line=r"Do you wish to run the custom code\?",
    ),
    Cause(
        "weights-mismatch",
        "Weights do not match the model",
        "The shapes of the tensors differ from the model's configuration: another vocabulary, another size, or a "
        "checkpoint of another model.",
        ("check actor_rollout_ref.model.path against the checkpoint in trainer.resume_from_path",),
        raised=r"size mismatch for |There is no module or parameter named '"
        r"|Error\(s\) in loading state_dict|Missing key\(s\) in state_dict",
    ),
    Cause(
        "chat-template",
        "Tokenizer without a chat template",
        "The tokenizer, often of a base model, cannot turn messages into a prompt, so every prompt fails.",
        (
            "use the -Instruct model: actor_rollout_ref.model.path",
            "or set one: actor_rollout_ref.model.custom_chat_template=...",
        ),
        raised=r"tokenizer\.chat_template is not set|does not have a chat template|No chat template is (?:set|defined)",
    ),
    Cause(
        "attention-heads",
        "Attention heads not divisible among the GPUs",
        "The number of attention heads must be divisible by the tensor-parallel and the sequence-parallel size.",
        (
            "actor_rollout_ref.rollout.tensor_model_parallel_size ↓ (e.g. 1)",
            "actor_rollout_ref.actor.ulysses_sequence_parallel_size ↓ (e.g. 1)",
        ),
        raised=r"num_(?:attention_|key_value_)?heads .*must be divisible by"
        r"|attention heads \(?\d+\)? must be divisible",
    ),
    Cause(
        "image-tokens",
        "Images and image tokens of a prompt do not match",
        "The prompt was truncated inside an image, a picture is described by more tokens than the processor made, or "
        "a response contains image tokens itself.",
        (
            "set data.filter_overlong_prompts=True and data.truncation=error, so that no prompt is cut in an image",
            "data.max_prompt_length ↑ (pictures take thousands of tokens), or shrink the pictures (max_pixels)",
            "check that each `<image>` of a prompt has its picture",
        ),
        raised=r"[Ii]mage features and image tokens do not match|[Vv]ideo features and video tokens do not match",
    ),
    Cause(
        "lora-weights-unsupported",
        "vLLM does not support these LoRA weights",
        "The adapter contains modules that vLLM cannot replace: lm_head, embeddings, modules_to_save, parts of a "
        "vision tower.",
        (
            "set actor_rollout_ref.model.target_modules to [q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj]",
            "or merge the adapter: actor_rollout_ref.model.lora.merge=True",
        ),
        raised=r"is unsupported LoRA weight|expected target modules in .* but received",
    ),
    Cause(
        "lora-modules-missing",
        "LoRA target modules do not exist in this model",
        "actor_rollout_ref.model.target_modules names layers that the model does not have.",
        ("set actor_rollout_ref.model.target_modules=all-linear",),
        raised=r"Target modules .* not found in the base model|No modules were targeted for adaptation",
    ),
    Cause(
        "fsdp-mixed-dtypes",
        "FSDP received weights of different types",
        "FSDP 1 joins the weights of a layer, which must have one type. LoRA weights, a value head or a vision tower "
        "were loaded in another one.",
        (
            "set actor_rollout_ref.actor.strategy=fsdp2 critic.strategy=fsdp2",
            "or set actor_rollout_ref.actor.fsdp_config.model_dtype and critic.fsdp.model_dtype to one type (fp32)",
        ),
        raised=r"Must flatten tensors with uniform dtype",
    ),
    Cause(
        "quantization-gpu",
        "GPU does not support this quantization",
        "FP8 needs compute capability 8.9 (L40, RTX 40) or 9.0 (H100), AWQ and GPTQ 7.5 or 8.0.",
        (
            "use the model without quantization: actor_rollout_ref.model.path",
            "set actor_rollout_ref.rollout.quantization=null",
        ),
        raised=r"quantization method \S+ is not supported for the current GPU|Quantization scheme is not supported",
    ),
)
