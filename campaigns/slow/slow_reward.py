"""A reward function that waits, like one that asks a service."""

import time

from verl.utils.reward_score import gsm8k

SECONDS = 0.3


def compute_score(data_source: str, solution_str: str, ground_truth: str, **_: object) -> float:
    time.sleep(SECONDS)
    return float(gsm8k.compute_score(solution_str, ground_truth))
