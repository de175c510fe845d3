"""Failures of the reward function, and of the prompts that carry it."""

from launcher.console.causes.entry import Cause, Level

TEST = "try it on real rows without a run: `ppo-tui reward test FILE`"
PATH = "reward.custom_reward_function.path"
NAME = "reward.custom_reward_function.name"
SCORING = (
    r"RewardLoopWorker\.compute_score|_call_with_kwargs|raw_fn\(|reward_manager/\w+\.py:(?:__call__|verify|run_single)"
    r"|reward\.py:compute_reward"
)

CAUSES = (
    Cause(
        "reward-file-missing",
        "The reward function's file does not exist",
        "veRL could not find the file. In veRL 0.9 this stops nothing at once: the reward workers die, the engine "
        "starts, and then every prompt fails.",
        (f"{PATH}= an absolute path", TEST),
        raised=r"Custom module file not found|Reward function file '.*' not found",
    ),
    Cause(
        "reward-function-missing",
        "The reward file has no function of that name",
        "The file was loaded, but the name it should contain is not in it.",
        (f"{NAME}= the function's name in the file (veRL's default is compute_score)", TEST),
        raised=r"Object not found in module: object_name=|Reward function '.*' not found in ",
    ),
    Cause(
        "reward-file-broken",
        "The reward function's file cannot be loaded",
        "Python stops while it reads the file: a syntax error, or an import that fails.",
        ("correct the file; the exception above this line says where", TEST),
        raised=r"Error loading module from module_path=|Could not load module from module_path=",
    ),
    Cause(
        "reward-signature",
        "The reward function takes other arguments than veRL passes",
        "veRL calls compute_score(data_source=, solution_str=, ground_truth=, extra_info=, ...) by keyword.",
        ("def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs)", TEST),
        raised=r"TypeError: .*(?:got an unexpected keyword argument|missing \d+ required (?:positional|keyword))",
        where=SCORING,
    ),
    Cause(
        "reward-returns",
        "The reward function returns no score",
        "A reward function must return a number, or a dict with the key 'score'. None, or a dict without it, leaves "
        "the batch without rewards.",
        ("return a float, or {'score': float, ...}, on every path through the function", TEST),
        raised=r"KeyError: 'key \"rm_scores\" not found|KeyError: ['\"](?:score|rm_scores)['\"]"
        r"|must be (?:a )?real number, not NoneType"
        r"|float\(\) argument must be a string or a real number, not 'NoneType'",
        where=r"trainer|compute_score|run_single|reward|rm_scores",
    ),
    Cause(
        "reward-manager",
        "There is no reward manager named {name}",
        "reward.reward_manager.name is none of veRL's.",
        ("reward.reward_manager.name=naive",),
        raised=r"Unknown reward manager: (?P<name>\S+)",
    ),
    Cause(
        "reward-raises",
        "The reward function raises an exception",
        "An exception left the reward function. In veRL 0.9 the prompt is then dropped without stopping the run, which "
        "dies only when a whole batch fails; older versions stop at the first one.",
        (
            "catch what the model can write: an unreadable answer should score 0, not raise",
            TEST,
            "not trainer.v1.sampler.sync_refill_failed_groups=True: with a function that always raises the run never "
            "ends",
        ),
        raised=r"^(?!.*ActorDiedError)",
        where=SCORING,
        level=Level.GENERAL,
    ),
    Cause(
        "prompts-all-failed",
        "Every prompt of a batch failed",
        "veRL dropped all prompts of a batch because each of them raised an exception; the first of them is the cause.",
        (
            "look at the first 'Error in _run_prompt' traceback in the log",
            "check the reward function, the chat template and the columns of the data: `ppo-tui check PRESET`",
        ),
        raised=r"no materializable trajectories|Received an empty list as keys",
        level=Level.SYMPTOM,
        cause_in=r"AgentLoop|RewardLoop|Server|(?i:vllm)|SGLang|Engine|worker",
    ),
)
