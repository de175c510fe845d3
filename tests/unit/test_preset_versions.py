"""The table of keys by version. Facts: composed from the wheels of veRL 0.5.0 to 0.9.1."""

import pytest

from launcher.errors import UserError
from launcher.preset import versions

REWARD, OLD_REWARD = "reward.custom_reward_function.path", "custom_reward_function.path"
CLIP, OLD_CLIP = "actor_rollout_ref.actor.optim.clip_grad", "actor_rollout_ref.actor.grad_clip"
TOKENS, OLD_TOKENS = "critic.ppo_infer_max_token_len_per_gpu", "critic.ppo_max_token_len_per_gpu"
OFFLOAD, OLD_OFFLOAD = "critic.fsdp.param_offload", "critic.model.fsdp_config.param_offload"
CPUS, OLD_CPUS = "ray_kwargs.ray_init.num_cpus", "ray_init.num_cpus"
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
    ],
)
def test_a_key_in_each_version_and_back(newest, version, name):
    assert versions.at(newest, version) == name
    assert versions.newest(name) == newest


@pytest.mark.parametrize(
    ("key", "version", "said"),
    [
        ("trainer.v1.trainer_mode", "0.8.0", "came with 0.9.0"),
        ("data.seed", "0.6.0", "came with 0.6.1"),
        ("data.sampler.class_path", "0.8.0", "went with 0.8.0"),
    ],
)
def test_a_key_that_a_version_does_not_have(key, version, said):
    with pytest.raises(UserError, match=said):
        versions.at(key, version)


def test_the_same_keys_pass_where_they_exist():
    assert versions.at("data.seed", "0.6.1") == "data.seed"
    assert versions.at("data.sampler.class_path", "0.7.1") == "data.sampler.class_path"


def test_what_a_version_takes_no_notice_of():
    key = "critic.ppo_micro_batch_size_per_gpu"
    assert versions.ignored(key, "0.7.1") is None
    assert "dynamic" in (versions.ignored(key, "0.9.1") or "")
    assert versions.ignored("critic.optim.lr", "0.9.1") is None


@pytest.mark.parametrize("version", ["0.5.0", "0.9", "0.9.1", "1.0rc1"])
def test_versions_that_can_be_launched(version):
    versions.check(version)


@pytest.mark.parametrize("version", ["0.4.1", "0.1", ""])
def test_versions_that_are_too_old(version):
    with pytest.raises(UserError, match=r"0\.5\.0 and newer"):
        versions.check(version)
