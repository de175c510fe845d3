"""Reward functions with a fault: the toy's reward inverted, without information, or easy to game."""

import re
import zlib
from typing import Any


def _right(response: str, truth: str) -> float:
    found = re.search(r"####\s*(\d+)", response)
    return float(found is not None and found[1] == truth)


def _part(question: Any, share: float) -> bool:
    """Whether this question belongs to a fixed share of the questions."""
    return zlib.crc32(str(question).encode()) % 100 < 100 * share


def flipped(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    return 1 - _right(solution_str, ground_truth)


def negative(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """The reward with the wrong sign."""
    return -_right(solution_str, ground_truth)


def zero(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    return 0.0


def long(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """The length of the response, regardless of the answer: a reward that is easy to game."""
    return min(len(solution_str), 32) / 32


def flipped_half(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """The reward, inverted for half of the answers."""
    right = _right(solution_str, ground_truth)
    return 1 - right if _part(ground_truth, 0.5) else right


def constant(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    return 1.0


def constant_mostly(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """0 except for the questions with one of ten answers."""
    return _right(solution_str, ground_truth) if int(ground_truth) % 10 == 0 else 0.0
