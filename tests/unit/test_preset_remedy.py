"""Advice as changes of a preset: what the sentences of the catalogue come to."""

import pytest

from launcher.console.causes import catalogue
from launcher.preset.field_values import where_of
from launcher.preset.files import load, restore
from launcher.preset.remedy import Remedy, configuration, remedy

PRESET = load("gsm8k-0.5b-24gb").snapshot()
FIXES = sorted({fix for cause in catalogue() for fix in cause.fixes})
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


@pytest.mark.parametrize(
    ("fix", "field", "settings"),
    [
        (f"{ROLLOUT}.enforce_eager=True", f"{ROLLOUT}.enforce_eager", [f"{ROLLOUT}.enforce_eager=True"]),
        (f"{ROLLOUT}.max_num_seqs ↓ (e.g. 64)", f"{ROLLOUT}.max_num_seqs", [f"{ROLLOUT}.max_num_seqs=64"]),
        (f"{ROLLOUT}.gpu_memory_utilization ↓, or ↑", f"{ROLLOUT}.gpu_memory_utilization", []),
        (
            f"{ACTOR}.fsdp_config.param_offload=True and .optimizer_offload=True",
            f"{ACTOR}.fsdp_config.param_offload",
            [f"{ACTOR}.fsdp_config.param_offload=True", f"{ACTOR}.fsdp_config.optimizer_offload=True"],
        ),
        ("or algorithm.kl_penalty=kl, abs or mse", "algorithm.kl_penalty", ["algorithm.kl_penalty=kl"]),
        ("trainer.logger=[console,file]", "trainer.logger", ["trainer.logger=[console,file]"]),
        ("set data.train_files and data.val_files to existing files", "data.train_files", []),
        ("set critic.model.path to the same path as actor_rollout_ref.model.path", "critic.model.path", []),
        ("or env: WANDB_MODE=offline", "env.WANDB_MODE", ["env.WANDB_MODE=offline"]),
        ("env: RAY_TMPDIR= a short path on a larger disk", "env.RAY_TMPDIR", []),
        ("+trainer.mine=... only if veRL reads it", "+trainer.mine", []),
    ],
)
def test_advice_names_a_field_and_values(fix: str, field: str, settings: list[str]) -> None:
    found = remedy(fix, configuration(PRESET))
    assert found is not None and (found.field, list(found.settings)) == (field, settings)


@pytest.mark.parametrize(
    "fix",
    [
        "not trainer.v1.sampler.sync_refill_failed_groups=True: the run never ends",
        "or trainer.resume_mode=auto to resume from the newest complete checkpoint",  # ppo-tui's own
        "pip install 'verl[vllm]==0.9.1' (installs vllm 0.24.0 and torch 2.11.0)",
        "read the log of the process in the Ray session folder: /tmp/ray/session_latest/logs",
        "a folder with config.json, or openai/gsm8k",
    ],
)
def test_other_advice_changes_no_preset(fix: str) -> None:
    assert remedy(fix, configuration(PRESET)) is None


def test_an_example_counts_only_where_it_leads_on() -> None:
    down = f"{ACTOR}.ppo_micro_batch_size_per_gpu ↓ (e.g. 8, then 1)"
    for now, settings in ((64, (f"{ACTOR}.ppo_micro_batch_size_per_gpu=8",)), (8, ()), (2, ())):
        config = configuration({"actor": {"ppo_micro_batch_size_per_gpu": now}})
        assert remedy(down, config) == Remedy(f"{ACTOR}.ppo_micro_batch_size_per_gpu", settings)


def test_what_the_preset_has_already_is_done() -> None:
    config = configuration({"actor": {"strategy": "fsdp2"}})
    found = [remedy(f"{ACTOR}.strategy={value}", config) for value in ("fsdp2", "fsdp")]
    assert [each and each.done for each in found] == [True, False]
    assert configuration({"actor": {"no_such_field": 1}}).settings == {}  # of another ppo-tui


@pytest.mark.parametrize("fix", FIXES)
def test_all_advice_of_the_catalogue_can_be_followed(fix: str) -> None:
    """Each value is one that its field takes; each field is one that the editor finds."""
    found = remedy(fix, configuration(PRESET))
    if found is not None and not fix.startswith("actor_rollout_ref.actor.ppo_m"):
        where_of(found.field)
        restore("fixed", PRESET, found.settings)
    named = "=" in fix and any(f"{root}." in fix.split("=")[0] for root in ("actor_rollout_ref", "data", "critic"))
    assert found is not None or not named or fix.startswith("not ")
