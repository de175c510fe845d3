"""The launch of a preset: what it comes to, findings, fixes, rehearsal, refusal and force."""

import threading
from pathlib import Path

import pytest
from pilots import User, words

from launcher.check.finding import REHEARSAL, Finding, found, setting
from launcher.check.gate import Refused
from launcher.core.errors import UserError
from launcher.record.fix import Fix
from launcher.record.layout import RunDir
from tui.pages.launch.launch_plan import LaunchPlan
from tui.pages.launch.screen import LaunchScreen

GOOD = """
extends: toy-cpu
model: {path: /models/tiny}
data: {train: /data/train.parquet, val: /data/val.parquet}
"""
BROKEN = GOOD + "actor: {ppo_mini_batch_size: 128}\n"  # larger than the batch of 64
DISK = Finding("HW-9", "hardware", "warning", (), "the disk is nearly full", (Fix("delete old runs"),))
FILE = Finding("DATA-1", "data", "error", ("data.train_files",), "there is no such file", (Fix("make it"),))
START = "launcher.runs.act.start.start"


class Slow:
    """Stands for work of minutes, the checks or a rehearsal: what it says, when it goes on, whether it was ended."""

    def __init__(self, says, result):
        self.says, self.result, self.go, self.cancelled = says, result, threading.Event(), threading.Event()

    def __call__(self, _, progress, cancelled):
        progress(self.says)
        while not self.go.wait(0.02):
            if cancelled():
                self.cancelled.set()
                return None
        return self.result


@pytest.fixture
def slow(monkeypatch):
    """The checks."""
    checks = Slow("data files", ())
    checks.go.set()
    monkeypatch.setattr("tui.pages.launch.screen.examine", lambda *more: checks(*more) or ())
    return checks


@pytest.fixture
def rehearsal(monkeypatch, slow):
    made = Slow("rehearsal: generating responses", found("REHEARSAL.finished", steps=2, untried="no GPU"))
    monkeypatch.setattr("launcher.runs.act.rehearse.rehearse", made)
    return made


@pytest.fixture
def started(make, monkeypatch):
    """What was started; a run directory stands for it."""
    calls = []

    def start(plan, narrate, *, force):
        narrate("starting its supervisor")
        calls.append((plan.loaded.name, list(plan.changes), force))
        return RunDir(make.run(hex_id=f"abc{len(calls)}"))

    monkeypatch.setattr(START, start)
    return calls


async def opened(user, text, settings=(), answers=None):
    """The launch of a preset with this text, once all is checked."""
    file = Path("mine.yaml").absolute()
    file.write_text(text)
    screen = LaunchScreen(str(file), settings)
    user.app.push_screen(screen, answers)
    await user(lambda: screen.plan.command and (not screen.doing or "data files" in said(screen, "#launch-title")))
    return screen


@pytest.fixture(autouse=True)
def here(home, monkeypatch):
    monkeypatch.chdir(home)


def said(screen, name):
    return " ".join(words(screen.query_one(name).lines).split())


async def test_a_launch_shows_what_it_comes_to_and_starts_without_errors(make, slow, started):
    answers = []
    async with make.open() as user:
        screen = await opened(user, GOOD, ["actor.lr=2e-6"], answers.append)
        shown = said(screen, "#essentials")
        assert "PPO · CPU · veRL 0.9.1 · /models/tiny" in shown and "64 prompts per step, 2 updates of 32" in shown
        assert not screen.errors and "with actor.lr=2e-6" in shown
        command, box = user.one("CommandText"), user.one("#launch-command")
        assert "data.train_batch_size=64" in command.text and "/RUN/" in command.text
        before = command.draw(*command.size)
        for size in ((20, 5), (80, 24)):
            await user.resize_terminal(*size)
            await user()
        await user(lambda: command.draw(*command.size) == before and command.size.width > 70)
        assert command.size.height == len(before)
        await user.resize_terminal(120, 36)
        await user()
        small = box.size.height
        await user("tab", lambda: box.size.height > 3 * small, "tab", lambda: box.size.height == small)
        await user("exclamation_mark")  # there is nothing to force
        assert user.screen is screen
        await user("S", "S", lambda: answers)
        assert started == [("mine", ["actor.lr=2e-6"], False)] and answers[0].name.startswith("abc1")
        screen = await opened(user, GOOD, (), answers.append)
        await user("S", "e", "question_mark", lambda: len(started) == 2 and user.screen is not screen, 0.2, "escape")
        await user(lambda: len(answers) == 2)  # a run that started while the help was open is opened after it
        assert len(started) == 2 and answers[1] is not None


async def test_a_page_with_room_draws_the_memory_of_each_phase(make, slow):
    screen = LaunchScreen("gsm8k-grpo-24gb")
    async with make.open(size=(120, 36)) as user:
        user.app.push_screen(screen)
        await user(lambda: screen.plan.command and not screen.doing)
        phases = [phase.name for phase in screen.plan.memory.phases]
        assert "rollout" in phases and [name for name in phases if f"{name} ▓" not in said(screen, "#essentials")] == []
        await user.resize_terminal(80, 24)
        await user(lambda: "▓" not in said(screen, "#essentials"))


async def test_errors_refuse_force_asks_first_and_f_makes_a_fix_a_setting(make, slow, started):
    slow.result = (FILE,)
    async with make.open(size=(160, 48)) as user:
        screen = await opened(user, BROKEN)
        assert screen.errors and "error" in said(screen, "#launch-title")
        inspected = " ".join(words(screen.inspect(screen.selected(), 70).rows).split())
        assert "actor.ppo_mini_batch_size" in inspected and "mine.yaml, line 5" in inspected
        listed = words(user.one("Findings").draw(88, 40))
        assert "…" not in listed and "fix:" not in listed and "there is no such file" in listed
        await user("S", lambda: "The preflight found errors" in user.message)
        assert not started
        slow.result = ()
        fixable = next(each for each in screen.findings if each.level == "error" and each.change)
        while user.one("Findings").chosen != fixable:
            await user("down")
        before = screen.plan.command
        await user("F", lambda: screen.plan.command != before and not screen.doing)
        assert fixable not in screen.findings and screen.settings[0] in said(screen, "#essentials")
        assert Path("mine.yaml").read_text() == BROKEN
        assert "press e to edit the preset with these fixes" in said(screen, "#essentials")
        await user("e", "EditorScreen", lambda: user.screen.draft.changed)
        (name, value), *_ = fixable.change.items()
        assert user.screen.draft.value(tuple(name.split("."))) == value
        await user("w", lambda: f"{name.rpartition('.')[2]}: {value}" in Path("mine.yaml").read_text(), "escape")
        await user(lambda: user.screen is screen and screen.plan.command and not screen.doing)
        assert not screen.settings and fixable not in screen.findings
        screen = await opened(user, BROKEN)
        for key, forced in (("n", False), ("y", True)):
            await user("exclamation_mark", "ConfirmScreen", key, lambda: not user.is_on("ConfirmScreen"), 0.1)
            assert bool(started) is forced
        await user(lambda: user.screen is not screen)
        assert started[0][2] is True


async def test_slow_checks_tell_what_they_do_and_end_with_the_screen(make, slow):
    slow.result = (DISK, FILE)
    slow.go.clear()
    async with make.open() as user:
        screen = await opened(user, GOOD)
        await user(lambda: "data files" in said(screen, "#launch-title"), "escape", slow.cancelled.is_set)
        assert user.screen is not screen
        screen = await opened(user, GOOD)
        screen.dismiss([])
        slow.go.set()
        await user(0.3)
        assert user.app.is_running and DISK not in screen.findings  # what a check tells a closed page is not drawn
        screen = await opened(user, GOOD)
        await user(lambda: not screen.doing)
        assert screen.findings[:1] == [FILE] and DISK in screen.findings  # errors first


async def test_what_the_start_finds_is_shown(make, slow, monkeypatch):
    problems = [Refused("mine", [FILE, DISK]), OSError("no space left")]

    def start(*_, **__):
        raise problems.pop(0)

    async with make.open() as user:
        screen = await opened(user, GOOD)
        with monkeypatch.context() as patch:
            patch.setenv("PPO_TUI_HOME", "/proc/nope")
            await user("S", lambda: "cannot write to /proc/nope/" in user.message)
        assert "set PPO_TUI_HOME to another folder" in user.message and not screen.starting
        monkeypatch.setattr(START, start)
        await user("S", lambda: "would fail" in user.message)
        assert screen.findings == [FILE, DISK] and not screen.starting
        await user("exclamation_mark", "y", lambda: "no space left" in user.message)
        assert user.screen is screen


async def test_esc_and_q_leave_a_start_that_waits_and_cancel_it(make, slow, monkeypatch):
    go, ended = threading.Event(), []

    def start(_, narrate, **__):
        narrate("waiting for the disk")
        go.wait()
        try:
            narrate("making the run")
        except UserError as error:
            ended.append(str(error))
            raise

    monkeypatch.setattr(START, start)
    async with make.open() as user:
        for key in ("escape", "q"):
            go.clear()
            screen = await opened(user, GOOD)
            await user("S", lambda screen=screen: "waiting for the disk" in said(screen, "#launch-title"), key)
            await user(lambda screen=screen: user.screen is not screen)
            go.set()
            await user(lambda: ended)
            assert ended.pop() == "the start was cancelled" and not user.message


async def test_a_preset_that_cannot_be_read_can_be_neither_forced_nor_rehearsed(make, rehearsal):
    async with make.open() as user:
        screen = await opened(user, "actor: {lr: fast}\n")
        assert "actor.lr" in screen.findings[0].message and "no command" in user.one("CommandText").text
        await user("exclamation_mark")
        assert user.screen is screen
        await user("percent_sign", lambda: "would stop at them" in user.message)
        assert not screen.rehearsing


async def test_the_list_of_presets_opens_the_launch_and_the_run(make, slow, started):
    async with make.open() as user:
        await user("end", "enter", "LaunchScreen", lambda: user.screen.plan.command and not user.screen.doing)
        await user(*(["exclamation_mark", "y"] if user.screen.errors else ["S"]), "DashboardScreen")
        assert len(started) == 1


async def test_a_rehearsal_tells_its_phase_and_what_it_found_and_escape_ends_it(make, rehearsal):
    async with make.open() as user:
        screen = await opened(user, GOOD)
        for _ in range(2):  # the second one replaces what the first has found
            rehearsal.go.clear()
            await user("percent_sign", lambda: "rehearsal: generating" in said(screen, "#launch-title"))
            rehearsal.go.set()
            await user(lambda: not screen.doing)
            (shown,) = [each.message for each in screen.findings if each.id == REHEARSAL]
            assert shown.startswith("veRL ran 2 small steps on the CPU")
        rehearsal.go.clear()
        await user("percent_sign", lambda: "rehearsal: generating" in said(screen, "#launch-title"), "escape")
        await user(rehearsal.cancelled.is_set)
        assert user.screen is screen and not screen.doing
        await user("escape", lambda: user.screen is not screen)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_looks(snap_compare, make, slow, monkeypatch, size):
    """With findings and a command of its own: the real ones depend on the machine."""
    keys = ("actor_rollout_ref.actor.ppo_mini_batch_size", "data.train_batch_size")
    message, fix = "mini-batch 48 does not divide the train batch 128", setting({"actor.ppo_mini_batch_size": 64})
    mini = Finding("V3", "config", "error", keys, message, (fix,))
    what = "PPO · 1 GPU · veRL 0.9.1 · Qwen/Qwen2.5-0.5B-Instruct"
    rows = [[(line, "text")] for line in (what, "128 prompts per step, 3 updates of 48", "20 epochs")]
    command = " \\\n  ".join(["env -u RAY_ADDRESS", "python -u -m verl.trainer.main_ppo"])
    command += "".join(f" \\\n  key_{n}={n}" for n in range(40))
    made = LaunchPlan(rows, command, [mini, FILE, DISK])
    monkeypatch.setattr("tui.pages.launch.screen.plan", lambda *_: made)

    async def shown(pilot):
        user, screen = User(pilot.app), LaunchScreen("gsm8k-0.5b-24gb")
        await user()
        user.app.push_screen(screen)
        await user(lambda: screen.plan.command and not screen.doing)

    assert snap_compare(make.app(), terminal_size=size, run_before=shown)
