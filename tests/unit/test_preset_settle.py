"""Fixes as changes of a preset: the records of the catalog."""

from pathlib import Path
from typing import Any

import pytest
from tables import tabled

from launcher.console.causes import catalogue
from launcher.health.catalogue import rules
from launcher.preset.field_values import where_of
from launcher.preset.files import load, restore
from launcher.preset.settle import configuration, of_log, offers, setting_name, settings_of, value_now
from launcher.preset.yaml_text import value_of
from launcher.record.fix import Fix, Offer, fix_of
from launcher.runs.watch.log import Log
from launcher.runs.watch.run_diagnosis import explained
from launcher.runs.watch.stalls import reasons
from launcher.verl import defaults
from launcher.verl.code_settings import default_of

RECORDED = sorted((Path(__file__).parents[1] / "data" / "logs").glob("*.log.gz"))
FAILED = sorted((Path(__file__).parents[1] / "data" / "failures").glob("threads/learn*/*.log"))
PRESET = load("gsm8k-0.5b-24gb").snapshot()
FIXES = {fix.text: fix for cause in catalogue() for fix in cause.fixes}
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


def offer(fix: Any, preset: Any = PRESET) -> Offer:
    (found,) = offers([fix_of(fix)], configuration(preset))
    return found


@tabled
def test_a_fix_names_a_field_and_values(fix: dict[str, object], field: str, settings: list[str]) -> None:
    found = offer(fix)
    assert (found.field, list(settings_of(found.edits))) == (field, settings)


@tabled
def test_other_fixes_change_no_preset(fix: str | dict[str, object]) -> None:
    assert offer(fix).field is None


@tabled
def test_these_are_offered(fixes, preset, expected):
    assert [each.text for each in offers(map(fix_of, fixes), configuration(preset or PRESET))] == expected


def test_a_change_brings_along_what_follows_and_another_ppo_tui_has_other_fields() -> None:
    preset = {"data": {"train_batch_size": 64}, "actor": {"ppo_mini_batch_size": 16}}
    batch = offer({"raise": "data.train_batch_size"}, preset)
    assert settings_of(batch.edits) == ("data.train_batch_size=128", "actor.ppo_mini_batch_size=32")
    assert configuration({"actor": {"no_such_field": 1}}).settings == {}


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["toy-cpu", "gsm8k-0.5b-24gb", "math-7b-8gpu"])
def test_no_run_is_advised_what_it_has_or_cannot_have(preset: str) -> None:
    """Over every fix of every cause, rule and hang: its edits change a value, and all of them together are a preset."""
    snapshot = load(preset).snapshot()
    config = configuration(snapshot)
    advice = [cause.fixes for cause in catalogue()] + [rule.advice for rule in rules().values()]
    advice += [reason.fixes for reason in reasons().values()]
    tried = set[tuple[str, ...]]()
    for fixes in advice:
        for found in offers(fixes, config):
            assert all(edit.now != edit.before for edit in found.edits), found
            if (settings := tuple(settings_of(found.edits))) not in tried:
                restore("fixed", snapshot, settings)
                tried.add(settings)
            for change in found.fix.changes:
                if change.operation in ("lower", "raise") and "{" not in change.key:
                    now, edits = value_now(change.key, config), {edit.key for edit in found.edits}
                    assert now is None or setting_name(change.key) in edits, found


def test_a_command_for_the_run_is_for_runs_that_were_started_here() -> None:
    for cause in catalogue():
        for fix in cause.fixes:
            assert (fix.fits == "steps left") == ("ppo-tui resume RUN`" in fix.text), (cause.id, fix.text)
            assert (fix.fits in ("own run", "steps left")) == ("RUN`" in fix.text), (cause.id, fix.text)


@pytest.mark.slow
@pytest.mark.parametrize("log", RECORDED, ids=lambda path: path.name)
def test_a_log_from_elsewhere_is_not_advised_to_resume(log: Path) -> None:
    texts = [offer.text for offer in explained(Log(log, log)).offers]
    assert not any("RUN" in text or "ppo-tui resume" in text for text in texts), texts


@pytest.mark.nightly("launcher/console/", "launcher/preset/", "launcher/health/", every=8)
@pytest.mark.parametrize("log", [*RECORDED, *FAILED], ids=lambda path: path.name)
def test_no_advice_about_a_log_is_in_force_and_no_setting_named_has_its_default(log: Path) -> None:
    found = explained(Log(log, log))
    config, place = of_log(found.diagnosis.settings), found.diagnosis.place
    if place is not None and place.setting is not None and place.setting.value:
        assert place.setting.value.lower() not in ("none", "null", default_of(place.setting.key).lower())
    for each in found.offers if config is not None else ():
        assert all(edit.before != edit.now for edit in each.edits)
        sets = [change for change in each.fix.changes if change.operation == "set" and config.is_set(change.key)]
        assert all(value_now(change.key, config) not in map(value_of, map(str, change.values)) for change in sets), (
            each.text
        )


@pytest.mark.parametrize(
    ("given", "advised"), [("data.filter_overlong_prompts=true", False), ("data.filter_overlong_prompts=false", True)]
)
def test_fixes_are_settled_on_the_command_of_a_plain_log(tmp_path: Path, given: str, advised: bool) -> None:
    log = tmp_path / "x.log"
    error = "RuntimeError: Prompt length 1033 is longer than 512."
    log.write_text(f"Error executing job with overrides: ['{given}']\nTraceback (most recent call last):\n{error}\n")
    texts = [offer.text for offer in explained(Log(log, log)).offers]
    assert any("filter_overlong_prompts" in text for text in texts) is advised, texts


def test_a_fix_for_other_runs_is_left_out() -> None:
    resume = fix_of({"do": "run `ppo-tui resume RUN`", "fits": "steps left"})
    assert not offers([resume], None, imported=True) and offers([resume], None)
    gpu = fix_of({"lower": {f"{ROLLOUT}.gpu_memory_utilization": "0.3"}, "fits": "gpu"})
    assert not offers([gpu], configuration(load("toy-cpu").snapshot())) and offers([gpu], configuration(PRESET))


@pytest.mark.parametrize("fix", FIXES.values(), ids=list(FIXES))
def test_each_fix_of_the_catalogue_can_be_followed(fix: Fix) -> None:
    """Each key is one that a preset holds, each value one that its field takes."""
    for change in fix.changes:
        if "{" not in change.key:  # from the log
            where = where_of(change.key)
            known = change.key.startswith(("+", "env.")) or where[0] != "overrides" or any(defaults.life(where[1]))
            assert known, f"no preset field and no key of any veRL: {change.key}"
        if change.operation in ("lower", "raise"):
            assert all(map(float, change.values))
    for found in offers([fix], configuration(PRESET)):
        restore("fixed", PRESET, settings_of(found.edits))


@tabled
def test_the_sentence_of_a_fix(fix: str | dict[str, object], text: str) -> None:
    assert fix_of(fix).text == text
