"""Reward functions, tried in a process of their own."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tables import tabled
from waiting import PATIENCE

from launcher.check import reward
from launcher.check.finding import Finding
from launcher.check.reward import Trial


@pytest.fixture
def trial(tmp_path: Path) -> Callable[..., Trial]:
    """Writes a function and tries it."""

    def run(text: str, name: str = "compute_score", timeout: float = PATIENCE) -> Trial:
        file = tmp_path / "score.py"
        file.write_text(text)
        return reward.try_out(sys.executable, str(file), name, reward.MADE_UP, timeout=timeout)

    return run


def only(trial: Trial) -> Finding:
    (finding,) = trial.findings
    return finding


GOOD = "def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):\n"


def test_a_good_function(trial: Callable[..., Trial]) -> None:
    found = trial(GOOD + "    print('noise')\n    return float(f'#### {ground_truth}' in solution_str)\n")
    assert found.ok and found.findings == ()
    assert found.scores == (1.0, 0.0, 0.0) * 3
    assert found.kinds == ("right", "wrong", "empty") * 3
    assert found.seconds > 0


@pytest.mark.slow
@tabled
def test_what_veRL_accepts(trial: Callable[..., Trial], text: str, scores: tuple[float, ...] | None) -> None:
    found = trial(text)
    assert found.ok == (scores is not None)
    if scores is not None:
        assert [*found.scores] == scores


def test_the_fields_of_a_dict_are_named(trial: Callable[..., Trial]) -> None:
    found = trial(GOOD + "    return {'score': len(solution_str) > 0, 'acc': 1, 'pred': 'x'}\n")
    assert found.extra == ("acc", "pred") and not found.is_async


@pytest.mark.slow
@tabled
def test_what_veRL_would_die_of(trial: Callable[..., Trial], text: str, words: str) -> None:
    found = trial(text)
    assert not found.ok
    assert (only(found).id, only(found).level) == ("P30", "error")
    assert words in only(found).message


def test_an_error_deep_in_the_file_names_the_files_own_line(trial: Callable[..., Trial]) -> None:
    found = trial("import json\n" + GOOD + "    return json.loads(solution_str)\n")
    assert "score.py, line 3: JSONDecodeError" in only(found).message


@pytest.mark.slow
def test_a_wrong_signature_is_explained(trial: Callable[..., Trial]) -> None:
    found = trial("def compute_score(solution, truth):\n    return 1\n")
    assert only(found).fix.startswith("define it as compute_score(data_source, solution_str")


def test_a_function_of_another_name(trial: Callable[..., Trial]) -> None:
    found = trial("import math\ndef score_it(**_):\n    return 1\n")
    assert "has no function 'compute_score'" in only(found).message
    assert only(found).change == {"reward.function": "score_it"}


@pytest.mark.slow
def test_a_function_that_never_returns_is_killed(trial: Callable[..., Trial], tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    text = GOOD + (
        "    import subprocess, time\n"
        f"    subprocess.Popen(['sh', '-c', 'sleep 3; touch {mark}'])\n    time.sleep(60)\n"
    )
    found = trial(text, timeout=1.0)
    assert "no reply within 1 s" in only(found).message
    import time

    time.sleep(3.0)
    assert not mark.exists()  # its children went with it


def test_scores_that_are_all_the_same(trial: Callable[..., Trial]) -> None:
    found = trial(GOOD + "    return 0\n")
    assert found.ok and (only(found).id, only(found).level) == ("REWARD-3", "warning")


def test_scores_out_of_scale(trial: Callable[..., Trial]) -> None:
    found = trial(GOOD + "    return 10000 * len(solution_str)\n")
    assert only(found).id == "REWARD-5"


def test_a_missing_file() -> None:
    found = reward.try_out(sys.executable, "/nowhere/score.py", "compute_score", reward.MADE_UP)
    assert "file not found: /nowhere/score.py" in only(found).message


def test_the_command(ppo_tui: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD + "    return float(f'#### {ground_truth}' in solution_str)\n")
    (tmp_path / "bad.py").write_text(GOOD + "    return 1 / 0\n")
    good = ppo_tui("check", "--reward", "good.py")
    assert good.returncode == 0, good.stderr  # type: ignore[attr-defined]
    assert "24 responses, 0 to 1" in good.stdout  # type: ignore[attr-defined]
    bad = ppo_tui("check", "--reward", "bad.py", "--json")
    assert bad.returncode == 1  # type: ignore[attr-defined]
    told = json.loads(bad.stdout)  # type: ignore[attr-defined]
    assert told["ok"] is False and told["findings"][0]["id"] == "P30"
    wrong = ppo_tui("check", "--reward", "good.py", "--data", "nowhere.parquet")
    assert wrong.returncode == 2 and "file not found" in wrong.stderr  # type: ignore[attr-defined]


def test_the_command_takes_rows_from_data(ppo_tui: Callable[..., object], tmp_path: Path) -> None:
    line = {
        "data_source": "my/sums",
        "prompt": [{"role": "user", "content": "2 + 3?"}],
        "reward_model": {"ground_truth": "5"},
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "f.py").write_text(GOOD + "    return data_source == 'my/sums' and ground_truth in solution_str\n")
    done = ppo_tui("check", "--reward", "f.py", "--data", "rows.jsonl", "--json")
    told = json.loads(done.stdout)  # type: ignore[attr-defined]
    assert (told["scores"], told["answers"]) == ([1.0, 1.0, 0.0], ["right", "wrong", "empty"])
    assert told["degenerate"] == {
        **{"format alone": 0.0, "digits": 1.0, "prompt copied": 0.0},
        **{"answer repeated": 1.0, "very long": 1.0},
    }


def test_a_reward_for_the_form_alone_is_named(ppo_tui: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        GOOD + "    return 0.5 * ('####' in solution_str) + 0.5 * solution_str.endswith(f'#### {ground_truth}')\n"
    )
    done = ppo_tui("check", "--reward", "f.py")
    assert done.returncode == 0  # type: ignore[attr-defined]
    assert done.stderr.splitlines()[0] == (  # type: ignore[attr-defined]
        "warning: compute_score of f.py gives 0.500 for a response without an answer (format alone), 1 for a right one"
    )
    assert "format alone     0.500  50 %" in done.stdout  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_plain_function_is_called_in_a_thread_as_veRL_does(trial: Callable[..., Trial]) -> None:
    """math_verify's time limit, for one, works in the main thread only."""
    finding = only(trial("import signal\n" + GOOD + "    signal.alarm(1)\n    signal.signal(14, print)\n"))
    assert "signal only works in main thread" in finding.message and "remove signal.alarm" in finding.fix


@pytest.mark.slow
def test_an_async_function_keeps_its_event_loop(trial: Callable[..., Trial]) -> None:
    """A client that is made once belongs to the loop of the first call."""
    keeps = (
        "import asyncio\nloops = set()\nasync " + GOOD + "    loops.add(asyncio.get_running_loop())\n"
        "    return float(len(loops) == 1 and f'#### {ground_truth}' in solution_str)\n"
    )
    found = trial(keeps)
    assert found.ok and found.is_async and found.scores == (1.0, 0.0, 0.0) * 3


def test_a_plain_function_that_returns_a_coroutine_gives_no_score(trial: Callable[..., Trial]) -> None:
    text = "async def later():\n    return 1.0\n" + GOOD + "    return later()\n"
    assert "returns coroutine instead of a number" in only(trial(text)).message


@pytest.mark.slow
def test_a_slow_function_is_judged_by_its_first_calls(trial, monkeypatch):
    """Seconds for a score are usual where another model judges; they are no reason to refuse the run."""
    monkeypatch.setattr(reward, "ENOUGH", 1.0)
    found = trial("import time\n" + GOOD + "    time.sleep(2)\n    return 1.0\n")
    assert found.ok and found.findings == () and 0 < len(found.scores) < 3
    assert len(found.scores) == len(found.calls) == len(found.kinds) and found.seconds >= 2


def test_a_function_may_leave_something_running(trial: Callable[..., Trial]) -> None:
    text = "import subprocess\n" + GOOD + "    subprocess.Popen(['sleep', '1200'])\n    return len(solution_str)\n"
    assert trial(text).ok


def test_what_veRL_cannot_average_is_told(trial: Callable[..., Trial]) -> None:
    assert trial(GOOD + "    return {'score': 1.0, 'acc': True, 'pred': 'x', 'none': None, 'two': [1, 2]}\n").odd == ()
    assert trial(GOOD + "    return {'score': 1.0, 'parts': {'a': 1}}\n").odd == ("'parts' as a dict",)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    found = reward.try_out(sys.executable, str(tmp_path), "compute_score", reward.MADE_UP)
    assert "is a folder" in only(found).message
