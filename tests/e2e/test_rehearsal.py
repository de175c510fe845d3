"""A preset for a GPU, rehearsed on the CPU by the real veRL."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE

PPO_TUI = str(Path(sys.executable).parent / "ppo-tui")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.nightly("launcher/runs/act/rehearse.py", "launcher/preset/rehearsal", "launcher/inside/"),
    pytest.mark.xdist_group("toy run"),  # as the other real runs, one after the other
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"),
]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, toy_build: Any) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    (home / "cache").symlink_to(toy_build.cache)
    return {**os.environ, "PPO_TUI_HOME": str(home)}


def test_a_preset_for_a_gpu_runs_small_on_the_cpu_and_leaves_nothing(env: dict[str, str], toy_build: Any):
    toy = toy_build.cache / "toy"
    settings = [f"model.path={toy}/model", f"data.train={toy}/data/train.parquet", f"data.val={toy}/data/test.parquet"]
    words = [PPO_TUI, "check", "gsm8k-grpo-24gb", *settings, "--rehearse", "--json"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["id"] == "REHEARSAL"]
    assert found["level"] == "info", found
    assert re.search("rehearsal: (starting|validating|generating|scoring|computing|updating|saving)", done.stderr)
    assert list(Path(env["PPO_TUI_HOME"]).glob("runs/*")) == []
