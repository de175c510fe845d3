"""The list of runs beside its inspector: whole columns, four curves, what differs, presets that fit."""

from types import SimpleNamespace
from typing import Any

import pytest
from pilots import until

from launcher.preset.files import Summary, load
from launcher.record.info import Edit, RunInfo
from launcher.record.layout import RunDir
from launcher.runs.watch.run_settings import differs
from tui.kit.drawing.rows import width
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.inspector import Inspector
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import RunTable
from tui.pages.runs.run_list import RunList
from tui.pages.runs.run_rows import columns_of, preset_row, run_heading, run_row
from tui.pages.runs.screen import RunsScreen

WIDE = (160, 48)
EDITS = [Edit("actor.lr", 0.0003, 1e-5), Edit("actor_rollout_ref.rollout.load_format", None, "auto")]


def text(row: Any) -> str:
    return "".join(text for text, _ in row)


def inspected(app: Any) -> str:
    return "\n".join(text(row) for lines in app.screen.query_one(Inspector).query(Lines) for row in lines.lines)


async def ready(pilot: Any) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and not pilot.app.screen._looking)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("columns", [61, 66, 77, 88, 110, 137])
@pytest.mark.parametrize("longest", [7, 20])
@pytest.mark.parametrize("changed", [0, 40])
def test_a_narrow_list_leaves_whole_columns_out(
    make: SimpleNamespace, columns: int, longest: int, changed: int
) -> None:
    name = "gsm8k-1.5b-lora-24gb"[:longest]
    make.run(hex_id="aaaa", name=name, attempts=[make.recorded(40)], state=make.ended("stopped", step=40))
    runs = RunList()
    runs.refresh()
    runs.read_scores()
    shown = columns_of(columns, longest, changed)
    heading, row = run_heading(shown, ""), run_row(runs.runs[0], "", shown, EDITS if changed else ())
    assert width(row) <= columns and "…" not in text(heading)
    assert name in text(row) or ("…" in text(row) and changed)
    assert ("lr=1e-5" in text(row)) == bool(changed)
    for head, value in (("best", "0.766"), ("step", "40/80")):
        assert (head in text(heading)) == (value in text(row))


def test_what_differs_is_named_as_far_as_there_is_room() -> None:
    assert differs(EDITS) == "lr=1e-5 rollout.load_format=auto"
    assert differs(EDITS, 20) == "lr=1e-5 +1"
    assert differs(EDITS, 5) == "+2"
    assert differs([]) == ""


@pytest.mark.parametrize("columns", [61, 66, 88])
def test_the_needs_of_a_preset_are_not_cut(columns: int) -> None:
    needs = "1 GPU, 24 GB; 48 GB host memory"
    row = text(preset_row(Summary("x" * 20, "shipped", RunDir.__new__(RunDir), "", needs), columns, 20))
    assert row.rstrip().endswith(("host memory", "24 GB")) and len(row) <= columns


async def test_the_inspector_has_four_curves_and_what_differs(make: SimpleNamespace) -> None:
    found = make.run(hex_id="aaaa", attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    info = RunInfo(id=found.name, name="toy-cpu", preset=load("toy-cpu", ["actor.lr=1e-5"]).snapshot())
    info.write(RunDir(found).run_yaml)
    app = make.app()
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot)
        await until(pilot, lambda: "actor.lr 3e-4 → 1e-5" in inspected(app))
        charts = [chart for chart in app.screen.query_one(Inspector).query(MetricChart) if chart.display]
        assert len(charts) == 4 and all(chart.plot.curves for chart in charts)
        assert str(found) in inspected(app).replace("\n ", "") and "finished at step 80" in inspected(app)
        for columns in (61, 80, 160):
            assert "toy-cpu lr=1e-5" in "".join(text(row) for row in app.screen.query_one(RunTable).draw(columns, 9))


async def test_a_preset_shows_its_plan_and_whether_it_fits(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot)
        table = app.screen.query_one(RunTable)
        presets = [key for key in table.keys if key.startswith("preset ")]
        assert presets[0] == "preset toy-cpu"
        table.move_to(presets[0])
        await until(pilot, lambda: "64 prompts per step" in inspected(app))
        assert "✔ fits this machine (no GPU)" in inspected(app)
        table.move_to("preset gsm8k-0.5b-8gpu")
        await until(pilot, lambda: "base      gsm8k-0.5b-24gb" in inspected(app))
        assert "too large for this machine" in inspected(app) and "trainer.gpus 1 → 8" in inspected(app)


async def test_escape_stops_at_the_list(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("escape", "escape", "backspace")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen) and app.is_running
