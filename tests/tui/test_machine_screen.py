"""The machine page: devices, who holds their memory, and its history on the steps' axis."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvml_records import GIB, replayed
from pilots import until
from textual.pilot import Pilot

from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
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
from launcher.runs.watch.reader import RunReader
from tui.kit.charted import ViewLine
from tui.kit.charts.lens import Lens
from tui.kit.charts.memory_charts import look, memory_plot
from tui.kit.charts.view import View
from tui.kit.drawing.line_chart import draw
from tui.kit.drawing.plot import Plot
from tui.kit.drawing.rows import width
from tui.kit.memory_rows import detail_rows, device_row, devices, holder_rows
from tui.kit.widgets.chart_widgets import MemoryChart, MetricChart
from tui.kit.widgets.inspector import Inspector
from tui.kit.widgets.lines import Lines
from tui.pages.dashboard.memory_line import Memory
from tui.pages.dashboard.timing_split import TimingSplit
from tui.pages.machine.devices import DeviceDetail, DeviceList, chosen_rows
from tui.pages.machine.screen import DeviceScreen

NO_NVML = "no GPU figures: NVML does not start here (Driver Not Loaded)"


def made(make: SimpleNamespace, machine: list[MachineSample], **more: Any) -> Path:
    """A run of which a step ended every 12 s, from 150 s after the first sample on."""
    begun = machine[0].t if machine else make.start
    steps = [StepRecord(r.step, begun + 150 + 12 * r.step, None, r.data) for r in make.recorded(50)]
    state = make.running(created=begun, started=begun, updated=begun + 790, step=50)
    path: Path = make.run(**{"attempts": [steps], "state": state, "machine": machine, **more})
    return path


def worst(make: SimpleNamespace) -> Path:
    """One GPU, hot, shared with somebody."""
    *before, last = replayed(1)[:196]
    others = (Holder(900, "others", "python", "bob", 9 * GIB), Holder(77, used=9 * GIB))
    holders = (*(last.gpus[0].holders or ()), *others)
    hot = dataclasses.replace(last.gpus[0], used=60 * GIB, temp=86, slowed=("heat",), holders=holders)
    return made(make, [*before, dataclasses.replace(last, gpus=(hot,))])


async def shown(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.press("b")
    await pilot.pause(0.2)


def texts(rows: list[Any]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


@pytest.mark.parametrize("columns", [1, 20, 40, 80, 160])
@pytest.mark.parametrize("told", [{}, {"used": None, "total": None, "util": None, "temp": None, "power": None}])
def test_a_device_is_one_line_at_any_width(columns: int, told: dict[str, Any]) -> None:
    device = dataclasses.replace(replayed(1)[50].gpus[0], **told)
    row = device_row(device, columns, True)
    assert columns < 25 or width(row) <= columns
    assert "GPU 0" in texts([row])[0]


def test_bar_and_words_split_the_memory_and_never_go_beyond_it() -> None:
    """Used and processes are asked one after the other, so the run may seem to hold more than is used."""
    for used, run in ((60, 48), (48, 60), (140, 140), (0, 0)):
        device = GpuSample(0, used=used * GIB, total=140 * GIB, run_used=run * GIB, holders=())
        assert "-" not in texts(detail_rows(device, 100, 9, None))[0]
        bar = texts([device_row(device, 100, False)])[0].rpartition("  ")[2].strip()
        assert len(bar) == 30 and bar.count("▓") == round(min(run, used) / 140 * 30)


def test_what_is_not_known_is_said_so() -> None:
    hidden = GpuSample(0, used=60 * GIB, total=140 * GIB, holders=())
    said = " ".join(texts(detail_rows(hidden, 100, 9, None)))
    assert "used 60.0" in said and "others" not in said and "a container shows only its own" in said
    assert "does not report" in " ".join(texts(holder_rows(GpuSample(0), 100, 5)))


def test_other_processes_are_named_and_alone_there_is_only_the_driver() -> None:
    named = (("run", "python"), ("others", "ray::WorkerDict"), ("others", "VLLM::EngineCor"), ("others", "blender"))
    holders = tuple(Holder(pid, whose, name, "x", 9 * GIB - pid) for pid, (whose, name) in enumerate(named))
    gpu = GpuSample(0, used=40 * GIB, total=80 * GIB, run_used=9 * GIB, holders=holders)
    assert [row.split()[0] for row in texts(holder_rows(gpu, 80, 4))] == ["this", "ray", "engine", "other"]
    assert "other programs, driver 31.0" in " ".join(texts(detail_rows(gpu, 100, 9, None)))
    alone = dataclasses.replace(gpu, holders=holders[:1])
    assert "▒ driver 31.0" in " ".join(texts(detail_rows(alone, 100, 9, None)))


def test_many_holders_are_counted_and_their_names_are_harmless() -> None:
    holders = tuple(Holder(n, "others", f"\x1b[31mp{n}", "x", n * GIB) for n in range(9))
    rows = texts(holder_rows(GpuSample(0, used=40 * GIB, holders=holders), 80, 4))
    assert "8.0 GiB" in rows[0] and rows[-1].strip() == "6 more, 15.0 GiB in total" and len(rows) == 4
    assert "\x1b" not in "".join(rows)


def test_the_history_lies_on_the_steps(make: SimpleNamespace) -> None:
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


def test_few_samples_a_step_leave_no_gaps(make: SimpleNamespace) -> None:
    """A long start-up and quick steps: most columns of the chart have no sample of their own."""
    reader = RunReader(made(make, [make.host(t=make.start + n) for n in range(172)]))
    reader.poll()
    reader.series = SeriesStore()
    for step in range(1, 11):
        reader.series.add(StepRecord(step, make.start + 150 + 2 * step, None, {}))
    plot = memory_plot(reader.machine, reader.series, RunState("running"), devices(reader.machine.latest)[-1])
    line = next(text for text in texts(draw(plot, 80, 12)) if text.count("⠤") + text.count("⣀") + text.count("⠉") > 20)
    assert " " not in line[7:].rstrip()


@pytest.mark.parametrize(
    ("state", "steps", "total", "end"),
    [
        ("running", 10, 4660, 12),
        ("running", 9, 4660, 10),
        ("running", 10, None, 12),
        ("finished", 10, 4660, 10),
        ("running", 10, 10, 10),
        ("running", 30, 20, 35),
    ],
)
def test_the_step_that_goes_on_has_a_place(
    make: SimpleNamespace, state: str, steps: int, total: int | None, end: int
) -> None:
    """Nine samples after the newest step, which may be where the axis of the other charts ends."""
    reader = RunReader(made(make, [make.host(t=make.start + n) for n in range(10 * steps + 9)]))
    reader.poll()
    store, lens = SeriesStore(), Lens()
    for step in range(1, steps + 1):
        store.add(StepRecord(step, make.start + 10 * step, None, {}))

    def looked() -> Plot:
        device = devices(reader.machine.latest)[-1]
        return look(memory_plot(reader.machine, store, RunState(state), device), lens, store, total)

    assert looked().last == end
    lens.view = View(fitted=True)
    assert looked().last == lens.whole(store, total).last


async def test_devices_are_chosen_by_keys_and_the_page_follows(make: SimpleNamespace) -> None:
    app = make.app(made(make, replayed(8)[:150]))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        listed = app.screen.query_one(DeviceList)
        assert listed.size.height == 9 and listed.chosen.index == 0
        for key, index, title in (("down", 1, "GPU 1 memory"), ("G", "host", "host memory"), ("up", 7, "GPU 7")):
            await pilot.press(key)
            await pilot.pause()
            assert listed.chosen.index == index
            assert app.screen.query_one("#memory-chart", MetricChart).plot.title.startswith(title)
        assert app.screen.query_one("#memory-chart").size.height >= 6
        await pilot.press("b")
        await pilot.pause()
        assert not app.screen.query(DeviceList)


@pytest.mark.parametrize("on_cpu", [True, False])
async def test_without_nvml_the_host_is_shown_and_only_a_run_that_wants_gpus_misses_them(
    make: SimpleNamespace, on_cpu: bool
) -> None:
    machine = [make.host(t=make.start + n, missing=None if n else NO_NVML) for n in range(60)]
    app = make.app(made(make, machine, on_cpu=on_cpu))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        detail = app.screen.query_one(DeviceDetail)
        said = " ".join(texts(detail.draw(80, 9)))
        assert (NO_NVML in said) is not on_cpu and "run 3.4" in said and "free 21.8 of 31.0 GiB" in said
        labels = [curve.label for curve in app.screen.query_one("#memory-chart", MetricChart).plot.curves]
        assert labels == ["least", "used", "this run"]
        assert not app.screen.query_one("#util-chart").display


async def test_a_run_without_samples_shows_what_verl_logged(make: SimpleNamespace) -> None:
    app = make.app(made(make, [], state=make.ended("imported")))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        plot = app.screen.query_one("#memory-chart", MetricChart).plot
        assert [curve.label for curve in plot.curves] == ["trainer peak", "host"]
        assert "records one per second" in " ".join(texts(app.screen.query_one(DeviceList).draw(80, 5)))


@pytest.mark.parametrize("size", [(250, 80), (79, 20), (50, 12), (30, 9), (20, 5), (10, 3)])
async def test_any_size_will_do(make: SimpleNamespace, size: tuple[int, int]) -> None:
    app = make.app(worst(make))
    async with app.run_test(size=size) as pilot:
        await shown(pilot)
        assert app.screen.query_one(DeviceList).region.bottom <= size[1]


@pytest.mark.parametrize(
    ("kind", "size"),
    [("worst", (80, 24)), ("eight", (80, 24)), ("eight", (160, 48)), ("host", (80, 24))],
    ids=["worst-80x24", "eight-80x24", "eight-160x48", "host-80x24"],
)
def test_looks(snap_compare: Callable[..., bool], make: SimpleNamespace, kind: str, size: tuple[int, int]) -> None:
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
    assert snap_compare(make.app(run), terminal_size=size, run_before=shown)


async def test_the_page_has_the_keys_and_the_view_of_the_other_charts(make: SimpleNamespace) -> None:
    app = make.app(made(make, replayed(2)[:196]))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        usual = app.screen.query_one("#memory-chart", MetricChart).plot
        assert (usual.first, usual.last) == (0, 52)  # trained were 50 of 80
        await pilot.press("left", "plus", "a", "x")
        await pilot.pause()
        line = app.screen.query_one(ViewLine)
        said = texts(line.draw(80, 1))[0]
        assert "step 50 · " in said and "by time" in said and line.region.area
        for name in ("#memory-chart", "#util-chart"):
            plot = app.screen.query_one(name, MetricChart).plot
            assert texts(plot.headline)[0].startswith("at 50: ") and plot.axis.label(60) == "1m"
            assert 0 < plot.first < plot.axis.place(plot.cursor) < plot.last
        await pilot.press("down", "b")
        assert len(app.screen_stack) == 3 and app.screen.query_one(DeviceList).chosen.index == 1
        await pilot.press("b")
        await pilot.pause()
        assert not app.screen.query(DeviceList) and app.screen.lens.view.across == "time"  # type: ignore[attr-defined]


async def test_a_large_dashboard_has_the_memory_and_the_times_beside_the_steps(make: SimpleNamespace) -> None:
    app = make.app(made(make, replayed(8)[:196]))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        chart, split = app.screen.query_one(MemoryChart), app.screen.query_one(TimingSplit)
        assert chart.size.height >= 8 and chart.plot.title.startswith("GPU")
        assert split.size.height == 3 and split.last is not None
        assert chart.plot.last == app.screen.query_one(MetricChart).plot.last
        await pilot.press("left", "plus")
        await pilot.pause()
        other = app.screen.query_one(MetricChart).plot
        assert (chart.plot.first, chart.plot.last) == (other.first, other.last)
        assert chart.plot.axis.place(chart.plot.cursor) == pytest.approx(other.cursor, abs=0.5)
        assert texts(chart.plot.headline)[0].startswith(f"at {other.cursor}: ")
        for across in ("time", "tokens"):
            await pilot.press("a", "x")
            await pilot.pause()
            other = app.screen.query_one(MetricChart).plot
            assert app.screen.lens.view.across == across  # type: ignore[attr-defined]
            assert (chart.plot.first, chart.plot.last) == (other.first, other.last)
            a_step = other.axis.place(other.cursor) - other.axis.place(other.cursor - 1)
            place = chart.plot.axis.place(chart.plot.cursor)
            assert place == pytest.approx(other.axis.place(other.cursor), abs=a_step / 2)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert not chart.display and not split.display


async def test_memory_that_verl_logged_follows_the_view_like_any_figure(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(50)], state=make.ended("imported", step=50)))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.press("plus", "a", "x", "left")
        await pilot.pause()
        chart, other = app.screen.query_one(MemoryChart).plot, app.screen.query_one(MetricChart).plot
        assert (chart.first, chart.last, chart.axis) == (other.first, other.last, other.axis)
        assert chart.cursor == other.cursor == 50 and texts(chart.headline)[0].startswith("at 50: ")


async def test_the_dashboard_below_a_page_paints_nothing_and_catches_up(make: SimpleNamespace) -> None:
    """Textual paints the page above again wherever something below it changes."""
    machine = replayed(1)
    run = made(make, machine[:100])
    app = make.app(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        below: Any = app.screen_stack[-2]
        before = below.query_one(Memory).sample
        with (run / "gpu.jsonl").open("a") as file:
            file.write(json.dumps(machine[101].to_json()) + "\n")
        listed = app.screen.query_one(DeviceList)
        await until(pilot, lambda: below.reader.machine.latest.t == machine[101].t)
        await until(pilot, lambda: listed.devices[0].used == machine[101].gpus[0].used)
        assert below.query_one(Memory).sample == before
        await pilot.press("b")
        await pilot.pause()
        assert below.query_one(Memory).sample.t == machine[101].t


async def test_the_nodes_of_a_cluster_stand_one_below_the_other(make: SimpleNamespace) -> None:
    def sample(t: float) -> MachineSample:
        gpus = [
            GpuSample(f"box-{node}/{at}", "NVIDIA H100", 60 * GIB, 80 * GIB, 97) for node in (1, 2) for at in (0, 1)
        ]
        nodes = (NodeSample("box-1", 100 * GIB, 200 * GIB, 70 * GIB), NodeSample("box-2", 150 * GIB, 200 * GIB))
        return MachineSample(t, HostSample(150 * GIB, 200 * GIB), gpus=tuple(gpus), nodes=nodes)

    app = make.app(made(make, [sample(make.start + 10 * at) for at in range(20)]))
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        listed = app.screen.query_one(DeviceList)
        names = [row.split()[0] for row in texts(listed.draw(80, 6))]
        assert names == ["❯box-1/0", "box-1/1", "host", "box-2/0", "box-2/1", "host"]
        for _ in range(2):
            await pilot.press("j")
        assert "run 70.0" in "\n".join(texts(app.screen.query_one(DeviceDetail).draw(80, 4)))
        for _ in range(3):
            await pilot.press("j")
        chosen = "\n".join(texts(app.screen.query_one(DeviceDetail).draw(80, 4)))
        assert "host box-2" in chosen and "used 150" in chosen
        assert "host box-2 memory, GiB" in "\n".join(
            texts(app.screen.query_one("#memory-chart", MetricChart).draw(78, 8))
        )


def test_other_nodes_that_are_not_available_are_told_with_any_device() -> None:
    away = MachineSample(0.0, away="the other nodes are not available: no dashboard")
    rows = chosen_rows(GpuSample(0, used=GIB, total=2 * GIB), away, 80, 7, on_cpu=False, ended=True)
    assert "other nodes are not available: no dashboard" in texts(rows)[-2] and "last sample" in texts(rows)[-1]


async def test_a_wide_page_inspects_the_chosen_device(make: SimpleNamespace) -> None:
    """All of it stands beside the list, and on a page of its own with the keys of the other charts."""
    app = make.app(worst(make))
    async with app.run_test(size=(120, 36)) as pilot:
        await shown(pilot)
        inspector = app.screen.query_one(Inspector)
        charts = [chart for chart in inspector.query(MetricChart) if chart.display]
        assert [chart.plot.title.split()[2] for chart in charts] == ["memory,", "utilization,"]
        assert not app.screen.query_one(DeviceDetail).display and "bob" in read(inspector)
        await pilot.press("G")
        await pilot.pause(0.2)
        assert "host" in read(inspector)
        await pilot.press("g", "enter")
        await pilot.pause()
        assert isinstance(app.screen, DeviceScreen)
        await pilot.press("number_sign", "4", "0", "enter")
        await pilot.pause(0.2)
        plots = [chart.plot for chart in app.screen.query(MetricChart) if chart.display]
        assert len(plots) == 2 and all(texts(plot.headline)[0].startswith("at 40: ") for plot in plots)
        await pilot.press("right_square_bracket")
        await pilot.pause()
        assert "host" in read(app.screen.query_one(Inspector))
        await pilot.press("escape", "escape", "escape")
        assert len(app.screen_stack) == 2


def read(inspector: Inspector) -> str:
    """The words below and above the charts."""
    return "\n".join(line for lines in inspector.query(Lines) for line in texts(lines.lines))
