"""Whether it fits, and the one change that makes it fit."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import tabled

from launcher.check import fitting
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.core.format import GIB
from launcher.estimate import memory, models, rollout_memory
from launcher.estimate.memory import Estimate, Phase
from launcher.machine.capacity import Gpu, Machine
from launcher.preset.files import load


def assumed(machine: str, *settings: str, preset: str = "gsm8k-0.5b-24gb") -> Subject:
    return subject(load(preset, settings), assume=machine)


def found(what: Subject, name: str) -> Finding:
    return next(finding for finding in fitting.checks(what) if finding.id == name)


def test_fewer_rows_at_once_are_offered_when_a_smaller_share_cannot_be() -> None:
    tight = assumed(
        "1x16",
        "algorithm=grpo",
        "rollout.max_num_seqs=1024",
        "rollout.gpu_memory_utilization=0.1",
        "rollout.max_model_len=768",
        "actor.ppo_max_token_len_per_gpu=8192",
    )
    changes = [dict(change) for change in fitting.candidates(tight)]
    assert {"rollout.max_num_seqs": 256} in changes
    assert {"rollout.max_num_seqs": 256} not in list(fitting.candidates(assumed("1x16")))


def test_the_share_has_to_be_free_even_with_a_small_kv_cache() -> None:
    what = assumed("1x24", "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=1000000000")
    busy = Gpu("RTX 4090", 24 * GIB, 13 * GIB)  # 5.5 for the models and 1.9 would fit; 7.2 are asked for
    assert found(on(what, busy), "FIT-3").level == "error"


def test_what_the_driver_keeps_is_nobodys() -> None:
    what = assumed("1x24", "rollout.gpu_memory_utilization=0.4")
    whole, less = (memory.estimate(on(what, Gpu("H200", 24 * GIB, 0, reserved=kept))) for kept in (0, GIB))
    assert (whole.gpu_total, less.gpu_total) == (24 * GIB, 23 * GIB)
    assert whole.phases[0].gpu - less.phases[0].gpu == pytest.approx(0.4 * GIB, abs=2)


def on(what: Subject, *gpus: Gpu, host: int = 256) -> Subject:
    machine = Machine(gpus, host * GIB, host * GIB, 16, assumed=False)
    return dataclasses.replace(what, machine=machine)


def test_a_gpu_that_somebody_holds_stops_the_engine() -> None:
    what = assumed("1x24")
    busy = Gpu("RTX 4090", 24 * GIB, 15 * GIB, ("python of anna (pid 4711)",))
    finding = found(on(what, busy), "FIT-3")
    assert finding.level == "error" and "anna" in finding.message
    free = Gpu("RTX 4090", 24 * GIB, GIB // 2)
    assert not [each for each in fitting.checks(on(what, free)) if each.id == "FIT-3"]


def test_host_memory_is_judged_on_this_machine_only() -> None:
    what = assumed("1x24", preset="gsm8k-1.5b-24gb")
    gpu = Gpu("RTX 4090", 24 * GIB, 0)
    assert found(on(what, gpu, host=32), "FIT-5").level == "error"
    assert found(on(what, gpu, host=64), "FIT-6").level == "warning"
    assert not list(fitting.checks(what))


PARAMETERS = 494_032_768  # of Qwen2.5-0.5B


def estimated(machine: str, *settings: str) -> Estimate:
    return memory.estimate(assumed(machine, *settings))


def phase(found: Estimate, name: str) -> Phase:
    return next(each for each in found.phases if each.name == name)


def part(found: Estimate, name: str, label: str) -> int:
    return sum(each.bytes for each in phase(found, name).parts if each.label == label)


@tabled
def test_a_part_of_a_phase(machine, settings, phase, label, expected):
    assert part(estimated(machine, *settings), phase, label) == expected


def test_a_reward_model_on_the_same_gpus_takes_its_share() -> None:
    model = ("reward.use_model=true", "reward.model_path=Qwen/Qwen2.5-1.5B-Instruct")
    found = estimated("1x80", *model)
    share = int(0.5 * found.gpu_total)  # veRL's default
    assert phase(found, "reward model").gpu == share + 12 * (2 * PARAMETERS + 896)
    assert part(found, "update actor", "reward model asleep") > 0
    assert found.host_high - estimated("1x80").host_high == memory.ENGINE  # its processes
    awake = estimated("1x80", *model, "reward.reward_model.rollout.free_cache_engine=false")
    assert part(awake, "update actor", "reward model") == part(awake, "rollout", "reward model") == share
    apart = estimated("1x80", *model, "reward.model_own_gpus=true", "reward.model_nodes=1")
    assert "reward model" not in [each.name for each in apart.phases]
    key = "reward.reward_model.rollout.gpu_memory_utilization"
    finding = next(iter(fitting.checks(assumed("1x24", *model, f"{key}=0.98"))))
    assert "phase 'reward model'" in finding.message and "reward.model_own_gpus=true" in finding.fix
    assert finding.keys == (key,)


def test_experts_are_counted_from_the_weights_only(tmp_path: Path) -> None:
    config = {
        "model_type": "qwen3_moe",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "vocab_size": 1000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert models.facts(str(tmp_path)) is not None
    for more in ({"num_experts": 128}, {"text_config": {"n_routed_experts": 8}}):
        (tmp_path / "config.json").write_text(json.dumps({**config, **more}))
        assert models.facts(str(tmp_path)) is None


def test_a_profile_run_has_no_more_rows_than_tokens() -> None:
    few = estimated("1x80", "rollout.max_num_seqs=4096", "rollout.max_num_batched_tokens=1024")
    assert rollout_memory.profiled(few.plan) == 1024 * 151_936 * 24
    key = "rollout.gpu_memory_utilization"
    # vLLM's sampler takes 3.5 GiB of the share of 4.7 when it may write 1,024 rows, its weights 0.9
    tight = fitting.checks(assumed("1x24", f"{key}=0.2", "rollout.max_num_seqs=1024"))
    assert "FIT-4" in [each.id for each in tight]
    assert "FIT-4" not in [each.id for each in fitting.checks(assumed("1x24", f"{key}=0.2"))]


def test_a_gpu_whose_size_the_driver_does_not_tell_is_not_judged() -> None:
    what = dataclasses.replace(
        assumed("1x24"), machine=Machine((Gpu("GB10", 0, 0),), 256 * GIB, 256 * GIB, 16, assumed=False)
    )
    assert not [each for each in fitting.checks(what) if each.level == "error"]


def test_an_engine_that_does_not_sleep_stays_in_every_phase() -> None:
    found = estimated("1x80", "rollout.free_cache_engine=false")
    share = part(found, "rollout", "engine")
    assert share > 0
    for each in found.phases:
        assert part(found, each.name, "engine") == share


SIZES = st.fixed_dictionaries(
    {
        "rollout.gpu_memory_utilization": st.floats(0.05, 0.95).map(lambda share: round(share, 2)),
        "actor.ppo_max_token_len_per_gpu": st.integers(1, 1 << 20),
        "data.max_response_length": st.integers(1, 1 << 16),
        "data.train_batch_size": st.integers(1, 4096),
        "actor.ppo_mini_batch_size": st.integers(1, 4096),
        "rollout.n": st.integers(1, 16),
        "trainer.gpus": st.integers(1, 8),
        "model.lora_rank": st.sampled_from([0, 8, 64]),
        "model.use_remove_padding": st.sampled_from(["true", "false"]),
        "actor.use_dynamic_bsz": st.sampled_from(["true", "false"]),
    }
)


def on_eight(gib: int, words: list[str]) -> Subject:
    """The 0.5B preset on eight GPUs of so many GiB."""
    return subject(load("gsm8k-0.5b-24gb", words), assume=f"8x{gib}")


@pytest.mark.slow
@given(SIZES, st.integers(8, 200))
@settings(max_examples=30)
def test_any_sizes_give_an_estimate_that_hangs_together(sizes: dict[str, Any], gib: int) -> None:
    words = [f"{name}={value}" for name, value in sizes.items()]
    before = memory.estimate(on_eight(gib, words))
    for phase in before.phases:
        assert 0 <= phase.gpu <= phase.gpu_needed <= phase.gpu_high
        total = before.gpu_total or 0
        assert (phase.gpu_needed > total) == (phase.gpu_high > total)  # the cache is not a reason that it does not fit
        assert all(part.bytes >= 0 for part in phase.parts)
    moved = [*words, "actor.optimizer_offload=true", "critic.optimizer_offload=true"]
    after = memory.estimate(on_eight(gib, moved))
    for old, new in zip(before.phases, after.phases, strict=True):
        assert new.gpu <= old.gpu, new.name
    assert after.host >= before.host
    assert all(finding.message for finding in fitting.checks(on_eight(gib, words)))
