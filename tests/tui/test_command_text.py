"""A command as it is shown: nothing of it is left out."""

import pytest
from textual.geometry import Size

from tui.kit.widgets.lines import CommandText

COMMAND = "env -u RAY_ADDRESS \\\n  python -m verl.trainer.main_ppo \\\n  data.train_files=" + "a-b/" * 30


@pytest.mark.parametrize("columns", [120, 76, 40, 20, 12])
def test_it_is_folded_to_any_width(columns: int) -> None:
    shown = CommandText()
    shown.text = COMMAND
    rows = ["".join(text for text, _ in row) for row in shown.draw(columns, 99)]
    assert shown.get_content_height(Size(), Size(), columns) == len(rows)
    assert max(map(len, rows)) <= columns
    assert "".join("".join(rows).split()) == "".join(COMMAND.split())
