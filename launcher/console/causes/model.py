"""Failures while the model, its attention or its tokenizer is loaded."""

from launcher.console.causes.entry import Cause, Level

SDPA = (
    "let ppo-tui launch the run: its veRL plugin makes models load with PyTorch's own attention instead",
    "actor only: +actor_rollout_ref.model.override_config.attn_implementation=sdpa "
    "(for the critic veRL asks for flash-attention whatever the key says)",
    "algorithm.adv_estimator=grpo needs no critic",
)

CAUSES = (
    Cause(
        "flash-attn-missing",
        "flash-attention is not installed",
        "veRL asks transformers for flash_attention_2 and the package flash_attn cannot be imported. For a critic veRL "
        "then reports that the model 'is not a value head model', which has nothing to do with it.",
        ("install it: pip install 'verl[fsdp]==0.9.1', or flash-attn for your torch and CUDA", *SDPA),
        raised=r"FlashAttention\d? has been toggled on, but it cannot be used(?!.*Ampere)"
        r"|[Ff]lash_?[Aa]ttn\w* (?:seems to be|is) not (?:installed|available)|No module named '(?:flash_attn"
        r"|flash_attn\.\w+|flash_attn_2_cuda)'|FlashAttention\d? (?:is not|seems to be not) installed",
    ),
    Cause(
        "flash-attn-broken",
        "flash-attention is built for another torch or CUDA",
        "The compiled part of flash_attn does not fit the installed torch, so it cannot be imported.",
        ("reinstall flash-attn for this torch and CUDA, or uninstall it", *SDPA),
        raised=r"flash_attn\w*\.\S*so.*(?:undefined symbol|cannot open shared object)"
        r"|(?:undefined symbol|cannot open shared object).*flash_attn",
    ),
    Cause(
        "gpu-too-old",
        "This GPU is older than the software needs (Ampere, compute capability 8.0)",
        "flash-attention and bfloat16 need an Ampere GPU (A100, RTX 30 series) or newer.",
        (*SDPA, "actor_rollout_ref.rollout.dtype=float16 for bfloat16 errors", "or use a newer GPU"),
        raised=r"only supports? Ampere GPUs or newer|[Bb]float16 is only supported on GPUs with compute capability"
        r"|cannot be used .*Ampere",
    ),
    Cause(
        "value-head",
        "The critic could not be loaded",
        "veRL says 'is not a value head model, please install trl' whenever loading the critic fails for any "
        "reason; the reason itself is not in this log.",
        (
            "look for the exception before 'The above exception was the direct cause'",
            "check critic.model.path: it must be a causal language model of the same family as the actor's",
            "most often flash-attention is missing: ppo-tui doctor",
        ),
        raised=r"is not a value head model, please install trl",
        level=Level.SYMPTOM,
        cause_in=r"WorkerDict|^$",
    ),
    Cause(
        "critic-model-missing",
        "The critic's model was not found",
        "critic.model.path is not a folder here and was not found on the Hugging Face hub. veRL's default is "
        "~/models/deepseek-llm-7b-chat, and `~` is not expanded.",
        ("critic.model.path= the same path as actor_rollout_ref.model.path",),
        raised=r"Repo id must|is not a local folder and is not a valid model identifier|Repository Not Found for url"
        r"|We couldn(?:'|\\')t connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError",
        where=r"full_key: critic|critic_(?:reset|init_model)|config/critic\.py",
    ),
    Cause(
        "model-missing",
        "The model was not found",
        "The path is not a folder on this machine, the model is not in the Hugging Face cache, and it could not be "
        "fetched: a mistyped path, no network, or HF_HUB_OFFLINE=1.",
        (
            "actor_rollout_ref.model.path= a folder with config.json, or the exact name on the hub",
            "fetch it first where there is a network: hf download MODEL",
            "unset HF_HUB_OFFLINE and check HF_HOME and HF_ENDPOINT",
        ),
        raised=r"Repo id must|is not a local folder and is not a valid model identifier|Repository Not Found for url"
        r"|We couldn(?:'|\\')t connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError"
        r"|Incorrect path_or_model_id|HFValidationError",
        level=Level.GENERAL,
    ),
    Cause(
        "model-gated",
        "The model needs a login on the Hugging Face hub",
        "The model is gated or private: the hub refused it for this account or without a token.",
        ("accept the model's licence on its page", "hf auth login, or HF_TOKEN in the preset's env:"),
        raised=r"GatedRepoError|trying to access a gated repo|40[13] Client Error(?!.*wandb)"
        r"|Access to model .* is restricted",
    ),
    Cause(
        "model-incomplete",
        "The model folder is incomplete or damaged",
        "A file that transformers needs is missing or is not what it should be: a broken download, or git-lfs pointers "
        "instead of weights.",
        ("fetch the model again: hf download MODEL", "check actor_rollout_ref.model.path"),
        raised=r"does not appear to have (?:a file|files) named|Error no file named|SafetensorError|HeaderTooLarge"
        r"|Unrecognized model in |invalid load key|Can't load tokenizer for"
        r"|Couldn't instantiate the backend tokenizer|Can't load the (?:configuration|model) ",
    ),
    Cause(
        "model-too-new",
        "This transformers does not know the model's type",
        "The model needs a newer transformers (or vLLM) than the one installed beside veRL.",
        ("choose a model of a family that this veRL supports", "or upgrade transformers within veRL's pins"),
        raised=r"Transformers does not recognize this architecture"
        r"|Model architectures .* (?:are not|is not) supported|has no vLLM implementation",
    ),
    Cause(
        "trust-remote-code",
        "The model brings its own code, which is not allowed yet",
        "The model's repository contains Python files that transformers only runs when told so.",
        (
            "actor_rollout_ref.model.trust_remote_code=True critic.model.trust_remote_code=True "
            "data.trust_remote_code=True, if you trust its author",
        ),
        raised=r"[Pp]lease pass the argument .{0,3}trust_remote_code=True|requires you to execute the .* file",
    ),
    Cause(
        "weights-mismatch",
        "The weights do not fit the model",
        "Tensors have other shapes than the model's configuration says: another vocabulary, another size, or a "
        "checkpoint of another model.",
        ("check actor_rollout_ref.model.path against the checkpoint in trainer.resume_from_path",),
        raised=r"size mismatch for |Error\(s\) in loading state_dict|Missing key\(s\) in state_dict",
    ),
    Cause(
        "chat-template",
        "The tokenizer has no chat template",
        "A base model's tokenizer cannot turn messages into a prompt, and every prompt fails on it.",
        (
            "use the -Instruct model: actor_rollout_ref.model.path",
            "or give one: actor_rollout_ref.model.custom_chat_template=...",
        ),
        raised=r"tokenizer\.chat_template is not set|does not have a chat template|No chat template is (?:set|defined)",
    ),
    Cause(
        "attention-heads",
        "The attention heads cannot be divided among the GPUs",
        "The number of attention heads must be divisible by the tensor-parallel and by the sequence-parallel size.",
        (
            "actor_rollout_ref.rollout.tensor_model_parallel_size ↓ (e.g. 1)",
            "actor_rollout_ref.actor.ulysses_sequence_parallel_size ↓ (e.g. 1)",
        ),
        raised=r"num_(?:attention_|key_value_)?heads .*must be divisible by"
        r"|attention heads \(?\d+\)? must be divisible",
    ),
)
