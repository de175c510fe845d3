"""Commands and pages show what they showed: `make golden` prints a wanted difference and stores it."""

import golden
import pytest

OF_PAGES = pytest.mark.nightly(
    "tui/", "launcher/metrics/", "launcher/health/", "launcher/runs/watch/", "tests/", every=3
)
PARTS = [pytest.param(part, marks=OF_PAGES if part.startswith("pages of ") else ()) for part in golden.PARTS]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_commands_and_pages_show_what_they_showed(part: str) -> None:
    before, now = golden.stored()[part], golden.PARTS[part]()
    assert before.keys() == now.keys()
    for key, text in now.items():
        assert text == before[key], key
