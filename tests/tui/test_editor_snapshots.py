"""How the editor looks. The checks' answer is a recorded one: it tells of the machine that gave it."""

import json
from pathlib import Path

import pytest
from editing import editor

from tui.pages.editor.draft_checks import DraftChecks

REPLY = json.loads((Path(__file__).parents[1] / "data" / "editor_reply.json").read_text())


MINE = """\
# mine
extends: gsm8k-0.5b-24gb
actor:
  lr: 2e-6                  # a little bolder
rollout:
  gpu_memory_utilization: 0.9
"""


class RecordedChecks(DraftChecks):
    """Replies what was recorded."""

    def __init__(self, on_reply):
        super().__init__(on_reply)
        self.reply = on_reply

    def ask(self, path, text):
        self.reply(REPLY)


BROKEN = "actor:\n  lr: 1e-6\n  loss_mode: [vanilla\nkl:\n  coef: 1\n"


LOOKS = {
    "form-80x24": (MINE, ["right"]),
    "form-160x48": (MINE, ["right"]),
    "typing": (MINE, ["enter", *"1e9"]),
    "choosing": (MINE, ["down", "enter"]),
    "searching": (MINE, ["slash", *"kl coef"]),
    "broken": (BROKEN, []),
    **{page: (MINE, ["tab"] * (at + 1)) for at, page in enumerate(("plan", "findings", "changes", "command"))},
}


@pytest.mark.parametrize("look", LOOKS)
def test_looks(shot, home, monkeypatch, look):
    text, keys = LOOKS[look]
    monkeypatch.setattr("tui.pages.editor.side.DraftChecks", RecordedChecks)
    (home / "presets").mkdir()
    (home / "presets" / "mine.yaml").write_text(text)
    app = editor(field="actor.lr")
    size = (160, 48) if look.endswith("160x48") else (80, 24)
    assert shot(app, lambda: app.screen.query_one("EditorSide").checked, *keys, 0.2, size=size, first=0.1)
