"""Step lines of every veRL version, and lines that only look like one."""

import math
from pathlib import Path
from typing import Any

import pytest
import tomllib
from hypothesis import given
from hypothesis import strategies as st

from launcher.console.steps import complete_step, read_step

TABLE = tomllib.loads((Path(__file__).parents[1] / "data" / "step_lines.toml").read_text("utf-8"))


def same(found: dict[str, float], wanted: dict[str, float]) -> bool:
    return found.keys() == wanted.keys() and all(
        found[key] == value or (math.isnan(value) and math.isnan(found[key])) for key, value in wanted.items()
    )


@pytest.mark.parametrize(("text", "step", "data", "three_decimals"), TABLE["lines"])
def test_step_lines(text: str, step: int, data: dict[str, float], three_decimals: bool) -> None:
    found = read_step(text)
    assert found is not None
    assert (found[0], found[2]) == (step, three_decimals)
    assert same(found[1], data), found[1]


@pytest.mark.parametrize("text", TABLE["others"])
def test_other_lines(text: str) -> None:
    assert read_step(text) is None


@pytest.mark.parametrize(("text", "data"), TABLE["cut"])
def test_the_end_of_the_file_cuts_no_figure(text: str, data: dict[str, float]) -> None:
    found = read_step(text, cut=True)
    assert same(found[1], data) if found is not None else not data


FIGURES = st.one_of(
    st.floats(),
    st.integers(-(10**9), 10**9),
    st.booleans(),
    st.floats().map(lambda x: ("np.float64", x)),
    st.integers(0, 99).map(lambda x: ("np.int64", x)),
)
WORDS = st.text("abcxyzABC_0189.@-", min_size=1, max_size=8)
KEYS = st.builds(
    lambda group, source, rest: "/".join([group, *source, rest]),
    st.sampled_from(["actor", "critic", "val-core", "val-aux", "timing_s"]),
    st.lists(st.text("abcXYZ_0 :@.+", min_size=1, max_size=8), max_size=2),
    WORDS,
)


def printed(value: Any) -> str:
    return f"{value[0]}({value[1]!r})" if isinstance(value, tuple) else repr(value)


@given(st.integers(0, 10**6), st.dictionaries(KEYS, FIGURES, min_size=1, max_size=30))
def test_what_verl_prints_is_read_back(step: int, data: dict[str, Any]) -> None:
    text = " - ".join([f"step:{step}", *(f"{key}:{printed(value)}" for key, value in data.items())])
    found = read_step(text)
    assert found is not None
    wanted = {key: float(value[1] if isinstance(value, tuple) else value) for key, value in data.items()}
    assert found[0] == step
    assert same(found[1], wanted)


@given(st.dictionaries(KEYS, st.floats(-1e6, 1e6), min_size=1))
def test_three_decimals_are_noticed(data: dict[str, float]) -> None:
    text = " - ".join(["step:1", *(f"{key}:{value:.3f}" for key, value in data.items())])
    found = read_step(text)
    assert found is not None
    assert found[2]


PIECES = st.sampled_from(
    ["step:", "[Step ", "1", "] ", " - ", "a/b", ":", "=", "|", "np.float64(", ")", "nan", "1e", "50%|", "pid=1)"]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)), st.booleans())
def test_nothing_raises(text: str, cut: bool) -> None:
    found = read_step(text, cut=cut)
    assert found is None or (found[0] >= 0 and found[1])


LINE = "step:5 - actor/entropy:0.12345 - critic/score/mean:np.float64(0.5) - val-core/a/acc/mean@1:1e-06"


CUTS = range(len("step:5 - actor/entropy:0.1"), len(LINE))
WHOLE = [at for at in CUTS if LINE[:at].endswith(("mean@1:1", "mean@1:1e-0"))]  # all figures of the first half are


@pytest.mark.parametrize("at", [at for at in CUTS if at not in WHOLE])
def test_two_halves_of_a_line_make_it_whole(at: int) -> None:
    whole = complete_step(LINE[:at], LINE[at:])
    assert whole is not None
    assert whole == read_step(LINE)


@pytest.mark.parametrize("at", WHOLE)
def test_a_line_of_whole_figures_is_not_completed(at: int) -> None:
    assert complete_step(LINE[:at], LINE[at:]) is None


@pytest.mark.parametrize("more", TABLE["no_halves"])
def test_another_line_is_no_second_half(more: str) -> None:
    assert complete_step(LINE, more) is None
    assert complete_step(f"{LINE} - 1a", "/b:2.0") is None, "a key begins with a letter"
