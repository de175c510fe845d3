"""The corpus before the real veRL: it rejects what the preflight rejects and takes what that takes."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from corpus import Case, cases

from launcher.preset.files import shipped

PROBE = Path(__file__).parents[1] / "support" / "verl_probe.py"
CASES = [case for case in cases() if case.by == "probe"] + [Case(on=name) for name in shipped()]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"
    ),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str | None]]:
    """What veRL says to each case: one process for all, because veRL takes 10 s to be imported."""
    asked = json.dumps([case.overrides() for case in CASES])
    folder = tmp_path_factory.mktemp("probe")
    done = subprocess.run(
        [sys.executable, str(PROBE)], input=asked, capture_output=True, text=True, timeout=900, check=False,
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return {case.name: answer for case, answer in zip(CASES, said, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verl_does_as_the_corpus_says(case: Case, answers: dict[str, dict[str, str | None]]):
    answer = answers[case.name]
    if case.stage is None and "vllm version None" in (answer["error"] or ""):
        pytest.skip("veRL asks vLLM about adapters, and there is none here")
    assert answer["stage"] == case.stage, answer["error"]
    assert case.says in (answer["error"] or "")
