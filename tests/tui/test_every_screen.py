"""Every screen that there is, at every size, on every kind of run."""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from every_screen import MAKERS, ROADS, settled, walk
from hostile import ACTS, PAYLOAD, poison
from owners import owners
from pilots import assert_fits, frame, picture, until
from textual.pilot import Pilot
from textual.screen import Screen
from whole_run import whole_run

from launcher.record.layout import RunDir
from launcher.record.state import RunState

SIZES = [(250, 80), (80, 24), (63, 24), (80, 8), (40, 12), (20, 5), (2, 2)]
# What has to be on the screen from 63 columns on: what the page is about, and a key.
WORDS: dict[str, tuple[str, ...]] = {
    "OpenedDashboard": ("KL to reference", "WARN", "h rules"),
    "ChecksScreen": ("Unrewarded drift", "esc back"),
    "CheckDetailScreen": ("Unrewarded drift", "esc back"),
    "EventsScreen": ("KL-4", "esc back"),
    "ActionsScreen": ("Actions", "Export"),
    "TrialsScreen": ("No trials", "esc back"),
    "MetricsScreen": ("actor/entropy", "esc back"),
    "MetricScreen": ("actor/entropy", "esc back"),
    "SamplesScreen": ("rollout of step 60", "esc back"),
    "SampleDiffScreen": ("to this prompt at 2 steps", "esc back"),
    "EntryScreen": ("Ground truth", "esc back"),
    "LogScreen": ("Training Progress", "esc back"),
    "MachineScreen": ("GPU 7", "esc back"),
    "DeviceScreen": ("GPU 0 memory", "esc back"),
    "TimeScreen": ("Step 62", "esc back"),
    "CompareScreen": ("0ld", "esc back"),
    "HelpScreen": ("Keys", "Health rules with their values"),
    "ReferenceScreen": ("What to try", "KL-4 (rule)"),
    "QueueScreen": ("Queue", "esc back"),
    "ConfirmScreen": ("Stop toy-cpu?", "y  stop", "n  cancel"),
    "RunsScreen": ("Start a new run", "enter open"),
    "AskScreen": ("What name?", "esc  cancel"),
    "PasteScreen": ("Import?", "f2  continue"),
    "ChooseScreen": ("Save?", "y  yes", "n  no"),
    "DiagnosisScreen": ("GPU out of memory", "esc back"),
    "EditorScreen": ("toy-cpu", "enter edit"),
    "LaunchScreen": ("Start toy-cpu", "esc back"),
}
# No check to explain, no metric to chart, no answer to read, nothing to compare with, nothing to stop.
ONLY_WITH_DATA = {
    "CheckDetailScreen",
    "MetricScreen",
    "SampleDiffScreen",
    "EntryScreen",
    "DeviceScreen",
    "CompareScreen",
    "ConfirmScreen",
    "ReferenceScreen",
}


async def resize(pilot: Pilot[Any], sizes: Iterable[tuple[int, int]], *, quick: bool = False) -> None:
    for size in sizes:
        await pilot.resize_terminal(*size)
        if not quick:
            await pilot.pause()
    await pilot.pause()


@pytest.fixture
def fullest(make: SimpleNamespace, warned: Path) -> Path:
    """The run with everything, an older one beside it, answers and eight GPUs."""
    make.run(
        hex_id="0ld", name="older", attempts=[make.recorded(40)], state=make.ended("finished", created=make.start - 100)
    )
    run = RunDir(warned)
    make.write_samples(run, [make.gpus(8)])
    make.write_responses(run)
    return warned


def test_every_screen_has_a_road() -> None:
    screens = {owner for owner in owners() if issubclass(owner, Screen)}
    bases = {base for screen in screens for base in screen.__mro__[1:]}
    names = {base.__name__ for base in bases}  # of which some are pages, too
    assert {screen.__name__ for screen in screens - bases} == {*ROADS, *MAKERS} - names


@pytest.mark.parametrize("screen", [*ROADS, *MAKERS])
async def test_no_size_breaks_a_screen(make: SimpleNamespace, fullest: Path, screen: str) -> None:
    """Smaller with time to draw between, larger again without."""
    app = make.app(fullest)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await walk(pilot, screen)
        for size in SIZES:
            await resize(pilot, [size])
            assert_fits(app, *(WORDS[screen] if size[1] >= 24 else ()))
        await resize(pilot, reversed(SIZES), quick=True)
        assert type(app.screen).__name__ == screen
        assert_fits(app, *WORDS[screen])


@pytest.mark.parametrize("screen", MAKERS)
async def test_leaving_while_a_screen_opens_ends_without_an_error(
    make: SimpleNamespace, fullest: Path, screen: str
) -> None:
    async with make.app().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(MAKERS[screen]())
        await pilot.app.action_quit()


@pytest.mark.parametrize("screen", [*ROADS, *MAKERS])
async def test_a_screen_opens_and_moves_where_there_is_hardly_room(
    make: SimpleNamespace, fullest: Path, screen: str
) -> None:
    app = make.app(fullest)
    async with app.run_test(size=(20, 5)) as pilot:
        await settled(pilot)
        await walk(pilot, screen)
        for key in ("down", "pagedown", "right", "end", "up", "home", "left", "tab"):
            await pilot.press(key)
        assert app.is_running


@pytest.mark.parametrize("screen", ["OpenedDashboard", "ChecksScreen", "ConfirmScreen", "HelpScreen", "palette"])
async def test_ascii_holds_for_what_textual_draws_too(make: SimpleNamespace, fullest: Path, screen: str) -> None:
    """Frames, scrollbars, messages, the palette: a font may lack all of them."""
    app = make.app(fullest, ascii=True)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await settled(pilot)
        if screen == "palette":
            app.action_command_palette()
        else:
            await walk(pilot, screen)
            app.notify("▲ a notice – 漢字")
        wanted = "earch for commands~" if screen == "palette" else "a notice - ????"
        await until(pilot, lambda: wanted in "\n".join(picture(app)))
        seen = "\n".join(picture(app))
        assert seen.isascii(), sorted(set(seen) - set(map(chr, range(128))))


@pytest.mark.parametrize("what", ["long", "nan", "empty", "failed"])
async def test_any_run_can_be_looked_at(make: SimpleNamespace, what: str) -> None:
    """10,000 steps, nothing but NaN, no step at all, a failure in the first minute: on every screen."""
    why = "the model was not found " * 20
    runs: dict[str, Callable[[], Path]] = {
        "long": lambda: make.run(
            attempts=[make.made_up(10_000, critic__score__mean=lambda step: math.sin(step / 900))],
            state=make.running(step=10_000, total=10_000),
        ),
        "nan": lambda: make.run(
            attempts=[make.made_up(30, critic__score__mean=math.nan, actor__entropy=math.nan)],
            state=make.running(step=30, checks=make.checks(NUM_1=("CRITICAL", "nan"))),
        ),
        "empty": lambda: make.run(state=RunState("queued", created=0.0)),
        "failed": lambda: make.run(
            state=make.ended("failed", step=None, error=why, checks=()), log="Traceback\n" * 400
        ),
    }
    app = make.app(runs[what]())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        dashboard = app.screen
        for screen in ROADS:
            if screen in ONLY_WITH_DATA:
                continue
            await walk(pilot, screen)
            for size in [(160, 48), (20, 5)]:
                await resize(pilot, [size])
                assert_fits(app)
            while app.screen is not dashboard and screen != "RunsScreen":  # the last one takes its place
                app.pop_screen()
                await pilot.pause()


@pytest.mark.parametrize("everything", [False, True], ids=["free text", "every word"])
async def test_no_text_of_a_file_acts_on_the_terminal(make: SimpleNamespace, home: Path, everything: bool) -> None:
    """Names of folders and presets, and every string of every file, on every screen of a run: the very bytes."""
    other = whole_run(home, "0ld111", "older")
    run = whole_run(home, name=f"toy{PAYLOAD}", failed=False)
    for each in (run, other):
        poison(each, everything=everything)
    (home / "presets").mkdir()
    (home / "presets" / f"mine{PAYLOAD}.yaml").write_text(f"description: {json.dumps(PAYLOAD)}\nextends: toy-cpu\n")
    (home / "presets" / f"broken{PAYLOAD}.yaml").write_text(f"actor: {json.dumps(PAYLOAD)}\n")
    app = make.app(run.path)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        dashboard = app.screen
        # a rule whose name is such a text has no reference
        others = ROADS.keys() - {"ConfirmScreen", "ReferenceScreen"}
        for screen in ("OpenedDashboard", "RunsScreen") if everything else others:
            await walk(pilot, screen)
            app.notify(PAYLOAD, markup=False)
            for key in ("down", "end") if screen == "RunsScreen" else ("down",):
                await pilot.pause(0.1)
                found = ACTS.search(painted := frame(app))
                assert found is None, (screen, found, painted[max(found.start() - 80, 0) : found.end() + 40])
                await pilot.press(key)
            if screen == "RunsScreen":
                app.routes.show_run(run.path, None, read_only=False)
                await until(pilot, lambda: type(app.screen).__name__ == "OpenedDashboard")
                dashboard = app.screen
            while app.screen is not dashboard:
                app.pop_screen()
                await pilot.pause()
