"""docs/cure.md and the results behind it (`make cure`)."""

import pytest
from cure_faults import FAULTS, HEALTHY, read
from cure_page import PAGE, text

from launcher.preset.files import load


@pytest.mark.nightly("docs/cure.md", "experiments/cure", "tests/data/cure.json", "launcher/health/")
def test_the_page_says_what_was_run() -> None:
    assert PAGE.read_text("utf-8") == text(), "make pages"
    assert read().keys() <= {HEALTHY, *(fault.name for fault in FAULTS)}, "make cure ARGS=NAME"


def test_what_undoes_a_fault_is_among_its_settings() -> None:
    for fault in FAULTS:
        for settings in fault.strengths:
            load("toy-cpu", settings)
            keys = {each.partition("=")[0] for each in settings}
            assert keys & set(fault.undo), fault.name
