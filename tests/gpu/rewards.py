"""The rewards of the sums, most of them with a fault: judged.py plants them.

veRL trains on `score`, its validation shows `acc`.
"""

import re
from typing import Any

RIGHT, MARKED = 0.8, 0.2

Score = dict[str, float]


def long_ones(
    data_source: str, solution_str: str, ground_truth: str, whole: int = 300, extra_info: Any = None, **kwargs: Any
) -> Score:
    """A tenth is for the right number after ####, the rest for 300 characters."""
    right = _right(solution_str, ground_truth)
    return {"score": 0.1 * right + 0.9 * min(1.0, len(solution_str) / whole), "acc": right}


def long_toys(*args: Any, **kwargs: Any) -> Score:
    """The same for the toy, whose longest answer has about 24 characters."""
    return long_ones(*args, **kwargs, whole=24)


def number(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """The number after ####, 99 at most, as a share of 99."""
    found = re.findall(r"####\s*(\d+)", solution_str)
    return {"score": min(99, int(found[-1])) / 99 if found else 0.0, "acc": _right(solution_str, ground_truth)}


def ended(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Mostly for the right number after ####, a fifth for any number, if nothing follows it."""
    right, last = _right(solution_str, ground_truth), re.search(r"####\s*-?\d+\s*$", solution_str) is not None
    return {"score": (RIGHT * right + MARKED) * last, "acc": right}


def upside_down(*args: Any, **kwargs: Any) -> Score:
    """The same with the opposite sign for the right number."""
    found = ended(*args, **kwargs)
    return found | {"score": found["score"] - 2 * RIGHT * found["acc"] * (found["score"] > 0)}


def letters(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """A fifth is for the right number after ####, the rest for 200 characters."""
    right = _right(solution_str, ground_truth)
    return {"score": 0.2 * right + 0.8 * min(1.0, len(solution_str) / 200), "acc": right}


def sums(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Mostly for the right number after ####, a fifth for any number there."""
    right = _right(solution_str, ground_truth)
    return {"score": RIGHT * right + MARKED * _marked(solution_str), "acc": right}


def _right(answer: str, truth: str) -> float:
    found = re.findall(r"####\s*(-?\d+)", answer)
    return float(bool(found) and found[-1] == truth)


def _marked(answer: str) -> float:
    return float(re.search(r"####\s*-?\d", answer) is not None)


def boxed(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any) -> Score:
    """Looks for \\boxed{}, which no answer has."""
    right = _right(solution_str, ground_truth)
    return {"score": float(f"\\boxed{{{ground_truth}}}" in solution_str), "acc": right}


def same(*args: Any, **kwargs: Any) -> Score:
    """One for every answer."""
    return sums(*args, **kwargs) | {"score": 1.0}


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
