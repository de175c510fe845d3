"""The machine page: devices, who holds their memory, and its history on the steps' axis."""

import dataclasses
import itertools
import json
import math

import pytest
from nvml_records import GIB, replayed
from pilots import words
from tables import tabled

from launcher.metrics.records import StepRecord
from launcher.metrics.store import Series, SeriesStore
from launcher.record.machine import (
    DiskSpace,
    GpuSample,
    Holder,
    HostSample,
    MachineSample,
    NodeSample,
    ProcessesSample,
    Saved,
)
from launcher.record.state import RunState
from launcher.runs.watch.machine_history import MachineHistory
from launcher.runs.watch.reader import RunReader
from tui.kit.charts.lens import Lens
from tui.kit.charts.memory_axis import SampleAxis
from tui.kit.charts.memory_charts import Held, averaged, look, memory_plot, over_steps, util_plot
from tui.kit.charts.view import View
from tui.kit.drawing.line_chart import draw
from tui.kit.drawing.plot import Curve
from tui.kit.drawing.rows import width
from tui.kit.memory_rows import detail_rows, device_row, devices, holder_rows
from tui.kit.widgets.chart_widgets import MemoryChart
from tui.pages.machine.devices import chosen_rows

NO_NVML = "no GPU figures: NVML does not start here (Driver Not Loaded)"


def made(make, machine, **more):
    """A run of which a step ended every 12 s, from 150 s after the first sample on."""
    begun = machine[0].t if machine else make.start
    steps = [StepRecord(r.step, begun + 150 + 12 * r.step, None, r.data) for r in make.recorded(50)]
    state = make.running(created=begun, started=begun, updated=begun + 790, step=50)
    return make.run(**{"attempts": [steps], "state": state, "machine": machine, **more})


def worst(make):
    """One GPU, hot, shared with somebody."""
    *before, last = replayed(1)[:196]
    others = (Holder(900, "others", "python", "bob", 9 * GIB), Holder(77, used=9 * GIB))
    holders = (*(last.gpus[0].holders or ()), *others)
    hot = dataclasses.replace(last.gpus[0], used=60 * GIB, temp=86, slowed=("heat",), holders=holders)
    return made(make, [*before, dataclasses.replace(last, gpus=(hot,))])


def texts(rows):
    return words(rows).split("\n")


def plot_of(user, selector="#memory-chart"):
    return user.one(selector).plot


def test_a_device_is_one_line_at_any_width():
    silent = dict.fromkeys(("used", "total", "util", "temp", "power"))
    for columns, told in itertools.product([1, 20, 40, 80, 160], [{}, silent]):
        row = device_row(dataclasses.replace(replayed(1)[50].gpus[0], **told), columns, True)
        assert (columns < 25 or width(row) <= columns) and "GPU 0" in words([row])


@pytest.mark.parametrize(("used", "run"), [(60, 48), (48, 60), (140, 140), (0, 0)])
def test_bar_and_words_split_the_memory_and_never_go_beyond_it(used, run):
    """Used and processes are asked one after the other, so the run may seem to hold more than is used."""
    device = GpuSample(0, used=used * GIB, total=140 * GIB, run_used=run * GIB, holders=())
    assert "-" not in texts(detail_rows(device, 100, 9, None))[0]
    bar = words([device_row(device, 100, False)]).rpartition("  ")[2].strip()
    assert len(bar) == 30 and bar.count("▓") == round(min(run, used) / 140 * 30)


def test_holders_are_named_counted_and_harmless_and_what_is_not_known_is_said():
    hidden = GpuSample(0, used=60 * GIB, total=140 * GIB, holders=())
    said = words(detail_rows(hidden, 100, 9, None))
    assert "used 60.0" in said and "others" not in said and "a container shows only its own" in said
    assert "does not report" in words(holder_rows(GpuSample(0), 100, 5))
    named = (("run", "python"), ("others", "ray::WorkerDict"), ("others", "VLLM::EngineCor"), ("others", "blender"))
    holders = tuple(Holder(pid, whose, name, "x", 9 * GIB - pid) for pid, (whose, name) in enumerate(named))
    gpu = GpuSample(0, used=40 * GIB, total=80 * GIB, run_used=9 * GIB, holders=holders)
    assert [row.split()[0] for row in texts(holder_rows(gpu, 80, 4))] == ["this", "ray", "engine", "other"]
    assert "other programs, driver 31.0" in words(detail_rows(gpu, 100, 9, None))
    alone = dataclasses.replace(gpu, holders=holders[:1])
    assert "▒ driver 31.0" in words(detail_rows(alone, 100, 9, None))
    many = tuple(Holder(n, "others", f"\x1b[31mp{n}", "x", n * GIB) for n in range(9))
    rows = texts(holder_rows(GpuSample(0, used=40 * GIB, holders=many), 80, 4))
    assert "8.0 GiB" in rows[0] and rows[-1].strip() == "6 more, 15.0 GiB in total" and len(rows) == 4
    assert "\x1b" not in "".join(rows)
    away = MachineSample(0.0, away="the other nodes are not available: no dashboard")
    rows = texts(chosen_rows(GpuSample(0, used=GIB, total=2 * GIB), away, 80, 7, on_cpu=False, ended=True))
    assert "other nodes are not available: no dashboard" in rows[-2] and "last sample" in rows[-1]


def test_the_history_lies_on_the_steps(make):
    """Samples come each four seconds, steps each twelve."""
    reader = RunReader(made(make, replayed(2)))
    reader.poll()
    plot = memory_plot(reader.machine, reader.series, reader.state, devices(reader.machine.latest)[1])
    before = [index for index, t in enumerate(reader.machine.times) if t <= reader.series.times[10]]
    assert plot.axis.place(before[-1]) <= reader.series.steps[10] < plot.axis.place(before[-1] + 1)
    drawn = "\n".join(texts(draw(plot, 78, 12)))
    assert "GPU 1 memory" in drawn and "peak 48.0" in drawn
    engine = [line for line in drawn.splitlines() if line.strip().startswith(("40", "50"))]
    assert any(char > "⠀" for char in engine[0].partition("│")[2])  # awake in each step, asleep between


def test_few_samples_a_step_leave_no_gaps(make):
    """A long start-up and quick steps: most columns of the chart have no sample of their own."""
    reader = RunReader(made(make, [make.host(t=make.start + n) for n in range(172)]))
    reader.poll()
    reader.series = SeriesStore()
    for step in range(1, 11):
        reader.series.add(StepRecord(step, make.start + 150 + 2 * step, None, {}))
    plot = memory_plot(reader.machine, reader.series, RunState("running"), devices(reader.machine.latest)[-1])
    line = next(text for text in texts(draw(plot, 80, 12)) if text.count("⠤") + text.count("⣀") + text.count("⠉") > 20)
    assert " " not in line[7:].rstrip()


@tabled
def test_the_step_that_goes_on_has_a_place(make, state, steps, total, end):
    """Nine samples after the newest step, which may be where the axis of the other charts ends."""
    reader = RunReader(made(make, [make.host(t=make.start + n) for n in range(10 * steps + 9)]))
    reader.poll()
    store, lens = SeriesStore(), Lens()
    for step in range(1, steps + 1):
        store.add(StepRecord(step, make.start + 10 * step, None, {}))

    def looked():
        device = devices(reader.machine.latest)[-1]
        return look(memory_plot(reader.machine, store, RunState(state), device), lens, store, total)

    assert looked().last == end
    lens.view = View(fitted=True)
    assert looked().last == lens.whole(store, total).last


async def test_devices_are_chosen_and_the_charts_have_the_keys_and_the_view_of_all(make):
    async with make.open(made(make, replayed(8)[:196])) as user:
        await user("b", "MachineScreen")
        listed, usual = user.one("DeviceList"), plot_of(user)
        assert listed.size.height == 9 and listed.chosen.index == 0 and user.one("#memory-chart").size.height >= 6
        assert (usual.first, usual.last) == (0, 52)  # trained were 50 of 80
        for key, index, title in (("down", 1, "GPU 1 memory"), ("G", "host", "host memory"), ("up", 7, "GPU 7")):
            await user(key)
            assert listed.chosen.index == index and plot_of(user).title.startswith(title)
        await user("left", "plus", "a", "x")
        line = user.one("ViewLine")
        said = words(line.draw(80, 1))
        assert "step 50 · " in said and "by time" in said and line.region.area
        for plot in (plot_of(user), plot_of(user, "#util-chart")):
            assert words(plot.headline).startswith("at 50: ") and plot.axis.label(60) == "1m"
            assert 0 < plot.first < plot.axis.place(plot.cursor) < plot.last
        await user("b")  # closes the cursor
        assert len(user.app.screen_stack) == 3
        await user("b")
        assert not user.screen.query("DeviceList") and user.screen.lens.view.across == "time"


async def test_on_a_cpu_the_host_is_shown_and_no_gpu_missed(make):
    machine = [make.host(t=make.start + n, missing=None if n else NO_NVML) for n in range(60)]
    async with make.open(made(make, machine, on_cpu=True)) as user:
        await user("b", "MachineScreen")
        said = words(user.one("DeviceDetail").draw(80, 9))
        assert NO_NVML not in said and "run 3.4" in said and "free 21.8 of 31.0 GiB" in said
        assert [curve.label for curve in plot_of(user).curves] == ["least", "used", "this run"]
        assert not user.one("#util-chart").display


async def test_a_run_without_samples_shows_what_verl_logged_and_it_follows_the_view(make):
    async with make.open(made(make, [], state=make.ended("imported", step=50))) as user:
        await user("b", "MachineScreen")
        assert [curve.label for curve in plot_of(user).curves] == ["trainer peak", "host"]
        assert "This run has no samples" in words(user.one("DeviceList").draw(80, 5))
        await user("b")
        await user.resize_terminal(160, 48)
        await user("plus", "a", "x", "left")
        chart, other = plot_of(user, MemoryChart), user.screen.query("MetricChart").first().plot
        assert chart.curves, "a window that grows shows the memory of a run that rests"
        assert (chart.first, chart.last, chart.axis) == (other.first, other.last, other.axis)
        assert chart.cursor == other.cursor == 50 and words(chart.headline).startswith("at 50: ")


@pytest.mark.parametrize(
    ("kind", "size"),
    [("worst", (80, 24)), ("eight", (80, 24)), ("eight", (160, 48)), ("host", (80, 24))],
    ids=["worst-80x24", "eight-80x24", "eight-160x48", "host-80x24"],
)
def test_looks(shot, make, kind, size):
    if kind == "worst":
        run = worst(make)
    elif kind == "eight":
        run = made(make, replayed(8)[:150])
    else:
        held = [ProcessesSample(int((2 + n % 9 / 5) * GIB), 0.2) for n in range(300)]
        host = HostSample(int(9.2 * GIB), 31 * GIB, load=60.0, cores=2, busy=1.9, waiting=0.93)
        machine = [make.host(t=make.start + n, run=run, host=host) for n, run in enumerate(held)]
        disk, saved = DiskSpace("/runs", 41 * GIB, 99 * GIB), Saved(3, int(5.6 * GIB))
        run = made(make, [dataclasses.replace(machine[0], missing=NO_NVML, disk=disk, saved=saved), *machine[1:]])
    assert shot(make.app(run), "b", 0.2, size=size)


async def test_a_large_dashboard_has_the_memory_and_the_times_beside_the_steps(make):
    async with make.open(made(make, replayed(8)[:196]), size=(160, 48)) as user:
        chart, split = user.one("MemoryChart"), user.one("TimingSplit")
        other = user.screen.query("MetricChart").first()
        assert chart.size.height >= 8 and chart.plot.title.startswith("GPU")
        assert split.size.height == 3 and split.last is not None and chart.plot.last == other.plot.last
        await user("left", "plus")
        ends = [(each.plot.first, each.plot.last) for each in (chart, other)]
        assert ends[0] == ends[1] and words(chart.plot.headline).startswith(f"at {other.plot.cursor}: ")
        for across in ("step", "time", "tokens"):
            if across != "step":
                await user("a", "x")
            assert user.screen.lens.view.across == across
            mine, plot = chart.plot, other.plot
            assert (mine.first, mine.last) == (plot.first, plot.last)
            a_step = plot.axis.place(plot.cursor) - plot.axis.place(plot.cursor - 1) if plot.axis else 1
            at = plot.axis.place(plot.cursor) if plot.axis else plot.cursor
            assert mine.axis.place(mine.cursor) == pytest.approx(at, abs=a_step / 2)
        await user.resize_terminal(80, 24)
        await user()
        assert not chart.display and not split.display


async def test_the_dashboard_below_a_page_paints_nothing_and_catches_up(make):
    """Textual paints the page above again wherever something below it changes."""
    machine = replayed(1)
    run = made(make, machine[:100])
    async with make.open(run) as user:
        below = user.screen
        await user("b", "MachineScreen")
        before = below.query_one("Memory").sample
        with (run / "gpu.jsonl").open("a") as file:
            file.write(json.dumps(machine[101].to_json()) + "\n")
        await user(lambda: below.reader.machine.latest.t == machine[101].t)
        await user(lambda: user.one("DeviceList").devices[0].used == machine[101].gpus[0].used)
        assert below.query_one("Memory").sample == before
        await user("b")
        assert below.query_one("Memory").sample.t == machine[101].t


async def test_the_nodes_of_a_cluster_stand_one_below_the_other(make):
    names = [f"box-{node}/{at}" for node in (1, 2) for at in (0, 1)]
    gpus = tuple(GpuSample(name, "NVIDIA H100", 60 * GIB, 80 * GIB, 97) for name in names)
    nodes = (NodeSample("box-1", 100 * GIB, 200 * GIB, 70 * GIB), NodeSample("box-2", 150 * GIB, 200 * GIB))
    host = HostSample(150 * GIB, 200 * GIB)
    samples = [MachineSample(make.start + 10 * at, host, gpus=gpus, nodes=nodes) for at in range(20)]
    async with make.open(made(make, samples)) as user:
        await user("b", "MachineScreen")
        rows = [row.split()[0] for row in texts(user.one("DeviceList").draw(80, 6))]
        assert rows == ["❯box-1/0", "box-1/1", "host", "box-2/0", "box-2/1", "host"]
        await user("j", "j", lambda: "run 70.0" in user.seen)
        await user("j", "j", "j", lambda: "host box-2" in user.seen and "used 150" in user.seen)
        assert "host box-2 memory, GiB" in words(user.one("#memory-chart").draw(78, 8))


async def test_a_wide_page_draws_the_charts_of_the_chosen_device_side_by_side(make):
    """Below the list, and on a page of their own with the keys of the other charts."""

    def read():
        return "\n".join(words(lines.lines) for lines in user.one("Inspector").query("Lines"))

    async with make.open(worst(make), size=(120, 36)) as user:
        await user("b", "MachineScreen", 0.2)
        left, right = user.screen.query("MetricChart")
        assert left.region.y == right.region.y and left.region.right < right.region.x and "bob" in user.seen
        await user(
            "G", lambda: "host memory" in user.seen, "g", "enter", "DeviceScreen", "number_sign", "4", "0", "enter", 0.2
        )
        plots = [chart.plot for chart in user.screen.query("MetricChart") if chart.display]
        assert len(plots) == 2 and all(words(plot.headline).startswith("at 40: ") for plot in plots)
        await user("right_square_bracket", lambda: "host" in read(), "escape", "escape", "escape")
        assert len(user.app.screen_stack) == 2


def test_the_samples_of_some_steps_become_one_value_and_the_newest_step_is_one_of_them():
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
    (alone := Series()).append(0, 1.0)  # steps without samples have no value
    axis = SampleAxis([25.0], [1, 2, 3, 4], [10.0, 20.0, 30.0, 40.0])
    assert list(over_steps(alone, axis, 1, max).values) == [1.0]


def test_a_utilization_that_jumps_is_drawn_as_a_moving_mean():
    samples = Series()
    for second in range(60):
        samples.append(second, math.nan if second == 40 else 100.0 * (second % 2))
    mean = averaged(Curve(Held(samples)), 20, 60).points
    assert isinstance(mean, Held) and mean.steps[0] == 20 and len(mean.steps) == 40
    assert all(40 < value < 60 for value in mean.values[14:])


def test_utilisation_is_the_mean_of_a_minute_whatever_the_pace_of_samples():
    history, store, state = MachineHistory(), SeriesStore(), RunState("running")
    for t, util in ((0.0, 90), (10.0, 100), (65.0, 10), (75.0, None), (76.0, 20)):
        history.add(MachineSample(t, gpus=(GpuSample(0, util=util),)))
    plot = util_plot(history, store, state, GpuSample(0))
    assert plot.headline == [] or "nan" not in str(plot.headline)
    assert util_plot(history, store, state, GpuSample(1)) is None
