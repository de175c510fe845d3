"""Editing a value in the text of a preset."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from tables import tabled

from launcher.preset.draft import Draft
from launcher.preset.files import recipes, shipped
from launcher.preset.schema import FIELDS, ORDER, SETTINGS
from launcher.preset.yaml_text import Where, drop, put, read, text_of, value_of

COMMENT = re.compile(r"(?:^|\s)#.*")  # one a line
PRESETS = {name: path.read_text() for name, path in shipped().items()}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.lists(st.text(max_size=8), max_size=3),
    st.dictionaries(st.text("abc._", min_size=1, max_size=4), st.integers(), max_size=3),
)
FIELD = st.sampled_from([tuple(name.split(".")) for name in FIELDS])


@given(VALUES)
def test_any_value_reads_back_as_it_was(value: Any) -> None:
    found = read(f"key: {text_of(value)}\n")["key"]
    assert repr(found) == repr(value)
    assert repr(read(f"{{key: {text_of(value)}, next: 1}}")["key"]) == repr(value)


@tabled
def test_values_look_as_a_person_writes_them(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_what_a_person_types_is_yaml_or_text() -> None:
    assert [value_of(text) for text in ("1e-6", "true", "[a, b]", "null", "a: [", "", "x y")] == [
        1e-6,
        True,
        ["a", "b"],
        None,
        "a: [",
        "",
        "x y",
    ]


def test_a_value_is_replaced_in_its_line_and_its_comment_keeps_its_column() -> None:
    text = "actor:\n  lr: 1e-6                # sensitive\n  shuffle: true  # why\n"
    assert put(text, ("actor", "lr"), 2.5e-6) == text.replace("1e-6  ", "2.5e-6")
    assert put(text, ("actor", "shuffle"), False) == text.replace("true ", "false")


@tabled
def test_where_a_new_value_goes(before: str, path: tuple[str, ...], after: str) -> None:
    assert put(before, tuple(path), 5, order=ORDER) == after


@tabled
def test_what_goes_with_a_value(before: str, path: tuple[str, ...], after: str) -> None:
    assert drop(before, tuple(path)) == after


@pytest.mark.slow
@settings(max_examples=30, phases=(Phase.generate,))
@given(st.sampled_from(sorted(PRESETS)), st.lists(st.tuples(FIELD, VALUES), min_size=1, max_size=5))
def test_any_edit_of_a_shipped_preset_says_what_was_set_and_leaves_other_lines(name, edits):
    text = PRESETS[name]
    for path, value in edits:
        new = put(text, path, value, order=ORDER)
        found, before = read(new), read(text)
        for part in path:
            found, before = found[part], (before or {}).get(part)
        assert repr(found) == repr(value)
        if not isinstance(before, dict):  # a whole block, like env, goes with all of its lines
            gone = [line for line in text.splitlines() if line not in new.splitlines()]
            assert len(gone) <= 1
            assert len(COMMENT.findall(drop(new, path))) >= len(COMMENT.findall(text)) - 1
        text = new


@pytest.mark.slow
@settings(max_examples=150, phases=(Phase.generate,))
@given(
    st.recursive(
        st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(st.text("abcd", min_size=1, max_size=2), inner, min_size=1, max_size=3),
        max_leaves=8,
    ).filter(lambda value: isinstance(value, dict)),
    st.booleans(),
    st.lists(st.text("abcd", min_size=1, max_size=2), min_size=1, max_size=3),
)
def test_any_document_can_be_edited(data: dict[str, Any], flow: bool, path: list[str]) -> None:
    import io

    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml, out = YAML(typ="safe", pure=True), io.StringIO()
    yaml.default_flow_style = flow
    yaml.dump(data, out)
    try:
        read(out.getvalue())
    except YAMLError:  # ruamel writes {a: ?0}, and does not read it
        assume(False)
    names = tuple(path)
    new = put(out.getvalue(), names, "v")
    found = read(new)
    for part in names:
        found = found[part]
    assert found == "v"
    again = read(drop(new, names)) or {}
    for part in names[:-1]:
        again = again.get(part) or {}
    assert names[-1] not in again


def test_the_shipped_files_are_where_they_were(tmp_path: Path) -> None:
    assert all(path.read_text() == PRESETS[name] for name, path in shipped().items())


FILES = {**shipped(), **{f"recipe {name}": path for name, path in recipes().items()}}


TEXTS = {name: path.read_bytes().decode() for name, path in FILES.items()}


NAMES = (("extends",), ("recipe",))  # of other files, which follow rules of their own


SETTABLE = [
    spec.path for spec in SETTINGS.values() if spec.path not in NAMES and not {dict, dict[str, object]} & {*spec.types}
]


def draft_of(name: str) -> Draft:
    return Draft(FILES[name], TEXTS[name], on_disk=TEXTS[name])


def another(draft: Draft, where: Where) -> Any:
    """A value that the field takes, other than its own."""
    spec = SETTINGS.get(".".join(where))
    tried = (7, 0.5, 0.25, 2, 1.5, True, False, "x", ["x"], [0.9, 0.5], [1, 2], *(spec.choices if spec else ()), [])
    return next(each for each in tried if each != draft.value(where) and draft.wrong(where, each) is None)


def assert_undone(name: str, where: Where) -> None:
    draft, text = draft_of(name), TEXTS[name]
    if where in draft.reading.places:
        draft.set(where, draft.value(where))
        assert draft.text == text, "the value that it has"
    other = another(draft, where)
    draft.set(where, other)
    changed = draft.text
    assert len(set(text.splitlines()) - set(changed.splitlines())) <= (where in draft.reading.places)
    assert draft.undo() and draft.text == text
    draft.set(where, other)
    assert draft.text == changed
    assert draft.undo() and draft.text == text


@pytest.mark.nightly("launcher/preset/", "presets/")
@pytest.mark.parametrize("name", FILES)
def test_set_undo_set_leaves_the_lines_of_each_value_of_a_file(name: str) -> None:
    for where in draft_of(name).reading.places:
        if where not in NAMES:
            assert_undone(name, where)


@pytest.mark.nightly("launcher/preset/", "presets/")
@settings(max_examples=100, phases=(Phase.generate,))
@given(st.sampled_from(sorted(FILES)), st.sampled_from(SETTABLE))
def test_set_undo_set_leaves_all_lines_where_a_value_is_added(name: str, where: Where) -> None:
    assert_undone(name, where)
