"""What is pinned outlives the screen; a broken file pins nothing and is replaced."""

from pathlib import Path

import pytest
from tables import tabled

from launcher.core.paths import layout_file
from launcher.metrics.names import MOST_PINS, pinned, toggle


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "new"))


def test_pins_are_remembered_in_order_and_taken_off() -> None:
    assert pinned() == []
    assert toggle("b") and toggle("a")
    assert pinned() == ["b", "a"]
    assert not toggle("b")
    assert pinned() == ["a"]


def test_the_oldest_pin_gives_way() -> None:
    for name in "abcde":
        toggle(name)
    assert pinned() == ["b", "c", "d", "e"]
    assert len(pinned()) == MOST_PINS


@tabled
def test_a_broken_file_is_ignored_and_replaced(content: str) -> None:
    layout_file().parent.mkdir(parents=True)
    layout_file().write_text(content)
    assert pinned() == []
    toggle("actor/loss")
    assert pinned() == ["actor/loss"]


def test_more_and_double_entries_than_fit_are_cut() -> None:
    layout_file().parent.mkdir(parents=True)
    layout_file().write_text('{"pins": ["a", "a", "b", "c", "d", "e"]}')
    assert pinned() == ["a", "b", "c", "d"]
