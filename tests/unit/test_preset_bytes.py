"""Each change of a shipped preset or recipe changes its own lines, and undoing it leaves every byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from launcher.preset.draft import Draft
from launcher.preset.files import recipes, shipped
from launcher.preset.schema import SETTINGS
from launcher.preset.yaml_text import Where

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


def set_undo_set(name: str, where: Where) -> None:
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
            set_undo_set(name, where)


@pytest.mark.nightly("launcher/preset/", "presets/")
@settings(max_examples=100, phases=(Phase.generate,))
@given(st.sampled_from(sorted(FILES)), st.sampled_from(SETTABLE))
def test_set_undo_set_leaves_all_lines_where_a_value_is_added(name: str, where: Where) -> None:
    set_undo_set(name, where)
