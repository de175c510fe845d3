"""Verdicts of trials, from the flags and rewards of the trial and of its control run."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.compare import trial_verdicts as trials
from launcher.compare.trial_verdicts import TrialFacts, judge, worse_reward
from launcher.metrics.store import Series
from launcher.record.levels import Level
from launcher.record.state import RunState


def series(values: Sequence[float]) -> Series:
    found = Series()
    for step, value in enumerate(values):
        found.append(step, value)
    return found


def facts(changes: tuple[str, ...], level: Level, rewards: Sequence[float], state: str = "finished") -> TrialFacts:
    return TrialFacts("r", changes, RunState(state), level, level, frozenset(), 10, 10, series(rewards))


LEVELS = st.sampled_from([Level.N_A, Level.OK, Level.NOTICE, Level.WARN, Level.CRITICAL])
REWARDS = st.lists(st.floats(-1, 1) | st.just(float("nan")), max_size=12)


@given(LEVELS, LEVELS, REWARDS, REWARDS, st.sampled_from(["finished", "failed", "running", "stopped"]))
def test_only_what_ends_well_beside_a_sick_twin_is_fixed(
    level: Level, control: Level, own: list[float], other: list[float], state: str
) -> None:
    arms = judge([facts(("a=1",), level, own, state), facts((), control, other)])
    assert arms[0].changes == (), "the control run is first"
    if arms[1].verdict == trials.FIXED:
        assert level < Level.WARN <= control and state in ("finished", "stopped")
        assert not worse_reward(series(own), series(other))[0]
    if level >= Level.WARN and state == "finished":
        assert arms[1].verdict == trials.NO_EFFECT


@pytest.mark.parametrize(
    "changes, level, last, certain",
    [
        (("a=1",), Level.CRITICAL, 1, True),
        ((), Level.CRITICAL, 1, True),
        (("a=1",), Level.WARN, 15, False),  # five good steps clear it
        (("a=1",), Level.WARN, 16, True),
        ((), Level.WARN, 16, False),
        (("a=1",), Level.NOTICE, 19, False),
    ],
)
def test_a_verdict_is_certain_where_the_flag_cannot_clear_any_more(
    changes: tuple[str, ...], level: Level, last: int, certain: bool
) -> None:
    trial = replace(facts(changes, level, [0.2] * 12, "running"), last=last, planned=20, release=5)
    assert trials.settled(trial) is certain
    if certain and changes:
        assert judge([trial, facts((), Level.CRITICAL, [])])[-1].verdict == trials.NO_EFFECT


def test_a_twin_repeats_the_trouble_with_another_flag_that_its_parent_had() -> None:
    """Sampling on a GPU is not repeatable: KL-2 in the run, KL-4 in its control run, on an H100 at lr 1e-4."""
    control = replace(facts((), Level.OK, [0.2] * 12), critical=frozenset({"KL-4"}), others=frozenset({"KL-4"}))
    arms = [control, facts(("a=1",), Level.OK, [0.2] * 12)]
    assert [arm.verdict for arm in judge(arms, frozenset({"KL-2", "KL-4"}))] == ["repeated", "fixed"]
    assert [arm.verdict for arm in judge(arms, frozenset({"KL-2"}))] == ["not repeated", "inconclusive"]


def test_a_trial_with_a_critical_flag_left_is_not_fixed() -> None:
    control = facts((), Level.CRITICAL, [0.2] * 12)
    left = replace(facts(("a=1",), Level.OK, [0.2] * 12), critical=frozenset({"REW-1"}), others=frozenset({"REW-1"}))
    arm = judge([control, left], frozenset({"REW-1"}))[1]
    assert (arm.verdict, arm.why) == ("partly fixed", "flag cleared, but CRITICAL: REW-1")
    assert judge([control, left])[1].verdict == trials.HARMFUL, "a flag that its parent never had"
    assert judge([control, replace(left, critical=frozenset())])[1].verdict == trials.FIXED, "it was up for a while"


def test_a_remaining_warn_is_not_no_flag() -> None:
    twin = facts((), Level.CRITICAL, [0.2] * 12)
    left = replace(facts(("a=1",), Level.OK, [0.2] * 12), warned=frozenset({"TRUNC-1"}))
    _, arm = judge([twin, left], frozenset({"TRUNC-1"}))
    assert (arm.verdict, arm.why) == ("partly fixed", "flag cleared, but still WARN: TRUNC-1")
    _, arm = judge([twin, facts(("a=1",), Level.NOTICE, [0.2] * 12)])
    assert arm.why == "only NOTICE, reward not worse than in the control run"


def test_of_fixing_trials_the_better_reward_is_first_where_it_can_be_told_else_the_undoing() -> None:
    control = facts((), Level.CRITICAL, [0.2] * 12)
    noise = [0.01 * (step % 3) for step in range(14)]
    undoing = replace(facts(("a=1",), Level.OK, [0.5 + each for each in noise]), undoes="what the fork changed")
    alike = facts(("b=1",), Level.OK, [0.51 - each for each in noise])
    better = facts(("c=1",), Level.OK, [0.8 + each for each in noise])
    other = facts(("reward.function=x",), Level.OK, [-1.0] * 14)
    assert [arm.changes for arm in judge([alike, control, undoing])] == [(), ("a=1",), ("b=1",)]
    assert [arm.changes for arm in judge([alike, better, undoing, control])] == [(), ("c=1",), ("a=1",), ("b=1",)]
    assert judge([control, other])[1].verdict == trials.FIXED, "rewards of another function are not compared"


def test_equal_rewards_are_not_worse_and_a_lasting_gap_is() -> None:
    control = [0.1, 0.2, 0.15, 0.3, 0.2, 0.25] * 3
    assert worse_reward(series(control), series(control)) == (False, 0.0)
    lower = [x - 0.1 - 0.02 * (place % 2) for place, x in enumerate(control)]
    worse, gap = worse_reward(series(lower), series(control))
    assert worse and gap == pytest.approx(-0.11)
    assert not worse_reward(series(lower[:11]), series(control))[0], "as many steps as compare asks for"
    assert not worse_reward(series([x + 0.1 for x in control]), series(control))[0]
    assert worse_reward(series([0.1, float("nan")]), series(control))[0]
