"""Every field and every shipped preset, composed by Hydra against the published veRL versions.

The wheels are downloaded once with pip; without a network these tests are skipped.
"""

import sys
from pathlib import Path

import pytest
from verl_wheels import VERSIONS, compose, config_folder, leaves

from launcher.core.errors import UserError
from launcher.preset.effective import EffectiveConfig
from launcher.preset.files import load, shipped
from launcher.preset.schema import FIELDS
from launcher.preset.translate import RunFolders, build
from launcher.verl import hydra, versions
from launcher.verl.defaults import bundled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("launcher/preset/", "launcher/verl/", "presets/", "tests/support/verl_wheels.py"),
]

FOLDERS = RunFolders(*(Path(f"/runs/it's (1)/{name}") for name in "abcde"))
GPU_PRESETS = [name for name in shipped() if name != "toy-cpu"]


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    if config_folder(request.param) is None:
        pytest.skip(f"the wheel of veRL {request.param} cannot be downloaded here")
    return request.param


@pytest.mark.parametrize(("engine", "name"), [("dp", "ppo_trainer"), ("megatron", "ppo_megatron_trainer")])
def test_the_bundled_keys_are_those_of_the_wheel(version, engine, name):
    (raw,) = compose(config_folder(version), [[]], resolve=False, name=name)
    assert leaves(bundled(version, engine)) == leaves(raw)


@pytest.mark.parametrize("version", ["0.5.0", "0.6.1", "0.7.1", "0.8.0", "0.9.1"], indirect=True)
def test_verl_sees_the_presets_as_they_are_meant(version):
    launches = [
        build(load(name), version=version, folders=FOLDERS, python=sys.executable, environ={}) for name in GPU_PRESETS
    ]
    configs = compose(config_folder(version), [launch.argv[4:] for launch in launches])
    for name, launch, config in zip(GPU_PRESETS, launches, configs, strict=True):
        found = leaves(config)
        wrong = {key: found.get(key) for key, value in launch.keys.items() if found.get(key) != value}
        assert wrong == {}, name


def test_every_field_is_accepted_or_refused_by_name(version):
    """A field that a version lacks is a sentence for the user; all others compose."""
    overrides, refused = [], []
    for spec in FIELDS.values():
        if not spec.key:
            continue
        try:
            name = versions.at(spec.key, version)
        except UserError as error:
            refused.append(spec.key)
            assert "it was added in" in str(error)
            continue
        prefix = "+" if versions.unlisted(spec.key, version) else spec.plus
        value = EffectiveConfig(version=version).get(spec.key)
        overrides.append(f"{prefix}{name}={hydra.quote(value)}")
    assert len({text.lstrip("+").partition("=")[0] for text in overrides}) == len(overrides)
    compose(config_folder(version), [overrides])
    assert ("trainer.use_v1" in refused) == (versions.number(version) < (0, 9, 0))
    assert ("data.seed" in refused) == (versions.number(version) < (0, 6, 1))
    assert refused == [] or version != "0.9.1"


@pytest.mark.parametrize("field", ["actor.model_dtype=fp32", "actor.betas=[0.9,0.95]", "critic.model_dtype=fp32"])
def test_keys_that_old_versions_read_without_listing_them(field):
    folder = config_folder("0.5.0")
    if folder is None:
        pytest.skip("the wheel of veRL 0.5.0 cannot be downloaded here")
    loaded = load("gsm8k-0.5b-24gb", [field])
    launch = build(loaded, version="0.5.0", folders=FOLDERS, python=sys.executable, environ={})
    (config,) = compose(folder, [launch.argv[4:]])
    assert {key: leaves(config).get(key) for key in launch.keys} == launch.keys


@pytest.mark.parametrize("version", ["0.5.0", "0.7.0", "0.7.1", "0.9.1"], indirect=True)
def test_keys_that_come_under_a_block_of_the_users_own(version):
    """vLLM's options have a list in 0.5 and none later; DAPO's long answers moved, and stand in no list."""
    overrides = {
        "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space": 4,
        "+reward_model.reward_kwargs.max_resp_len": 64,
    }
    loaded = load("gsm8k-0.5b-24gb", [f"{key}={value}" for key, value in overrides.items()])
    launch = build(loaded, version=version, folders=FOLDERS, python=sys.executable, environ={})
    (config,) = compose(config_folder(version), [launch.argv[4:]])
    found = leaves(config)
    assert found["actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space"] == 4
    block = "reward_model" if versions.number(version) < (0, 7, 1) else "reward"
    assert found[f"{block}.reward_kwargs.max_resp_len"] == 64
