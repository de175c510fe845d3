"""A cause is exact only by a message that one place raises, or by the place itself."""

import re
from pathlib import Path

import page_runs
import pytest
from unique_messages import GIVEN, Sources, digest, narrows, row

from launcher.console.causes import Cause, Level, catalogue

EXACT = [cause for cause in catalogue() if cause.level is Level.ROOT and not cause.several]
RAISED = {row["entry"]: row for row in page_runs.raised()}


@pytest.mark.parametrize("cause", EXACT, ids=[cause.id for cause in EXACT])
def test_no_entry_whose_message_is_raised_at_several_places_is_exact(cause: Cause) -> None:
    """Otherwise it needs `several = true`; after a change of patterns the campaign has to run."""
    found = RAISED.get(cause.id)
    assert found is not None and found["patterns"] == digest(cause), "run campaigns/unique_messages.py"
    assert found["raised"] != "several", found["places"]


@pytest.mark.parametrize("text", GIVEN["generic"])
def test_a_text_that_any_code_raises_never_decides_alone(text: str) -> None:
    alone = [cause.id for cause in EXACT if cause.raised and re.search(cause.raised, text) and not narrows(cause)]
    assert alone == []


SOURCE = b'''
def split(n, kind):
    """size 8 must be even"""
    if "size 8 must be even" in kind:
        raise ValueError(f"size {n} must be " "even, not {}".format(kind))
def old(n):
    assert n, "n of %d is empty" % n
class Plan:
    def check(self, n):
        message = "size {n} must be even"
        assert n > 1
'''


def test_the_places_of_a_message_are_counted(tmp_path: Path) -> None:
    """Not a docstring, a comparison or a copy of the function; of versions the first with the message."""
    other = SOURCE.replace(b"def s", b"def _s").replace(b"check", b"fits").replace(b" is ", b" was ")
    packages = [("a 2", [("a.py", SOURCE)]), ("a 1", [("a.py", other)]), ("c 1", [("c.so", b"\0n of %d was empty\0")])]
    sources = Sources(packages, tmp_path)

    def found(raised: str, where: str = "") -> tuple[str, ...]:
        return row(Cause("id", "", "", (), raised=raised, where=where), sources)[2:]

    assert found(r"n of \d+ is empty") == ("one", "1", "a 2 a.py:old")
    assert found(r"n of \d+ was empty") == ("several", "2", "a 1 a.py:old, c 1 c.so:")
    assert found(r"size \d+ must be") == ("several", "2", "a 2 a.py:Plan.check, a 2 a.py:split")
    assert found(r"size \d+ must be", "py:check") == ("one", "1", "a 2 a.py:Plan.check")
    assert found(r"size \d+ must be", "caller")[:2] == ("where", "2")
    assert found("No module named 'x'") == ("nowhere", "0", "Python makes it at run time from a name")
