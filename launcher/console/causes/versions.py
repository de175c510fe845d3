"""Packages that are installed and do not fit each other."""

from launcher.console.causes.entry import Cause

INSTALL = "pip install 'verl[vllm]==0.9.1' (installs fitting versions), then check with `ppo-tui doctor`"

CAUSES = (
    Cause(
        "transformers-too-new",
        "transformers too new for this vLLM",
        "vLLM before 0.15 requires transformers 4: version 5 removed attributes of the tokenizers.",
        ("pip install 'transformers<5'", f"or upgrade vLLM: {INSTALL}"),
        raised=r"has no attribute all_special_tokens_extended",
    ),
    Cause(
        "transformers-names",
        "vLLM and transformers register the same model type",
        "This vLLM brings its own configuration of a model that the installed transformers knows by now.",
        ("pip install 'transformers<4.54'", f"or upgrade vLLM: {INSTALL}"),
        raised=r"is already used by a Transformers config, pick another name",
    ),
    Cause(
        "sglang-argument",
        "SGLang's server has no option '{option}'",
        "Either the option is misspelled under rollout.engine_kwargs.sglang, or veRL passes it and the installed "
        "SGLang is not the version that this veRL requires.",
        (
            "remove or correct +actor_rollout_ref.rollout.engine_kwargs.sglang.{option}, if you set it",
            "else pip install 'verl[sglang]==0.9.1' (installs the fitting SGLang)",
        ),
        raised=r"ServerArgs\.__init__\(\) got an unexpected keyword argument '(?P<option>\w+)'",
    ),
    Cause(
        "sglang-version",
        "SGLang version not supported by this veRL",
        "veRL uses a part of SGLang that the installed version does not have.",
        ("pip install 'verl[sglang]==0.9.1' (installs the fitting SGLang)", "or actor_rollout_ref.rollout.name=vllm"),
        raised=r"cannot import name '\w+' from 'sglang",
    ),
    Cause(
        "memory-saver-missing",
        "Package torch_memory_saver missing",
        "SGLang frees its GPU memory during the update with this package.",
        (
            "pip install torch_memory_saver",
            "or set actor_rollout_ref.rollout.free_cache_engine=False "
            "+actor_rollout_ref.rollout.engine_kwargs.sglang.enable_memory_saver=False",
        ),
        raised=r"torch-memory-saver is not installed|No module named 'torch_memory_saver",
        line=r"enable_memory_saver is enabled, but torch-memory-saver is not installed",
    ),
    Cause(
        "memory-saver-graphs",
        "CUDA graphs and the memory saver conflict",
        "This torch cannot capture CUDA graphs in a memory pool of torch_memory_saver.",
        ("set actor_rollout_ref.rollout.enforce_eager=True", "or upgrade torch, SGLang and torch_memory_saver"),
        raised=r"captures_underway\.empty\(\) INTERNAL ASSERT",
    ),
    Cause(
        "torch-too-old-fsdp2",
        "torch too old for FSDP 2",
        "strategy=fsdp2 requires torch 2.6 or newer; veRL's path for older versions is broken.",
        (
            "set actor_rollout_ref.actor.strategy=fsdp critic.strategy=fsdp",
            "or upgrade torch to 2.6 or newer together with vLLM",
        ),
        raised=r"'function' object has no attribute 'FSDPModule'"
        r"|cannot import name '(?:fully_shard|FSDPModule|CPUOffloadPolicy)' from 'torch",
    ),
    Cause(
        "mbridge-version",
        "mbridge does not fit this Megatron-Core",
        "Megatron-Core 0.18 removed a name that mbridge 0.15 uses.",
        ("pip install 'megatron-core<0.18'", "or use Megatron-Bridge or the fsdp backend"),
        raised=r"type object 'ModelType' has no attribute",
    ),
    Cause(
        "antlr-version",
        "antlr4 runtime does not fit Hydra",
        "Hydra and OmegaConf require antlr4-python3-runtime 4.9.3; another package (latex2sympy2) installed another.",
        (
            "pip install antlr4-python3-runtime==4.9.3",
            "for LaTeX rewards: pip install latex2sympy2_extended[antlr4_9_3]",
        ),
        raised=r"Could not deserialize ATN with version",
    ),
    Cause(
        "protobuf-version",
        "protobuf too new for another package",
        "A package contains code generated for an older protobuf.",
        (
            "pip install 'protobuf<4.21', or upgrade the package named above the exception",
            "as a workaround, env: PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python",
        ),
        raised=r"Descriptors cannot (?:not )?be created directly",
    ),
    Cause(
        "glibc-too-old",
        "System too old for an installed package: {version} missing",
        "A package was built on a newer Linux than this one.",
        (
            "for flash-attn: pip install flash-attn==2.7.4.post1 --no-build-isolation, or build it on this machine",
            "or use a container of a newer Linux (Ubuntu 22.04 has glibc 2.35)",
        ),
        raised=r"version `(?P<version>GLIBC(?:XX)?_[\d.]+)' not found",
    ),
    Cause(
        "logger-flush",
        "veRL 0.9.1 fails with hybrid_engine=False",
        "trainer_separate_async.py passes `flush` to a logger, which raises before the first step.",
        (
            "set actor_rollout_ref.hybrid_engine=True (veRL's default)",
            "or env: VERL_LOGGING_LEVEL=WARN, which skips the line",
        ),
        raised=r"Logger\._log\(\) got an unexpected keyword argument 'flush'",
    ),
)
