"""Both sides of each gate of a health rule, in one table: steps of a run in, the level at their end out."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from rule_levels import levels, of, score

from launcher.record.levels import Level

Steps = Sequence[Mapping[str, float]]
LIMIT = {"data.max_response_length": 256}


def both(*parts: Steps) -> Steps:
    """The metrics of several lists of steps, step by step."""
    return [dict(pair for data in step for pair in data.items()) for step in zip(*parts, strict=True)]


def cut(shares: Sequence[float]) -> Steps:
    return [{"response_length/clip_ratio": share, "response_length/max": 256.0} for share in shares]


def value(losses: Sequence[float], high: float = 1.0, **more: float) -> Steps:
    return both(score([0.3 * high] * len(losses), high), [{"critic/vf_loss": x, **more} for x in losses])


def returns(losses: Sequence[float], clipped: float = 0.9, wide: float = 1.0) -> Steps:
    ends = {"critic/returns/max": wide, "critic/returns/min": 0.0, "critic/vf_clipfrac": clipped}
    return [{"critic/vf_loss": x, **ends} for x in losses]


def memory(per_step: float, count: int) -> Steps:
    return [{"actor/perf/cpu_memory_used_gb": 50 + per_step * n} for n in range(count)]


def grows(by: float, count: int, start: float = 1.0, calm: int = 15) -> list[float]:
    """A value that is calm and then grows by a factor per step."""
    return [start * (1 + 0.05 * (-1) ** n) for n in range(calm)] + [start * by**n for n in range(1, count + 1)]


def mismatch(diff: Sequence[float], kl: float = 0.001) -> Steps:
    keys = ("training/rollout_probs_diff_mean", "training/rollout_probs_diff_max")
    return [dict.fromkeys(keys, x) | {"rollout_corr/kl": kl} for x in diff]


def hacked(scores: Sequence[float], validated: float = 0.0, **more: float) -> Steps:
    """A reward that rises, with a validation every fourth step that rises by a share of it; prompts of one length."""
    key, last = "val-core/sums/reward/mean@1", len(scores) - 1
    return [
        step
        | {"response_length/mean": 50.0, "prompt_length/mean": 60.0}
        | ({key: 0.02 + validated * (scores[n] - scores[0])} if n % 4 == 3 else {})
        | {name: more[name] * n / last for name in more}
        for n, step in enumerate(score(scores))
    ]


def validated(values: Sequence[float]) -> Steps:
    return both(score([0.3] * len(values)), of("val-core/sums/acc/mean@1", values))


def sources(*gains: float) -> Steps:
    """A reward that rises, with a validation every fourth step on data sources that rise by a share of it."""
    return both(hacked(RISING, gains[0]), *(of_source(n, gain) for n, gain in enumerate(gains[1:])))


def of_source(n: int, gain: float) -> Steps:
    key = f"val-core/source-{n}/reward/mean@1"
    return [{key: gain * (x - RISING[0])} if step % 4 == 3 else {} for step, x in enumerate(RISING)]


def adaptive(growth: float, fall: float, start: float = 0.001) -> Steps:
    """A coefficient of the KL that grows per step, and a reward that falls with it."""
    return [
        step
        | {"actor/reward_kl_penalty": 0.1, "actor/reward_kl_penalty_coeff": start * growth**n}
        | {"critic/rewards/mean": 0.1 - fall * n}
        for n, step in enumerate(score([0.1] * 12))
    ]


def rates(values: Sequence[float], **more: float) -> Steps:
    return [{"actor/grad_norm": 0.5, "actor/lr": x, **more} for x in values]


def longer(first: float, usual: float, last: float) -> Steps:
    return of("response_length/mean", [first] * 4 + [usual] * 12 + [last] * 4)


def still(kl: Sequence[float], rate: float = 1e-6, **more: float) -> Steps:
    return [{"actor/kl_loss": x, "actor/lr": rate, "actor/grad_norm": 0.5, **more} for x in kl]


def ended(least: float) -> Steps:
    ends = {"response_length/max": 256.0, "response_length/min": least, "response_length/clip_ratio": 1.0}
    return [ends] * 6


def words(share: float) -> Steps:
    return [{"prompt_length/min": 20.0, "prompt_length/max": 40.0, "responses/one_word_prompts": share}] * 4


def advantages(high: float, low: float) -> Steps:
    said = {"responses/advantage_high": 2.0, "responses/advantage_low": -0.5}
    return [said | {"critic/advantages/max": high, "critic/advantages/min": low}] * 5


def room(fit: int, more: int) -> Steps:
    figures = {"checkpoint_room": fit, "checkpoints_to_come": more, "checkpoints_lacking": max(more - fit, 0)}
    return [{f"machine/{name}": float(x) for name, x in figures.items()} | score([0.1])[0]] * 3


class Gate(NamedTuple):
    """A rule, the steps that it judges, and its level after the last of them."""

    why: str
    rule: str
    steps: Steps
    level: Level
    config: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = {}


OK, NOTICE, WARN, CRITICAL = Level.OK, Level.NOTICE, Level.WARN, Level.CRITICAL
HOST = {"host_total_gb": 256.0}
OPTIM = "actor_rollout_ref.actor.optim"
MINI = {"actor_rollout_ref.actor.ppo_mini_batch_size": 16}
UPDATES = of("actor/ppo_kl", [0.0] * 21)
SMALL = value([0.002] * 25, 0.2)
EQUAL = {"critic/score/mean": 0.0, "critic/score/max": 0.0, "critic/score/min": 0.0}
RISING = [0.1 + 0.035 * n for n in range(24)]
EASIER = list(enumerate(hacked(RISING)))
BF16 = {"actor_rollout_ref.actor.fsdp_config.model_dtype": "bfloat16"}
DROP = validated([0.4, 0.5, 0.5, 0.38, 0.38])
LEAVES = of("actor/kl_loss", [0.001] * 4 + [0.02 * n for n in range(16)])
BETTER = score([0.1 + 0.02 * n for n in range(20)])
PPO = {"actor_rollout_ref.actor.policy_loss.loss_mode": "vanilla"}
CLIPPED = of("actor/pg_clipfrac", [0.4] * 5)
VANISHED = of("actor/grad_norm", [1.0] * 10 + [1e-4] * 10)
GRPO = {"algorithm.adv_estimator": "grpo"}
PROMPTS = {"data.max_prompt_length": 64}

GATES = [
    # bad from the first step
    Gate("a critic explodes from the first step", "CRIT-1", value([898 * 1.9**n for n in range(10)]), CRITICAL),
    Gate("it is far too large, though it falls", "CRIT-1", value([616 * 0.8**n for n in range(10)]), WARN),
    Gate("it is as bad as it began", "CRIT-1", value([900.0] * 10), WARN),
    Gate("its loss rises above its start", "CRIT-1", value([3.0, 9.0, 7.0, 8.0, 4.0]), WARN),
    Gate("it rises a little", "CRIT-1", value([0.3, 0.5, 0.4, 0.4, 0.3]), OK),
    Gate("a fresh critic learns", "CRIT-1", value([15 * 0.8**n for n in range(10)]), OK),
    Gate("the loss is small for rewards of 100", "CRIT-1", value([5000.0] * 10, high=100), OK),
    Gate("a loss far above its usual", "CRIT-1", SMALL + value([0.06] * 5, 0.2), WARN),
    Gate("it is small for rewards that now differ", "CRIT-1", SMALL + value([0.06] * 5), OK),
    Gate("gradients in the thousands", "GRAD-1", of("actor/grad_norm", [4000.0] * 5), WARN),
    Gate("gradients of 100", "GRAD-1", of("actor/grad_norm", [100.0] * 15), OK),
    Gate(
        "such gradients where the loss sums tokens",
        "GRAD-1",
        of("actor/grad_norm", [4000.0] * 15),
        OK,
        {"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum"},
    ),
    Gate("a dead gradient", "GRAD-2", of("actor/grad_norm", [0.0] * 5), WARN),
    Gate("a small gradient", "GRAD-2", of("actor/grad_norm", [1e-4] * 12), OK),
    Gate("gradients vanish while rewards differ", "GRAD-2", both(VANISHED, score([0.6] * 20)), CRITICAL),
    Gate("they vanish where rewards are unknown", "GRAD-2", VANISHED, WARN),
    Gate("the policy loss is unknown", "CLIP-1", CLIPPED, Level.N_A, {"data.train_batch_size": 64}),
    Gate("it is that of PPO", "CLIP-1", CLIPPED, CRITICAL, PPO),
    Gate("0 is no peak against 0", "GRAD-1", of("actor/grad_norm", [0.0] * 15), OK),
    Gate("all responses are cut", "TRUNC-1", both(cut([1.0] * 14), score([0.1] * 14)), CRITICAL, LIMIT),
    Gate(
        "all are cut while the reward rises",
        "TRUNC-1",
        both(cut([1.0] * 14), score([0.1 + 0.04 * n for n in range(14)])),
        WARN,
        LIMIT,
    ),
    Gate("most are cut", "TRUNC-1", both(cut([0.9] * 14), score([0.1] * 14)), WARN, LIMIT),
    # growth without end
    Gate("the mismatch is ten times its start", "MIS-2", mismatch(grows(1.1, 30, 0.004)), WARN),
    Gate("the mismatch doubled", "MIS-2", mismatch(grows(1.02, 35, 0.004)), OK),
    Gate("a mismatch near 0 grows", "MIS-2", mismatch(grows(1.1, 30, 1e-7), kl=1e-8), OK),
    Gate("gradients grow by 20 % per step", "GRAD-1", of("actor/grad_norm", grows(1.2, 16)), WARN),
    Gate("gradients grow by 3 % per step", "GRAD-1", of("actor/grad_norm", grows(1.03, 30)), OK),
    Gate(
        "growing gradients pay",
        "GRAD-1",
        both(of("actor/grad_norm", grows(1.2, 16)), score([0.1 + 0.02 * n for n in range(31)])),
        NOTICE,
    ),
    Gate("the host's memory grows by 4 GB per step", "MEM-2", memory(4, 15), WARN, None, HOST),
    Gate("by 1 GB", "MEM-2", memory(1, 60), OK, None, HOST),
    Gate("by 4 GB in 5 steps", "MEM-2", [*memory(4, 5), *memory(0, 20)], OK, None, HOST),
    Gate("room for all checkpoints but one", "DISK-1", room(4, 5), WARN),
    Gate("room for all", "DISK-1", room(5, 5), OK),
    Gate("room for none", "DISK-1", room(0, 5), CRITICAL),
    Gate("room for none, and none to come", "DISK-1", room(0, 0), OK),
    Gate("cut responses rise to 30 %", "TRUNC-1", cut([min(0.01 * n, 0.3) for n in range(45)]), WARN, LIMIT),
    Gate("cut responses rise to 15 %", "TRUNC-1", cut([min(0.01 * n, 0.15) for n in range(45)]), OK, LIMIT),
    Gate(
        "a plateau with a peak of noise",
        "REW-2",
        score([0.3 + 0.02 * (n % 3) + 0.03 * (n == 100) for n in range(120)]),
        NOTICE,
    ),
    Gate("a reward that rises slowly", "REW-2", score([0.3 + 0.002 * n + 0.02 * (n % 3) for n in range(120)]), OK),
    Gate("the coefficient multiplies and takes the reward", "KL-3", adaptive(1.5, 0.1), CRITICAL),
    Gate("it multiplies, and the reward stays", "KL-3", adaptive(1.5, 0.0), WARN),
    Gate("it follows its target", "KL-3", adaptive(1.02, 0.0), OK),
    Gate("it is negative", "KL-3", adaptive(1.0, 0.0, -0.001), WARN),
    # the policy does not change
    Gate("the KL stays where it began", "MOVE-1", still([2e-6, 2.1e-6, 1.9e-6] * 7), WARN),
    Gate("it leaves", "MOVE-1", still([0.0001 * n for n in range(21)]), OK),
    Gate("it stays at a learning rate of 0", "MOVE-1", still([0.0] * 21, rate=0.0), Level.WARM),
    Gate("it stays in the warm-up", "MOVE-1", still([0.0] * 21), Level.WARM, {f"{OPTIM}.lr_warmup_steps": 30}),
    Gate("rewards are equal", "MOVE-1", still([0.0] * 21, **EQUAL), Level.WARM),
    Gate("ppo_kl is 0 with several updates", "MOVE-1", UPDATES, WARN, {**MINI, "data.train_batch_size": 64}),
    Gate("ppo_kl is 0 with one", "MOVE-1", UPDATES, Level.WARM, {**MINI, "data.train_batch_size": 16}),
    Gate("the rate is 1e-10", "LR-1", rates([1e-10] * 12), WARN),
    Gate("it is 1e-8", "LR-1", rates([1e-8] * 20), OK),
    Gate("it decays to 1e-10", "LR-1", rates([1e-6, *[1e-10] * 19]), OK),
    Gate("it rises from there", "LR-1", rates([1e-12 * 2**n for n in range(20)]), OK),
    Gate("bf16 weights at 1e-6", "LR-1", rates([1e-6] * 20), WARN, BF16),
    Gate("the policy moves", "LR-1", rates([1e-6] * 20, **{"actor/kl_loss": 0.01}), OK, BF16),
    Gate("the reward rises", "LR-1", both(rates([1e-6] * 20), BETTER), NOTICE, BF16),
    Gate("they are of LoRA", "LR-1", rates([1e-6] * 20), OK, {**BF16, "actor_rollout_ref.model.lora_rank": 8}),
    Gate("bf16 weights at 2e-5", "LR-1", rates([2e-5] * 20), OK, BF16),
    # a hack that validation shows
    Gate("validation stays", "HACK-1", hacked(RISING), WARN),
    Gate("validation stays, of 40 rows", "HACK-1", hacked(RISING), OK, None, {"validation_rows": 40}),
    Gate("validation rises too", "HACK-1", hacked(RISING, 0.9), OK),
    Gate("it stays on all of ten sources", "HACK-1", sources(*[0.0] * 10), WARN),
    Gate("it rises on one of ten sources", "HACK-1", sources(*[0.0] * 9, 0.9), OK),
    Gate("responses grow with the reward", "HACK-1", both(hacked(RISING, 0.9)[:20], longer(30, 30, 60)), NOTICE),
    Gate("growth without validation", "HACK-1", both(score(RISING[:20]), longer(30, 30, 60)), WARN),
    Gate("back to the length of the start", "HACK-1", both(score(RISING[:20]), longer(60, 30, 60)), OK),
    Gate("validation falls by less than its error", "VAL-1", DROP, OK, None, {"validation_rows": 12}),
    Gate("it falls by more", "VAL-1", DROP, WARN, None, {"validation_rows": 2000}),
    Gate("the KL leaves early while the reward rises", "KL-1", both(LEAVES, score(RISING[:20])), NOTICE),
    Gate("it leaves without a gain", "KL-1", both(LEAVES, score([0.3] * 20)), WARN),
    Gate("the accuracy rises too", "HACK-1", hacked(RISING, **{"responses/audit": 0.8}), OK),
    Gate("prompts became shorter", "HACK-1", [s | {"prompt_length/mean": 60.0 - n} for n, s in EASIER], OK),
    Gate("the data has an order of its own", "HACK-1", hacked(RISING), OK, {"data.shuffle": False}),
    Gate("the reward is flat as well", "HACK-1", hacked([0.1, 0.12] * 12), OK),
    # what others follow from
    Gate("no response ever ended", "STOP-1", ended(256.0), WARN, LIMIT),
    Gate("one did", "STOP-1", ended(200.0), OK, LIMIT),
    Gate("the limit cuts all", "STOP-1", ended(8.0), Level.WARM, {"data.max_response_length": 8}),
    Gate("responses go on", "STOP-1", of("responses/past_turn", [0.9] * 4), WARN),
    Gate("prompts of one word", "INPUT-1", words(0.7), WARN, PROMPTS),
    Gate("few of them", "INPUT-1", words(0.05), OK, PROMPTS),
    Gate("advantages have the wrong sign", "ADV-1", advantages(0.5, -2.0), WARN, GRPO),
    Gate("advantages are 0", "ADV-1", advantages(0.0, 0.0), WARN, GRPO),
    Gate("advantages follow the scores", "ADV-1", advantages(2.2, -0.6), OK, GRPO),
    # letting go
    Gate(
        "the policy stopped with the reward lost",
        "KL-2",
        both(of("actor/ppo_kl", [0.001] * 20 + [0.2] * 6 + [1e-6] * 20), score([0.6] * 20 + [0.6, 0.3] + [0.0] * 24)),
        CRITICAL,
    ),
    Gate(
        "the reward is back",
        "KL-2",
        both(
            of("actor/ppo_kl", [0.001] * 20 + [0.2] * 6 + [1e-6] * 34),
            score([0.6] * 20 + [0.6, 0.3] + [0.0] * 8 + [0.6] * 30),
        ),
        OK,
    ),
    Gate("the entropy is gone", "ENT-1", of("actor/entropy", [2.39, 2.4, 1.6, 0.8, 0.2] + [1e-5] * 25), CRITICAL),
    Gate(
        "a correlation of constants",
        "NUM-1",
        [{"training/rollout_actor_probs_pearson_corr": float("nan"), "training/rollout_probs_diff_mean": 0.0}] * 3,
        OK,
    ),
    Gate("no correlation at all", "NUM-1", [{"training/rollout_actor_probs_pearson_corr": float("nan")}] * 3, WARN),
    Gate("clipped values, and the error falls", "CLIP-2", returns([0.9**n for n in range(25)]), NOTICE),
    Gate("clipped values, and it does not", "CLIP-2", returns([0.2] * 25), WARN),
]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: f"{gate.rule} {gate.why}")
def test_a_gate_lets_the_one_pass_and_not_the_other(gate: Gate) -> None:
    assert levels(gate.rule, gate.steps, gate.config, **gate.options)[-1] == gate.level
