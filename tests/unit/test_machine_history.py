"""Samples of the machine as series, and where they lie on the steps' axis."""

from dataclasses import replace
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from launcher.record.machine import GpuSample, Holder, HostSample, MachineSample, ProcessesSample
from launcher.runs.watch.machine_history import MachineHistory
from tui.kit.charts.axes import SpentAxis
from tui.kit.charts.memory_axis import SampleAxis, SpentSamples
from tui.kit.drawing.scale import stride

GIB = 1 << 30


def sample(t: float, *gpus: GpuSample, missing: str | None = None) -> MachineSample:
    return MachineSample(t, HostSample(8 * GIB, 32 * GIB), ProcessesSample(2 * GIB), gpus, missing)


def history(*samples: MachineSample) -> MachineHistory:
    found = MachineHistory()
    for each in samples:
        found.add(each)
    return found


def test_details_of_an_earlier_sample_complete_the_newest() -> None:
    """The holders are told when they change, the limits every ten seconds."""
    full = GpuSample(0, used=GIB, power_limit=700, slow_at=87, holders=(Holder(7),))
    found = history(sample(1.0, full), sample(2.0, GpuSample(0, used=2 * GIB), GpuSample("1:0")))
    assert found.latest is not None
    assert found.latest.gpus == (replace(full, used=2 * GIB), GpuSample("1:0"))
    found.add(sample(3.0, GpuSample(0, holders=())))
    found.add(sample(4.0, GpuSample(0, used=GIB)))
    assert found.latest.gpus == (replace(full, holders=()),)


def test_the_reason_for_no_figures_stays_until_there_are_some() -> None:
    found = history(sample(1.0, missing="no driver"), sample(2.0))
    assert found.latest is not None and found.latest.missing == "no driver"
    found.add(sample(3.0, GpuSample(0, used=GIB)))
    assert found.latest.missing is None


def test_a_thinned_file_read_anew_repeats_nothing() -> None:
    assert list(history(*map(sample, (1.0, 2.0, 3.0, 1.0, 3.0, 4.0))).times) == [1.0, 2.0, 3.0, 4.0]


def test_series_are_in_gib_with_gaps_where_a_sample_lacks_a_figure() -> None:
    values = ((1.0, None), (2.0, 3 * GIB), (3.0, None), (4.0, 5 * GIB))
    found = history(*(sample(t, GpuSample(0, used=used, util=50)) for t, used in values))
    used = found.series("used", 0)
    assert used is not None and list(used.steps) == [1, 2, 3]
    assert used.values[0] == 3.0 and used.values[1] != used.values[1] and used.values[2] == 5.0
    assert found.series("host") is not None and found.series("used", 1) is None


def test_a_sample_lies_inside_the_step_that_was_being_made() -> None:
    axis = SampleAxis([0.0, 50.0, 100.0, 105.0, 110.0, 115.0, 999.0], [1, 2], [100.0, 110.0])
    places = [axis.place(index) for index in range(7)]
    assert places[:5] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert places[5] == 2.5 and places[6] == 2.99  # the step that takes long is still the third one
    ended = SampleAxis([100.0, 200.0], [1, 2], [100.0, 110.0], end=2)
    assert ended.place(1) == 2 and ended.step_at(2.001) == 2


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=40, unique=True).map(sorted),
    st.lists(st.floats(0, 1e6), max_size=20, unique=True).map(sorted),
    st.integers(0, 50),
)
def test_samples_never_run_backwards_and_are_found_where_they_were_put(
    times: list[float], ends: list[float], first: int
) -> None:
    axis = SampleAxis(times, list(range(first, first + len(ends))), ends)
    places = [axis.place(index) for index in range(len(times))]
    assert all(a <= b for a, b in pairwise(places))
    for index, place in enumerate(places):
        assert axis.step_at(place - 1e-6 * (1 + abs(place))) <= index < axis.step_at(place + 1e-6 * (1 + place)) + 1


def test_a_sample_lies_where_its_part_of_the_step_was_spent() -> None:
    samples = SampleAxis([0.0, 100.0, 105.0, 110.0, 115.0], [1, 2], [100.0, 110.0])
    tokens = SpentSamples(samples, SpentAxis([1, 2], [400.0, 1000.0], str, stride))
    assert [tokens.place(index) for index in range(5)] == [0.0, 400.0, 700.0, 1000.0, 1300.0]
    seconds = SpentSamples(samples, SpentAxis([1, 2], [0.0, 10.0], str, stride))
    assert [seconds.place(index) for index in range(5)] == [0.0, 0.0, 5.0, 10.0, 15.0]
    assert (seconds.step_at(0.0), seconds.step_at(4.9), seconds.step_at(15.1)) == (0, 2, 5)


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=40, unique=True).map(sorted),
    st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 1000)), min_size=1, max_size=20),
)
def test_samples_never_run_backwards_on_an_axis_of_what_was_spent(
    times: list[float], made: list[tuple[int, int]]
) -> None:
    steps, ends = list(range(1, len(made) + 1)), list(accumulate(took for took, _ in made))
    spent = SpentAxis(steps, [float(each) for each in accumulate(cost for _, cost in made)], str, stride)
    axis = SpentSamples(SampleAxis(times, steps, ends), spent)
    places = [axis.place(index) for index in range(len(times))]
    assert all(a <= b + 1e-6 for a, b in pairwise(places))
    found = [axis.step_at(x) for x in sorted({0.0, *places, spent.end, 2 * spent.end + 1})]
    assert found == sorted(found) and found[0] == 0
