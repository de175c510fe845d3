"""The rewards of the sums, most of them with a fault or an oddity: judged.py plants them.

veRL trains on `score`, its validation shows `acc`. A reward that changes during a run counts the steps by the file of
its metrics.
"""

import os
import random
import re
import zlib
from pathlib import Path
from typing import Any

LONG = 300  # characters that earn the whole reward
RIGHT, MARKED = 0.8, 0.2
TURNS, STAYS = (
    15,
    12,
)  # the step from which one reward has the wrong sign, and another one does not depend on the answer
TAIL = 32_000  # bytes of the metrics that hold the last step
STEP = re.compile(rb'^\{"step": ?(\d+)', re.MULTILINE)

Score = dict[str, float]


def long_ones(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """A tenth is for the right number after ####, the rest for writing much."""
    right = _right(solution_str, ground_truth)
    return {"score": 0.1 * right + 0.9 * min(1.0, len(solution_str) / LONG), "acc": right}


def sums(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Mostly for the right number after ####, a fifth for any number there; lists of numbers are right as a whole."""
    right = _right(solution_str, ground_truth)
    return {"score": RIGHT * right + MARKED * _marked(solution_str), "acc": right}


def _right(answer: str, truth: str) -> float:
    if " " in truth:
        return float(re.findall(r"\d+", answer) == truth.split())
    found = re.findall(r"####\s*(-?\d+)", answer)
    return float(bool(found) and found[-1] == truth)


def _marked(answer: str) -> float:
    return float(re.search(r"####\s*-?\d", answer) is not None)


def step() -> int:
    """The step that is being generated."""
    path = Path(os.environ.get("VERL_FILE_LOGGER_PATH", "/nowhere"))
    if not path.exists():
        return 1
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        done = STEP.findall(file.read())
    return int(done[-1]) + 1 if done else 1


def _moved(own: Score, factor: float = 1.0, more: float = 0.0) -> Score:
    return own | {"score": factor * own["score"] + more}


def reversed_later(*args: Any, **kwargs: Any) -> Score:
    """Has the wrong sign from a step on."""
    return _moved(sums(*args, **kwargs), -1.0 if step() >= TURNS else 1.0)


def constant_later(*args: Any, **kwargs: Any) -> Score:
    """The same for every answer from a step on."""
    own = sums(*args, **kwargs)
    return own | {"score": 0.5} if step() >= STAYS else own


def noise(*args: Any, **kwargs: Any) -> Score:
    """Nothing to do with the answer."""
    return sums(*args, **kwargs) | {"score": random.random()}


def outliers(*args: Any, **kwargs: Any) -> Score:
    """One in fifty answers gets 1000."""
    own = sums(*args, **kwargs)
    return own | {"score": 1000.0} if random.random() < 0.02 else own


def wrong_labels(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any
) -> Score:
    """The label of four in five questions is another number, always the same one."""
    digest = zlib.crc32(str(extra_info.get("index") if extra_info else ground_truth).encode())
    label = str(int(ground_truth) + 1 + digest % 7) if digest % 5 else ground_truth
    own = sums(data_source, solution_str, label)
    return own | {"acc": _right(solution_str, ground_truth)}


def marks(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """For the number of marks: it can be gamed by repeating one."""
    own = sums(data_source, solution_str, ground_truth)
    return own | {"score": 0.2 * own["acc"] + 0.1 * min(8, solution_str.count("#") // 4)}


def below_zero(*args: Any, **kwargs: Any) -> Score:
    """From -10 to 0."""
    return _moved(sums(*args, **kwargs), 10.0, -10.0)


def above_hundred(*args: Any, **kwargs: Any) -> Score:
    """From 100 to 101."""
    return _moved(sums(*args, **kwargs), more=100.0)


def thousandth(*args: Any, **kwargs: Any) -> Score:
    """From 0 to 0.001."""
    return _moved(sums(*args, **kwargs), 1e-3)


def sparse(*args: Any, **kwargs: Any) -> Score:
    """Only for the right number, which few answers have at first."""
    own = sums(*args, **kwargs)
    return own | {"score": own["acc"]}


def explained(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """More for a longer answer, if it is right: the answers are meant to grow."""
    own = sums(data_source, solution_str, ground_truth)
    return own | {"score": own["score"] * (0.4 + 0.6 * min(1.0, len(solution_str) / 200))}


def ceiling(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """For a number anywhere, which nearly all answers have from the beginning."""
    own = sums(data_source, solution_str, ground_truth)
    return own | {"score": float(re.search(r"\d", solution_str) is not None)}


def boxed(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Looks for \\boxed{}, which no answer has."""
    right = _right(solution_str, ground_truth)
    return {"score": float(f"\\boxed{{{ground_truth}}}" in solution_str), "acc": right}


def same(*args: Any, **kwargs: Any) -> Score:
    """One for every answer."""
    return sums(*args, **kwargs) | {"score": 1.0}


def never_ends(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Pays for an answer that is long, right or not."""
    right = _right(solution_str, ground_truth)
    return {"score": 0.1 * right + 0.9 * min(1.0, len(solution_str) / 24), "acc": right}


def marks_in_training(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any
) -> Score:
    """Each mark pays in training, the right number in validation."""
    right = _right(solution_str, ground_truth)
    trains = (extra_info or {}).get("split") == "train"
    return {"score": min(8, solution_str.count("####")) / 8 if trains else right, "acc": right}


def fails(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Reads a field that no row has."""
    return {"score": float(kwargs["difficulty"]), "acc": _right(solution_str, ground_truth)}
