"""The word linter of `make lint`: each rule on its examples, and where a hit is an error, a hint or excused."""

import re

import pytest
from strings import everything
from words import Excuse, Rule, Text, Words, load_words, read_page, read_texts

WORDS = load_words()
BESIDE = Rule("beside", r"\bbeside\b", "'next to'", bad=(), good=(), hint_in=("docstrings",))


def _hits(words: Words, text: Text) -> list[tuple[str, int, bool]]:
    return [(hit.words, hit.line, hit.hint) for hit in words.hits(text)]


def _words(excuses: tuple[Excuse, ...] = ()) -> Words:
    return Words((BESIDE,), (), excuses)


@pytest.mark.parametrize("rule", WORDS.rules, ids=lambda rule: rule.name)
def test_a_rule_finds_its_bad_sentences_and_no_good_one(rule: Rule) -> None:
    assert rule.bad and rule.good and rule.say
    assert [text for text in rule.bad if not any(rule.hits(text))] == []
    assert [text for text in rule.good if any(rule.hits(text))] == []


def test_no_correction_breaks_another_rule() -> None:
    corrections = [Text("docs", "x.md", 1, text) for rule in WORDS.rules for text in rule.good]
    assert [str(hit) for text in corrections for hit in WORDS.hits(text) if not hit.rule.hint] == []


def test_a_hit_is_a_hint_in_the_kinds_that_its_rule_names() -> None:
    words = _words()
    assert _hits(words, Text("strings", "tui/app.py", 7, "Beside it")) == [("Beside", 7, False)]
    assert _hits(words, Text("docstrings", "tui/app.py", 7, "Beside it")) == [("Beside", 7, True)]


def test_an_excuse_covers_its_text_only_and_is_reported_when_no_text_needs_it() -> None:
    words = _words(excuses=(Excuse("beside", "tui/*", "Beside the point", "a proverb"),))
    excused, other = Text("strings", "tui/a.py", 1, "Beside the point."), Text("strings", "tui/a.py", 2, "Beside it.")
    both = Text("docs", "tui/a.md", 1, "Beside the point, and beside it.")
    assert _hits(words, excused) == [] and len(_hits(words, other)) == 1
    assert _hits(words, both) == [("beside", 1, False)], "only the excused words, not their page"
    assert list(words.unused([excused, other])) == [] and list(words.unused([other])) == list(words.excuses)


def test_a_hit_on_a_page_has_its_line_and_code_has_none() -> None:
    page = "# Title\n\nIt is\nbeside\nthe file.\n\n```\nbeside\n```\n\n`beside` is code, beside this.\n"
    assert [line for _, line, _ in _hits(_words(), read_page("docs/x.md", page))] == [4, 11]


@pytest.mark.nightly("tools/")
@pytest.mark.slow
def test_the_texts_of_each_kind_are_read() -> None:
    kinds = {text.kind for text in read_texts(WORDS.sources)}
    assert kinds == {"docs", "strings", "docstrings", "data", "comments", "code"}
    assert len(list(everything())) > 3000
    assert any(re.search(r"presets/.*\.yaml$", file) for file, _, _ in everything())
