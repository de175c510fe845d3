"""Which cause leads a flag: another flag, a setting, or what the metrics show; what follows is listed under it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import tomllib
from console_logs import DATA

from launcher.health.catalogue import rules
from launcher.health.checklist import Checklist
from launcher.health.config import RunConfig
from launcher.health.known import Known
from launcher.health.rivals import Explained, explain, rows
from launcher.machine.targets import message
from launcher.record.levels import Level

CASES: list[dict[str, Any]] = tomllib.loads((DATA / "health_rivals.toml").read_text("utf-8"))["cases"]
PLAIN = {
    "actor_rollout_ref.actor.optim.lr": 1e-6,
    "actor_rollout_ref.actor.optim.weight_decay": 0.01,
    "actor_rollout_ref.actor.clip_ratio_high": 0.28,
    "actor_rollout_ref.actor.entropy_coeff": 0.0,
    "actor_rollout_ref.actor.ppo_epochs": 1,
    "actor_rollout_ref.rollout.temperature": 1.0,
    "actor_rollout_ref.rollout.n": 8,
    "data.train_batch_size": 64,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 32,
}


def found(
    flags: Sequence[str], config: Mapping[str, Any] | None = None, steps: Sequence[Mapping[str, float]] = ()
) -> dict[str, Explained]:
    """What is known of flags, each written `RULE LEVEL STEP`, after these steps."""
    known = Known(RunConfig({**PLAIN, **(config or {})}))
    for data in steps:
        known.see(data)
    written = (flag.split() for flag in flags)
    return explain({rule: (Level[level], int(since)) for rule, level, since in written}, known)


def causes(*flags: str, **config: float) -> dict[str, str]:
    """The flags that are listed under another rule, with that."""
    keys = {f"actor_rollout_ref.actor.{name}": value for name, value in config.items()}
    return {rule: why.cause for rule, why in found(flags, keys).items() if why.cause}


def test_rows_name_rules_and_a_cause_never_follows_from_what_it_explains_by_a_later_row() -> None:
    entries = [row for row in rows() if row.entry]
    assert len({(row.entry, row.needs) for row in entries}) == len(entries)
    assert {rule for row in rows() for rule in (*row.explains, row.entry) if rule} <= set(rules())
    for place, row in enumerate(entries):
        assert row.entry not in row.explains
        back = {rule for rule in row.explains if rule in [each.entry for each in entries[:place]]}
        assert not back or row.needs[0].startswith("first: "), f"{row.entry} explains {back}, which stand before it"


@pytest.mark.parametrize("case", CASES, ids=[case["lead"] for case in CASES])
def test_a_cause_leads_what_it_explains(case: dict[str, Any]) -> None:
    why = found(case["flags"], case.get("config"), case.get("steps", [{}]))
    heads = [rule for rule, each in why.items() if not each.cause]
    assert len(heads) == 1, why
    lead = why[heads[0]].lead
    assert lead is not None and lead.cause == case["lead"] and lead.supports and not lead.excluded_by
    assert heads[0] == case["flags"][0].split()[0] and why[heads[0]].fixes
    shown = (lead.title, *(fix.text for fix in why[heads[0]].fixes), *(each.text for each in lead.supports))
    assert not any("{" in text or "…" in text for text in shown), shown


def test_every_cause_that_can_lead_has_a_case() -> None:
    assert {row.id for row in rows() if row.id and row.fixes} == {case["lead"] for case in CASES}


def test_without_a_clue_no_cause_leads() -> None:
    for row in rows():
        for rule in row.explains:
            why = found([f"{rule} CRITICAL 5"], steps=[{"actor/entropy": 1.0}])
            assert why[rule].lead is None, (rule, why[rule].lead)


@pytest.mark.parametrize(
    ("config", "steps", "flag"),
    [
        ({"actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum"}, {"actor/kl_loss": 68.0}, "KL-1"),
        (
            {"actor_rollout_ref.actor.policy_loss.loss_mode": "gspo", "actor_rollout_ref.actor.clip_ratio_high": 0.2},
            {"actor/ppo_kl": 0.1},
            "KL-2",
        ),
        (
            {},
            {f"critic/score/{name}": 1.0 for name in ("mean", "max", "min")} | {"responses/true_answers": 1.0},
            "SIG-1",
        ),
    ],
)
def test_a_cause_that_a_setting_or_a_metric_excludes_does_not_lead(config, steps, flag) -> None:
    assert found([f"{flag} WARN 5"], config, [steps])[flag].lead is None


def test_the_cause_comes_first_although_what_follows_is_worse() -> None:
    assert causes("TRUNC-1 CRITICAL 9", "STOP-1 WARN 4", "MEM-1 WARN 2") == {"TRUNC-1": "STOP-1"}


def test_all_that_follows_names_the_root() -> None:
    assert causes("REW-1 CRITICAL 30", "KL-1 WARN 20", "KL-3 CRITICAL 25") == {"REW-1": "KL-3", "KL-1": "KL-3"}


def test_what_rose_long_before_is_not_explained_nor_is_anything_by_a_notice() -> None:
    assert causes("REW-1 WARN 10", "KL-1 WARN 20").get("REW-1") is None
    assert causes("REW-1 WARN 18", "KL-1 WARN 20")["REW-1"] == "KL-1"
    assert causes("TRUNC-1 WARN 9", "STOP-1 NOTICE 4") == {}


def test_an_entropy_bonus_explains_what_follows_from_the_entropy() -> None:
    risen = ("KL-1 CRITICAL 9", "TRUNC-1 CRITICAL 10", "ENT-2 WARN 14")
    assert causes(*risen, entropy_coeff=0.3) == {"ENT-2": "KL-1", "TRUNC-1": "KL-1"}
    assert causes(*risen, entropy_coeff=0.001) == {"TRUNC-1": "KL-1", "ENT-2": "KL-1"}


def test_a_gamed_reward_explains_responses_that_are_cut() -> None:
    assert causes("TRUNC-1 CRITICAL 12", "HACK-1 WARN 15", "KL-1 WARN 16") == {"TRUNC-1": "HACK-1"}


def test_of_two_settings_the_one_further_beyond_its_usual_range_leads() -> None:
    lr, decay = "actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.actor.optim.weight_decay"
    both = ["KL-2 WARN 3", "TRUNC-1 CRITICAL 5", "DECAY-1 WARN 2"]
    rate = found(both, {lr: 0.3})
    assert rate["TRUNC-1"].lead and rate["TRUNC-1"].lead.cause == "rate-high" and rate["KL-2"].cause == "TRUNC-1"
    worse = found(both, {lr: 5e-5, decay: 10})
    assert {rule: each.title for rule, each in worse.items() if not each.cause} == {
        "TRUNC-1": "Weight decay 100× the usual"
    }


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
