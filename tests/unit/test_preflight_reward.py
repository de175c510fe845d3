"""Reward functions, tried in a process of their own."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus import assert_only
from tables import tabled
from waiting import PATIENCE

from launcher.check import reward
from launcher.check.reward import Trial


@pytest.fixture
def trial(tmp_path: Path) -> Callable[..., Trial]:
    """Writes a function and tries it."""

    def run(text: str, timeout: float = PATIENCE) -> Trial:
        file = tmp_path / "score.py"
        file.write_text(text)
        return reward.try_out(sys.executable, str(file), "compute_score", reward.MADE_UP, timeout=timeout)

    return run


GOOD = "def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):\n"


@pytest.mark.slow
@tabled
def test_a_function(text, scores, expected, trial):
    found = trial(text.replace("GOOD", GOOD))
    assert_only(found.findings, expected)
    assert found.ok == (scores is not None) and found.is_async == ("async GOOD" in text)
    if scores is not None:
        assert found.scores == (*scores,) * 3 and found.kinds == ("right", "wrong", "empty") * 3 and found.seconds > 0


def test_the_fields_of_a_dict_are_named(trial: Callable[..., Trial]) -> None:
    """And those that veRL cannot average."""
    found = trial(GOOD + "    return {'score': len(solution_str) > 0, 'acc': True, 'pred': 'x', 'two': [1]}\n")
    assert (found.extra, found.odd) == (("acc", "pred", "two"), ())
    assert trial(GOOD + "    return {'score': 1.0, 'parts': {'a': 1}}\n").odd == ("'parts' as a dict",)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    for path, words in (("/nowhere/score.py", "file not found: /nowhere/score.py"), (str(tmp_path), "is a folder")):
        assert_only(
            reward.try_out(sys.executable, path, "compute_score", reward.MADE_UP).findings, ["P30", "error", words]
        )


@pytest.mark.slow
def test_a_function_that_never_returns_is_killed(trial: Callable[..., Trial], tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    text = GOOD + (
        "    import subprocess, time\n"
        f"    subprocess.Popen(['sh', '-c', 'sleep 3; touch {mark}'])\n    time.sleep(60)\n"
    )
    found = trial(text, timeout=1.0)
    assert "no reply within 1 s" in found.findings[0].message
    import time

    time.sleep(3.0)
    assert not mark.exists()  # its children went with it


@pytest.mark.slow
def test_a_slow_function_is_judged_by_its_first_calls(trial, monkeypatch):
    """Seconds for a score are usual where another model judges; they are no reason to refuse the run."""
    monkeypatch.setattr(reward, "ENOUGH", 1.0)
    found = trial("import time\n" + GOOD + "    time.sleep(2)\n    return 1.0\n")
    assert found.ok and found.findings == () and 0 < len(found.scores) < 3
    assert len(found.scores) == len(found.calls) == len(found.kinds) and found.seconds >= 2


def test_the_command(in_process, tmp_path):
    (tmp_path / "good.py").write_text(GOOD + "    return float(f'#### {ground_truth}' in solution_str)\n")
    (tmp_path / "bad.py").write_text(GOOD + "    return 1 / 0\n")
    good = in_process("check", "--reward", "good.py")
    assert good.returncode == 0, good.stderr
    assert "24 responses, 0 to 1" in good.stdout
    bad = in_process("check", "--reward", "bad.py", "--json")
    assert bad.returncode == 1
    told = json.loads(bad.stdout)
    assert told["ok"] is False and told["findings"][0]["id"] == "P30"
    wrong = in_process("check", "--reward", "good.py", "--data", "nowhere.parquet")
    assert wrong.returncode == 2 and "file not found" in wrong.stderr


def test_the_command_takes_rows_from_data(in_process, tmp_path):
    line = {
        "data_source": "my/sums",
        "prompt": [{"role": "user", "content": "2 + 3?"}],
        "reward_model": {"ground_truth": "5"},
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "f.py").write_text(GOOD + "    return data_source == 'my/sums' and ground_truth in solution_str\n")
    done = in_process("check", "--reward", "f.py", "--data", "rows.jsonl", "--json")
    told = json.loads(done.stdout)
    assert (told["scores"], told["answers"]) == ([1.0, 1.0, 0.0], ["right", "wrong", "empty"])
    assert told["degenerate"] == {
        **{"format alone": 0.0, "digits": 1.0, "prompt copied": 0.0},
        **{"answer repeated": 1.0, "very long": 1.0},
    }


def test_a_reward_for_the_form_alone_is_named(in_process, tmp_path):
    (tmp_path / "f.py").write_text(
        GOOD + "    return 0.5 * ('####' in solution_str) + 0.5 * solution_str.endswith(f'#### {ground_truth}')\n"
    )
    done = in_process("check", "--reward", "f.py")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == (
        "warning: compute_score of f.py gives 0.500 for a response without an answer (format alone), 1 for a right one"
    )
    assert "format alone     0.500  50 %" in done.stdout
