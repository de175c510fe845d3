from pathlib import Path

import pytest

from launcher.errors import UserError
from launcher.preset.edit import editor, field_named, place
from launcher.preset.files import load, shipped


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    return tmp_path


def line(path: Path, number: int) -> str:
    return path.read_text().splitlines()[number - 1].strip()


def test_a_shipped_preset_is_edited_as_one_of_yours_that_lies_over_it(home: Path) -> None:
    before = shipped()["gsm8k-0.5b-24gb"].read_bytes()
    path, number = place("gsm8k-0.5b-24gb", "actor_rollout_ref.actor.optim.lr")
    assert path == home / "presets" / "gsm8k-0.5b-24gb.yaml" and line(path, number).startswith("lr: ")
    assert shipped()["gsm8k-0.5b-24gb"].read_bytes() == before
    loaded = load("gsm8k-0.5b-24gb")
    assert loaded.origin == "user" and loaded.preset.actor.lr == 1e-6


def test_a_field_that_is_not_there_yet_is_written_beside_the_users_own_words(home: Path) -> None:
    path, _ = place("toy-cpu")
    path.write_text("extends: toy-cpu\nactor:\n  lr: 2e-4  # mine\n")
    again, number = place("toy-cpu", "actor.entropy_coeff")
    assert again == path and "lr: 2e-4  # mine" in path.read_text()
    assert line(path, number).startswith("entropy_coeff:")
    assert load("toy-cpu").preset.actor.lr == 2e-4


def test_a_broken_preset_of_yours_is_opened_as_it_is(home: Path) -> None:
    path, _ = place("toy-cpu")
    path.write_text("actor: [")
    assert place("toy-cpu", "actor.lr") == (path, 1) and path.read_text() == "actor: ["


def test_unknown_names_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"did you mean 'actor\.lr'"):
        field_named("actor.lrr")
    with pytest.raises(UserError, match="toy-cpu"):
        place("toy-cpuu")
    monkeypatch.setenv("EDITOR", "code --wait")
    monkeypatch.delenv("VISUAL", raising=False)
    assert editor() == ["code", "--wait"]
