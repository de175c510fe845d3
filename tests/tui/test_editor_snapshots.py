"""How the editor looks. The checks' answer is a recorded one: it tells of the machine that gave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pilots import until
from textual.pilot import Pilot

from launcher.check.finding import setting
from launcher.cli.screen import ScreenRequest
from launcher.record.fix import Fix
from tui.app import PpoTui
from tui.pages.editor.draft_checks import DraftChecks
from tui.pages.editor.side import EditorSide

GIB = 1 << 30
SIZES = [(80, 24), (160, 48)]
Compare = Callable[..., bool]

MINE = """\
# mine
extends: gsm8k-0.5b-24gb
actor:
  lr: 2e-6                  # a little bolder
rollout:
  gpu_memory_utilization: 0.9
"""
PHASES = [
    ("engine start", 13.3, 14.6),
    ("rollout", 20.6, 21.9),
    ("log-probabilities", 11.0, 19.0),
    ("update critic", 12.9, 25.3),
    ("update actor", 25.0, 30.8),
    ("checkpoint", 11.0, 14.3),
]
REPLY: dict[str, Any] = {
    "command": "env -u RAY_ADDRESS \\\n  python -u -m verl.trainer.main_ppo \\\n  trainer.nnodes=1",
    "error": None,
    "rows": 7473,
    "machine": "1 x 24.0 GiB, assumed from what it needs",
    "findings": [
        {
            "id": "MEM-2",
            "group": "hardware",
            "level": "error",
            "keys": ["actor_rollout_ref.rollout.gpu_memory_utilization"],
            "message": "the actor's update needs at least 25.0 GiB of a GPU that has 24.0 GiB",
            "fixes": [setting({"rollout.gpu_memory_utilization": 0.4}).to_json()],
        },
        {
            "id": "DATA-9",
            "group": "data",
            "level": "info",
            "keys": ["data.train_files"],
            "message": "49 rows are left over in each epoch",
            "fixes": [Fix("nothing is to be done").to_json()],
        },
    ],
    "memory": {
        "gpu_total": 24 * GIB,
        "host": int(1.8 * GIB),
        "host_high": int(39.3 * GIB),
        "phases": [{"name": name, "gpu": int(low * GIB), "gpu_high": int(high * GIB)} for name, low, high in PHASES],
    },
}


class RecordedChecks(DraftChecks):
    """Replies what was recorded."""

    def __init__(self, on_reply: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(on_reply)
        self.reply = on_reply

    def ask(self, path: Path, text: str) -> None:
        self.reply(REPLY)


@pytest.fixture
def shot(
    snap_compare: Compare, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[tuple[int, int], Sequence[str], str], bool]:
    monkeypatch.setattr("tui.pages.editor.side.DraftChecks", RecordedChecks)
    path = home / "presets" / "mine.yaml"
    path.parent.mkdir()

    def compare(size: tuple[int, int], keys: Sequence[str], text: str = MINE) -> bool:
        path.write_text(text)

        async def ready(pilot: Pilot[Any]) -> None:
            await pilot.pause()
            side = pilot.app.screen.query_one(EditorSide)
            await until(pilot, lambda: side.checked)
            await pilot.press(*keys)
            await pilot.pause(0.2)

        app = PpoTui(ScreenRequest(preset="mine", field="actor.lr"))
        return snap_compare(app, terminal_size=size, run_before=ready)

    return compare


@pytest.mark.parametrize("size", SIZES)
def test_form(shot: Callable[..., bool], size: tuple[int, int]) -> None:
    assert shot(size, ["right"])


def test_typing(shot: Callable[..., bool]) -> None:
    assert shot((80, 24), ["enter", *"1e9"])


def test_choosing(shot: Callable[..., bool]) -> None:
    assert shot((80, 24), ["down", "enter"])


@pytest.mark.parametrize("pages", [1, 2, 3, 4], ids=["plan", "findings", "changes", "command"])
def test_pages(shot: Callable[..., bool], pages: int) -> None:
    assert shot((80, 24), ["tab"] * pages)


def test_searching(shot: Callable[..., bool]) -> None:
    assert shot((80, 24), ["slash", *"kl coef"])


def test_broken(shot: Callable[..., bool]) -> None:
    assert shot((80, 24), [], "actor:\n  lr: 1e-6\n  loss_mode: [vanilla\nkl:\n  coef: 1\n")
