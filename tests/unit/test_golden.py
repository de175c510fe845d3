"""Commands and pages show what they showed: `make golden` prints a wanted difference and stores it."""

import golden
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("part", golden.PARTS)
def test_commands_and_pages_show_what_they_showed(part: str) -> None:
    before, now = golden.stored()[part], golden.PARTS[part]()
    assert before.keys() == now.keys()
    for key, text in now.items():
        assert text == before[key], key
