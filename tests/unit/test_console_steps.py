"""Step lines of every veRL version, and lines that only look like one."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.console.steps import complete_step, read_step

NAN, INF = math.nan, math.inf


def same(found: dict[str, float], wanted: dict[str, float]) -> bool:
    return found.keys() == wanted.keys() and all(
        found[key] == value or (math.isnan(value) and math.isnan(found[key])) for key, value in wanted.items()
    )


@pytest.mark.parametrize(
    ("text", "step", "data", "three_decimals"),
    [
        # veRL 0.3 and 0.4: three decimals, old names
        ("step:0 - val/test_score/openai/gsm8k:0.023", 0, {"val/test_score/openai/gsm8k": 0.023}, True),
        (
            "step:7 - actor/lr:0.000 - critic/kl:-0.004 - timing/gen:12.500",
            7,
            {"actor/lr": 0, "critic/kl": -0.004, "timing/gen": 12.5},
            True,
        ),
        ("step:7 - actor/grad_norm:nan - actor/lr(1e-4):1.000", 7, {"actor/grad_norm": NAN, "actor/lr(1e-4)": 1}, True),
        # 0.5 and later: full digits
        (
            "step:2 - actor/lr:1e-06 - perf/total_num_tokens:123456 - a/b:0.30000000000000004",
            2,
            {"actor/lr": 1e-6, "perf/total_num_tokens": 123456, "a/b": 0.30000000000000004},
            False,
        ),
        (
            "step:2 - a/b:nan - a/c:inf - a/d:-inf - a/e:-8.16e-06",
            2,
            {"a/b": NAN, "a/c": INF, "a/d": -INF, "a/e": -8.16e-6},
            False,
        ),
        ("step:2 - a/b:True - a/c:False", 2, {"a/b": 1, "a/c": 0}, False),
        # 0.9: numpy 2
        (
            "step:2 - a/b:np.float64(0.125) - a/c:np.int64(2) - a/d:np.float32(-1e-05)",
            2,
            {"a/b": 0.125, "a/c": 2, "a/d": -1e-5},
            False,
        ),
        ("step:2 - a/b:np.float64(nan) - a/c:np.float64(-inf)", 2, {"a/b": NAN, "a/c": -INF}, False),
        # keys
        (
            "step:20 - val-core/openai/gsm8k/acc/mean@4:0.25 - val-aux/x/acc/best@2/std:0.5",
            20,
            {"val-core/openai/gsm8k/acc/mean@4": 0.25, "val-aux/x/acc/best@2/std": 0.5},
            False,
        ),
        (
            "step:1 - val-core/hf:my data v1.2/acc/mean@1:0.5 - a/b:1",
            1,
            {"val-core/hf:my data v1.2/acc/mean@1": 0.5, "a/b": 1},
            False,
        ),
        (
            "step:1 - a/b:1 - val-core/one - two/acc/mean@1:0.5 - c/d:2",
            1,
            {"a/b": 1, "val-core/one - two/acc/mean@1": 0.5, "c/d": 2},
            False,
        ),
        ("step:1 - loss:0.5", 1, {"loss": 0.5}, False),
        ("step:1 - a/b:1 - a/b:2", 1, {"a/b": 2}, False),
        # forks: tensors, units, words
        ("step:1 - actor/pg_loss:tensor(0.01)", 1, {"actor/pg_loss": 0.01}, False),
        (
            "step:1 - a/b:tensor(0.5, device='cuda:0') - a/c:tensor([2.], grad_fn=<MulBackward0>) - a/d:array(3)",
            1,
            {"a/b": 0.5, "a/c": 2, "a/d": 3},
            False,
        ),
        ("step:1 - a/b:tensor(nan, device='cuda:1') - a/c:tensor([0.1, 0.2])", 1, {"a/b": NAN}, False),
        ("step:1 - a/b:[0.25] - a/c:'0.5' - a/d:None - a/e:-0", 1, {"a/b": 0.25, "a/c": 0.5, "a/e": -0.0}, False),
        (
            "step:3 - Epoch 1 of 3 - a/b:0.5 - phase:warm up - timing_s/gen:12.3s - perf/mfu:45.2%",
            3,
            {"a/b": 0.5, "timing_s/gen": 12.3, "perf/mfu": 45.2},
            False,
        ),
        # surroundings
        ("(TaskRunner pid=1) step:4 - a/b:1.5", 4, {"a/b": 1.5}, False),
        ("(A pid=1) (B pid=2, ip=10.0.0.2) step:4 - a/b:1.5", 4, {"a/b": 1.5}, False),
        ("Training Progress:   3%|▎         | 1/29 [01:02<29:10, 62.50s/it]step:1 - a/b:1.5", 1, {"a/b": 1.5}, False),
        (
            "Training Progress:   3%|▎ | 1/29 [01:02<29:10, 62.50s/it] (T pid=3) step:1 - a/b:1.5",
            1,
            {"a/b": 1.5},
            False,
        ),
        ("half a line of another(TaskRunner pid=1) step:4 - a/b:1.5", 4, {"a/b": 1.5}, False),
        ("step:4 - a/b:1.5 - c/d:2 [repeated 3x across cluster]", 4, {"a/b": 1.5, "c/d": 2}, False),
        (
            "step:4 - a/b:1.5 [repeated 3x across cluster] (Ray deduplicates logs by default. Set ...)",
            4,
            {"a/b": 1.5},
            False,
        ),
        # cut, and mixed with what another process wrote: the complete entries stay
        ("step:5 - a/b:1.5 - actor/ent", 5, {"a/b": 1.5}, False),
        ("step:5 - a/b:1.5 - c/d:np.float64(0.2", 5, {"a/b": 1.5}, False),
        ("step:5 - a/b:1.5 - c/d:(WorkerDict pid=3) Loading", 5, {"a/b": 1.5}, False),
        # as tutorials print it
        (
            "[Step 1] train | reward/overall=0.05 | reward/accuracy=0.05 | kl=0.000 | actor_loss=0.82",
            1,
            {"reward/overall": 0.05, "reward/accuracy": 0.05, "kl": 0, "actor_loss": 0.82},
            False,
        ),
        (
            "[Step 5] val | reward/overall=0.12 | reward/accuracy=0.12",
            5,
            {"val/reward/overall": 0.12, "val/reward/accuracy": 0.12},
            False,
        ),
        ("[Step 6] kl=0.002 | reward=0.5", 6, {"kl": 0.002, "reward": 0.5}, False),
    ],
)
def test_step_lines(text: str, step: int, data: dict[str, float], three_decimals: bool) -> None:
    found = read_step(text)
    assert found is not None
    assert (found[0], found[2]) == (step, three_decimals)
    assert same(found[1], data), found[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step:",
        "step:12",
        "step:x - a/b:1",
        "step:3 - First, add 3:4 apples - then 5",
        "step:3 do the sum: 5",
        "step:3 - Total: 5",
        "The log then shows step:3 - actor/entropy:0.5 and so on",
        '"step:3 - actor/entropy:0.5"',
        "global_step:3 - actor/entropy:0.5",
        "[Step 3] Multiply 4 by 5",
        "[Step 3] 4 | 5 = 20",
        "In [Step 1] train | reward=0.05 we see",
        "Step 1: add 3/4 = 0.75",
        "step:99999999999999999999 - a/b:1",
    ],
)
def test_other_lines(text: str) -> None:
    assert read_step(text) is None


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("step:5 - a/b:1.5 - c/d:0.1", {"a/b": 1.5}),  # it may have been 0.123
        ("step:5 - a/b:1.5 - c/d:1e-0", {"a/b": 1.5}),
        ("step:5 - a/b:1.5 - c/d:np.float64(0.125)", {"a/b": 1.5, "c/d": 0.125}),
        ("step:5 - a/b:1.5 - c/d:np.float64(0.12", {"a/b": 1.5}),
        ("step:5 - a/b:1.5 - c/d:nan", {"a/b": 1.5, "c/d": NAN}),
        ("[Step 5] train | a/b=1.5 | kl=0.0", {"a/b": 1.5}),
        ("step:5 - a/b:1.5", None),
        ("step:5", None),
    ],
)
def test_the_end_of_the_file_cuts_no_figure(text: str, data: dict[str, float] | None) -> None:
    found = read_step(text, cut=True)
    assert (found is None) if data is None else (found is not None and same(found[1], data))


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


@pytest.mark.parametrize(
    "more",
    [
        "hello",
        "Dumped generations to /x - y",
        "step:6 - actor/entropy:1.0",
        "7 - x",
        "Filtering: 100%|█| 5/5 [00:00<00:00] step:6 - a/b:1.0",
        " hours - a/b:1.0",
    ],
)
def test_another_line_is_no_second_half(more: str) -> None:
    assert complete_step(LINE, more) is None
