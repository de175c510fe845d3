"""What the form, the errors and the translation read of each field."""

import functools
import operator
from collections.abc import Iterator, Mapping
from typing import Any, get_origin, get_type_hints

import pytest
from tables import tabled

from launcher.health.catalogue import rules
from launcher.preset.choices import verl_keys
from launcher.preset.effective import EffectiveConfig, Setting
from launcher.preset.schema import (
    BY_KEY,
    FIELDS,
    GENERAL,
    GROUPS,
    TITLES,
    Group,
    Preset,
    fields_of,
    preset_of,
    value_of,
)
from launcher.verl.defaults import NEWEST
from tui.pages.editor.preset_form import flag_advice

# Keys that people meet and that stay under overrides: megatron's, multi-modal, deprecated and internal ones.
APPENDED = {
    "actor_rollout_ref.model.override_config.attn_implementation",
    "critic.model.override_config.attn_implementation",
    "critic.ppo_infer_max_token_len_per_gpu",
    "ray_kwargs.ray_init.address",
}


def test_every_key_of_a_field_is_one_of_verls():
    known = set(verl_keys(version=NEWEST))
    assert {spec.key for spec in FIELDS.values() if spec.key} - known == APPENDED
    assert {spec.key for spec in FIELDS.values() if spec.plus} == APPENDED


def test_no_two_fields_share_a_key():
    assert len(BY_KEY) == sum(bool(spec.key) for spec in FIELDS.values())


@pytest.mark.parametrize("spec", FIELDS.values(), ids=lambda spec: spec.name)
def test_each_field_says_what_it_is(spec):
    assert spec.help.endswith((".", "...")), "one sentence"
    assert 8 <= len(spec.help) <= 110
    assert spec.allowed
    if int in spec.types or float in spec.types:
        assert spec.scale
        assert spec.step > 0
    assert not spec.choices or not spec.scale


WITH_DEFAULT = [
    spec
    for spec in FIELDS.values()
    if spec.key not in ("", "data.train_files", "data.val_files", "trainer.logger")
    and EffectiveConfig().get(spec.key) is not None
]


@pytest.mark.parametrize("spec", WITH_DEFAULT, ids=lambda spec: spec.name)
def test_verls_default_is_allowed_by_our_types(spec):
    assert spec.allows(spec.from_verl(EffectiveConfig().get(spec.key)))


def declared(model: type[Group], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, kind in get_type_hints(model).items():
        if isinstance(kind, type) and issubclass(kind, Group):
            yield from declared(kind, (*path, name))
        else:
            yield ".".join((*path, name)), kind


@pytest.mark.parametrize(("name", "kind"), declared(Preset))
def test_an_attribute_that_code_reads_is_a_row_of_its_type(name, kind):
    spec = FIELDS[name]
    kinds = [*(spec.types or [str]), *([type(None)] if spec.nullable else [])]
    if get_origin(kind) is Mapping:  # which nobody changes
        kind = dict[str, object]
    assert kind == functools.reduce(operator.or_, kinds)


def test_every_row_is_an_attribute_with_its_default():
    preset = preset_of({})
    assert {spec.name: value_of(preset, spec) for spec in FIELDS.values()} == {
        spec.name: spec.default for spec in FIELDS.values()
    }


@tabled
def test_values_of_a_field_are_strict(name, allowed, refused):
    spec = FIELDS[name]
    assert [value for value in allowed if not spec.allows(value)] == []
    assert [value for value in refused if spec.allows(value)] == []


def test_groups_have_titles_in_the_order_of_the_form():
    assert list(TITLES) == [GENERAL, *GROUPS]
    assert [spec for group in TITLES for spec in fields_of(group)] != []
    assert {spec.name for group in TITLES for spec in fields_of(group)} == set(FIELDS)


def test_a_form_can_begin_with_few_fields():
    essential = [spec for spec in FIELDS.values() if spec.essential]
    assert 25 <= len(essential) <= 45
    assert {"model.path", "data.train", "actor.lr", "kl.coef", "trainer.gpus"} <= {s.name for s in essential}


def test_every_fix_of_the_health_checklist_is_the_advice_of_a_field():
    fixed = {fix.key for rule in rules().values() for fix in rule.advice if fix.key}
    assert {spec.key for spec in FIELDS.values() if flag_advice(spec.key)} == fixed
    entropy = flag_advice(FIELDS["actor.entropy_coeff"].key)
    assert "when ENT-1 is on: set actor.entropy_coeff=0.001" in entropy
    assert "when ENT-2 is on: lower actor.entropy_coeff (for example to 0)" in entropy
    assert flag_advice("") == []


@tabled
def test_completion_by_beginning_then_by_part(typed, first):
    assert verl_keys(typed)[0] == first


def test_completion_knows_the_version():
    assert "trainer.use_v1" in verl_keys("trainer.", "0.9.0")
    assert "trainer.use_v1" not in verl_keys("trainer.", "0.8.0")
    assert "data.sampler.class_path" in verl_keys("data.", "0.7.1")
    assert verl_keys("nothing.like.it") == []


@tabled
def test_verls_defaults(key, version, value):
    assert EffectiveConfig(version=version).get(key) == value


def test_a_default_follows_what_was_set():
    mini = "actor_rollout_ref.actor.ppo_mini_batch_size"
    config = EffectiveConfig(settings={mini: Setting(32), "data.max_prompt_length": Setting(77)})
    assert config.get("critic.ppo_mini_batch_size") == 32
    assert config.get("actor_rollout_ref.rollout.prompt_length") == 77
