"""Tests marked `nightly` run where one of their inputs changed, and in doubt."""

import subprocess
from pathlib import Path

import nightly
import pytest


@pytest.mark.parametrize(
    ("changed", "is_due"),
    [
        ({"launcher/check/model.py"}, True),
        ({"launcher/preset/files.py", "docs/x.md"}, False),
        ({"tests/unit/test_x.py"}, True),
        ({"launcher/verl/requirements-cpu.txt"}, True),
        ({"tests/support/corpus.py"}, False),
        (set(), False),
        (None, True),
    ],
)
def test_a_change_of_an_input_makes_it_due(changed: set[str] | None, is_due: bool) -> None:
    assert nightly.due(("launcher/check/", "tests/unit/test_x.py"), changed) == is_due


def test_what_changed_is_asked_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@x")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(name: str) -> None:
        (tmp_path / name).write_text(name)
        git("add", ".")
        git("commit", "-m", name)

    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    changed = nightly.changed.__wrapped__
    git("init", "-b", "main")
    commit("first")
    assert changed() is None, "nothing to compare with"
    commit("second")
    commit("third")
    (tmp_path / "new").touch()
    assert changed() == {"third", "new"}
    git("update-ref", "refs/remotes/origin/main", "HEAD~2")
    (tmp_path / "first").write_text("edited")
    assert changed() == {"first", "second", "third", "new"}
