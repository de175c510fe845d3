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
