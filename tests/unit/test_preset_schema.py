"""What the form, the errors and the translation read of each field."""

import functools
import operator
from collections.abc import Iterator, Mapping
from typing import Any, get_origin, get_type_hints

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
APPENDED = {f"{model}.override_config.attn_implementation" for model in ("actor_rollout_ref.model", "critic.model")}
APPENDED |= {"critic.ppo_infer_max_token_len_per_gpu", "ray_kwargs.ray_init.address"}
WITHOUT_DEFAULT = ("", "data.train_files", "data.val_files", "trainer.logger")


def test_each_field_says_what_it_is_and_allows_verls_default():
    known, config, preset = set(verl_keys(version=NEWEST)), EffectiveConfig(), preset_of({})
    assert len(BY_KEY) == sum(bool(spec.key) for spec in FIELDS.values()), "no two share a key"
    for name, spec in FIELDS.items():
        assert bool(spec.key and spec.key not in known) == bool(spec.plus) == (spec.key in APPENDED), name
        assert spec.help.endswith((".", "...")) and 8 <= len(spec.help) <= 110 and spec.allowed, name
        if int in spec.types or float in spec.types:
            assert spec.scale and spec.step > 0, name
        assert not spec.choices or not spec.scale, name
        default = None if spec.key in WITHOUT_DEFAULT else config.get(spec.key)
        assert default is None or spec.allows(spec.from_verl(default)), name
        assert value_of(preset, spec) == spec.default, name


def declared(model: type[Group], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, kind in get_type_hints(model).items():
        if isinstance(kind, type) and issubclass(kind, Group):
            yield from declared(kind, (*path, name))
        else:
            yield ".".join((*path, name)), kind


def test_an_attribute_that_code_reads_is_a_row_of_its_type():
    for name, kind in declared(Preset):
        spec = FIELDS[name]
        kinds = [*(spec.types or [str]), *([type(None)] if spec.nullable else [])]
        kind = dict[str, object] if get_origin(kind) is Mapping else kind  # which nobody changes
        assert kind == functools.reduce(operator.or_, kinds), name


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
