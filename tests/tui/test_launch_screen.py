"""The launch of a preset: what it comes to, findings, fixes, refusal and force."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import assert_fits, message, until
from textual.pilot import Pilot

from launcher.check.finding import Finding, setting
from launcher.check.gate import Refused
from launcher.core.errors import UserError
from launcher.record.fix import Fix
from launcher.record.layout import RunDir
from launcher.runs.act.start import Plan
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets.findings import Findings
from tui.kit.widgets.lines import CommandText, Lines
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.editor.screen import EditorScreen
from tui.pages.launch.screen import LaunchScreen

GOOD = """
extends: toy-cpu
model: {path: /models/tiny}
data: {train: /data/train.parquet, val: /data/val.parquet}
"""
BROKEN = GOOD + "actor: {ppo_mini_batch_size: 128}\n"  # larger than the batch of 64
DISK = Finding("HW-9", "hardware", "warning", (), "the disk is nearly full", (Fix("delete old runs"),))
FILE = Finding("DATA-1", "data", "error", ("data.train_files",), "there is no such file", (Fix("make it"),))


class Slow:
    """Stands for the checks that take seconds: what they find, when they go on, whether they were ended."""

    def __init__(self, *findings: Finding) -> None:
        self.findings, self.go, self.cancelled = findings, threading.Event(), threading.Event()

    def __call__(self, _: object, progress: Callable[[str], None], cancelled: Callable[[], bool]) -> Iterator[Finding]:
        progress("data files")
        while not self.go.wait(0.02):
            if cancelled():
                self.cancelled.set()
                return
        yield from self.findings


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    found = Slow()
    found.go.set()
    monkeypatch.setattr("tui.pages.launch.screen.examine", found)
    return found


@pytest.fixture
def started(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was started; a run directory stands for it."""
    calls: list[Any] = []

    def start(plan: Plan, narrate: Callable[[str], None], *, force: bool) -> RunDir:
        narrate("starting its supervisor")
        calls.append((plan.loaded.name, list(plan.changes), force))
        return RunDir(make.run(hex_id=f"abc{len(calls)}"))

    monkeypatch.setattr("launcher.runs.act.start.start", start)
    return calls


def written(home: Path, text: str) -> str:
    file = home / "mine.yaml"
    file.write_text(text)
    return str(file)


async def opened(pilot: Pilot[Any], preset: str) -> LaunchScreen:
    screen = LaunchScreen(preset)
    await pilot.pause()
    pilot.app.push_screen(screen)
    await until(pilot, lambda: screen.plan.command)
    return screen


def said(screen: LaunchScreen, name: str) -> str:
    return " ".join("".join(text for text, _ in row) for row in screen.query_one(name, Lines).lines)


async def test_the_essentials_and_the_exact_command_are_shown(make: SimpleNamespace, home: Path, slow: Slow) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: not screen.doing)
        assert "PPO · CPU · veRL 0.9.1 · /models/tiny" in said(screen, "#essentials")
        assert "64 prompts per step, 2 updates of 32" in said(screen, "#essentials")
        command = screen.query_one(CommandText)
        assert "data.train_batch_size=64" in command.text and "/RUN/" in command.text
        before = command.draw(*command.size)
        for size in ((20, 5), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await until(pilot, lambda: command.draw(*command.size) == before and command.size.width > 70)
        assert command.size.height == len(before)


async def test_without_errors_s_starts_and_the_run_is_opened(
    make: SimpleNamespace, home: Path, slow: Slow, started: list[Any]
) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        answers: list[Any] = []
        screen = LaunchScreen(written(home, GOOD), ["actor.lr=2e-6"])
        await pilot.pause()
        app.push_screen(screen, answers.append)
        await until(pilot, lambda: screen.plan.command and not screen.doing)
        assert not screen.errors and "with actor.lr=2e-6" in said(screen, "#essentials")
        await pilot.press("exclamation_mark")  # there is nothing to force
        await pilot.pause()
        assert app.screen is screen
        await pilot.press("S", "S")
        await until(pilot, lambda: answers)
        assert started == [("mine", ["actor.lr=2e-6"], False)] and answers[0].name.startswith("abc1")


async def test_a_run_that_started_while_the_help_was_open_is_opened_after_it(
    make: SimpleNamespace, home: Path, slow: Slow, started: list[Any]
) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        answers: list[Any] = []
        screen = LaunchScreen(written(home, GOOD))
        await pilot.pause()
        app.push_screen(screen, answers.append)
        await until(pilot, lambda: screen.plan.command and not screen.doing)
        await pilot.press("S", "e", "question_mark")
        await until(pilot, lambda: started and app.screen is not screen)
        await pilot.pause(0.2)
        await pilot.press("escape")
        await until(pilot, lambda: answers)
        assert len(started) == 1 and answers[0] is not None


async def test_errors_refuse_and_force_asks_first(
    make: SimpleNamespace, home: Path, slow: Slow, started: list[Any]
) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, BROKEN))
        await until(pilot, lambda: not screen.doing)
        assert screen.errors and "error" in said(screen, "#launch-title")
        await pilot.press("S")
        await pilot.pause()
        assert "The checks found errors" in message(app) and not started
        for key, forced in (("n", False), ("y", True)):
            await pilot.press("exclamation_mark")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, ConfirmScreen))
            await pilot.pause(0.1)
            assert bool(started) is forced
        await until(pilot, lambda: app.screen is not screen)
        assert started[0][2] is True


async def test_f_makes_the_fix_a_setting_of_this_launch(make: SimpleNamespace, home: Path, slow: Slow) -> None:
    app = make.app()
    file = written(home, BROKEN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, file)
        await until(pilot, lambda: not screen.doing)
        findings = screen.query_one(Findings)
        fixable = [each for each in screen.findings if each.level == "error" and each.change]
        assert fixable
        while findings.chosen != fixable[0]:
            await pilot.press("down")
        before = screen.plan.command
        await pilot.press("F")
        await until(pilot, lambda: screen.plan.command != before and not screen.doing)
        assert screen.settings and fixable[0] not in screen.findings
        assert screen.settings[0] in said(screen, "#essentials")
        assert Path(file).read_text() == BROKEN and "press e to edit the preset with these fixes" in said(
            screen, "#essentials"
        )
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        editor: Any = app.screen
        await until(pilot, lambda: editor.draft.changed)
        (name, value), *_ = fixable[0].change.items()
        assert editor.draft.value(tuple(name.split("."))) == value
        await pilot.press("w")
        await until(pilot, lambda: f"{name.rpartition('.')[2]}: {value}" in Path(file).read_text())
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen and screen.plan.command and not screen.doing)
        assert not screen.settings and fixable[0] not in screen.findings


async def test_slow_checks_tell_what_they_do_and_end_with_the_screen(
    make: SimpleNamespace, home: Path, slow: Slow
) -> None:
    slow.findings = (DISK, FILE)
    slow.go.clear()
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: "data files" in said(screen, "#launch-title"))
        await pilot.press("escape")
        await until(pilot, slow.cancelled.is_set)
        assert app.screen is not screen
        slow.go.set()
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: not screen.doing)
        assert screen.findings[:1] == [FILE] and DISK in screen.findings  # errors first


async def test_what_a_check_tells_a_closed_dialog_is_not_drawn(make: SimpleNamespace, home: Path, slow: Slow) -> None:
    slow.findings = (DISK,)
    slow.go.clear()
    async with make.app().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: "data files" in said(screen, "#launch-title"))
        screen.dismiss([])
        slow.go.set()
        await pilot.pause(0.3)
        assert pilot.app.is_running and DISK not in screen.findings


async def test_what_the_start_finds_is_shown(
    make: SimpleNamespace, home: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [Refused("mine", [FILE, DISK]), OSError("no space left")]

    def start(*_: Any, **__: Any) -> None:
        raise problems.pop(0)

    monkeypatch.setattr("launcher.runs.act.start.start", start)
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: not screen.doing)
        await pilot.press("S")
        await until(pilot, lambda: "would fail" in message(app))
        assert screen.findings == [FILE, DISK] and not screen.starting
        await pilot.press("exclamation_mark", "y")
        await until(pilot, lambda: "no space left" in message(app))
        assert app.screen is screen


async def test_esc_and_q_leave_a_start_that_waits_and_cancel_it(
    make: SimpleNamespace, home: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, ended = threading.Event(), list[str]()

    def start(_: Plan, narrate: Callable[[str], None], **__: Any) -> None:
        narrate("waiting for the disk")
        go.wait()
        try:
            narrate("making the run")
        except UserError as error:
            ended.append(str(error))
            raise

    monkeypatch.setattr("launcher.runs.act.start.start", start)
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("escape", "q"):
            go.clear()
            screen = await opened(pilot, written(home, GOOD))
            await until(pilot, lambda screen=screen: not screen.doing)  # type: ignore[misc]
            await pilot.press("S")
            await until(pilot, lambda screen=screen: "waiting for the disk" in said(screen, "#launch-title"))  # type: ignore[misc]
            await pilot.press(key)
            await until(pilot, lambda screen=screen: app.screen is not screen)  # type: ignore[misc]
            go.set()
            await until(pilot, lambda: ended)
            assert ended.pop() == "the start was cancelled" and not message(app)


async def test_folders_that_cannot_be_written_are_an_error_at_once(
    make: SimpleNamespace, home: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: not screen.doing)
        monkeypatch.setenv("PPO_TUI_HOME", "/proc/nope")
        await pilot.press("S")
        await until(pilot, lambda: "cannot write to /proc/nope/" in message(app))
        assert "set PPO_TUI_HOME to another folder" in message(app) and not screen.starting


async def test_a_preset_that_cannot_be_read_says_so_and_cannot_be_forced(make: SimpleNamespace, home: Path) -> None:
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, written(home, "actor: {lr: fast}\n"))
        assert "actor.lr" in screen.findings[0].message and "no command" in screen.query_one(CommandText).text
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert app.screen is screen


async def test_the_list_of_presets_opens_the_launch_and_the_run(
    make: SimpleNamespace, home: Path, slow: Slow, started: list[Any]
) -> None:
    (home / "presets").mkdir(exist_ok=True)
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        screen: Any = app.screen
        await until(pilot, lambda: screen.plan.command and not screen.doing)
        await pilot.press(*(["exclamation_mark", "y"] if screen.errors else ["S"]))
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert len(started) == 1


@pytest.mark.parametrize("size", [(250, 60), (100, 20), (60, 16), (40, 9), (20, 5), (10, 3)])
async def test_any_size_will_do(make: SimpleNamespace, home: Path, slow: Slow, size: tuple[int, int]) -> None:
    slow.findings = (FILE, DISK)
    app = make.app()
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, written(home, BROKEN))
        await until(pilot, lambda: not screen.doing)
        assert_fits(app, *(["2 errors"] if size[0] >= 40 else []))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_looks(
    snap_compare: Callable[..., bool],
    make: SimpleNamespace,
    slow: Slow,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    """With findings and a command of its own: the real ones depend on the machine."""
    from tui.pages.launch.launch_plan import LaunchPlan

    keys = ("actor_rollout_ref.actor.ppo_mini_batch_size", "data.train_batch_size")
    change = {"actor.ppo_mini_batch_size": 64}
    message = "mini-batch 48 does not divide the train batch 128"
    mini = Finding("V3", "config", "error", keys, message, (setting(change),))
    lines = [
        "PPO · 1 GPU · veRL 0.9.1 · Qwen/Qwen2.5-0.5B-Instruct",
        "128 prompts per step, 3 updates of 48",
        "20 epochs",
    ]
    command = "env -u RAY_ADDRESS \\\n  python -u -m verl.trainer.main_ppo" + "".join(
        f" \\\n  key_{n}={n}" for n in range(40)
    )
    made = LaunchPlan([[(line, "text")] for line in lines], command, [mini, FILE, DISK])
    monkeypatch.setattr("tui.pages.launch.screen.plan", lambda *_: made)

    async def shown(pilot: Pilot[Any]) -> None:
        screen = await opened(pilot, "gsm8k-0.5b-24gb")
        await until(pilot, lambda: not screen.doing)

    assert snap_compare(make.app(), terminal_size=size, run_before=shown)


async def test_the_inspector_has_the_fix_and_the_place_of_the_value(
    make: SimpleNamespace, home: Path, slow: Slow
) -> None:
    slow.findings = (FILE,)
    app = make.app()
    async with app.run_test(size=(160, 48)) as pilot:
        screen = await opened(pilot, written(home, BROKEN))
        await until(pilot, lambda: not screen.doing)
        found = screen.inspect(screen.selected(), 70)
        words = " ".join(" ".join("".join(text for text, _ in row) for row in found.rows).split())
        assert "actor.ppo_mini_batch_size" in words and "mine.yaml, line 5" in words
        listed = " ".join("".join(text for text, _ in row) for row in screen.query_one(Findings).draw(88, 40))
        assert "…" not in listed and "fix:" not in listed and "there is no such file" in listed


async def test_tab_opens_the_command_and_goes_back(make: SimpleNamespace, home: Path, slow: Slow) -> None:
    app = make.app()
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await opened(pilot, written(home, GOOD))
        await until(pilot, lambda: not screen.doing)
        box = screen.query_one("#launch-command")
        small = box.size.height
        await pilot.press("tab")
        await until(pilot, lambda: box.size.height > 3 * small)
        await pilot.press("tab")
        await until(pilot, lambda: box.size.height == small)
