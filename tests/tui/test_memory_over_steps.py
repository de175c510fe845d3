"""Memory and utilisation over many steps: what goes up and down in each of them is no barcode."""

import math
from typing import Any

from launcher.metrics.store import Series, SeriesStore
from launcher.record.machine import GpuSample, MachineSample
from launcher.record.state import RunState
from launcher.runs.watch.machine_history import MachineHistory
from tui.kit.charts.memory_axis import SampleAxis
from tui.kit.charts.memory_charts import Held, averaged, over_steps, util_plot
from tui.kit.drawing.plot import Curve


def test_the_samples_of_some_steps_become_one_value_and_the_newest_step_is_one_of_them() -> None:
    """A sample a second, a step each ten, which begins with 20 GiB and ends with 50."""
    samples = Series()
    for second in range(1005):
        samples.append(second, math.nan if second == 7 else 20.0 if second % 10 < 5 else 50.0)
    axis = SampleAxis(range(1005), range(1, 101), [10.0 * step for step in range(1, 101)])
    most, least = over_steps(samples, axis, 6, max), over_steps(samples, axis, 6, min)
    assert set(most.values) == {50.0} and set(least.values) == {20.0}
    assert most.steps == least.steps and most.steps[-1] == 999 and len(most) == 100
    mean = over_steps(samples, axis, 8, lambda values: sum(values) / len(values))
    assert len(mean) == 50 and all(abs(value - 35) < 1 for value in mean.values[1:])


def test_steps_without_samples_have_no_value() -> None:
    samples = Series()
    samples.append(0, 1.0)
    axis = SampleAxis([25.0], [1, 2, 3, 4], [10.0, 20.0, 30.0, 40.0])
    assert list(over_steps(samples, axis, 1, max).values) == [1.0]


def test_a_utilization_that_jumps_is_drawn_as_a_moving_mean() -> None:
    samples = Series()
    for second in range(60):
        samples.append(second, math.nan if second == 40 else 100.0 * (second % 2))
    mean = averaged(Curve(Held(samples)), 20, 60).points
    assert isinstance(mean, Held) and mean.steps[0] == 20 and len(mean.steps) == 40
    assert all(40 < value < 60 for value in mean.values[14:])


def test_utilisation_is_the_mean_of_a_minute_whatever_the_pace_of_samples() -> None:
    history, store, state = MachineHistory(), SeriesStore(), RunState("running")
    for t, util in ((0.0, 90), (10.0, 100), (65.0, 10), (75.0, None), (76.0, 20)):
        history.add(MachineSample(t, gpus=(GpuSample(0, util=util),)))
    plot: Any = util_plot(history, store, state, GpuSample(0))
    assert plot.headline == [] or "nan" not in str(plot.headline)
    assert util_plot(history, store, state, GpuSample(1)) is None
