"""Every broken preset is told, with its rule; every fix that is offered works; no good preset is refused."""

import re

import pytest
from corpus import Case, cases, machine

from launcher.check.checks import quick
from launcher.check.config import RULES
from launcher.check.subject import subject
from launcher.preset.files import load, shipped
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.verl import hydra

CASES = cases()
READ = [case for case in CASES if "PRESET" not in case.finds]  # the others are refused as presets
NEEDS = re.compile(r"(\d+) GPUs?, (\d+) GB")
CHECKED = ("launcher/check/", "launcher/estimate/", "launcher/preset/", "launcher/verl/", "tests/data/preflight/")
ELSEWHERE = {"aggregation", "normalised_micro", "conversations", "cpu_version", "server_options"}
"""Rules of versions before 0.9 (tests/unit/test_preflight_config.py) and of an installed SGLang (_sglang.py)."""


def test_the_corpus_is_large_and_has_nothing_twice():
    names = [case.name + case.machine for case in CASES]
    assert len(set(names)) == len(names) >= 80


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_broken_is_found_and_nothing_else(case: Case):
    findings = case.findings()
    found = {level: sorted(each.id for each in findings if each.level == level) for level in ("error", "warning")}
    assert found == {"error": sorted(case.finds), "warning": sorted(case.warns)}
    for finding in findings:
        assert finding.message and finding.fix and (finding.keys or finding.id == "PRESET")


@pytest.mark.nightly(*CHECKED, every=16)
@pytest.mark.slow
@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_a_change_that_is_offered_settles_its_finding_and_breaks_nothing_else(case: Case):
    findings = quick(subject(load(case.on, case.set), on=machine(case.machine)))
    known = {(each.id, each.keys) for each in findings if each.level == "error"}
    for finding in findings:
        if finding.change:
            more = [f"{name}={hydra.quote(value)}" for name, value in finding.change.items()]
            left = quick(subject(load(case.on, [*case.set, *more]), on=machine(case.machine)))
            assert (finding.id, finding.keys) not in {(each.id, each.keys) for each in left}, more
            errors = [each for each in left if each.level == "error" and (each.id, each.keys) not in known]
            assert errors == [], f"{more} against: {finding.message}"


@pytest.mark.nightly(*CHECKED, every=16)
@pytest.mark.slow
@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_settings_have_the_name_that_was_typed_or_that_of_their_field(case: Case):
    typed = {hydra.split(text)[1] for text in case.set}
    named = [key for key, spec in BY_KEY.items() if key not in FIELDS and key not in typed]
    for finding in quick(subject(load(case.on, case.set), on=machine(case.machine))):
        text = f"{finding.message} {finding.fix}"
        assert [key for key in named if re.search(rf"(?<![\w.+]){re.escape(key)}(?![\w.])", text)] == []
        fields = {BY_KEY[key].name for key in typed & {*BY_KEY}}
        assert [name for name in fields - typed if re.search(rf"(?<![\w.+]){re.escape(name)}(?![\w.])", text)] == []


@pytest.mark.slow
def test_every_rule_is_in_the_corpus():
    """A rule that no preset can break would be dead."""
    firing = set()
    for case in READ:
        what = subject(load(case.on, case.set), on=machine(case.machine))
        firing |= {rule.__name__ for rule in RULES if list(rule(what))}
    assert {rule.__name__ for rule in RULES} - firing <= ELSEWHERE


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_a_shipped_preset_is_not_refused_on_suitable_hardware(name: str):
    needs = NEEDS.search(load(name).preset.needs)
    findings = quick(subject(load(name), on=machine(f"{needs[1]}x{needs[2]}" if needs else "0x0")))
    assert [finding for finding in findings if finding.level == "error"] == []
