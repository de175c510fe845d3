"""The data files of the health rules: every entry is typed, complete, and about something that exists."""

import math
from typing import Any, get_args

import pytest

from launcher.core.tables import read_tables
from launcher.health import catalogue
from launcher.health.catalogue import RuleData, families, rules, shared_advice
from launcher.health.fixes import Fits, Fix
from launcher.health.rules import ALL
from launcher.preset.schema import BY_KEY
from launcher.record.levels import FLAGS

LEVELS = [name for _, name in FLAGS]
TABLES: dict[str, Any] = read_tables(catalogue.Path(catalogue.__file__).with_name("rules.toml"))


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_a_rule_is_complete(rule: RuleData) -> None:
    assert rule.title and rule.family in families()
    assert rule.meaning.endswith(".") and all(len(part.split()) <= 35 for part in rule.meaning.split(". "))
    assert rule.limits and rule.advice
    count, window = rule.raised
    assert 1 <= count <= window and rule.release >= 1
    for name, limit in rule.limits.items():
        assert name.partition(".")[0] in LEVELS
        assert math.isfinite(limit.value) and math.isfinite(limit.scaled(limit.value, 1.5))
        assert limit.letting_go is None or (limit.letting_go > limit.value) == (limit.lower or rule.id == "KL-4"), name


def test_the_limits_of_a_rule_have_only_known_fields() -> None:
    rows = [row for table in TABLES["rules"] for row in table["limits"]]
    assert {name for row in rows for name in row} <= {"name", "scale", "direction", *LEVELS}
    assert {row.get("scale") for row in rows} <= {None, "times", "excess", "divided", "root"}
    assert {row.get("direction") for row in rows} <= {None, "below"}


def test_advice_is_about_fields_of_the_preset() -> None:
    lists = [rule.advice for rule in rules().values()] + [shared_advice(name) for name in TABLES["advice"]]
    for fix in (fix for advice in lists for fix in advice):
        assert isinstance(fix, Fix) and fix.fits in get_args(Fits)
        assert fix.key in BY_KEY if fix.key else fix.why
        assert fix.value is not None or fix.direction != "set"
        assert not any(words.endswith(".") for words in (fix.to, fix.when, fix.why))


def test_the_code_judges_what_the_data_names() -> None:
    assert [rule.id for rule in ALL] == list(rules())
    assert {rule.family for rule in rules().values()} == set(families())
