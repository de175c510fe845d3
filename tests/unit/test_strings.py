"""Every sentence that users read (`make strings`), and turns of phrase that none of them may have."""

import re

import pytest
from strings import everything

STUMBLED_OVER = re.compile(
    r"all the same|it would fail|comes to\b|any more\b|\bis none\b|goes on\b|nobody|somebody|\bdies\b|lies in\b"
    r"|is there already|\bwants\b|is told\b|\banswers\b.*\bmodel\b",
    re.IGNORECASE,
)


@pytest.mark.slow
def test_sentences_are_found_and_none_is_one_that_readers_stumbled_over() -> None:
    found = list(everything())
    assert len(found) > 3000 and any(file.endswith("keys.py") for file, _, _ in found)
    assert [each for each in found if STUMBLED_OVER.search(each[2])] == []
