"""Configuration that Hydra, veRL's dataclasses or a later stage refuses."""

from launcher.console.causes.entry import Cause, Level

CHECK = "see the allowed values: `ppo-tui check PRESET`"

CAUSES = (
    Cause(
        "unknown-config-key",
        "Unknown configuration key '{key}'",
        "The key is misspelt or belongs to another veRL version.",
        ("correct the key; `ppo-tui check PRESET` suggests the nearest one", "use +{key}=... only if veRL reads it"),
        line=r"Could not (?:override|append to config|delete from config)[^']{0,40}'(?P<key>[^']+)'",
        raised=r"Config(?:Attribute|Key)Error: (?:Key|Missing key) '?(?P<key>[\w.]+)",
        fatal=True,
    ),
    Cause(
        "config-syntax",
        "Hydra cannot parse a value on the command line",
        "A value contains special characters of Hydra's override grammar (~, commas, brackets, quotes, =, spaces) "
        "and must be quoted.",
        (
            "quote it twice: 'key=\"value\"'",
            "write ~/models as an absolute path",
            "or start the run with ppo-tui, which quotes values",
        ),
        line=r"(?:LexerNoViableAltException|OverrideParseException|Error parsing override|mismatched input "
        r"|no viable alternative at input |token recognition error|missing EQUAL at )",
        fatal=True,
    ),
    Cause(
        "config-arguments",
        "Invalid command line for main_ppo",
        "main_ppo expects key=value settings, not options with dashes, and requires its own configuration files.",
        ("print a valid command with `ppo-tui command PRESET`",),
        line=r"(?:usage: )?\S+\.py: error: |Cannot find primary config|Primary config (?:module|directory) ",
        fatal=True,
    ),
    Cause(
        "unknown-config-field",
        "'{key}' is not a field of veRL's {block}",
        "veRL turns this block into a dataclass; a key added with + must be one of its fields.",
        ("remove the + key or correct its name", CHECK),
        raised=r"(?P<block>\w+Config)\.__init__\(\) got an unexpected keyword argument \W?'(?P<key>\w+)",
    ),
    Cause(
        "config-value-missing",
        "Missing value for {key}",
        "veRL has no default for this key (`???`), so it must be set.",
        ("set {key}=...", "set actor_rollout_ref.rollout.name=vllm, if this key is the missing one"),
        raised=r"Missing mandatory value: (?P<key>\S+)",
    ),
    Cause(
        "config-value-type",
        "Value of the wrong type",
        "A text is set where a number is required. Hydra checks only keys, so the run fails where the value is "
        "used, and the message names neither key nor value.",
        ("look for text in place of a number in the overrides (abc, .nan, 1e-6 in quotes)", CHECK),
        raised=r"TypeError: not all arguments converted during string formatting"
        r"|ValueError: could not convert string to float: "
        r"|TypeError: '[<>]=?' not supported between instances of '(?:int|float|str)' and '(?:int|float|str"
        r"|NoneType)'|TypeError: unsupported operand type\(s\) for .{1,4}: '(?:int|float|str"
        r"|NoneType)' and '(?:int|float|str|NoneType)'"
        r"|ValidationError: Value '.*' (?:of type '.*' )?could not be converted",
        where=r"(?s)^(?!.*(?:compute_score|_call_with_kwargs|reward_manager))",
        level=Level.GENERAL,
    ),
    Cause(
        "loss-agg-mode",
        "Unknown actor.loss_agg_mode '{value}'",
        "The value must be token-mean, token-sum, seq-mean-token-sum, seq-mean-token-mean or seq-mean-token-sum-norm.",
        ("set actor_rollout_ref.actor.loss_agg_mode=token-mean",),
        raised=r"Invalid loss_agg_mode: (?P<value>\w[\w-]*)",
    ),
    Cause(
        "unknown-estimator",
        "Unknown advantage estimator '{value}'",
        "veRL does not recognize this algorithm.adv_estimator. A misspelt gae also disables the critic.",
        ("set algorithm.adv_estimator=gae (PPO) or grpo",),
        raised=r"Unknown advantage estimator\D*: (?P<value>\w+)",
    ),
    Cause(
        "unknown-loss-mode",
        "Unknown policy loss '{value}'",
        "veRL does not recognize this actor.policy_loss.loss_mode.",
        ("set actor_rollout_ref.actor.policy_loss.loss_mode=vanilla",),
        raised=r"Unsupported loss mode: (?P<value>\w+)",
    ),
    Cause(
        "unknown-kl-option",
        "Unknown KL option",
        "veRL raises NotImplementedError without a message for a KL setting that it does not recognize.",
        (
            "set algorithm.kl_ctrl.type=fixed or adaptive",
            "set algorithm.kl_penalty=kl, abs, mse or low_var_kl",
            "set actor_rollout_ref.actor.kl_loss_type=low_var_kl",
        ),
        raised=r"^NotImplementedError$",
        where=r"get_kl_controller|kl_penalty",
    ),
    Cause(
        "rollout-engine",
        "Unknown rollout engine '{value}'",
        "This veRL does not recognize actor_rollout_ref.rollout.name or .mode.",
        ("set actor_rollout_ref.rollout.name=vllm", "remove actor_rollout_ref.rollout.mode (async is the only mode)"),
        raised=r"(?:Rollout |Rollout mode '|Unknown rollout mode: )(?P<value>\w+)"
        r"(?: with mode \w+ not found|' has been removed|\. Available)",
    ),
    Cause(
        "unknown-optimizer",
        "Optimizer not found",
        "actor.optim.optimizer (or the critic's) is not in the module optimizer_impl, or that module is not installed.",
        ("set actor_rollout_ref.actor.optim.optimizer=AdamW actor_rollout_ref.actor.optim.optimizer_impl=torch.optim",),
        raised=r"Optimizer '\w+' not found in module|Failed to import module '[\w.]+'\. Make sure the package",
    ),
    Cause(
        "learning-rate",
        "Invalid learning rate or schedule",
        "The rate must not be negative, and lr_scheduler_type must be constant or cosine (for other values veRL "
        "reports only AssertionError()).",
        (
            "set actor_rollout_ref.actor.optim.lr=1e-6 critic.optim.lr=1e-5",
            "set actor_rollout_ref.actor.optim.lr_scheduler_type=constant critic.optim.lr_scheduler_type=constant",
        ),
        raised=r"Invalid learning rate: |Warmup style \w+ is not supported|LR scheduler type \w+ is not supported"
        r"|^AssertionError\(\)$",
        where=r"full_key: \S*optim|Invalid learning|Warmup style|LR scheduler",
    ),
    Cause(
        "unknown-strategy",
        "Unknown training backend '{value}'",
        "actor.strategy and critic.strategy must be fsdp or fsdp2.",
        ("set actor_rollout_ref.actor.strategy=fsdp critic.strategy=fsdp",),
        raised=r"Unknown (?:backend:|strategy) (?P<value>\w+)",
    ),
    Cause(
        "unknown-trainer",
        "Unknown trainer mode '{value}'",
        "veRL does not recognize this trainer.v1.trainer_mode.",
        ("set trainer.v1.trainer_mode=sync",),
        raised=r"Unknown trainer '(?P<value>[^']*)'",
    ),
    Cause(
        "weight-transfer",
        "The weight transfer '{value}' is not available",
        "Each way of sending weights to engines on other GPUs requires its own package; nccl requires cupy.",
        (
            "pip install cupy-cuda12x (cupy-cuda13x for CUDA 13) in veRL's environment",
            "or set trainer.v1.trainer_mode=sync actor_rollout_ref.rollout.checkpoint_engine.backend=naive",
        ),
        raised=r"Checkpoint engine (?P<value>\w+) not registered|No module named 'cupy",
    ),
    Cause(
        "remove-padding",
        "Sequence parallelism requires use_remove_padding",
        "ulysses_sequence_parallel_size above 1 works only on sequences without padding.",
        (
            "set actor_rollout_ref.model.use_remove_padding=True",
            "or set actor_rollout_ref.actor.ulysses_sequence_parallel_size=1",
        ),
        raised=r"you must enable .?use_remove_padding",
    ),
    Cause(
        "temperature",
        "Sampling requires a temperature above 0",
        "Validation samples (val_kwargs.do_sample=True), but the rollout temperature is 0.",
        (
            "set actor_rollout_ref.rollout.temperature=1.0",
            "or set actor_rollout_ref.rollout.val_kwargs.do_sample=False",
        ),
        raised=r"validation gen temperature should be greater than 0",
    ),
    Cause(
        "lora-rank",
        "LoRA rank too large for vLLM",
        "vLLM supports adapters up to rank 512.",
        ("actor_rollout_ref.model.lora_rank ↓ (e.g. 32)",),
        raised=r"lora_rank must be less than or equal to|LoRA rank \d+ is greater than max_lora_rank",
    ),
    Cause(
        "filter-groups",
        "Group filtering without a metric",
        "algorithm.filter_groups.enable=True requires the metric that decides which groups are kept.",
        ("set algorithm.filter_groups.metric=reward", "or set algorithm.filter_groups.enable=False"),
        raised=r"filter_groups\.metric must be set",
    ),
    Cause(
        "filter-metric",
        "The reward function does not return '{value}'",
        "Groups are filtered by algorithm.filter_groups.metric, which the reward function has to return.",
        ("set algorithm.filter_groups.metric=reward", "or return {'score': ..., '{value}': ...} for every response"),
        raised=r"Finished groups are missing DAPO metric '(?P<value>[^']*)'",
    ),
    Cause(
        "config-invalid",
        "Configuration rejected by veRL",
        "A block of the configuration could not be built; the quoted error names the expected value, and full_key "
        "the place.",
        ("correct the setting named in the message", CHECK),
        raised=r"^[\w.]+\((?:[\"'].*)?\)?|InstantiationException: ",
        where=r"Error in call to target|full_key: ",
        level=Level.GENERAL,
    ),
)
