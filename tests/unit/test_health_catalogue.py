"""The data files of the health rules: every entry is typed, complete, and about something that exists."""

import math
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from launcher.core.tables import read_tables
from launcher.health import catalogue, keys
from launcher.health.applies import REASONS
from launcher.health.catalogue import Figure, RuleData, families, rules, shared_advice, texts_of
from launcher.health.config import RunConfig
from launcher.health.derived import METRICS, keys_of
from launcher.health.frame import Frame
from launcher.health.rules import ALL
from launcher.health.rules.base import Rule
from launcher.health.signals import Signals
from launcher.preset.field_values import where_of
from launcher.record.fix import FITS, Fix
from launcher.record.levels import FLAGS

LEVELS = [name for _, name in FLAGS]
TABLES: dict[str, Any] = read_tables(Path(catalogue.__file__).with_name("rules.toml"))


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


FIGURES = [(rule, figure) for rule in rules().values() for figure in rule.figures]


@pytest.mark.parametrize(("rule", "figure"), FIGURES, ids=lambda each: getattr(each, "limit", getattr(each, "id", "")))
def test_a_figure_is_of_a_known_metric_an_estimate_of_its_model_and_limits_of_its_rule(
    rule: RuleData, figure: Figure
) -> None:
    signals, names = Signals(RunConfig()), {limit.partition(".")[2] for limit in rule.limits}
    metric = signals.of(figure.metric)
    assert hasattr(metric, figure.take.partition(" ")[0])
    known = figure.unit in METRICS or hasattr(keys, figure.unit) or hasattr(metric, figure.unit)
    assert not figure.unit or known
    assert {figure.limit, *filter(None, (figure.swing, figure.stuck))} <= names
    assert figure.say or rule.message
    for text in (figure.say, rule.message, rule.aside):
        for _, name, spec, _ in Formatter().parse(text):
            assert spec in (None, "", "%", "step", "steps")
            known = name is None or name.isdigit() or name in names or hasattr(metric, name)
            assert known or name in METRICS or hasattr(keys, str(name)), name


def test_the_model_of_a_metric_that_a_step_lacks_has_no_value() -> None:
    signals, now = Signals(RunConfig()), list[float]()
    entropy, rate = signals.of("ENTROPY"), {"actor/lr": 1.0}
    for step, data in enumerate(({"actor/entropy": 1.0}, rate, rate, {"actor/entropy": 2.0}), 1):
        signals.update(Frame(step, step, data), training=True, others=step != 3)
        now.append(entropy.now)
    assert now == pytest.approx([1.0, math.nan, math.nan, 2.0], nan_ok=True) and entropy.count == 2


def test_a_rule_is_either_a_row_or_code_and_its_condition_is_known() -> None:
    assert sum(bool(rule.figures) for rule in rules().values()) >= 20
    for rule in rules().values():
        assert rule.applies in REASONS
        assert bool(rule.figures) == bool(rule.message or any(figure.say for figure in rule.figures))


def test_the_limits_of_a_rule_have_only_known_fields() -> None:
    rows = [row for table in TABLES["rules"] for row in table["limits"]]
    assert {name for row in rows for name in row} <= {"name", "scale", "direction", *LEVELS}
    assert {row.get("scale") for row in rows} <= {None, "times", "excess", "divided", "root"}
    assert {row.get("direction") for row in rows} <= {None, "below"}


def test_advice_is_about_fields_of_the_preset() -> None:
    lists = [rule.advice for rule in rules().values()] + [shared_advice(name) for name in TABLES["advice"]]
    for fix in (fix for advice in lists for fix in advice):
        assert isinstance(fix, Fix) and fix.fits in FITS
        assert fix.do or fix.changes
        assert all(where_of(change.key)[0] != "overrides" for change in fix.changes)
        assert all(change.values or change.operation != "set" for change in fix.changes)
        assert not any(words.endswith(".") for words in (fix.do, fix.when, fix.why))


def test_the_code_judges_what_the_data_names() -> None:
    assert [rule.id for rule in ALL] == list(rules())
    assert {rule.family for rule in rules().values()} == set(families())


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.id)
def test_the_texts_about_a_rule_are_about_a_metric_that_it_judges(rule: type[Rule]) -> None:
    data = rules()[rule.id]
    family, shown = families()[data.family], texts_of(rule.id, data.family)
    assert shown is not None
    if (shown.meaning, shown.healthy, shown.bad) == (data.meaning, "", ""):
        return  # its own
    assert shown == family
    if data.figures:
        assert {figure.metric for figure in data.figures} & set(family.metrics)
    else:
        described = {key for name in family.metrics for key in keys_of(name)}
        needed = {key for group in rule.needs for key in group}
        assert needed & described or not (needed and described)
