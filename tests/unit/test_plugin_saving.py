"""A checkpoint on request, by trainers that save as veRL's do."""

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from verl_process import WITH_VERL

from launcher.record.layout import AttemptDir

pytestmark = [*WITH_VERL, pytest.mark.slow]


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AttemptDir:
    (tmp_path / "1").mkdir()
    found = AttemptDir(tmp_path / "1")
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(found.metrics))
    return found


class Trainer:
    """The loop of `verl/trainer/ppo/v1/trainer_base.py`."""

    def __init__(self, every: int) -> None:
        self.config = SimpleNamespace(trainer=SimpleNamespace(save_freq=every))
        self.saved: list[int] = []
        self.global_steps = 0

    def _stop_profiling(self) -> None: ...

    def _save_checkpoint(self) -> None:
        self.saved.append(self.global_steps)

    def step(self) -> None:
        self.global_steps += 1
        self._stop_profiling()
        if self.config.trainer.save_freq > 0 and self.global_steps % self.config.trainer.save_freq == 0:
            self._save_checkpoint()


def test_the_step_that_was_asked_in_is_saved_once(plugin: Any, attempt: AttemptDir) -> None:
    module = ModuleType("trainer_base")
    module.PPOTrainer = type("PPOTrainer", (Trainer,), {})  # type: ignore[attr-defined]
    plugin.checkpoints.save_after_step(module)
    for every, expected in ((3, [2, 3, 6]), (-1, [2, 6])):
        trainer = module.PPOTrainer(every)
        for step in range(1, 8):
            if step in (2, 6):
                attempt.save_now.touch()
            trainer.step()
        assert trainer.saved == expected


def test_the_old_trainer_saves_as_before_its_machine_goes(plugin: Any, attempt: AttemptDir) -> None:
    module = ModuleType("ray_trainer")
    plugin.checkpoints.save_like_before_expiry(module)
    assert not hasattr(module, "should_save_ckpt_esi"), "veRL 0.4"
    module.should_save_ckpt_esi = lambda max_steps_duration, redundant_time=0: False  # type: ignore[attr-defined]
    plugin.checkpoints.save_like_before_expiry(module)
    assert not module.should_save_ckpt_esi(max_steps_duration=1.0)
    attempt.save_now.touch()
    assert module.should_save_ckpt_esi(max_steps_duration=1.0)
    assert not module.should_save_ckpt_esi(max_steps_duration=1.0), "once"


def test_the_installed_verl_has_what_is_changed() -> None:
    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.submodule_search_locations is not None
    trainers = Path(spec.submodule_search_locations[0]) / "trainer" / "ppo"
    v1, old = ((trainers / name).read_text() for name in ("v1/trainer_base.py", "ray_trainer.py"))
    loop = v1.index("self._stop_profiling()\n")
    assert loop < v1.index("self.config.trainer.save_freq", loop) < v1.index("self._save_checkpoint()", loop)
    assert "def _stop_profiling(self) -> None:" in v1 and "def _save_checkpoint(self):" in v1
    assert "import find_latest_ckpt_path, should_save_ckpt_esi" in old and "or esi_close_to_expiration" in old
