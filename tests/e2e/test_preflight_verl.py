"""The corpus before the real veRL: it rejects what the preflight rejects and takes what that takes."""

import importlib.util
import random

import pytest
from corpus import Case, cases
from corpus_answers import Answer, ask, recorded

from launcher.preset.files import shipped

CASES = [case for case in cases() if case.by == "probe"] + [Case(on=name) for name in shipped()]


def dice(seed: int) -> Case:
    """A toy run with sizes that may fit each other or not."""
    draw = random.Random(seed)
    micro = {"actor.ppo": (1, 2, 3, 4, 6), "rollout.log_prob": (1, 2, 3, 4, 8), "ref.log_prob": (1, 2, 4, 5)}
    settings = [
        f"data.train_batch_size={draw.choice((6, 8, 12, 16, 24))}",
        f"actor.ppo_mini_batch_size={draw.choice((2, 3, 4, 6, 8, 12))}",
        f"rollout.n={draw.choice((1, 1, 2, 3))}",
        *(f"{name}_micro_batch_size_per_gpu={draw.choice(sizes)}" for name, sizes in micro.items()),
    ]
    for chance, setting in (
        (0.3, f"critic.ppo_mini_batch_size={draw.choice((2, 4, 6))}"),
        (0.3, f"trainer.critic_warmup={draw.choice((1, 2, 5))}"),
        (0.2, "actor.use_dynamic_bsz=true"),
        (0.3, f"actor.ppo_max_token_len_per_gpu={draw.choice((71, 72, 144))}"),
        (0.2, f"critic.ppo_max_token_len_per_gpu={draw.choice((71, 72, 144))}"),
        (0.3, "algorithm=grpo"),
        (0.3, "kl.in_loss=false"),
        (0.2, "kl.in_reward=true"),
        (0.2, "model.lora_rank=4"),
    ):
        if draw.random() < chance:
            settings.append(setting)
    return Case(on="toy-cpu", set=settings)


DICE = [dice(seed) for seed in range(24)]
MOST = 30  # answers that are asked for again before they have to be recorded: two seconds each

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("probe"),  # one asks for all
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"),
]


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    """What veRL says to each case. Some are asked whatever is on record, so that the record is known to be true."""
    known = recorded([*CASES, *DICE])
    again = [case for case in (*CASES, *DICE) if case.name not in known]
    assert len(again) <= MOST, f"{len(again)} answers are outdated: make corpus-answers"
    return known | ask([*again, *CASES[::64], *DICE[::24]])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verl_does_as_the_corpus_says(case: Case, answers: dict[str, Answer]):
    answer = answers[case.name]
    if case.stage is None and "vllm version None" in (answer["error"] or ""):
        pytest.skip("veRL asks vLLM about adapters, and there is none here")
    assert answer["stage"] == case.stage, answer["error"]
    assert case.says in (answer["error"] or "")


@pytest.mark.parametrize("case", DICE, ids=lambda case: " ".join(case.set))
def test_verl_and_the_preflight_agree_about_any_sizes(case: Case, answers: dict[str, Answer]):
    refused = [finding.message for finding in case.findings() if finding.level == "error"]
    answer = answers[case.name]
    assert bool(refused) == (answer["stage"] is not None), (refused, answer)
