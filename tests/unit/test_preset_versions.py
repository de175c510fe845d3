"""The table of keys by version. Facts: composed from the wheels of veRL 0.5.0 to 0.9.1."""

import pytest

from launcher.core.errors import UserError
from launcher.preset.files import load, shipped
from launcher.preset.schema import FIELDS, value_of
from launcher.verl import versions
from launcher.verl.versions import ignored

REWARD, OLD_REWARD = "reward.custom_reward_function.path", "custom_reward_function.path"
CLIP, OLD_CLIP = "actor_rollout_ref.actor.optim.clip_grad", "actor_rollout_ref.actor.grad_clip"
TOKENS, OLD_TOKENS = "critic.ppo_infer_max_token_len_per_gpu", "critic.ppo_max_token_len_per_gpu"
OFFLOAD, OLD_OFFLOAD = "critic.fsdp.param_offload", "critic.model.fsdp_config.param_offload"
CPUS, OLD_CPUS = "ray_kwargs.ray_init.num_cpus", "ray_init.num_cpus"
OLD_COMPILE = "actor_rollout_ref.actor.use_torch_compile"
COMPILE = "actor_rollout_ref.actor.fsdp_config.use_torch_compile"
LR = "actor_rollout_ref.actor.optim.lr"


@pytest.mark.parametrize(
    ("newest", "version", "name"),
    [
        (REWARD, "0.5.0", OLD_REWARD),
        (REWARD, "0.7.0", OLD_REWARD),
        (REWARD, "0.7.1", REWARD),
        (REWARD, "0.9.1", REWARD),
        (CLIP, "0.7.1", OLD_CLIP),
        (CLIP, "0.8.0", CLIP),
        (TOKENS, "0.8.0", OLD_TOKENS),
        (TOKENS, "0.9.0", TOKENS),
        (OFFLOAD, "0.7.1", OLD_OFFLOAD),
        (OFFLOAD, "0.8.0", OFFLOAD),
        (CPUS, "0.5.0", OLD_CPUS),
        (CPUS, "0.6.0", CPUS),
        (LR, "0.5.0", LR),
        (LR, "0.10.0.dev0", LR),
        (COMPILE, "0.7.1", OLD_COMPILE),
        (COMPILE, "0.8.0", COMPILE),
        ("reward.reward_model.nnodes", "0.7.0", "reward_model.nnodes"),
    ],
)
def test_a_key_in_each_version_and_back(newest, version, name):
    assert versions.at(newest, version) == name
    assert versions.newest(name) == newest


@pytest.mark.parametrize(
    ("key", "version", "said"),
    [
        ("trainer.v1.trainer_mode", "0.8.0", "added in 0.9.0"),
        ("data.seed", "0.6.0", "added in 0.6.1"),
        ("data.sampler.class_path", "0.8.0", "removed in 0.8.0"),
        ("trainer.v1.sampler.sampler_kwargs.x", "0.8.0", "added in 0.9.0"),
        ("ray_kwargs.ray_init.runtime_env.py_executable", "0.5.0", "added in 0.9.1"),
        ("skip.rollout.enable", "0.7.1", "added in 0.9.0"),
    ],
)
def test_a_key_that_a_version_does_not_have(key, version, said):
    with pytest.raises(UserError, match=said):
        versions.at(key, version)


def test_the_same_keys_pass_where_they_exist():
    assert versions.at("data.seed", "0.6.1") == "data.seed"
    assert versions.at("data.sampler.class_path", "0.7.1") == "data.sampler.class_path"


@pytest.mark.parametrize(
    ("key", "value", "version", "why"),
    [
        ("critic.ppo_micro_batch_size_per_gpu", 4, "0.7.1", None),
        ("critic.ppo_micro_batch_size_per_gpu", 4, "0.8.0", "only its presence is checked"),
        ("critic.optim.lr", 1e-5, "0.9.1", None),
        ("actor_rollout_ref.actor.grad_clip", 1.0, "0.7.1", None),
        ("actor_rollout_ref.actor.grad_clip", 1.0, "0.8.0", "moved to actor_rollout_ref.actor.optim.clip_grad"),
        ("data.truncation", "left", "0.9.1", "filter_overlong_prompts"),
        ("custom_reward_function.path", "/r.py", "0.8.0", None),
        ("custom_reward_function.path", "/r.py", "0.9.0", "moved to reward.custom_reward_function"),
        ("trainer.balance_batch", True, "0.9.1", "always balances"),
        ("algorithm.use_pf_ppo", True, "0.9.1", "only the legacy trainer"),
    ],
)
def test_what_a_version_takes_no_notice_of(key, value, version, why):
    found = dict(ignored({key: value, "trainer.nnodes": 1}, version))
    assert set(found) == ({key} if why else set())
    assert why is None or why in found[key]


def test_the_old_trainer_of_the_newest_version_reads_what_it_always_did():
    keys = {"trainer.use_v1": False, "trainer.balance_batch": True, "trainer.v1.trainer_mode": "sync"}
    assert [key for key, _ in ignored(keys, "0.9.1")] == ["trainer.v1.trainer_mode"]


def test_shipped_presets_set_nothing_that_is_ignored_but_what_is_demanded():
    for name in shipped():
        preset = load(name).preset
        keys = {spec.key: value_of(preset, spec) for spec in FIELDS.values() if spec.key}
        set_here = {key: value for key, value in keys.items() if value is not None}
        assert {key for key, _ in ignored(set_here, "0.9.1")} <= {"critic.ppo_micro_batch_size_per_gpu"}


@pytest.mark.parametrize("version", ["0.5.0", "0.9", "0.9.1", "1.0rc1"])
def test_versions_that_can_be_launched(version):
    versions.check(version)


@pytest.mark.parametrize("version", ["0.4.1", "0.1", ""])
def test_versions_that_are_too_old(version):
    with pytest.raises(UserError, match=r"0\.5\.0 or newer"):
        versions.check(version)
