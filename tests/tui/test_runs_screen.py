"""The list of runs and presets, and its inspector."""

import time
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest
from pilots import words
from waiting import PATIENCE

from launcher.estimate.tuning import Measured, Point
from launcher.preset.files import Summary, load, users
from launcher.preset.library import copy
from launcher.record.info import Edit
from launcher.runs.act import tune as tuning
from launcher.runs.act.tune import Tuned
from launcher.runs.watch.run_settings import differs
from tui.kit.drawing.rows import width
from tui.kit.widgets.painted import Painted
from tui.pages.runs.inspection import PresetFacts
from tui.pages.runs.run_list import ORDERS, RunList
from tui.pages.runs.run_rows import columns_of, preset_row, run_heading, run_row
from tui.pages.runs.screen import POLL

LARGE = (160, 48)
EDITS = [Edit("actor.lr", 0.0003, 1e-5), Edit("actor_rollout_ref.rollout.load_format", None, "auto")]


def options(user):
    """The lines of the list, headings among them, without the cursor."""
    return words(user.one("RunTable").draw(80, 99)).replace("❯", " ").split("\n")


def cursor(user):
    return user.one("RunTable").cursor


def keys_of(user, kind=""):
    return [key for key in user.one("RunTable").keys if key.startswith(kind)]


def inspected(user):
    return "\n".join(words(lines.lines) for lines in user.one("Inspector").query("Lines"))


def three_runs(make):
    return {
        "done": make.run(hex_id="d0", attempts=[make.recorded(80)], state=make.ended("finished", step=80)),
        "live": make.run(hex_id="11fe", attempts=[make.recorded(62)], state=make.running(created=make.start - 50)),
        "old": make.run(hex_id="01d", state=make.ended("failed", step=None, created=make.start - 90)),
    }


async def test_runs_are_listed_found_ordered_and_opened(make):
    runs = three_runs(make)
    found = RunList()
    assert found.refresh()
    before = {run.path: run for run in found.runs}
    assert not found.refresh(), "ended runs are read once"
    assert all(before[run.path] is run for run in found.runs if run.path != runs["live"])
    done, live, old = (f"run {path}" for path in runs.values())
    async with make.open(runs["live"]) as user:
        await user("escape", "RunsScreen", "...")
        lines, bar = options(user), user.one("KeyBar")
        assert "mark" in bar.labels and {"quit", "help"} <= {span[0] for span in bar.draw(80, 1)[0]}
        assert [line.split()[1] for line in lines[1:4]] == ["finished", "running", "failed"]
        curve = lines[1].split()[9]
        assert lines[1].split()[5:] == ["●", "OK", "80/80", "0.875", curve, "3m", "20s"]
        assert len(curve) >= 8 and all("⠀" < sign <= "⣿" for sign in curve)
        assert "–/80" in lines[3] and all(len(line) <= 80 for line in lines[:4])
        assert cursor(user) == live
        assert any("toy-cpu" in line and "no GPU" in line for line in lines[5:])
        await user.resize_terminal(20, 5)
        await user(lambda: "running" in user.seen)  # one line is left for the list: that of the chosen run
        await user.resize_terminal(80, 24)
        orders = {}
        for order in (*ORDERS[1:], ORDERS[0]):
            await user("o")
            orders[order] = keys_of(user, "run ")
        assert orders["best score first"] == [done, live, old] == orders["newest first"]
        assert {tuple(sorted(order)) for order in orders.values()} == {tuple(sorted([done, live, old]))}
        await user("home", "down", "down", "enter", "DashboardScreen")
        assert user.screen.directory == runs["old"]
        await user("q", "RunsScreen", "...")
        assert cursor(user) == old
        await user("home")
        await user.click("RunTable", offset=(20, 3))
        assert cursor(user) == old
        await user.click("RunTable", offset=(20, 0))  # a heading
        assert cursor(user) == old
        await user.click("RunTable", offset=(20, 3))
        await user("DashboardScreen", "q", "RunsScreen", "...")
        make.write_state(runs["live"], make.ended("stopped", created=make.start - 50))
        await user(lambda: "stopped" in options(user)[2])
        make.run(hex_id="ne3", name="newest", state=make.running(created=make.start + 500))
        await user(lambda: "newest" in options(user)[1])
        assert cursor(user) == old
        other = f"run {make.run(hex_id='be77', name='gsm8k', state=make.ended('stopped', verdict='WARN', created=1.0))}"
        await user(lambda: other in keys_of(user))
        for query, expected in (("gsk", [other]), ("fin", [done]), ("warn", [other]), ("run new", keys_of(user)[1:2])):
            await user("slash", *("space" if letter == " " else letter for letter in query))
            assert keys_of(user, "run ") == expected and f"/{query}" in options(user)[0]
            await user("escape")
        assert len(keys_of(user, "run ")) == 5
        await user("slash", *"qqqq", "enter")
        assert keys_of(user) == ["#runs", "#none"] and "No matching run" in options(user)[1]
        await user("escape", "space", "D", "enter")  # q in a field is a letter, and the app lives
        assert user.app.is_running


async def test_marked_runs_are_compared_and_one_is_deleted(make):
    runs = three_runs(make)
    async with make.open() as user:
        await user("D", lambda: "The run has not ended; stop it first" in user.message)
        await user("end", "c", "RunsScreen")  # a preset, and no mark: nothing to compare
        await user("home", "space", "down", "space", "space", "space")
        assert options(user)[1].startswith(" 1✔") and options(user)[2].startswith(" 2●")
        await user("c", "CompareScreen")
        assert user.screen.directories == [runs["done"], runs["live"]]
        await user("...", "escape", "RunsScreen", "space", "down", "c", "CompareScreen")  # one mark, and the chosen run
        assert user.screen.directories == [runs["done"], runs["old"]]
        await user("...", "escape", "RunsScreen", "home", "D", "ConfirmScreen", "n", "RunsScreen")
        assert runs["done"].exists()
        await user("D", "ConfirmScreen", "y", lambda: f"run {runs['done']}" not in keys_of(user))
        assert not runs["done"].exists() and runs["live"].exists() and user.app.routes.marked == []
        await user("escape", "escape", "backspace", "RunsScreen")
        assert user.app.is_running
        await user("q")
        assert not user.app.is_running


async def test_watching_starts_and_deletes_nothing(make):
    runs = three_runs(make)
    async with make.open(read_only=True) as user:
        await user("home", "D")
        assert "Read-only" in user.message and runs["done"].exists()
        await user("end", "enter", "RunsScreen", lambda: "to start runs" in user.message)


async def test_nothing_is_painted_while_nothing_changes(make, monkeypatch):
    make.run(attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    async with make.open() as user:
        painted = []
        monkeypatch.setattr(Painted, "refresh", lambda self, *_, **__: painted.append(self))
        await user.pause(2 * POLL + 0.1)
        assert painted == []


@pytest.mark.parametrize("size", [(80, 24), LARGE])
def test_looks(shot, make, monkeypatch, size):
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
    state = make.ended("stopped", verdict="WARN", step=40, total=1160, created=1.0)
    make.run(hex_id="be77", name="gsm8k-1.5b-lora-24gb", attempts=[make.recorded(40)], state=state)
    assert shot(make.app(), "home", "space", "down", "space", "end", size=size)


async def test_presets_are_copied_renamed_deleted_and_launched_after_a_question(make, home):
    async with make.open() as user:
        await user(lambda: any("Next" in line for line in options(user)))
        assert cursor(user).startswith("preset ")
        await user("end", "enter", "LaunchScreen", "escape", "RunsScreen")
        assert not (home / "runs").exists()
        user.one("RunTable").move_to("preset gsm8k-0.5b-24gb")
        await user("f2", lambda: "is a shipped preset and cannot be changed" in user.message, "RunsScreen")
        await user("y", "AskScreen")
        user.one("Input").value = "mine"
        await user("enter", lambda: cursor(user) == "preset mine")
        told = {line.split()[0]: line for line in options(user) if line.strip()}
        assert "yours" in told["mine"] and "yours" not in told["toy-cpu"]
        assert str(users()["mine"]) in words(user.one("Lines").lines).replace(" ", "").replace("\n", "")
        await user("f2", "AskScreen")
        user.one("Input").value = "ours"
        await user("enter", lambda: "preset ours" in keys_of(user) and "preset mine" not in keys_of(user))
        user.one("RunTable").move_to("preset ours")
        await user("D", "ConfirmScreen", "n", "RunsScreen")
        assert "preset ours" in keys_of(user)
        await user("D", "ConfirmScreen", "y", lambda: "preset ours" not in keys_of(user))
        assert list(users()) == []
        await user("question_mark", "HelpScreen")
        copy("toy-cpu", "written-elsewhere")
        await user("escape", lambda: cursor(user) == "preset written-elsewhere")
        user.one("RunTable").move_to("preset toy-cpu")
        for _ in range(2):  # in one read, as over a slow link
            user.app.simulate_key("enter")
        await user("LaunchScreen", 0.5)
        assert [type(screen).__name__ for screen in user.app.screen_stack].count("LaunchScreen") == 1


@pytest.mark.parametrize("columns", [61, 66, 77, 88, 110, 137])
@pytest.mark.parametrize("longest", [7, 20])
@pytest.mark.parametrize("changed", [0, 40])
def test_a_narrow_list_leaves_whole_columns_out(make, columns, longest, changed):
    name = "gsm8k-1.5b-lora-24gb"[:longest]
    make.run(hex_id="aaaa", name=name, attempts=[make.recorded(40), []], state=make.ended("stopped", step=40))
    runs = RunList()
    runs.refresh()
    assert runs.runs[0].scores.series.last is None and not runs.read_scores()  # the newest attempt has no step yet
    shown = columns_of(columns, longest, changed)
    heading, row = run_heading(shown, ""), run_row(runs.runs[0], "", shown, EDITS if changed else ())
    assert width(row) <= columns and "…" not in words([heading])
    assert name in words([row]) or ("…" in words([row]) and changed)
    assert ("lr=1e-5" in words([row])) == bool(changed)
    for head, value in (("best", "0.766"), ("step", "40/80")):
        assert (head in words([heading])) == (value in words([row]))


@pytest.mark.parametrize("longest", [3, 12, 20, 60])
@pytest.mark.parametrize("changed", [0, 9, 40])
def test_a_wider_list_shows_no_fewer_facts(longest, changed):
    shown = [columns_of(columns, longest, changed) for columns in range(60, 201)]
    for narrow, wide in pairwise(shown):
        assert narrow.others <= wide.others and narrow.verdict <= wide.verdict
    scrolled = shown[19]  # a list that is longer than a page of 80 columns
    assert {"best", "step", "curve"} <= scrolled.others and scrolled.curve >= 8


def test_what_differs_is_named_as_far_as_there_is_room_and_the_needs_of_a_preset_are_not_cut():
    said = [differs(EDITS), differs(EDITS, 20), differs(EDITS, 5), differs([])]
    assert said == ["lr=1e-5 rollout.load_format=auto", "lr=1e-5 +1", "+2", ""]
    preset = Summary("x" * 20, "shipped", Path(), "", "1 GPU, 24 GB; 48 GB host memory")
    for columns in (61, 66, 88):
        row = words([preset_row(preset, columns, 20)])
        assert row.rstrip().endswith(("host memory", "24 GB")) and len(row) <= columns


async def test_the_inspector_has_four_curves_what_differs_and_whether_a_preset_fits(make):
    state, preset = make.ended("finished", step=80), load("toy-cpu", ["actor.lr=1e-5"]).snapshot()
    found = make.run(hex_id="aaaa", attempts=[make.recorded(80)], state=state, preset=preset)
    async with make.open(size=LARGE) as user:
        await user(lambda: "actor.lr 3e-4 → 1e-5" in inspected(user))
        charts = [chart for chart in user.one("Inspector").query("MetricChart") if chart.display]
        assert len(charts) == 4 and all(chart.plot.curves for chart in charts)
        assert str(found) in inspected(user).replace("\n ", "") and "finished at step 80" in inspected(user)
        for columns in (61, 80, 160):
            assert "toy-cpu lr=1e-5" in words(user.one("RunTable").draw(columns, 9))
        assert keys_of(user, "preset ")[0] == "preset toy-cpu"
        user.one("RunTable").move_to("preset toy-cpu")
        await user(lambda: "64 prompts per step" in inspected(user))
        assert "✔ fits this machine (no GPU)" in inspected(user)
        user.one("RunTable").move_to("preset gsm8k-0.5b-8gpu")
        await user(lambda: "base      gsm8k-0.5b-24gb" in inspected(user))
        assert "too large for this machine" in inspected(user) and "trainer.gpus 1 → 8" in inspected(user)


async def test_a_preset_is_tuned_after_a_question_and_listed(make, home, monkeypatch):
    def tune(loaded, path, narrate):
        """Ends when its preset is in the list, which any page that closes makes read the presets again."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("extends: toy-cpu\n")
        listed.wait(PATIENCE)
        best = Measured(Point(), "a-toy-cpu", 400.0)
        return Tuned((best,), best, {}, path)

    monkeypatch.setenv("PPO_TUI_PYTHON", str(home / "python"))  # where the first probe fails
    listed = Event()
    async with make.open() as user:
        user.one("RunTable").move_to("preset toy-cpu")
        await user("a", "u", "ConfirmScreen", "n", "RunsScreen", "a", "u", "ConfirmScreen", "y", "RunsScreen")
        await user(lambda: "cannot be used" in user.message)
        monkeypatch.setattr(tuning, "tune", tune)
        await user("a", "u", "ConfirmScreen", "y", (home / "presets" / "toy-cpu-tuned.yaml").exists)
        await user("question_mark", "escape", lambda: "preset toy-cpu-tuned" in keys_of(user))
        listed.set()
        await user("...")
        assert cursor(user) == "preset toy-cpu", "the cursor stays with the user"
        await user("a", "u", lambda: "toy-cpu-tuned exists already" in user.message)
