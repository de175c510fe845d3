"""Of several flags that are on, the cause comes first, and what follows from it is folded under it."""

from collections.abc import Mapping

from launcher.health.catalogue import rules
from launcher.health.checklist import Checklist
from launcher.health.config import RunConfig
from launcher.health.verdict import causes, causes_in, explained, sort
from launcher.machine.targets import message
from launcher.record.check import Check
from launcher.record.fix import Fix
from launcher.record.levels import Level


def flags(**since: tuple[Level, int]) -> list[Check]:
    return [
        Check(name.replace("_", "-"), name, level, since=step, fixes=(Fix(do=name),))
        for name, (level, step) in since.items()
    ]


def order(checks: list[Check], **config: float) -> Mapping[str, str]:
    keys = {f"actor_rollout_ref.actor.{name}": value for name, value in config.items()}
    return {check.rule: check.cause for check in sort(explained(checks, causes_in(RunConfig(keys))))}


def test_a_cause_never_follows_from_what_it_explains_by_a_later_row() -> None:
    names = [row.rule for row in causes()]
    assert len({(row.rule, row.setting) for row in causes()}) == len(names)
    for place, row in enumerate(causes()):
        assert {row.rule, *row.explains} <= set(rules()), row.rule
        assert row.rule not in row.explains
        back = {rule for rule in row.explains if rule in names[:place]}
        assert not back or row.first, f"{row.rule} explains {back}, which stand before it"


def test_the_cause_comes_first_although_what_follows_is_worse() -> None:
    found = order(flags(TRUNC_1=(Level.CRITICAL, 9), STOP_1=(Level.WARN, 4), MEM_1=(Level.WARN, 2)))
    assert list(found.items()) == [("STOP-1", ""), ("TRUNC-1", "STOP-1"), ("MEM-1", "")]
    cut = next(
        check for check in explained(flags(TRUNC_1=(Level.WARN, 9), STOP_1=(Level.WARN, 4)), causes()) if check.cause
    )
    assert cut.title == "TRUNC_1 (from STOP-1)" and cut.fixes[0].do == "STOP_1"


def test_all_that_follows_names_the_root() -> None:
    found = order(flags(REW_1=(Level.CRITICAL, 30), KL_1=(Level.WARN, 20), KL_3=(Level.CRITICAL, 25)))
    assert list(found.items()) == [("KL-3", ""), ("REW-1", "KL-3"), ("KL-1", "KL-3")]


def test_what_rose_long_before_is_not_explained_nor_is_anything_by_a_notice() -> None:
    assert order(flags(REW_1=(Level.WARN, 10), KL_1=(Level.WARN, 20)))["REW-1"] == ""
    assert order(flags(REW_1=(Level.WARN, 18), KL_1=(Level.WARN, 20)))["REW-1"] == "KL-1"
    assert order(flags(TRUNC_1=(Level.WARN, 9), STOP_1=(Level.NOTICE, 4)))["TRUNC-1"] == ""


def test_an_entropy_bonus_explains_what_follows_from_the_entropy() -> None:
    risen = flags(KL_1=(Level.CRITICAL, 9), TRUNC_1=(Level.CRITICAL, 10), ENT_2=(Level.WARN, 14))
    assert order(risen, entropy_coeff=0.3) == {"ENT-2": "", "KL-1": "ENT-2", "TRUNC-1": "ENT-2"}
    for usual in ({}, {"entropy_coeff": 0.001}):
        assert order(risen, **usual) == {"KL-1": "", "TRUNC-1": "KL-1", "ENT-2": "KL-1"}


def test_a_gamed_reward_explains_responses_that_are_cut() -> None:
    found = order(flags(TRUNC_1=(Level.CRITICAL, 12), HACK_1=(Level.WARN, 15), KL_1=(Level.WARN, 16)))
    assert list(found.items()) == [("HACK-1", ""), ("TRUNC-1", "HACK-1"), ("KL-1", "")]


def test_a_wrong_stop_token_leads_the_list_and_the_alert() -> None:
    checklist = Checklist({"data.max_response_length": 256}, clock=False)
    cut = {"response_length/min": 256.0, "response_length/max": 256.0, "response_length/clip_ratio": 1.0}
    reward = {"critic/score/mean": 0.1, "critic/score/max": 1.0, "critic/score/min": 0.0}
    changes = [
        change for step in range(1, 13) for change in checklist.step(step, {"actor/pg_loss": 0.1, **cut, **reward})
    ]
    assert [check.rule for check in checklist.checks()[:2]] == ["STOP-1", "TRUNC-1"]
    alarms = [change.to_json() | {"kind": "health", "run": "r", "name": "r"} for change in changes if change.alarming]
    title, body = message(alarms)
    assert title == "WARN STOP-1 · r" and "TRUNC-1 CRITICAL (from STOP-1)" in body
