"""What somebody means with a value that is refused."""

from typing import Any

import pytest

from launcher.check.suggestion import suggested_value
from launcher.preset.schema import FIELDS


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("actor.lr", "1e-6", 1e-6),
        ("data.train_batch_size", 64.0, 64),
        ("data.train_batch_size", "64", 64),
        ("trainer.validate_first", "False", False),
        ("trainer.validate_first", "no", False),
        ("actor.use_dynamic_bsz", 1, True),
        ("trainer.epochs", 1e3, 1000),
        ("actor.betas", ["0.9,0.95"], [0.9, 0.95]),
        ("actor.betas", "[0.9, 0.95]", [0.9, 0.95]),
        ("rollout.gpu_memory_utilization", 90, 0.9),
        ("rollout.gpu_memory_utilization", "40%", 0.4),
        ("rollout.gpu_memory_utilization", 1.0, 0.5),  # veRL's own
        ("rollout.temperature", 0, 1.0),
        ("advantage.gamma", 1.5, 1),
        ("model.lora_rank", 513, 512),
        ("rollout.n", 0, 1),
        ("actor.lr_scheduler_type", "Cosin", "cosine"),
        ("trainer.loggers", None, []),
        ("model.attention", "quick", None),
        ("actor.lr", "fast", None),
        ("data.train_batch_size", "lots", None),
    ],
)
def test_the_nearest_allowed_value(name: str, value: Any, wanted: Any) -> None:
    found = suggested_value(FIELDS[name], value)
    assert found == wanted and type(found) is type(wanted)
