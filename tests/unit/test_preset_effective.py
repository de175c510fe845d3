"""The effective configuration: one answer over all versions, and the same one for everybody who asks."""

from __future__ import annotations

import pytest
from corpus import older
from drafted import of_draft
from tables import parts, tabled
from verl_wheels import VERSIONS

from launcher.core.errors import UserError
from launcher.estimate import sizing
from launcher.health.config import RunConfig
from launcher.preset import effective
from launcher.preset.effective import EffectiveConfig, Setting
from launcher.preset.files import load, shipped
from launcher.preset.flow import flow
from launcher.verl.defaults import number

SETTINGS = parts("preset_effective")["settings"][1]


def what_verl_does(config: EffectiveConfig, model: str) -> tuple[float, int, int]:
    """Responses of a mini-batch on one rank, ranks, and tokens of the largest packed micro-batch on one GPU:
    read off veRL's workers, without what ppo-tui makes of them.
    """
    critic, old = model == "critic", number(config.version) < (0, 8, 0)
    block = "critic" if critic else "actor_rollout_ref.actor"
    keys = ["critic.fsdp.ulysses_sequence_parallel_size"] if critic else [f"{block}.ulysses_sequence_parallel_size"]
    sharing = max(config.get(key, 1) for key in keys)
    ranks = config.get("trainer.n_gpus_per_node") * config.get("trainer.nnodes") // sharing
    responses = config.get(f"{block}.ppo_mini_batch_size") * config.get("actor_rollout_ref.rollout.n") / ranks
    longest = config.get("data.max_prompt_length") + config.get("data.max_response_length")
    dynamic = config.get(f"{block}.use_dynamic_bsz") if not critic or old else True
    if dynamic:
        key = f"{block}.ppo_infer_max_token_len_per_gpu" if critic else f"{block}.ppo_max_token_len_per_gpu"
        most = max(config.get(key, 32768) * sharing, longest)
    else:
        most = config.get(f"{block}.ppo_micro_batch_size_per_gpu") * longest
    return responses, ranks, int(min(most, max(1, int(responses)) * longest) // sharing)


@pytest.mark.nightly("launcher/preset/", "launcher/estimate/", "launcher/verl/", "presets/", every=11)
@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: ",".join(settings) or "as shipped")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("preset", [name for name in shipped() if name != "toy-cpu"])
def test_flow_and_memory_cut_a_batch_as_this_verl_does(preset: str, version: str, settings: tuple[str, ...]) -> None:
    packed = ("model.use_remove_padding=true", "critic.use_remove_padding=true")
    config = older(version, preset, *packed, *settings)
    found, plan = flow(config), sizing.plan(config)
    assert (plan.gpus, plan.longest) == (found.gpus, found.longest)
    models = {"actor": (found.actor, plan.update_tokens)}
    if found.critic:
        models["critic"] = (found.critic, plan.critic_tokens)
    assert (plan.critic is None) == (found.critic is None) == (not config.has_critic)
    for model, (updates, tokens) in models.items():
        responses, ranks, most = what_verl_does(config, model)
        assert updates.per_gpu == responses
        assert tokens == updates.largest == most
        assert updates.mini_batches == -(-found.prompts // updates.mini)
        if updates.micro_batches:  # they hold all tokens that a rank may have
            assert updates.micro_batches * max(most * config.sequence_parallel(_block(model)), 1) >= responses
        assert ranks == config.data_parallel(_block(model))


def _block(model: str) -> str:
    return "critic" if model == "critic" else "actor_rollout_ref.actor"


@pytest.mark.parametrize("name", shipped())
def test_a_draft_is_seen_as_the_run_that_starts_from_it(name: str) -> None:
    loaded = load(name)
    draft, run = effective.of_draft(loaded.layer), older("0.9.1", name)
    for key, setting in run.settings.items():
        if setting.source in ("field", "override") or key in draft.settings:
            different = setting.source == "derived" and key in ("trainer.logger", "trainer.experiment_name")
            assert different or draft.get(key) == setting.value, key


def test_every_value_knows_where_it_comes_from() -> None:
    config = older("0.7.1", "gsm8k-0.5b-24gb", "+trainer.new_key=1", "critic.fsdp.param_offload=true")
    sources = {
        "trainer.new_key": "override",
        "critic.fsdp.param_offload": "field",  # critic.model.fsdp_config in this version
        "critic.model.path": "derived",
        "trainer.logger": "derived",
        "trainer.default_local_dir": "ppo-tui",
        "trainer.project_name": "ppo-tui",
        "actor_rollout_ref.actor.loss_agg_mode": "default",
        "trainer.use_v1": "default",  # which came later
    }
    assert {key: config.source(key) for key in sources} == sources
    assert config.get("trainer.use_v1") is None and config.get("trainer.use_v1", 7) == 7


def test_fields_and_those_that_follow_them_are_changed_together() -> None:
    config = older("0.7.1", "gsm8k-0.5b-24gb").with_fields({"actor.strategy": "fsdp2", "critic.param_offload": True})
    assert config.get("critic.strategy") == config.get("actor_rollout_ref.actor.strategy") == "fsdp2"
    assert config.settings["critic.model.fsdp_config.param_offload"] == Setting(True, "field")
    own = older("0.9.1", "gsm8k-0.5b-24gb", "critic.strategy=fsdp").with_fields({"actor.strategy": "fsdp2"})
    assert own.get("critic.strategy") == "fsdp"


@tabled
def test_a_log_and_a_preset_answer_alike(keys, critic, reference, groups):
    log = RunConfig(keys)
    assert (log.has_critic, bool(log.has_reference), log.group_based) == (critic, bool(reference), groups)
    if keys:
        preset = EffectiveConfig(settings={key: Setting(value) for key, value in keys.items()})
        assert preset.has_reference == bool(reference) and preset.has_critic is not None
        assert critic is None or preset.has_critic == critic


def test_a_version_that_lacks_a_key_says_so_for_a_launch_only() -> None:
    with pytest.raises(UserError, match=r"veRL 0\.7\.1 has no 'trainer\.use_v1'"):
        older("0.7.1", "gsm8k-0.5b-24gb", "trainer.use_v1=false")
    assert of_draft({("trainer", "use_v1"): False}, "0.7.1").get("trainer.use_v1") is None
