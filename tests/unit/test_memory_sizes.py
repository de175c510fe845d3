"""Any sizes give an estimate whose parts agree."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.check import fitting
from launcher.check.subject import Subject, subject
from launcher.estimate import memory
from launcher.preset.files import load

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


def assumed(gib: int, words: list[str]) -> Subject:
    """The 0.5B preset on eight GPUs of so many GiB."""
    return subject(load("gsm8k-0.5b-24gb", words), assume=f"8x{gib}")


@pytest.mark.slow
@given(SIZES, st.integers(8, 200))
@settings(max_examples=30)
def test_any_sizes_give_an_estimate_that_hangs_together(sizes: dict[str, Any], gib: int) -> None:
    words = [f"{name}={value}" for name, value in sizes.items()]
    before = memory.estimate(assumed(gib, words))
    for phase in before.phases:
        assert 0 <= phase.gpu <= phase.gpu_needed <= phase.gpu_high
        total = before.gpu_total or 0
        assert (phase.gpu_needed > total) == (phase.gpu_high > total)  # the cache is not a reason that it does not fit
        assert all(part.bytes >= 0 for part in phase.parts)
    moved = [*words, "actor.optimizer_offload=true", "critic.optimizer_offload=true"]
    after = memory.estimate(assumed(gib, moved))
    for old, new in zip(before.phases, after.phases, strict=True):
        assert new.gpu <= old.gpu, new.name
    assert after.host >= before.host
    assert all(finding.message for finding in fitting.checks(assumed(gib, words)))
