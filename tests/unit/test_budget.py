"""`make lint` fails if a number exceeds its budget, a commit raises one without a reason, or has a wrong subject."""

import subprocess
from pathlib import Path

import pytest
import subjects
from budget import MEASURES, limits_at, main

LIMITS = dict.fromkeys(MEASURES, 10)
LONG = "def f() -> None:\n" + "    pass\n" * 40


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "launcher/check").mkdir(parents=True)
    (tmp_path / "launcher/check/rule.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "Begin", LIMITS)
    commit(tmp_path, "Go on", LIMITS)
    return tmp_path


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def commit(root: Path, message: str, limits: dict[str, int]) -> None:
    rows = "\n".join(f"{name} = {limit}" for name, limit in limits.items())
    (root / "pyproject.toml").write_text(f"[tool.ppo-tui.budget]\n{rows}\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


def test_within_the_budget_nothing_is_printed_but_the_numbers(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(root) == 0
    assert "product_lines 1 of 10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("x = 1\n" * 11, "product_lines", 11),
        ('"""A rule."""\n# Why\n' + "x\n" * 11, "product_tokens", 11),
        (LONG * 11, "long_functions", 11),
        ("x: dict[str, Any]\n" * 11, "loose_dicts", 11),
    ],
)
def test_a_number_beyond_its_budget_fails_with_the_rooms(
    root: Path, capsys: pytest.CaptureFixture[str], text: str, name: str, count: int
) -> None:
    (root / "launcher/check/rule.py").write_text(text)
    assert main(root) == 1
    out = capsys.readouterr().out
    assert f"error: {name} is {count}, and pyproject.toml allows 10" in out
    assert ["launcher/check", f"{len(text.splitlines()):,}"] in [line.split()[:2] for line in out.splitlines()]


@pytest.mark.parametrize(("message", "code"), [("Add a rule", 1), ("Add a rule\n\nBudget: a new estimator", 0)])
def test_a_commit_that_raises_a_number_has_a_reason(
    root: Path, capsys: pytest.CaptureFixture[str], message: str, code: int
) -> None:
    commit(root, message, LIMITS | {"product_lines": 20})
    assert main(root) == code
    assert "launcher/check" in capsys.readouterr().out


def test_every_number_of_this_repository_has_a_limit() -> None:
    assert set(limits_at(Path(__file__).parents[2], None)) == set(MEASURES)


@pytest.mark.parametrize(
    ("subject", "count"),
    [
        ("Cache slow tests by their inputs", 0),
        ("Names of two columns fit in 80 cells", 0),
        ("Write the queue's state atomically", 0),
        ("Name the owner of an entry", 1),
        ("write down what the queue does", 1),
        ("Fix today's clock", 1),
        ("Expect today's words " + "of a page " * 6, 3),
    ],
)
def test_a_subject_is_the_effect(subject: str, count: int) -> None:
    assert len(subjects.faults(subject)) == count


def test_subjects_since_the_branch_point_are_checked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(root, "Say more", LIMITS)
    assert subjects.main(root) == 1
    assert "Say more: the verb 'Say'" in capsys.readouterr().out
    commit(root, "Skip a poll of an ended run", LIMITS)
    assert subjects.main(root) == 0
