"""The reward of the show run: how well a response lists the numbers of a problem, in their order."""

import re
from difflib import SequenceMatcher
from typing import Any

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def numbers(text: str) -> list[str]:
    """The numbers of a text, without the commas of thousands: `1,200` is 1200, `3, 4` are two numbers."""
    return [found.replace(",", "") for found in NUMBER.findall(text)]


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any
) -> dict[str, float]:
    """0.4 for the share of the list that is right, 0.4 for all of it, 0.2 for a list without words around it."""
    given, wanted = numbers(solution_str), ground_truth.split()
    share = SequenceMatcher(None, given, wanted, autojunk=False).ratio()
    exact = float(given == wanted)
    plain = bool(given) and not re.search(r"[A-Za-z]", solution_str)
    return {"score": 0.4 * share + 0.4 * exact + 0.2 * plain, "acc": exact, "share": share}
