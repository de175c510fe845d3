"""Files that keys name, beside data, models and reward functions: they are there."""

from pathlib import Path

from launcher.files import beside
from launcher.preflight.config.base import Findings, error
from launcher.preflight.subject import Subject
from launcher.text import did_you_mean
from launcher.verl_config import DATA, ROLLOUT

CLASS = f"{DATA}.custom_cls"
MULTI_TURN = f"{ROLLOUT}.multi_turn"
MANAGER = "reward.reward_manager"


def named_files(subject: Subject) -> Findings:
    """FILE-1: a file that a key names is there; a class of one's own has a name."""
    used = {
        f"{CLASS}.path": True,
        f"{MULTI_TURN}.tool_config_path": subject.get(f"{MULTI_TURN}.enable") is True,
        f"{MULTI_TURN}.interaction_config_path": subject.get(f"{MULTI_TURN}.enable") is True,
        f"{MANAGER}.module.path": subject.get(f"{MANAGER}.source") == "importlib",
    }
    for key, needed in used.items():
        path = subject.get(key)
        if not needed or not isinstance(path, str) or "://" in path or Path(path).is_file():
            continue
        message = f"there is no file {path}{did_you_mean(Path(path).name, beside(Path(path)))}, which {key} names"
        yield error("FILE-1", message, f"correct {key}, or leave it out", [key])
    if subject.get(f"{CLASS}.path") and not subject.get(f"{CLASS}.name"):
        message = "a file with a data set class is given, and the class has no name"
        yield error("FILE-1", message, f"set {CLASS}.name to the class", [f"{CLASS}.name", f"{CLASS}.path"])


RULES = (named_files,)
