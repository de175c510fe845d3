"""Text from outside, made safe to draw."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.core.text import clean, did_you_mean

UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ESCAPES = st.sampled_from(
    ["\x1b", "\x1b[", "\x1b[36m", "\x1b]0;", "\x07", "\x1b\\", "\x9b", "\x9c", "\x9d", "\x1bP", "\t", "\n", "\r"]
)
WILD = st.lists(st.one_of(st.text(max_size=6), ESCAPES, st.characters(codec=None))).map("".join)


@given(WILD)
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    assert not UNSAFE.search(clean(text))


@given(WILD)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(WILD)
def test_newlines_stay(text: str) -> None:
    assert clean(text).count("\n") == text.count("\n")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[36m(Task pid=1)\x1b[0m hi\x1b[32m [repeated]\x1b[0m", "(Task pid=1) hi [repeated]"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]0;title\x9cb", "ab"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cut off\nthe next line stays", "\nthe next line stays"),
        ("\x1b[?1049h\x1b[2J\x1b[H", ""),
        ("\x1b(B\x1bc\x1b7", ""),
        ("\x9b31mred", "red"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("half \ud83d of a pair", "half  of a pair"),
        ("a\tb", "a   b"),
        ("72 → 86 ✓ 中文", "72 → 86 ✓ 中文"),
    ],
)
def test_what_is_removed(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_the_nearest_name() -> None:
    assert did_you_mean("actr", ["actor", "critic"]) == " (did you mean 'actor'?)"
    assert did_you_mean("zzz", ["actor", "critic"]) == ""
