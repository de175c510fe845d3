"""Configuration that Hydra, veRL's dataclasses or a later stage refuses."""

from launcher.console.causes.entry import Cause, Level

CHECK = "see what is allowed: `ppo-tui check PRESET`"

CAUSES = (
    Cause(
        "unknown-config-key",
        "veRL has no configuration key '{key}'",
        "The name is mistyped, or belongs to another veRL version.",
        ("correct the name; `ppo-tui check PRESET` proposes the nearest one", "+{key}=... only if veRL reads it"),
        line=r"Could not (?:override|append to config|delete from config)[^']{0,40}'(?P<key>[^']+)'",
        raised=r"Config(?:Attribute|Key)Error: (?:Key|Missing key) '?(?P<key>[\w.]+)",
        fatal=True,
    ),
    Cause(
        "config-syntax",
        "Hydra cannot read a value on the command line",
        "A value contains characters that mean something to Hydra's override grammar (~, commas, brackets, quotes, =, "
        "spaces) and has to be quoted.",
        ("quote it twice: 'key=\"value\"'", "write ~/models as a full path", "ppo-tui quotes values by itself"),
        line=r"(?:LexerNoViableAltException|OverrideParseException|Error parsing override|mismatched input "
        r"|no viable alternative at input |token recognition error|missing EQUAL at )",
        fatal=True,
    ),
    Cause(
        "config-arguments",
        "The command line was not understood",
        "main_ppo takes key=value settings, not options with dashes, and needs its own configuration files.",
        ("let ppo-tui build the command: `ppo-tui command PRESET`",),
        line=r"(?:usage: )?\S+\.py: error: |Cannot find primary config|Primary config (?:module|directory) ",
        fatal=True,
    ),
    Cause(
        "unknown-config-field",
        "'{key}' is not a field of veRL's {block}",
        "A key added with + under a block that veRL turns into a dataclass must be one of its fields.",
        ("remove the + key, or correct its name", CHECK),
        raised=r"(?P<block>\w+Config)\.__init__\(\) got an unexpected keyword argument \W?'(?P<key>\w+)",
    ),
    Cause(
        "config-value-missing",
        "The setting {key} has no value",
        "veRL has no default for it (`???`), so it must be given.",
        ("{key}=...", "actor_rollout_ref.rollout.name=vllm, if that is the missing one"),
        raised=r"Missing mandatory value: (?P<key>\S+)",
    ),
    Cause(
        "config-value-type",
        "A setting has a value of the wrong type",
        "Text where a number is needed: Hydra checks names, not values, so this surfaces where the value is used and "
        "the message names neither key nor value.",
        ("look in the overrides for a number that is text (abc, .nan, 1e-6 in quotes)", CHECK),
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
        "actor.loss_agg_mode={value} does not exist",
        "It must be token-mean, token-sum, seq-mean-token-sum, seq-mean-token-mean or seq-mean-token-sum-norm.",
        ("actor_rollout_ref.actor.loss_agg_mode=token-mean",),
        raised=r"Invalid loss_agg_mode: (?P<value>\w[\w-]*)",
    ),
    Cause(
        "unknown-estimator",
        "There is no advantage estimator '{value}'",
        "algorithm.adv_estimator is none that veRL knows. A misspelt gae also switches the critic off.",
        ("algorithm.adv_estimator=gae (PPO) or grpo",),
        raised=r"Unknown advantage estimator\D*: (?P<value>\w+)",
    ),
    Cause(
        "unknown-loss-mode",
        "There is no policy loss '{value}'",
        "actor.policy_loss.loss_mode is none that veRL knows.",
        ("actor_rollout_ref.actor.policy_loss.loss_mode=vanilla",),
        raised=r"Unsupported loss mode: (?P<value>\w+)",
    ),
    Cause(
        "unknown-kl-option",
        "An unknown KL option",
        "veRL raises NotImplementedError without a text for a KL setting it does not know.",
        (
            "algorithm.kl_ctrl.type=fixed or adaptive",
            "algorithm.kl_penalty=kl, abs, mse or low_var_kl",
            "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
        ),
        raised=r"^NotImplementedError$",
        where=r"get_kl_controller|kl_penalty",
    ),
    Cause(
        "rollout-engine",
        "There is no rollout engine '{value}'",
        "actor_rollout_ref.rollout.name or .mode is none that this veRL knows.",
        ("actor_rollout_ref.rollout.name=vllm", "leave actor_rollout_ref.rollout.mode out (async is the only one)"),
        raised=r"(?:Rollout |Rollout mode '|Unknown rollout mode: )(?P<value>\w+)"
        r"(?: with mode \w+ not found|' has been removed|\. Available)",
    ),
    Cause(
        "unknown-optimizer",
        "The optimizer cannot be found",
        "actor.optim.optimizer (or the critic's) is not in the module optimizer_impl, or that module is not installed.",
        ("actor_rollout_ref.actor.optim.optimizer=AdamW actor_rollout_ref.actor.optim.optimizer_impl=torch.optim",),
        raised=r"Optimizer '\w+' not found in module|Failed to import module '[\w.]+'\. Make sure the package",
    ),
    Cause(
        "learning-rate",
        "The learning rate or its schedule is not allowed",
        "The rate must not be negative, and lr_scheduler_type must be constant or cosine (for a wrong one veRL only "
        "says AssertionError()).",
        (
            "actor_rollout_ref.actor.optim.lr=1e-6 critic.optim.lr=1e-5",
            "actor_rollout_ref.actor.optim.lr_scheduler_type=constant critic.optim.lr_scheduler_type=constant",
        ),
        raised=r"Invalid learning rate: |Warmup style \w+ is not supported|LR scheduler type \w+ is not supported"
        r"|^AssertionError\(\)$",
        where=r"full_key: \S*optim|Invalid learning|Warmup style|LR scheduler",
    ),
    Cause(
        "unknown-strategy",
        "There is no training backend '{value}'",
        "actor.strategy and critic.strategy must be fsdp or fsdp2.",
        ("actor_rollout_ref.actor.strategy=fsdp critic.strategy=fsdp",),
        raised=r"Unknown (?:backend:|strategy) (?P<value>\w+)",
    ),
    Cause(
        "unknown-trainer",
        "There is no trainer mode '{value}'",
        "trainer.v1.trainer_mode is none that veRL knows.",
        ("trainer.v1.trainer_mode=sync",),
        raised=r"Unknown trainer '(?P<value>[^']*)'",
    ),
    Cause(
        "remove-padding",
        "Sequence parallelism needs use_remove_padding",
        "ulysses_sequence_parallel_size above 1 works only on sequences without padding.",
        (
            "actor_rollout_ref.model.use_remove_padding=True",
            "or actor_rollout_ref.actor.ulysses_sequence_parallel_size=1",
        ),
        raised=r"you must enable .?use_remove_padding",
    ),
    Cause(
        "temperature",
        "Sampling needs a temperature above 0",
        "Validation is set to sample (val_kwargs.do_sample=True) while the rollout temperature is 0.",
        ("actor_rollout_ref.rollout.temperature=1.0", "or actor_rollout_ref.rollout.val_kwargs.do_sample=False"),
        raised=r"validation gen temperature should be greater than 0",
    ),
    Cause(
        "lora-rank",
        "The LoRA rank is too large for vLLM",
        "vLLM serves adapters of rank 512 at most.",
        ("actor_rollout_ref.model.lora_rank ↓ (e.g. 32)",),
        raised=r"lora_rank must be less than or equal to|LoRA rank \d+ is greater than max_lora_rank",
    ),
    Cause(
        "filter-groups",
        "Group filtering has no metric",
        "algorithm.filter_groups.enable=True needs the metric that decides which groups stay.",
        ("algorithm.filter_groups.metric=reward", "or algorithm.filter_groups.enable=False"),
        raised=r"filter_groups\.metric must be set",
    ),
    Cause(
        "config-invalid",
        "veRL refuses the configuration",
        "A block of the configuration could not be built; the quoted error says what it wants, full_key where.",
        ("correct the setting that the message names", CHECK),
        raised=r"^[\w.]+\((?:[\"'].*)?\)?|InstantiationException: ",
        where=r"Error in call to target|full_key: ",
        level=Level.GENERAL,
    ),
)
