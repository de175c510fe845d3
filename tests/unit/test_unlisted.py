"""The map from veRL's code to the settings that run it. Consoles that use it: tests/data/consoles.toml."""

import importlib.util
from pathlib import Path

import code_settings as tool
import pytest

from launcher.console.diagnosis import Place
from launcher.verl.code_settings import Condition, conditions, default_of, requirements


@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]")
def test_the_map_is_that_of_the_installed_verl() -> None:
    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    paths = [
        *(root / "models/mcore").glob("*.py"),
        *(root / "trainer/ppo").glob("*.py"),
        *(root / "workers/reward_manager").glob("*.py"),
        *(root / "workers/engine").rglob("*.py"),
    ]
    read = tool.table({f"verl/{path.relative_to(root)}": path.read_text() for path in paths})
    fused = "verl/models/mcore/model_forward_fused.py:_fused_GPTModel_forward"
    assert "actor_rollout_ref.model.use_fused_kernels" in read["places"][fused]
    registered = [place for place in read["places"] if "core_algos.py:compute" in place or "/reward_manager/" in place]
    assert len(registered) > 20
    for place in registered:
        stored = {condition.key for condition in conditions(place)}
        assert {gate.partition("=")[0] for gate in read["places"][place]} <= stored, place


def test_the_conditions_of_the_map_hold_and_end() -> None:
    flag, chosen, many = map(Condition.read, ("a.b", "a.b=x|y", "a.b>1"))
    assert flag.holds("True") and not flag.holds("null") and Condition.read("a.b=").holds("False")
    assert chosen.holds("y") and not chosen.holds("z") and many.holds("2") and not many.holds("1")
    assert default_of("reward.reward_manager.name") == "naive"
    assert requirements()["0.6.0"]["vllm"] == "<=0.9.1,>=0.7.3"
    assert Place().rows == ()
