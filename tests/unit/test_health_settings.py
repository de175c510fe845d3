"""The user's health settings: limits, presets, debounce, and what is refused."""

from collections.abc import Mapping
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("preset", "rule", "name", "value"),
    [
        ("relaxed", "KL-1", "warn.ratio", 4.0),  # 1 + 2k
        ("relaxed", "KL-1", "critical.early_ratio", 15.0),
        ("relaxed", "ENT-1", "warn.value", 0.02),
        ("relaxed", "ENT-1", "warn.ratio_5", 0.55 / 1.5**0.5),
        ("relaxed", "HACK-1", "critical.ratio", 4.0),
        ("sensitive", "THR-1", "critical.ratio", 3.25),
        ("sensitive", "ABORT-1", "warn.share", 0.075),
        ("sensitive", "ABORT-1", "critical.share", 0.5),
        ("sensitive", "LEN-1", "notice.longer", 1.375),
        ("sensitive", "GRAD-2", "warn.ratio", 0.02 / 0.75),
        ("sensitive", "SIG-1", "warn.had", 3.0),
        ("relaxed", "KL-3", "warn.ratio", 3.0),
    ],
)
def test_how_the_factor_acts(preset: str, rule: str, name: str, value: float) -> None:
    limits = read({"preset": preset})
    assert limits[rule].raising[name] == pytest.approx(value)


@pytest.mark.parametrize(
    ("rule", "name", "release"),
    [
        ("KL-1", "warn.ratio", 2.6),
        ("KL-1", "warn.offset", 0.04),
        ("KL-4", "warn.gain_span", 0.0625),
        ("ENT-2", "notice.ratio", 1.28),
        ("ENT-2", "notice.offset", 0.1),
        ("LEN-1", "critical.longer", 2.7),
        ("LEN-1", "warn.shorter", 0.5 / 0.85**0.5),
        ("TRUNC-1", "warn.share", 0.15),
        ("CRIT-1", "warn.ratio", 4.0),
        ("THR-1", "notice.ratio", 1.34),
        ("GRAD-1", "warn.ratio", 10.0),
    ],
)
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"preset": "sensitiv"}, "health.preset is 'sensitiv'; did you mean 'sensitive'"),
        ({"KL_1": {"warn": 1}}, "health.KL_1 is not a rule .*did you mean 'KL-1'"),
        ({"KL-1": {"warning": 1}}, "health.KL-1 has no setting 'warning'"),
        ({"KL-1": {"warn": {"rato": 2}}}, "'warn.rato'.*did you mean 'warn.ratio'"),
        ({"KL-1": {"warn": {"ratio": "3"}}}, "health.KL-1.warn.ratio is '3'; use a number"),
        ({"KL-1": {"warn": {"ratio": True}}}, "use a number"),
        ({"KL-1": {"warn": {"ratio": float("nan")}}}, "use a number"),
        ({"KL-1": 3}, "health.KL-1 is 3; use a mapping of settings"),
        ({"KL-1": {"warn": {"value": 0.4}}}, "health.KL-1.warn.value is 0.4; use at least health.KL-1.notice.value"),
        ({"KL-1": {"warn": {"value": 4}}}, "health.KL-1.critical.value is 3; use at least health.KL-1.warn.value"),
        ({"LEN-1": {"critical": {"shorter": 0.6}}}, "LEN-1.critical.shorter is 0.6; use at most"),
        ({"KL-1": {"enabled": "no"}}, "health.KL-1.enabled is 'no'; use true or false"),
        ({"KL-1": {"raise": [3, 2]}}, r"health.KL-1.raise is \[3, 2\]; use \[n, m\]"),
        ({"KL-1": {"raise": 2}}, "health.KL-1.raise is 2"),
        ({"KL-1": {"release": 0}}, "health.KL-1.release is 0"),
    ],
)
def test_mistakes_are_told_in_one_sentence(settings: Mapping[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        Checklist(settings=settings)
    assert "\n" not in str(error.value)


def test_an_option_of_older_runs_is_read_and_check_says_that_it_has_no_effect() -> None:
    assert read({"stop_behind": "race"}) == read({})
    loaded = load("toy-cpu", ["health.stop_behind=race"])
    (found,) = (each for each in checks.quick(subject(loaded)) if each.id == "HEALTH-1")
    assert (found.level, found.message) == ("warning", "health.stop_behind no longer has an effect")
