"""The user's health settings: limits, presets, debounce, and what is refused."""

from collections.abc import Mapping
from typing import Any

import pytest
from tables import tabled

from launcher.check import checks
from launcher.check.subject import subject
from launcher.core.errors import UserError
from launcher.health.catalogue import rules
from launcher.health.checklist import Checklist
from launcher.health.rules import ALL
from launcher.health.settings import FACTORS, read
from launcher.preset.alerting import limits_of
from launcher.preset.files import load
from launcher.record.levels import Level
from launcher.runs.watch.check_words import sentence

KL = "actor/reward_kl_penalty"


def test_every_rule_has_limits_and_no_limits_are_left_over() -> None:
    assert sorted(rule.id for rule in ALL) == sorted(rules())
    assert len(rules()) == 49


@tabled
def test_how_the_factor_acts(preset: str, rule: str, name: str, value: float) -> None:
    limits = read({"preset": preset})
    assert limits[rule].raising[name] == pytest.approx(value)


@tabled
def test_release_limits(rule: str, name: str, release: float) -> None:
    limits = read({})
    assert limits[rule].releasing[name] == pytest.approx(release)


def test_no_flag_ever_lets_go_before_it_rises() -> None:
    for preset in FACTORS:
        limits = read({"preset": preset})
        for rule, found in limits.items():
            for name, limit in rules()[rule].limits.items():
                raised, released = found.raising[name], found.releasing[name]
                looser = released >= raised if limit.lower or "gain" in name else released <= raised
                assert looser, (preset, rule, name)


def test_a_rule_can_be_switched_off_or_muted() -> None:
    values = [0.1] * 10 + [4.0] * 3
    off = Checklist(settings={"KL-1": {"enabled": False}})
    muted = Checklist(settings={"KL-1": {"muted": True}})
    later = Checklist()
    for step, value in enumerate(values, start=1):
        for checklist in (off, muted, later):
            checklist.step(step, {KL: value})
    assert [row.message for row in off.checks() if row.rule == "KL-1"] == ["disabled in the settings"]
    assert [(row.level, row.muted) for row in muted.checks() if row.rule == "KL-1"] == [(Level.CRITICAL, True)]
    assert (off.verdict, muted.verdict, later.verdict) == (Level.WARM, Level.WARM, Level.CRITICAL)
    later.mute("KL-1")
    assert later.verdict == Level.WARM
    assert sentence(later).endswith(", 1 muted")


def test_the_supervisors_own_options_are_let_through() -> None:
    options = {"on_alert": "echo", "stop_on": ["NUM-1"], "grace_steps": 3, "notify": True}
    assert read(limits_of({"preset": "default", "KL-1": {}, **options})) == read({})


@tabled
def test_mistakes_are_told_in_one_sentence(settings: Mapping[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        Checklist(settings=settings)
    assert "\n" not in str(error.value)


def test_an_option_of_older_runs_is_read_and_check_says_that_it_has_no_effect() -> None:
    assert read({"stop_behind": "race"}) == read({})
    loaded = load("toy-cpu", ["health.stop_behind=race"])
    (found,) = (each for each in checks.quick(subject(loaded)) if each.id == "HEALTH-1")
    assert (found.level, found.message) == ("warning", "health.stop_behind no longer has an effect")
