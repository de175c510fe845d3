"""The queue on the screen: its page, and its runs in the list."""

import os
import re
from functools import partial

import pytest
from commands import call
from pilots import words

from launcher.preset.files import load
from launcher.record import queued
from launcher.record.attempt import LaunchRecord
from launcher.record.info import Edit, Origin
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from tui.pages.launch.screen import LaunchScreen
from tui.pages.queue.screen import STATES


@pytest.fixture(autouse=True)
def asleep(monkeypatch):
    """Nothing is started."""
    for module in ("launcher.runs.act.queue_runner", "tui.pages.queue.screen", "tui.pages.runs.screen"):
        monkeypatch.setattr(f"{module}.wake_queue", lambda **_: None)
    monkeypatch.setattr("tui.pages.queue.screen.now", lambda: 1_795_256_087.0)
    monkeypatch.setattr("launcher.runs.watch.turns._sampled", lambda _: dict.fromkeys("0123"))


def fill(make):
    """Five runs that wait, each for something else."""
    start, me = make.start, ProcessId.of(os.getpid())
    entry = partial(Queued, preset={}, host=os.uname().nodename, needs=2, added=start)
    refused = (
        "grpo would fail: the model Qwen/Qwen3-4B was not found; download it first, or set model.path to a folder "
        "with it; use --force to start it anyway"
    )
    for waiting in (
        entry("0a11-ppo", "ppo", starter=me, gpus=("0", "1"), place=1.0),
        entry("0b22-ppo", "ppo", gpus=("1", "2"), settings=("actor.lr=1e-6",), place=2.0),
        entry("0c33-grpo-of-a-rather-long-name", "grpo-of-a-rather-long-name", after="0b22-ppo", place=3.0),
        entry("0d44-grpo", "grpo", skipped=refused, place=4.0),
        entry("0e55-toy-cpu", "toy-cpu", paused=True, needs=0, place=5.0),
    ):
        waiting.save()
    warning = {"level": "warning", "message": "TMUX delays the Escape key by 500 ms"}
    Checked(1, start, findings=(warning,)).save("0b22-ppo")
    Checked(1, checker=me).save("0c33-grpo-of-a-rather-long-name")
    Checked(1, start, refused=refused).save("0d44-grpo")
    return ids()


def ids():
    return [each.id for each in queued.entries()]


def lines(user, selector):
    return words(user.one(selector).lines)


def test_a_waiting_run_has_the_same_word_in_the_list_and_in_the_queue(make):
    fill(make)
    any_ = rf"\b(?:{'|'.join(STATES)})\b"
    words = [list(dict.fromkeys(re.findall(any_, call([name])[0].decode()))) for name in ("list", "queue")]
    assert words[0] == words[1] == ["starting", "queued", "checking", "refused", "paused"]


def run_on(make, gpus, **state):
    """A live run on these GPUs."""
    run = RunDir(make.run(hex_id="b7f3a1", name="live", state=make.running(**state)))
    env, keys = {"CUDA_VISIBLE_DEVICES": gpus}, {"trainer.n_gpus_per_node": gpus.count(",") + 1}
    LaunchRecord(env=env, keys=keys).write(run.attempt(1).launch)
    return run


async def test_the_order_on_each_gpu_has_a_time_only_where_the_run_has_an_eta(make):
    fill(make)
    run = run_on(make, "2,3", eta=1_380.0)
    async with make.open() as user:
        await user("Q", "QueueScreen", lambda: user.one("LineTable").keys, lambda: "GPU" in lines(user, "#heading"))
        shown = [line.rstrip() for line in lines(user, "#heading").splitlines()]
        assert shown[1:] == [
            " GPU 0       free  next 0a11",
            " GPU 1       free  next 0a11, 0b22",
            " GPU 2       ● b7f3a1-live, ETA 23m  next 0b22",
            " GPU 3       ● b7f3a1-live, ETA 23m",
            " CPU         free",
        ]
        make.running(eta=None).write(run.state)
        await user(lambda: "ETA" not in lines(user, "#heading"))
    async with make.open(size=(60, 12)) as user:
        await user("Q", "QueueScreen", lambda: user.one("LineTable").keys)
        assert lines(user, "#heading").splitlines()[1:] == [" GPU 0       free  next 0a11", " 4 more"]


async def test_the_queue_is_reached_from_the_list_and_changed_there(make):
    before = fill(make)
    make.run(hex_id="d0", attempts=[make.recorded(80)], state=make.ended("finished", step=80))
    async with make.open() as user:
        table = user.one("RunTable")
        assert [key.removeprefix("queued ") for key in table.keys[1:6]] == before
        table.move_to(table.keys[2])
        await user(lambda: "Q shows the queue" in lines(user, "#about"))
        assert "queued" in user.drawn("RunTable") and "paused" in user.drawn("RunTable")
        await user("enter", "QueueScreen", lambda: user.one("LineTable").keys, "down")
        assert "why       GPU 1 is reserved for 0a11-ppo" in lines(user, "#inspected-rows")
        await user("shift+down", lambda: ids()[1:3] == [before[2], before[1]])
        await user("space", lambda: queued.find("0b22").paused, lambda: user.one("LineTable").cursor == "0b22-ppo")
        await user("S", lambda: queued.find("0b22").now and not queued.find("0b22").paused)
        await user("D", lambda: len(user.app.screen_stack) == 4, "y", lambda: "0b22-ppo" not in ids())
        await user("asterisk", queued.paused, lambda: "paused" in lines(user, "#heading"), "escape", "RunsScreen")
        await user(lambda: "preset toy-cpu" in table.keys)
        table.move_to("preset toy-cpu")  # a launch is queued instead of started
        await user("enter", "LaunchScreen", lambda: user.screen.plan.subject is not None)
        await user("Q", lambda: user.message.startswith(f"Queued {ids()[-1]}"), "RunsScreen")  # before it goes out
        entry = queued.entries()[-1]
        assert entry.name == "toy-cpu" and entry.needs == 0


async def test_a_page_that_only_watches_changes_nothing(make):
    before = fill(make)
    async with make.open(read_only=True) as user:
        await user("Q", "QueueScreen", lambda: user.one("LineTable").keys)
        for key in ("S", "space", "shift+down", "D", "asterisk"):
            await user(key, lambda: user.message.startswith("Read-only"))
        assert ids() == before and not queued.paused()


async def test_a_changed_run_is_queued_with_its_origin(make):
    earlier = make.run(state=make.ended("finished"), preset=load("toy-cpu").snapshot())
    screen = LaunchScreen(load("toy-cpu", ["actor.lr=1e-4"]), after=RunDir(earlier))
    async with make.open() as user:
        user.app.push_screen(screen)
        await user(lambda: screen.plan.subject is not None, "Q", queued.entries)
        (entry,) = queued.entries()
        assert entry.origin == Origin(earlier.name, (Edit("actor.lr", 3e-4, 1e-4),))


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (160, 48)])
def test_looks(make, shot, size):
    fill(make)
    run_on(make, "2,3", eta=1_380.0)
    app = make.app()
    assert shot(app, "Q", lambda: app.screen.query_one("LineTable").keys, "down", "down", "down", size=size)
