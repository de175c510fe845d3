"""Every screen that there is, at every size, on every kind of run, whatever is pressed."""

import json
import math
from pathlib import Path

import pytest
from every_screen import MAKERS, ROADS, back, walk
from hostile import ACTS, PAYLOAD, poison
from key_fuzz import PAGES, Report, fuzz, harmless
from owners import owners
from pilots import User, assert_fits, frame
from textual.screen import Screen
from whole_run import whole_run

from launcher.record.layout import RunDir
from launcher.record.state import RunState

SIZES = [(250, 80), (80, 24), (63, 24), (80, 8), (40, 12), (20, 5), (2, 2)]


# What has to be on the screen from 63 columns on: what the page is about, and a key.
WORDS = {
    "OpenedDashboard": ("KL to reference", "WARN", "h rules"),
    "ChecksScreen": ("Unrewarded drift", "esc back"),
    "CheckDetailScreen": ("Unrewarded drift", "esc back"),
    "CaseScreen": ("y copies this text", "esc back"),
    "EventsScreen": ("KL-4", "esc back"),
    "ActionsScreen": ("Actions", "Export"),
    "TrialsScreen": ("No trials", "esc back"),
    "MetricsScreen": ("actor/kl_loss", "esc back"),
    "MetricScreen": ("actor/kl_loss", "esc back"),
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

NOTHING = dict.fromkeys(("verl", "sglang", "cuda", "uncompiled"))
PROBE = {"python": "3.11.0", "packages": {}, "requires": [], **NOTHING}


async def resize(pilot, sizes, *, quick=False):
    for size in sizes:
        await pilot.resize_terminal(*size)
        if not quick:
            await pilot.pause()
    await pilot.pause()


@pytest.fixture
def fullest(make, warned):
    """The run with everything, an older one beside it, answers and eight GPUs."""
    ended = make.ended("finished", created=make.start - 100)
    make.run(hex_id="0ld", name="older", attempts=[make.recorded(40)], state=ended)
    run = RunDir(warned)
    make.write_samples(run, [make.gpus(8)])
    make.write_responses(run)
    return warned


def test_every_screen_has_a_road():
    screens = {owner for owner in owners() if issubclass(owner, Screen)}
    bases = {base for screen in screens for base in screen.__mro__[1:]}
    names = {base.__name__ for base in bases}  # of which some are pages, too
    assert {screen.__name__ for screen in screens - bases} == {*ROADS, *MAKERS} - names


@pytest.mark.nightly("tui/", "tests/support/every_screen.py", "tests/tui/conftest.py", every=9)
@pytest.mark.parametrize("screen", [*ROADS, *MAKERS])
async def test_no_size_breaks_a_screen(make, fullest, screen):
    """Smaller with time to draw between, larger again without."""
    async with make.open(fullest) as user:
        await walk(user, screen)
        for size in SIZES:
            await resize(user, [size])
            assert_fits(user.app, *(WORDS[screen] if size[1] >= 24 else ()))
        await resize(user, reversed(SIZES), quick=True)
        assert type(user.screen).__name__ == screen
        assert_fits(user.app, *WORDS[screen])


@pytest.mark.parametrize("screen", MAKERS)
async def test_leaving_while_a_screen_opens_ends_without_an_error(make, fullest, screen):
    async with make.open() as user:
        user.app.push_screen(MAKERS[screen]())
        await user.app.action_quit()
        assert user.app.return_code == 0


@pytest.mark.parametrize("part", range(4))
async def test_every_screen_opens_and_moves_where_there_is_hardly_room(make, fullest, part):
    async with make.open(fullest, size=(20, 5)) as user:
        dashboard, last = user.screen, ("OpenedDashboard", "RunsScreen")  # keys move the first, the other replaces it
        for screen in sorted([*ROADS, *MAKERS][part::4], key=last.__contains__):
            await walk(user, screen)
            await user("down", "pagedown", "right", "end", "up", "home", "left", "tab")
            assert user.app.is_running, screen
            if screen not in last:
                await back(user, dashboard)


@pytest.mark.parametrize("screen", ["OpenedDashboard", "ChecksScreen", "ConfirmScreen", "HelpScreen", "palette"])
async def test_ascii_holds_for_what_textual_draws_too(make, fullest, screen):
    """Frames, scrollbars, messages, the palette: a font may lack all of them."""
    app = make.app(fullest, ascii=True)
    async with app.run_test(notifications=True):
        user = User(app)
        await user("...")
        if screen == "palette":
            app.action_command_palette()
        else:
            await walk(user, screen)
            app.notify("▲ a notice – 漢字")
        await user(lambda: ("earch for commands~" if screen == "palette" else "a notice - ????") in user.seen)
        assert user.seen.isascii(), sorted(set(user.seen) - set(map(chr, range(128))))


@pytest.mark.nightly("tui/", "tests/support/every_screen.py", "tests/tui/conftest.py", every=4)
@pytest.mark.parametrize("what", ["nan", "long", "empty", "failed"])
async def test_any_run_can_be_looked_at(make, what):
    """10,000 steps, nothing but NaN, no step at all, a failure in the first minute: on every screen."""
    steps, more = [], {"log": "Traceback\n" * 400} if what == "failed" else {}
    if what == "long":
        steps = make.made_up(10_000, critic__score__mean=lambda step: math.sin(step / 900))
    elif what == "nan":
        steps = make.made_up(30, critic__score__mean=math.nan, actor__entropy=math.nan)
    state = {
        "long": make.running(step=10_000, total=10_000),
        "nan": make.running(step=30, checks=make.checks(NUM_1=("CRITICAL", "nan"))),
        "empty": RunState("queued", created=0.0),
        "failed": make.ended("failed", step=None, error="the model was not found " * 20, checks=()),
    }[what]
    async with make.open(make.run(attempts=[steps], state=state, **more)) as user:
        dashboard = user.screen
        for screen in ROADS:
            if screen in ONLY_WITH_DATA:
                continue
            await walk(user, screen)
            for size in [(160, 48), (20, 5)]:
                await resize(user, [size])
                assert_fits(user.app)
            if screen != "RunsScreen":  # the last one takes its place
                await back(user, dashboard)


@pytest.mark.nightly("tui/", "launcher/core/", "launcher/record/", "tests/support/", every=2)
@pytest.mark.parametrize("everything", [False, True], ids=["free text", "every word"])
async def test_no_text_of_a_file_acts_on_the_terminal(make, home, everything):
    """Names of folders and presets, and every string of every file, on every screen of a run: the very bytes."""
    other = whole_run(home, "0ld111", "older")
    run = whole_run(home, name=f"toy{PAYLOAD}", failed=False)
    for each in (run, other):
        poison(each, everything=everything)
    (home / "presets").mkdir()
    (home / "presets" / f"mine{PAYLOAD}.yaml").write_text(f"description: {json.dumps(PAYLOAD)}\nextends: toy-cpu\n")
    (home / "presets" / f"broken{PAYLOAD}.yaml").write_text(f"actor: {json.dumps(PAYLOAD)}\n")
    async with make.open(run.path, size=(160, 48)) as user:
        dashboard = user.screen
        # a rule whose name is such a text has no reference
        others = [screen for screen in ROADS if screen not in ("ConfirmScreen", "ReferenceScreen")]
        for screen in ("OpenedDashboard", "RunsScreen") if everything else others:
            await walk(user, screen)
            user.app.notify(PAYLOAD, markup=False)
            for key in ("down", "end") if screen == "RunsScreen" else ("down",):
                await user(0.1)
                found = ACTS.search(painted := frame(user.app))
                assert found is None, (screen, found, painted[max(found.start() - 80, 0) : found.end() + 40])
                await user(key)
            if screen != "RunsScreen":  # the last one takes its place
                await back(user, dashboard)


@pytest.mark.nightly("tui/", "tests/support/key_fuzz.py", "tests/support/every_screen.py")
async def test_no_keys_break_a_page(tmp_path, monkeypatch):
    """A short run of campaigns/fuzz_keys.py: no keys, pastes or clicks end the screen, raise or leave it empty."""
    report = Report()
    monkeypatch.chdir(Path.cwd())
    with harmless(tmp_path, PROBE) as template:
        await fuzz(template, tmp_path, 12 * len(PAGES), seed=7, report=report, most=12)
    assert report.presses >= 12 * len(PAGES) and not report.wrong, report.wrong
