"""A checkpoint brings the state of the optimizer, the configuration its settings."""

from types import ModuleType
from typing import Any

import pytest
from verl_process import WITH_VERL

pytestmark = [*WITH_VERL, pytest.mark.slow]


class Manager:
    """Loads as veRL's does: the optimizer's state dict, then the scheduler's."""

    def __init__(self, rate: float, decay: float, warmup: int = 4) -> None:
        import torch

        self.weight = torch.nn.Parameter(torch.ones(3))
        self.optimizer = torch.optim.AdamW([self.weight], lr=rate, weight_decay=decay)
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda n: min(n / warmup, 1.0))

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.weight.grad = self.weight.new_ones(3)
            self.optimizer.step()
            self.lr_scheduler.step()

    def load_checkpoint(self, saved: Any) -> None:
        optimizer, scheduler = saved
        self.optimizer.load_state_dict(optimizer)
        self.lr_scheduler.load_state_dict(scheduler)


@pytest.fixture
def manager(plugin: Any) -> type[Manager]:
    module = ModuleType("fsdp_checkpoint_manager")
    module.FSDPCheckpointManager = type("Patched", (Manager,), {})  # type: ignore[attr-defined]
    plugin.checkpoints.keep_settings(module)
    return module.FSDPCheckpointManager  # type: ignore[no-any-return, attr-defined]


@pytest.mark.parametrize("steps", [2, 6])
def test_another_rate_holds_after_loading_and_the_state_is_the_checkpoints(manager: type[Manager], steps: int) -> None:
    before = manager(1e-3, 0.1)
    before.train(steps)
    saved = before.optimizer.state_dict(), before.lr_scheduler.state_dict()
    after = manager(1e-5, 0.2)
    after.load_checkpoint(saved)
    share = min(steps / 4, 1.0)
    (group,) = after.optimizer.param_groups
    assert group["lr"] == pytest.approx(1e-5 * share) and group["weight_decay"] == 0.2
    assert after.lr_scheduler.get_last_lr() == [group["lr"]] and after.lr_scheduler.last_epoch == steps
    (state,) = after.optimizer.state.values()
    assert state["exp_avg"].equal(next(iter(before.optimizer.state.values()))["exp_avg"])
    plain = Manager(1e-5, 0.2)
    plain.load_checkpoint(saved)
    assert plain.optimizer.param_groups[0]["lr"] == pytest.approx(1e-3 * share), "what is mended"
    after.train(4)
    assert after.lr_scheduler.get_last_lr() == [pytest.approx(1e-5)]


def test_unchanged_settings_change_nothing(manager: type[Manager]) -> None:
    before, plain, patched = Manager(1e-3, 0.1), Manager(1e-3, 0.1), manager(1e-3, 0.1)
    before.train(2)
    saved = before.optimizer.state_dict(), before.lr_scheduler.state_dict()
    for each in (plain, patched):
        each.load_checkpoint(saved)
    keys = [key for key in plain.optimizer.param_groups[0] if key != "params"]
    assert {key: plain.optimizer.param_groups[0][key] for key in keys} == {
        key: patched.optimizer.param_groups[0][key] for key in keys
    }
    assert plain.lr_scheduler.state_dict() == patched.lr_scheduler.state_dict()
