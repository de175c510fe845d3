import math
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore

floats = st.floats(allow_nan=True, allow_infinity=True, width=32)


def naive(values: list[float]) -> tuple[float, float, float] | None:
    good = [v for v in values if math.isfinite(v)]
    return (min(good), max(good), good[-1]) if good else None


@given(st.lists(floats, max_size=1200), st.integers(0, 1300), st.integers(0, 1300), st.integers(1, 90))
def test_columns_equal_a_plain_scan(values: list[float], first: int, extra: int, count: int) -> None:
    series = Series()
    for step, value in enumerate(values):
        series.append(step, value)
    last = first + extra
    width = (last - first + 1) / count
    for i, span in enumerate(series.columns(first, last, count)):
        low, high = first + math.ceil(i * width), first + math.ceil((i + 1) * width)
        assert (tuple(span) if span else None) == naive(values[low:high])


@given(st.lists(floats, min_size=1, max_size=700), st.integers(0, 700))
def test_a_pyramid_that_grew_step_by_step_equals_one_built_at_once(values: list[float], looks: int) -> None:
    series = Series()
    for step, value in enumerate(values):
        series.append(step, value)
        if step == looks:
            series.span(0, step)
    span = series.span(0, len(values))
    assert (tuple(span) if span else None) == naive(values)


def test_one_spike_among_ten_thousand_steps_is_in_its_column() -> None:
    series = Series()
    for step in range(10_000):
        series.append(step, 1000.0 if step == 7777 else 1.0)
    highs = [span.high for span in series.columns(0, 9999, 60) if span]
    assert highs.count(1000.0) == 1 and highs[7777 * 60 // 10_000] == 1000.0


def test_a_resumed_attempt_replaces_the_steps_it_repeats_and_marks_the_seam() -> None:
    store = SeriesStore()
    for step in range(1, 29):
        store.add(StepRecord(step, float(step), None, {"critic/score/mean": 0.0, "only/old": 1.0}), attempt=1)
    for step in range(21, 31):
        store.add(StepRecord(step, 100.0 + step, None, {"critic/score/mean": 1.0}), attempt=2)
    score = store.get("critic/score/mean")
    assert score is not None
    assert list(score.steps) == list(range(1, 31))
    assert list(score.values) == [0.0] * 20 + [1.0] * 10
    old = store.get("only/old")
    assert old is not None and old.steps[-1] == 20
    assert store.seams == [21] and store.last_step == 30


def test_a_key_that_was_never_logged_is_no_data_and_not_zero() -> None:
    store = SeriesStore()
    store.add(StepRecord(0, 0.0, None, {"val-core/x/acc/mean@1": 0.5}))
    store.add(StepRecord(1, 1.0, None, {"actor/entropy": math.nan}))
    assert store.get("actor/kl_loss") is None
    entropy = store.get("actor/entropy")
    assert entropy is not None and entropy.span(0, 10) is None and list(entropy.steps) == [1]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 12), st.integers(1, 3), st.sampled_from([("actor/a", "b"), ("b", "actor/a"), ("b",), ()])
        ),
        max_size=40,
    )
)
def test_several_steps_at_once_are_what_they_are_one_by_one(found: list[tuple[int, int, tuple[str, ...]]]) -> None:
    one_by_one, at_once = SeriesStore(), SeriesStore()
    numbered = [
        (attempt, StepRecord(step, float(t), None, {key: float(t) for key in keys}))
        for t, (step, attempt, keys) in enumerate(sorted(found, key=lambda each: each[1]))
    ]
    for attempt, record in numbered:
        one_by_one.add(record, attempt)
    for attempt, group in groupby(numbered, key=lambda each: each[0]):
        at_once.add_all([record for _, record in group], attempt)
    assert at_once.steps == one_by_one.steps and at_once.times == one_by_one.times
    assert at_once.seams == one_by_one.seams and at_once.keys() == one_by_one.keys()
    for key in one_by_one.keys():  # noqa: SIM118 (a method of ours)
        series, expected = at_once.get(key), one_by_one.get(key)
        assert series is not None and expected is not None
        assert (series.steps, series.values) == (expected.steps, expected.values)
