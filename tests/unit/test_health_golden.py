"""The golden examples of the rule specification: the state of one rule after each step, run-length coded."""

import math
import re
from collections.abc import Iterable
from typing import Any

import pytest

from launcher.health.checklist import Checklist

Steps = list[dict[str, float]]

LIMIT = {"data.max_response_length": 256}
NO_KL = {"algorithm.use_kl_in_reward": False, "actor_rollout_ref.actor.use_kl_loss": False}


def of(key: str, values: Iterable[float | None]) -> Steps:
    """One step a value; None is a step without the key."""
    return [{} if value is None else {key: value} for value in values]


def score(values: Iterable[float], high: float = 1, low: float = 0) -> Steps:
    return [{"critic/score/mean": x, "critic/score/max": high, "critic/score/min": low} for x in values]


def lengths(*parts: tuple[float, float, float, int]) -> Steps:
    """Mean, maximum and clip ratio of the responses, each part so many times."""
    return [
        {"response_length/mean": mean, "response_length/max": longest, "response_length/clip_ratio": share}
        for mean, longest, share, times in parts
        for _ in range(times)
    ]


def both(first: Steps, second: Steps) -> Steps:
    return [{**a, **b} for a, b in zip(first, second, strict=True)]


KL = "actor/reward_kl_penalty"
HEALTHY_KL = [
    0,
    0.001,
    0.002,
    0.004,
    0.008,
    0.013,
    0.02,
    0.03,
    0.04,
    0.055,
    0.07,
    0.08,
    0.09,
    0.1,
    0.11,
    0.12,
    0.13,
    0.14,
    0.15,
    0.16,
    0.17,
    0.18,
    0.2,
    0.22,
    0.24,
    0.26,
    0.28,
    0.3,
    0.31,
    0.32,
]
BAD_DIFF = {
    "training/rollout_probs_diff_valid": 0.0,
    "training/rollout_probs_diff_mean": math.nan,
    "training/rollout_actor_probs_pearson_corr": math.nan,
}
TOKENS = {"perf/total_num_tokens": 50_000.0}


def seconds(values: Iterable[float]) -> Steps:
    return [{**TOKENS, "timing_s/step": value} for value in values]


SCORES = [0.5] * 14 + [0.6, 0.75, 0.9, 0.97, 0.97]
LENGTHS = [150.0] * 14 + [220, 300, 400, 450, 450]
VALUE_LOSS = [max(0.1, 8 * 0.7**i) for i in range(24)] + [0.1 * 1.6**i for i in range(1, 11)]
DRIFT = of(KL, [0.02 * i for i in range(25)])

# number, steps, rule, states, configuration, whether the log prints three decimals
CASES: list[tuple[int, Steps, str, str, dict[str, Any], bool]] = [
    (1, of("actor/pg_loss", [0.01] * 2 + [math.nan] + [0.01] * 7), "NUM-1", "OK×2, CRITICAL×5, OK×3", {}, False),
    (2, [BAD_DIFF] * 4, "NUM-1", "OK×4", {}, False),
    (3, of("actor/grad_norm", [None, math.inf, None, math.inf, None]), "NUM-1", "OK, WARN×2, CRITICAL×2", {}, False),
    (4, of(KL, HEALTHY_KL), "KL-1", "OK×30", {}, False),
    (5, of(KL, [0.1] * 10 + [1.6] * 3 + [0.1] * 7), "KL-1", "OK×11, CRITICAL×6, OK×3", {}, False),
    (6, of(KL, [0.1] * 10 + [1.6] + [0.1] * 5), "KL-1", "OK×16", {}, False),
    (7, of(KL, [0.12] * 12 + [0.12 * 1.15**i for i in range(1, 23)]), "KL-1", "OK×21, WARN×7, CRITICAL×6", {}, False),
    (8, of(KL, [0.1] * 3), "KL-1", "N-A×3", NO_KL, False),
    (9, of("actor/entropy", [0.45 * 0.97**i for i in range(40)]), "ENT-1", "WARM×3, OK×37", {}, False),
    (
        10,
        of("actor/entropy", [0.4] * 12 + [0.2, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01]),
        "ENT-1",
        "WARM×3, OK×11, WARN, CRITICAL×4",
        {},
        False,
    ),
    (11, of("actor/grad_norm", [2] * 15 + [60] + [2] * 6), "GRAD-1", "WARM×2, OK×20", {}, False),
    (
        12,
        of("actor/grad_norm", [2] * 15 + [70, 2, 80] + [2] * 10),
        "GRAD-1",
        "WARM×2, OK×15, CRITICAL×5, OK×6",
        {},
        False,
    ),
    (
        13,
        score([0.5] * 12) + score([0] * 6, 0, 0) + score([0.4] * 6),
        "SIG-1",
        "OK×13, NOTICE, WARN×2, CRITICAL×6, OK×2",
        {},
        False,
    ),
    (14, score([0] * 26, 0, 0), "SIG-1", "OK×2, NOTICE×7, WARN×15, CRITICAL×2", {}, False),
    (
        15,
        both(seconds([60] * 12 + [120] + [60] * 4), of("timing_s/testing", [None] * 12 + [60] + [None] * 4)),
        "THR-1",
        "WARM×9, OK×8",
        {},
        False,
    ),
    (16, seconds([60] * 12 + [125] * 5), "THR-1", "WARM×9, OK×5, WARN×3", {}, False),
    (17, lengths((100, 180, 0.0078, 9), (100, 180, 0.6, 4)), "TRUNC-1", "WARM×8, OK×5", LIMIT, False),
    (18, lengths((150, 256, 0.03, 9), (230, 256, 0.6, 4)), "TRUNC-1", "WARM×8, OK×2, WARN×3", LIMIT, False),
    (34, lengths((150, 256, 0.03, 9), (250, 256, 0.95, 4)), "TRUNC-1", "WARM×8, OK×2, CRITICAL×3", LIMIT, False),
    (19, of("actor/lr", [1e-6] * 3 + [0] * 6), "LR-1", "OK×4, WARN×3, CRITICAL×2", {}, False),
    (20, of("actor/lr", [0] * 6), "LR-1", "N-A×6", {}, True),
    (21, of("actor/entropy", [0.4] * 8 + [None] * 2 + [0.4] * 2), "ENT-1", "WARM×3, OK×9", {}, False),
    (
        22,
        of("response_length/mean", [200] * 10 + [200 * 0.6**i for i in range(1, 9)]),
        "LEN-1",
        "WARM×8, OK×3, NOTICE, WARN×2, CRITICAL×4",
        {},
        False,
    ),
    (23, both(score(SCORES), of("response_length/mean", LENGTHS)), "HACK-1", "WARM×10, OK×6, WARN×3", {}, False),
    (
        24,
        both(
            score([0.3 + 0.01 * i for i in range(40)]), of("response_length/mean", [150 * 1.02**i for i in range(40)])
        ),
        "HACK-1",
        "WARM×10, OK×30",
        {},
        False,
    ),
    (
        25,
        of("val-core/gsm8k/acc/mean@1", [0.5, 0.6, 0.7, 0.7, 0.62, 0.56, 0.55, 0.4, 0.4, 0.69]),
        "VAL-1",
        "OK×4, NOTICE×2, WARN, NOTICE, CRITICAL, OK",
        {},
        False,
    ),
    (26, both(score([0.5] * 34), of("critic/vf_loss", VALUE_LOSS)), "CRIT-1", "WARM×4, OK×25, WARN×5", {}, False),
    (27, both(score([0.15] * 25), DRIFT), "KL-4", "WARM×5, OK×4, WARN×16", {}, False),
    (
        33,
        of("actor/entropy", [0.4] * 60 + [0.4 * 1.04**i for i in range(40)]),
        "ENT-2",
        "WARM×3, OK×74, NOTICE×7, WARN×16",
        {},
        False,
    ),
    (28, both(score([0.15 + 0.02 * i for i in range(25)]), DRIFT), "KL-4", "WARM×5, OK×20", {}, False),
    (
        29,
        both(score([0.15] * 38), of(KL, [0.02 * i for i in range(13)] + [0.24] * 25)),
        "KL-4",
        "WARM×5, OK×4, WARN×24, OK×5",
        {},
        False,
    ),
    (
        30,
        lengths((240, 256, 0.6, 14), (240, 256, 0.95, 8), (240, 256, 0.1, 8)),
        "TRUNC-1",
        "WARM×8, OK×1, NOTICE×6, WARN×15",
        LIMIT,
        False,
    ),
    (31, both(score([0.15] * 20), of(KL, [0.1] * 10 + [1.6] + [0.1] * 9)), "KL-4", "WARM×5, OK×15", {}, False),
    (32, of("actor/entropy", [2.6 + 0.5 * i for i in range(15)]), "ENT-2", "WARM×3, OK×3, NOTICE×3, WARN×6", {}, False),
]


def spelled_out(states: str) -> list[str]:
    """`OK×2, WARN` as ["OK", "OK", "WARN"]."""
    found = [re.fullmatch(r"([A-Z-]+)(?:×(\d+))?", part.strip()) for part in states.split(",")]
    return [match[1] for match in found if match for _ in range(int(match[2] or 1))]


def states_of(rule: str, steps: Steps, config: dict[str, Any], three_decimals: bool) -> list[str]:
    checklist = Checklist(config, clock=False)
    states = []
    for number, data in enumerate(steps, start=1):
        checklist.step(number, {"actor/pg_loss": 0.01, **data}, three_decimals=three_decimals)
        states.append(next(str(row.level) for row in checklist.checks() if row.rule == rule))
    return states


@pytest.mark.parametrize(("number", "steps", "rule", "states", "config", "three_decimals"), CASES)
def test_golden(
    number: int, steps: Steps, rule: str, states: str, config: dict[str, Any], three_decimals: bool
) -> None:
    assert states_of(rule, steps, config, three_decimals) == spelled_out(states)


def test_every_example_of_the_specification_is_here() -> None:
    assert sorted(case[0] for case in CASES) == list(range(1, 35))


def test_changes_tell_the_same_story_as_the_states() -> None:
    """A reader who only has the changes (health --json, events.jsonl) can follow every rule."""
    for _, steps, rule, states, config, three_decimals in CASES:
        checklist = Checklist(config, clock=False)
        level = next(str(row.level) for row in checklist.checks() if row.rule == rule)
        followed = []
        for number, data in enumerate(steps, start=1):
            for change in checklist.step(number, {"actor/pg_loss": 0.01, **data}, three_decimals=three_decimals):
                if change.rule == rule:
                    assert (change.step, str(change.before)) == (number, level)
                    level = str(change.after)
            followed.append(level)
        assert followed == spelled_out(states)
