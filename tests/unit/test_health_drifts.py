"""Slow drifts, which recent medians follow; beginnings, which they learn from; single odd steps; steps that pay."""

from pathlib import Path

import pytest
from rule_levels import TOKENS, levels, of, row, score

from launcher.health.checklist import Checklist
from launcher.health.metric import Metric
from launcher.record.info import RunInfo
from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import checklist_maker

LIMIT = {"data.max_response_length": 256}


def truncated(shares: list[float]) -> list[dict[str, float]]:
    return [{"response_length/clip_ratio": share, "response_length/max": 256.0} for share in shares]


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        ("ENT-2", of("actor/entropy", [0.4] * 60 + [0.4 * 1.04**i for i in range(50)])),
        ("LEN-1", of("response_length/mean", [100.0] * 60 + [100 * min(1.04**i, 5) for i in range(60)])),
        (
            "THR-1",
            [
                {"timing_s/step": 10 * min(1.02 ** max(0, i - 60), 3), "perf/total_num_tokens": TOKENS}
                for i in range(130)
            ],
        ),
        ("CRIT-1", of("critic/vf_loss", [0.3] * 60 + [0.3 * min(1.1**i, 10) for i in range(60)])),
        ("TRUNC-1", truncated([min(0.05 + 0.01 * max(0, i - 20), 0.6) for i in range(80)])),
    ],
)
def test_a_slow_drift_is_flagged_and_stays_flagged(rule: str, steps: list[dict[str, float]]) -> None:
    found = levels(rule, steps, LIMIT)
    assert max(found[:20]) <= Level.OK
    assert found[-1] >= Level.WARN


def test_a_length_that_doubled_long_ago_is_the_usual_now() -> None:
    found = levels("LEN-1", of("response_length/mean", [100.0] * 60 + [130.0] * 40 + [180.0] * 160))
    assert max(found) <= Level.NOTICE and found[-1] == Level.OK


def test_a_rise_from_the_first_steps_on_is_no_usual() -> None:
    """Entropy bonus 0.3 on a GPU: 2.6 to 9.8 in 15 steps, near the logarithm of the vocabulary."""
    rising = of("actor/entropy", [2.6 + 0.5 * i for i in range(15)])
    assert levels("ENT-2", rising)[-1] == Level.WARN
    assert levels("ENT-2", rising, vocabulary=49152)[-1] == Level.CRITICAL
    begins_there = of("actor/entropy", [7.5, 7.4, 7.6] * 8)
    assert max(levels("ENT-2", begins_there, vocabulary=49152)) == Level.OK
    noise = of("actor/entropy", [9.5] * 8)  # a temperature of 3
    assert max(levels("ENT-2", noise, vocabulary=49152)) == Level.WARN


def test_an_entropy_that_comes_back_is_a_notice_at_most() -> None:
    collapsed = [2.5, 2.5, 2.4, 2.3, 1.5, 0.8, 0.4, 0.4, 0.4, 0.4, 0.4, 0.6, 0.9, 1.2, 1.6, 2.0, 2.0, 2.0]
    assert max(levels("ENT-2", of("actor/entropy", collapsed))) == Level.NOTICE
    assert max(levels("ENT-1", of("actor/entropy", collapsed[:8]))) >= Level.WARN


def test_what_pays_is_a_notice_and_what_does_not_is_a_warning() -> None:
    learns = score([0.3 + 0.02 * i for i in range(30)])
    stays = score([0.3] * 30)
    for key, value, rule in (("actor/ppo_kl", 0.04, "KL-2"), ("actor/grad_norm", 12.0, "GRAD-1")):
        figures = of(key, [0.001 if rule == "KL-2" else 1.0] * 20 + [value] * 10)
        assert levels(rule, [a | b for a, b in zip(learns, figures, strict=True)])[-1] == Level.NOTICE
        assert levels(rule, [a | b for a, b in zip(stays, figures, strict=True)])[-1] == Level.WARN


def test_half_of_a_small_reward_is_much() -> None:
    assert levels("REW-1", score([0.16] * 20 + [0.06] * 10))[-1] == Level.WARN
    assert max(levels("REW-1", score([0.16, 0.12] * 15))) == Level.OK


def test_a_reward_of_another_scale_is_no_success() -> None:
    found = levels("REW-4", score([0.66] * 20) + score([1e5] * 30, high=1e5))
    assert found[22] == found[-1] == Level.WARN


def test_a_jump_of_memory_is_no_slope() -> None:
    used = [50 + 0.032 * i + (20 if i > 44 else 0) for i in range(60)]
    checklist = Checklist(host_total_gb=100.0, clock=False)
    for step, value in enumerate(used, start=1):
        held = {"actor/perf/cpu_memory_used_gb": value, "machine/run_memory_gb": value - 20}
        checklist.step(step, {"actor/pg_loss": 0.1} | held)
    assert "full in about 722 steps" in row(checklist, "MEM-2").message
    assert row(checklist, "MEM-2").level == Level.NOTICE


def test_a_fall_within_the_noise_is_no_learning_critic() -> None:
    noisy = [1.0 + 0.35 * (-1) ** i * ((7 * i) % 5) / 2 for i in range(60)]
    noisy[50:] = [0.85 * value for value in noisy[50:]]
    steps = [{"critic/vf_loss": x, "critic/vf_explained_var": -1.0} for x in noisy]
    found = levels("CRIT-1", steps)
    assert set(found[40:]) == {Level.WARN}  # and does not flap


def test_refused_values_move_no_reference() -> None:
    metric = Metric()
    for _ in range(30):
        metric.see(1.0)
    for _ in range(50):
        metric.see(9.0)
        metric.refuse()
    assert (metric.usual, metric.start, metric.first) == (1.0, 1.0, 1.0)
    assert metric.reached(1.0) and not metric.reached(1.1)
    for _ in range(121):
        metric.see(2.0)
    assert (metric.start, metric.ago, metric.low) == (1.0, 2.0, 2.0)
    assert metric.reached(2.0) and not metric.reached(2.1)


def test_after_sixty_refusals_the_last_twenty_become_usual() -> None:
    metric = Metric()
    for x in [1.0] * 30 + [9.0] * 60:
        metric.see(x)
        if x > 1:
            metric.refuse()
    assert metric.usual == 1.0
    metric.see(9.0)
    assert metric.usual == 9.0


def test_the_model_is_meaningful_from_the_fifth_value_on() -> None:
    metric = Metric()
    for x in (0.5, 0.52, None, 0.48, 0.5, 0.51):
        metric.see(x)
    assert metric.count == 5 and metric.now == 0.51
    assert abs(metric.usual - 0.5) < 0.02 and abs(metric.smooth - 0.5) < 0.02 and abs(metric.start - 0.5) < 0.02
    metric.see(0.5)
    assert 0 < metric.noise < 0.1


@pytest.mark.parametrize(("text", "size"), [('{"vocab_size": 20}', 20), ('{"vocab_size": "x"}', None), ("{", None)])
def test_the_vocabulary_is_read_from_the_model_where_it_is_at_hand(tmp_path: Path, text: str, size: int | None) -> None:
    (tmp_path / "config.json").write_text(text)
    make = checklist_maker(RunInfo(), {}, None)
    checklist = make({"actor_rollout_ref.model.path": str(tmp_path)})
    for step in range(1, 9):
        checklist.step(step, {"actor/pg_loss": 0.1, "actor/entropy": 1.0 if step < 5 else 1.6})
    assert row(checklist, "ENT-2").level == (Level.WARN if size else Level.OK)
