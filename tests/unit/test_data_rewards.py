"""Reward functions that come with ppo-tui, loaded as veRL does: by path, in a process without ours."""

import importlib.util
import json
import subprocess
import sys

import pytest
from tables import tabled

from launcher.inside import BY_PATH
from launcher.preset.files import load

FILE = BY_PATH / "gsm8k_format.py"


@pytest.fixture(scope="module")
def score():
    spec = importlib.util.spec_from_file_location("reward", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda response, truth="72": module.compute_score(
        data_source="openai/gsm8k", solution_str=response, ground_truth=truth, extra_info={"index": 1}
    )


@tabled
def test_three_quarters_for_being_right_and_one_for_the_form(score, response, accuracy, form):
    found = score(response)
    assert found["acc"] == accuracy
    assert found["form"] == pytest.approx(form)
    assert found["score"] == pytest.approx(0.75 * accuracy + 0.25 * form)


def test_numbers_are_compared_as_numbers(score):
    assert score("#### 1,250", "1250")["acc"] == 1
    assert score("#### -3.50", "-3.5")["acc"] == 1
    assert score("no number", "not one either")["acc"] == 0


def test_every_response_has_the_same_keys(score):
    assert {frozenset(score(text)) for text in ("", "#### 72", "a\nb", "\x00\n####")} == {
        frozenset({"score", "acc", "form"})
    }


def test_it_needs_nothing_but_the_standard_library():
    code = (
        "import importlib.util as u, json, sys\n"
        "s = u.spec_from_file_location('r', sys.argv[1])\n"
        "m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        "print(json.dumps(m.compute_score('x', 'a\\n#### 1', '1')))"
    )
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code, str(FILE)], capture_output=True, check=True)
    assert json.loads(done.stdout)["score"] == 1.0


def test_the_preset_names_it():
    assert load("gsm8k-format-reward").preset.reward.path == str(FILE)
