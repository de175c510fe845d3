"""The results behind docs/evidence/advice.md (`make cure`)."""

from cure_faults import FAULTS, HEALTHY, read

from launcher.preset.files import load


def test_the_results_are_of_known_faults() -> None:
    assert read().keys() <= {HEALTHY, *(fault.name for fault in FAULTS)}, "make cure ARGS=NAME"


def test_what_undoes_a_fault_is_among_its_settings() -> None:
    for fault in FAULTS:
        for settings in fault.strengths:
            load("toy-cpu", settings)
            keys = {each.partition("=")[0] for each in settings}
            assert keys & set(fault.undo), fault.name
