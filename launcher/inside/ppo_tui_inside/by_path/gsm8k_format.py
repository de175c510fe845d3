"""GSM8K with a part of the reward for the answer's form: 0.75 for the right result, 0.25 for shown steps.

Below about 0.7 for the result, a model learns the form instead. Copy this file, change the weights, and try it with
`ppo-tui check --reward FILE` before a run.
"""

import re
from typing import Any

RIGHT, FORM = 0.75, 0.25
STEPS, MARKED = 0.6, 0.4  # shares of the form: reasoning over several lines, an answer that is marked

_NUMBER = r"-?\$?\d[\d,]*(?:\.\d+)?"
_MARKED = re.compile(rf"####\s*({_NUMBER})")
_ANY = re.compile(_NUMBER)


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any
) -> dict[str, float]:
    """The score of one response, from 0 to 1, and its parts.

    veRL trains on `score`; `acc` is the main metric of its validation, `form` is also logged. Every response gets the
    same keys, because veRL refuses to log different ones.
    """
    accuracy = float(_number(answer(solution_str)) == _number(ground_truth) is not None)
    form = form_of(solution_str)
    return {"score": RIGHT * accuracy + FORM * form, "acc": accuracy, "form": form}


def answer(response: str) -> str | None:
    """The last number after `####`; without one, the last number; otherwise None."""
    found = _MARKED.findall(response) or _ANY.findall(response)
    return found[-1] if found else None


def form_of(response: str) -> float:
    """0 to 1: reasoning on at least two lines, a number marked with `####`."""
    lines = [line for line in response.splitlines() if line.strip()]
    return STEPS * (len(lines) >= 2) + MARKED * bool(_MARKED.search(response))


def _number(text: str | None) -> float | None:
    try:
        return float(str(text).replace(",", "").replace("$", ""))
    except ValueError:
        return None
