"""Whether it fits, and the one change that makes it fit."""

import dataclasses

import pytest

from launcher.check import fitting
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.core.format import GIB
from launcher.estimate import memory
from launcher.machine.capacity import Gpu, Machine
from launcher.preset.files import load


def assumed(machine: str, *settings: str, preset: str = "gsm8k-0.5b-24gb") -> Subject:
    return subject(load(preset, settings), assume=machine)


def found(what: Subject, name: str) -> Finding:
    return next(finding for finding in fitting.checks(what) if finding.id == name)


LESS = "rollout.gpu_memory_utilization=0.3"  # the preset's 0.4 is too much for a resumed run
BROKEN = [
    ("1x24", ("rollout.gpu_memory_utilization=0.7",), "FIT-1"),
    ("1x16", (), "FIT-1"),
    ("1x24", ("model.path=Qwen/Qwen2.5-1.5B-Instruct",), "FIT-1"),
    ("1x24", (LESS, "model.use_remove_padding=false"), "FIT-2"),
    ("1x24", (LESS, "model.enable_gradient_checkpointing=false"), "FIT-2"),
    ("1x24", (LESS, "actor.ppo_max_token_len_per_gpu=65536"), "FIT-2"),
    ("1x24", (), "FIT-2"),
]


@pytest.mark.parametrize(("machine", "settings", "name"), BROKEN)
def test_the_change_that_is_offered_makes_it_fit(machine: str, settings: tuple[str, ...], name: str) -> None:
    what = assumed(machine, *settings)
    finding = found(what, name)
    assert finding.level == ("error" if name == "FIT-1" else "warning")
    assert finding.change
    after = memory.estimate(what.with_fields(finding.change))
    assert after is not None and after.gpu_total is not None
    assert all(phase.gpu_high <= after.gpu_total for phase in after.phases)
    # as a preset would say it, the change means the same
    again = assumed(machine, *settings, *(f"{field}={value}" for field, value in finding.change.items()))
    assert memory.estimate(again) == after


def test_the_message_holds_the_sum() -> None:
    finding = found(assumed("1x24", "rollout.gpu_memory_utilization=0.7"), "FIT-1")
    assert "needs at least 27.6 of 23.6 usable GiB: " in finding.message
    assert "actor idle 5.5 + critic idle 5.5 + engine 16.6" in finding.message
    assert finding.keys[0] == "actor_rollout_ref.rollout.gpu_memory_utilization"


def test_a_warning_gives_the_range() -> None:
    finding = found(assumed("1x24", "model.use_remove_padding=false"), "FIT-2")
    assert "may need 11.0 to 79.4 GiB, 81.3 in the first step after a resume, of" in finding.message


def test_where_no_change_is_enough_two_are_offered() -> None:
    padded = assumed("1x16", "model.use_remove_padding=false", "model.lora_rank=16")
    finding = found(padded, "FIT-2")
    assert finding.fix.startswith("no single change is enough: set ") and " and " in finding.fix
    assert finding.change and len(finding.change) > 1
    assert not list(fitting.checks(padded.with_fields(finding.change)))


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


@pytest.mark.parametrize(
    ("preset", "ends"), [("gsm8k-0.5b-24gb", "20.5 to 23.5 GiB, 25.1"), ("gsm8k-grpo-24gb", "22.1 to 25.1 GiB, 26.7")]
)
def test_what_a_resume_adds_is_said(preset: str, ends: str) -> None:
    said = f"phase 'rollout' may need {ends} in the first step after a resume, of 23.6 usable GiB: "
    assert found(assumed("1x24", preset=preset), "FIT-2").message.startswith(said)


def test_what_a_new_run_lacks_is_told_before_what_a_resumed_one_does() -> None:
    what = assumed("1x24", "actor.ppo_max_token_len_per_gpu=18500")
    estimated = memory.estimate(what)
    assert estimated is not None and estimated.worst is not None and estimated.worst.name == "rollout"
    assert "phase 'update actor' may need 12.9 to 2" in found(what, "FIT-2").message


def test_what_no_change_can_save_is_said_so() -> None:
    finding = found(assumed("1x8", "model.path=Qwen/Qwen2.5-7B-Instruct"), "FIT-1")
    assert finding.change is None and finding.fix.startswith("no single change")


def test_an_engine_without_room_for_one_row() -> None:
    finding = found(assumed("1x24", "rollout.gpu_memory_utilization=0.05"), "FIT-4")
    assert finding.level == "error"
    assert "rollout.gpu_memory_utilization=0.1" in finding.fix
    long = assumed("1x140", "model.path=Qwen/Qwen2.5-7B-Instruct", "rollout.gpu_memory_utilization=0.12")
    shorter = found(long, "FIT-4")
    assert shorter.change == {"rollout.max_model_len": 768}
    assert not [each for each in fitting.checks(long.with_fields(shorter.change)) if each.id == "FIT-4"]


def test_a_kv_cache_in_bytes_too_small_for_one_row() -> None:
    key = "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes"
    row = 2 * 2 * 24 * 128  # Qwen2.5-0.5B: keys and values of 24 layers in bf16
    finding = found(assumed("1x24", f"{key}={row * 32_767}"), "FIT-4")  # its context is 32,768
    assert finding.level == "error" and finding.keys[0] == key
    assert finding.change == {"rollout.max_model_len": 768}
    assert f"at least {row * 768}" in found(assumed("1x24", f"{key}={row * 767}"), "FIT-4").fix
    assert not [each for each in fitting.checks(assumed("1x24", f"{key}={row * 32_768}")) if each.id == "FIT-4"]


def test_the_share_has_to_be_free_even_with_a_small_kv_cache() -> None:
    what = assumed("1x24", "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=1000000000")
    busy = Gpu("RTX 4090", 24 * GIB, 13 * GIB)  # 5.5 for the models and 1.9 would fit; 7.2 are asked for
    assert found(on(what, busy), "FIT-3").level == "error"


def test_what_the_driver_keeps_is_nobodys() -> None:
    what = assumed("1x24", "rollout.gpu_memory_utilization=0.4")
    whole, less = (memory.estimate(on(what, Gpu("H200", 24 * GIB, 0, reserved=kept))) for kept in (0, GIB))
    assert whole is not None and less is not None
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
