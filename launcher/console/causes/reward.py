"""Failures of the reward function, and of the prompts that carry it."""

from launcher.console.causes.entry import Cause, Level

TEST = "test it on real rows without a run: `ppo-tui reward test FILE`"
PATH = "reward.custom_reward_function.path"
NAME = "reward.custom_reward_function.name"
SCORING = (
    r"RewardLoopWorker\.compute_score|_call_with_kwargs|raw_fn\(|reward_manager/\w+\.py:(?:__call__|verify|run_single)"
    r"|reward\.py:compute_reward"
)

CAUSES = (
    Cause(
        "reward-file-missing",
        "File of the reward function does not exist",
        "veRL could not find the file. veRL 0.9 does not stop at once: the reward workers exit, the engine starts, "
        "and then every prompt fails.",
        (f"set {PATH} to an absolute path", TEST),
        raised=r"Custom module file not found|Reward function file '.*' not found",
    ),
    Cause(
        "reward-function-missing",
        "Reward function not found in its file",
        "The file was loaded, but does not define a function of this name.",
        (f"set {NAME} to the function's name in the file (veRL's default is compute_score)", TEST),
        raised=r"Object not found in module: object_name=|Reward function '.*' not found in ",
    ),
    Cause(
        "reward-file-broken",
        "File of the reward function cannot be loaded",
        "Python fails while reading the file: a syntax error, or an import that fails.",
        ("fix the file; the exception above this line shows the place", TEST),
        raised=r"Error loading module from module_path=|Could not load module from module_path=",
    ),
    Cause(
        "reward-signature",
        "Reward function does not accept veRL's arguments",
        "veRL calls compute_score(data_source=, solution_str=, ground_truth=, extra_info=, ...) by keyword.",
        ("define it as def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)", TEST),
        raised=r"TypeError: .*(?:got an unexpected keyword argument|missing \d+ required (?:positional|keyword))",
        where=SCORING,
    ),
    Cause(
        "reward-returns",
        "Reward function returns no score",
        "A reward function must return a number, or a dict with the key 'score'. With None, or a dict without that "
        "key, the batch has no rewards.",
        ("return a float, or {'score': float, ...}, on every path through the function", TEST),
        raised=r"KeyError: 'key \"rm_scores\" not found|KeyError: ['\"](?:score|rm_scores)['\"]"
        r"|must be (?:a )?real number, not NoneType"
        r"|float\(\) argument must be a string or a real number, not 'NoneType'",
        where=r"trainer|compute_score|run_single|reward|rm_scores",
    ),
    Cause(
        "reward-manager",
        "Unknown reward manager {name}",
        "veRL does not recognize this reward.reward_manager.name.",
        ("set reward.reward_manager.name=naive",),
        raised=r"Unknown reward manager: (?P<name>\S+)",
    ),
    Cause(
        "reward-signal",
        "Reward function uses signals outside the main thread",
        "math_verify and timeout decorators limit the time by SIGALRM, which Python allows in the main thread only; "
        "veRL runs reward functions in others.",
        (
            "with math_verify 0.8 or newer: parse(..., parsing_timeout=None), verify(..., timeout_seconds=None)",
            "with timeout_decorator: timeout(60, use_signals=False)",
            TEST,
        ),
        raised=r"signal only works in main thread",
        where=r"(?s)^(?!.*(?:sglang/|_build_rollout))",
    ),
    Cause(
        "reward-raises",
        "Reward function raises an exception",
        "The reward function raised an exception. veRL 0.9 then drops the prompt and continues, and fails only "
        "when a whole batch fails; older versions stop at the first exception.",
        (
            "handle every response that the model can write: an unreadable response must score 0, not raise",
            TEST,
            "do not set `trainer.v1.sampler.sync_refill_failed_groups=True`: if the function always raises, the "
            "run never ends",
        ),
        raised=r"^(?!.*ActorDiedError)",
        where=SCORING,
        level=Level.GENERAL,
    ),
    Cause(
        "prompts-all-failed",
        "Every prompt of a batch failed",
        "veRL dropped all prompts of a batch because each of them raised an exception; the first exception is the "
        "cause.",
        (
            "look at the first 'Error in _run_prompt' traceback in the log",
            "check the reward function, the chat template and the columns of the data with `ppo-tui check PRESET`",
        ),
        raised=r"no materializable trajectories|Received an empty list as keys",
        level=Level.SYMPTOM,
        cause_in=r"AgentLoop|RewardLoop|Server|(?i:vllm)|SGLang|Engine|worker",
    ),
)
