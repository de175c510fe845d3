"""The list of runs and presets."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import assert_fits, message, until
from textual.pilot import Pilot
from textual.widgets import Input

from launcher.preset.files import Summary, users
from launcher.preset.library import copy
from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets.key_bar import KeyBar
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.lists import RunTable
from tui.kit.widgets.painted import Painted
from tui.pages.compare.screen import CompareScreen
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.launch.screen import LaunchScreen
from tui.pages.runs.inspection import PresetFacts
from tui.pages.runs.run_list import ORDERS, RunList
from tui.pages.runs.screen import POLL, RunsScreen

HOME = (80, 24)


async def opened(pilot: Pilot[Any]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def options(app: Any) -> list[str]:
    """The lines of the list, headings among them, without the cursor."""
    table = app.screen.query_one(RunTable)
    return ["".join(text for text, _ in row).replace("❯", " ") for row in table.draw(80, 99)]


def chosen(app: Any) -> str:
    return str(app.screen.query_one(RunTable).cursor)


def keys_of(app: Any) -> list[str]:
    return list(app.screen.query_one(RunTable).keys)


def three_runs(make: SimpleNamespace) -> dict[str, Path]:
    return {
        "done": make.run(hex_id="d0", attempts=[make.recorded(80)], state=make.ended("finished", step=80)),
        "live": make.run(hex_id="11fe", attempts=[make.recorded(62)], state=make.running(created=make.start - 50)),
        "old": make.run(hex_id="01d", state=make.ended("failed", step=None, created=make.start - 90)),
    }


async def test_runs_come_newest_first_with_the_live_one_chosen(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        lines = options(app)
        assert [line.split()[1] for line in lines[1:4]] == ["finished", "running", "failed"]
        curve = lines[1].split()[9]
        assert lines[1].split()[5:] == ["●", "OK", "80/80", "0.875", curve, "3m", "20s"]
        assert len(curve) == 7 and all("⠀" < sign <= "⣿" for sign in curve)
        assert "–/80" in lines[3] and all(len(line) <= 80 for line in lines[:4])
        assert chosen(app) == f"run {runs['live']}"
        assert any("toy-cpu" in line and "no GPU" in line for line in lines[5:])


async def test_enter_opens_the_run_and_r_comes_back_to_it(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert app.screen.directory == runs["old"]
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await opened(pilot)
        assert chosen(app) == f"run {runs['old']}"


async def test_without_runs_it_offers_the_presets(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await until(pilot, lambda: any("Next" in line for line in options(app)))
        assert chosen(app).startswith("preset ")
        assert any("toy-cpu" in line and "no GPU" in line for line in options(app))


async def test_a_preset_starts_only_after_its_launch_was_confirmed(make: SimpleNamespace, home: Path) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)
        assert not (home / "runs").exists()


async def test_q_closes_the_screen(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_watching_starts_nothing(make: SimpleNamespace, home: Path) -> None:
    app = make.app(read_only=True)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("end", "enter")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen)
        assert "to start runs" in message(app)


async def test_a_change_of_a_run_shows_and_the_choice_stays(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("down")
        make.write_state(runs["live"], make.ended("stopped", created=make.start - 50))
        await until(pilot, lambda: "stopped" in options(app)[2])
        make.run(hex_id="ne3", name="newest", state=make.running(created=make.start + 500))
        await until(pilot, lambda: "newest" in options(app)[1])
        assert chosen(app) == f"run {runs['old']}"


def test_a_resumed_run_without_a_step_yet_keeps_the_reward_of_its_last_one(make: SimpleNamespace) -> None:
    make.run(attempts=[make.recorded(5), []], state=make.ended("stopped", step=5))
    found = RunList()
    found.refresh()
    assert found.runs[0].scores.series.last is None and not found.read_scores()
    assert found.runs[0].scores.series.last == make.recorded(5)[-1].data["critic/score/mean"]


def test_ended_runs_are_read_once(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    found = RunList()
    assert found.refresh()
    before = {run.path: run for run in found.runs}
    assert not found.refresh()
    assert all(before[run.path] is run for run in found.runs if run.path != runs["live"])


async def test_a_filter_finds_by_name_state_and_verdict(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    other = make.run(hex_id="be77", name="gsm8k-lora", state=make.ended("stopped", verdict="WARN", created=1.0))
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        for query, expected in (
            ("gsmlora", [other]),
            ("fin", [runs["done"]]),
            ("warn", [other]),
            ("run toy", [runs["live"]]),
        ):
            await pilot.press("slash", *("space" if letter == " " else letter for letter in query))
            await pilot.pause()
            assert [key for key in keys_of(app) if key.startswith("run ")] == [f"run {run}" for run in expected]
            assert f"/{query}" in options(app)[0]
            await pilot.press("escape")
            await pilot.pause()
        assert len([key for key in keys_of(app) if key.startswith("run ")]) == 4
        await pilot.press("slash", *"qqqq", "enter")
        await pilot.pause()
        assert keys_of(app) == ["#runs", "#none"] and "No matching run" in options(app)[1]
        await pilot.press("escape", "space", "D", "enter")  # q in a field is a letter, and the app lives
        assert app.is_running


async def test_orders(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        orders = {}
        for order in (*ORDERS[1:], ORDERS[0]):
            await pilot.press("o")
            await pilot.pause()
            orders[order] = [key.removeprefix("run ") for key in keys_of(app) if key.startswith("run ")]
        best_first = [str(runs[name]) for name in ("done", "live", "old")]
        assert orders["best score first"] == best_first == orders["newest first"]
        assert {tuple(sorted(order)) for order in orders.values()} == {tuple(sorted(best_first))}


async def test_marked_runs_are_compared(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("end", "c")  # a preset, and no mark: nothing to compare
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("home", "space", "down", "space", "space", "space")
        await pilot.pause()
        assert options(app)[1].startswith(" 1✔") and options(app)[2].startswith(" 2●")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        assert app.screen.directories == [runs["done"], runs["live"]]
        await opened(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("space", "down", "c")  # one mark, and the chosen run
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        assert app.screen.directories == [runs["done"], runs["old"]]


async def test_delete_asks_refuses_what_goes_and_takes_the_mark_away(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("D")
        await until(pilot, lambda: "The run has not ended; stop it first" in message(app))
        await pilot.press("home", "space", "D")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert runs["done"].exists()
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: f"run {runs['done']}" not in keys_of(app))
        assert not runs["done"].exists() and runs["live"].exists() and app.routes.marked == []


async def test_watching_deletes_nothing(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app(read_only=True)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("home", "D")
        await pilot.pause()
        assert "Read-only" in message(app) and runs["done"].exists()


async def test_a_click_chooses_and_a_second_one_opens(make: SimpleNamespace) -> None:
    runs = three_runs(make)
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.click(RunTable, offset=(20, 3))
        assert chosen(app) == f"run {runs['old']}"
        await pilot.click(RunTable, offset=(20, 0))  # a heading
        assert chosen(app) == f"run {runs['old']}"
        await pilot.click(RunTable, offset=(20, 3))
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))


async def test_nothing_is_painted_while_nothing_changes(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    make.run(attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        painted: list[Painted] = []
        monkeypatch.setattr(Painted, "refresh", lambda self, *_, **__: painted.append(self))
        await pilot.pause(2 * POLL + 0.1)
        assert painted == []


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_looks(
    snap_compare: Any, make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    presets = [
        Summary("gsm8k-0.5b-24gb", "shipped", Path(), "Qwen2.5-0.5B learns GSM8K", "1 GPU with 24 GB"),
        Summary("toy-cpu", "shipped", Path(), "Real veRL PPO without a GPU", "no GPU, 6 GB of memory", fits=True),
    ]
    monkeypatch.setattr("tui.pages.runs.screen.read_presets", lambda: presets)
    facts = PresetFacts([[("length  ", "dim"), ("60 steps", "text")]], lines=["extends: x"], machine="no GPU")
    monkeypatch.setattr("tui.pages.runs.screen.read_preset", lambda *_: facts)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    three_runs(make)
    make.run(
        hex_id="be77",
        name="gsm8k-1.5b-lora-24gb",
        attempts=[make.recorded(40)],
        state=make.ended("stopped", verdict="WARN", step=40, total=1160, created=1.0),
    )

    async def ready(pilot: Pilot[Any]) -> None:
        await opened(pilot)
        await pilot.press("home", "space", "down", "space", "end")

    assert snap_compare(make.app(), terminal_size=size, run_before=ready)


@pytest.mark.parametrize(
    ("size", "word"), [((250, 80), "Runs"), ((40, 12), "Runs"), ((20, 5), "running"), ((3, 2), "")]
)
async def test_the_list_fits_any_terminal(make: SimpleNamespace, size: tuple[int, int], word: str) -> None:
    """In a terminal of five lines one is left for the list: that of the chosen run."""
    three_runs(make)
    app = make.app()
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        assert_fits(app, word)


async def test_presets_are_copied_renamed_and_deleted(make: SimpleNamespace, home: Path) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        app.screen.query_one(RunTable).move_to("preset gsm8k-0.5b-24gb")
        await pilot.press("f2")
        await until(pilot, lambda: "is a shipped preset and cannot be changed" in message(app))
        assert isinstance(app.screen, RunsScreen), "nothing is asked that would be refused"
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        app.screen.query_one(Input).value = "mine"
        await pilot.press("enter")
        await until(pilot, lambda: "preset mine" in keys_of(app))
        await until(pilot, lambda: app.screen.query_one(RunTable).cursor == "preset mine")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        app.screen.query_one(Input).value = "ours"
        await pilot.press("enter")
        await until(pilot, lambda: "preset ours" in keys_of(app) and "preset mine" not in keys_of(app))
        app.screen.query_one(RunTable).move_to("preset ours")
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert "preset ours" in keys_of(app)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: "preset ours" not in keys_of(app))
        assert list(users()) == []


async def test_a_preset_that_was_written_elsewhere_shows_when_one_comes_back(make: SimpleNamespace) -> None:
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("question_mark")
        copy("toy-cpu", "written-elsewhere")
        await pilot.press("escape")
        await until(pilot, lambda: "preset written-elsewhere" in keys_of(app))
        await until(pilot, lambda: app.screen.query_one(RunTable).cursor == "preset written-elsewhere")


async def test_long_names_are_told_apart_and_push_the_curve_out(make: SimpleNamespace) -> None:
    for hex_id, name in (("aaaa", "gsm8k-1.5b-24gb"), ("bbbb", "gsm8k-1.5b-lora-24gb")):
        make.run(hex_id=hex_id, name=name, attempts=[make.recorded(40)], state=make.ended("stopped", step=40))
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        lines = options(app)[1:3]
        assert sorted(line.split()[2] for line in lines) == ["gsm8k-1.5b-24gb", "gsm8k-1.5b-lora-24gb"]
        assert all(len(line) == 79 and line.endswith("3m 20s") and "▁" not in line for line in lines)


async def test_a_preset_of_yours_says_so_and_where_it_lies(make: SimpleNamespace) -> None:
    file = copy("toy-cpu", "mine")
    app = make.app()
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        told = {line.split()[0]: line for line in options(app) if line.strip()}
        assert "yours" in told["mine"] and "yours" not in told["toy-cpu"]
        app.screen.query_one(RunTable).move_to("preset mine")
        await pilot.pause()
        below = "".join(text for row in app.screen.query_one(Lines).lines for text, _ in row)
        assert str(file) in below.replace(" ", "")


async def test_the_footer_marks_and_helps_on_the_way_back_to_a_run(make: SimpleNamespace) -> None:
    app = make.app(three_runs(make)["live"])
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and bool(app.screen.query_one(KeyBar).labels))
        await opened(pilot)
        bar = app.screen.query_one(KeyBar)
        assert "mark" in bar.labels and {"quit", "help"} <= {span[0] for span in bar.draw(80, 1)[0]}
