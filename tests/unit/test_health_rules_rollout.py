"""Rules on what becomes of the rollout: discarded groups, waiting GPUs, unused tools, what responses are like."""

import pytest
from rule_levels import levels, of, row

from launcher.health.checklist import Checklist
from launcher.record.levels import Level

BATCH = {"data.train_batch_size": 32}
SEPARATE = {"trainer.v1.trainer_mode": "separate_async"}
TOOLS = {"actor_rollout_ref.rollout.multi_turn.tool_config_path": "tools.yaml"}
FILTERED, STALE = "training/filter_groups/evicted_samples", "training/off_policy/evicted_samples"


@pytest.mark.parametrize(
    ("key", "groups", "level"),
    [(FILTERED, 64.0, Level.OK), (FILTERED, 128.0, Level.NOTICE), (STALE, 4.0, Level.OK), (STALE, 16.0, Level.NOTICE)],
)
def test_groups_that_are_generated_and_dropped(key: str, groups: float, level: Level) -> None:
    assert levels("EVICT-1", of(key, [groups] * 8), BATCH)[-1] == level


def test_a_step_without_a_count_has_dropped_nothing() -> None:
    """veRL logs the count only where it is above 0."""
    steps = [*of(STALE, [32.0] * 6), *[{}] * 12]
    assert levels("EVICT-1", steps, BATCH)[5::12] == [Level.NOTICE, Level.OK]
    assert levels("EVICT-1", [{}] * 6, BATCH)[-1] == Level.N_A
    assert levels("EVICT-1", steps)[-1] == Level.N_A  # of how many is unknown


def test_the_trainer_waits_for_responses() -> None:
    def step(waiting: float) -> dict[str, float]:
        return {"timing_s/gen": waiting, "timing_s/step": 10.0}

    assert levels("WAIT-1", [step(8.0)] * 7, SEPARATE)[-1] == Level.NOTICE
    assert levels("WAIT-1", [step(1.0)] * 7, SEPARATE)[-1] == Level.OK
    assert levels("WAIT-1", [step(8.0)] * 7, {"trainer.v1.trainer_mode": "colocate_async"})[-1] == Level.N_A
    assert levels("WAIT-1", [step(8.0)] * 7)[-1] == Level.N_A
    told = [{**step(1.0), "fully_async/rollouter/idle_ratio": 0.7}] * 7
    assert levels("WAIT-1", told)[-1] == Level.NOTICE


def test_tools_that_are_never_called() -> None:
    checklist = Checklist(TOOLS, clock=False)
    for step in range(1, 7):
        checklist.step(step, {"actor/pg_loss": 0.1, "num_turns/max": 2.0})
    assert row(checklist, "TURN-1").level == Level.NOTICE
    assert row(checklist, "TURN-1").message == "no response calls a tool for 6 steps"
    checklist.step(7, {"actor/pg_loss": 0.1, "num_turns/max": 4.0})
    assert row(checklist, "TURN-1").level == Level.OK
    assert levels("TURN-1", of("num_turns/max", [2.0] * 9))[-1] == Level.N_A


def test_time_for_groups_that_are_generated_again_is_no_slow_down() -> None:
    """Dynamic sampling: three times the groups take three times as long; the machine is not to blame."""
    usual = {"timing_s/step": 10.0, "perf/total_num_tokens": 1000.0}
    refilled = {**usual, "timing_s/step": 30.0}
    assert levels("THR-1", [usual] * 12 + [refilled] * 5, BATCH)[-1] == Level.WARN
    assert levels("THR-1", [usual] * 12 + [{**refilled, FILTERED: 64.0}] * 5, BATCH)[-1] == Level.OK


def test_groups_that_teach_nothing() -> None:
    unvaried = of("responses/unvaried_groups", [0.8] * 7)
    assert levels("GROUP-1", unvaried, {"algorithm.adv_estimator": "grpo"})[-1] == Level.NOTICE
    assert levels("GROUP-1", unvaried, {"algorithm.adv_estimator": "gae"})[-1] == Level.N_A
    assert levels("GROUP-1", of("responses/unvaried_groups", [0.6] * 7))[-1] == Level.OK


def test_responses_that_are_alike_where_the_expected_ones_are_not() -> None:
    alike = {"responses/near_equal": 0.7, "responses/prompt_copied": 0.1, "responses/equal_truths": 0.1}
    checklist = Checklist(clock=False)
    for step in range(1, 4):
        checklist.step(step, {"actor/pg_loss": 0.1, **alike})
    assert row(checklist, "TEXT-1").level == Level.NOTICE
    assert row(checklist, "TEXT-1").message == "70 % of responses are nearly the same text"
    assert levels("TEXT-1", [{**alike, "responses/equal_truths": 0.5}] * 3)[-1] == Level.OK, "most answers are the same"
    assert levels("TEXT-1", [{"responses/prompt_copied": 0.4}] * 3)[-1] == Level.NOTICE
    assert levels("TEXT-1", [{}] * 3)[-1] == Level.N_A


def test_mismatch_that_grows_with_the_length() -> None:
    def step(mean: float, length: float, highest: float = 0.2) -> dict[str, float]:
        names = ("training/rollout_probs_diff_mean", "response_length/mean", "training/rollout_probs_diff_max")
        return dict(zip(names, (mean, length, highest), strict=True))

    usual = [step(0.007, 200)] * 12
    assert levels("MIS-2", [*usual, *[step(0.012, 400)] * 3])[-1] == Level.NOTICE
    assert levels("MIS-2", [*usual, *[step(0.012, 200)] * 3])[-1] == Level.OK, "MIS-1 judges it alone"
    assert levels("MIS-2", [*usual, *[step(0.007, 400)] * 3])[-1] == Level.OK
    assert levels("MIS-2", [*usual, *[step(0.007, 200, highest=0.6)] * 3])[-1] == Level.NOTICE
    assert levels("MIS-2", [*[step(2e-7, 200)] * 12, *[step(6e-7, 400)] * 3])[-1] == Level.OK, "rounding errors"


def test_the_only_update_of_a_batch_has_a_ratio_of_one() -> None:
    ppo_epochs = "actor_rollout_ref.actor.ppo_epochs"
    once = {**BATCH, "actor_rollout_ref.actor.ppo_mini_batch_size": 32}
    assert levels("RATIO-1", of("actor/ppo_kl", [0.01] * 3), once)[-1] == Level.NOTICE
    assert levels("RATIO-1", of("actor/ppo_kl", [1e-4] * 3), once)[-1] == Level.OK
    assert levels("RATIO-1", of("actor/ppo_kl", [0.01] * 3), {**once, ppo_epochs: 2})[-1] == Level.N_A
    assert levels("RATIO-1", of("actor/ppo_kl", [0.01] * 3))[-1] == Level.N_A
