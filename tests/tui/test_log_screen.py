"""The log, full screen: follow, search, errors, steps, filter, copy."""

import gzip
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pilots import words

from launcher.metrics.records import StepRecord
from launcher.record.layout import RunDir

LOGS = Path(__file__).parent.parent / "data" / "logs"
ENGINE = "\x1b[36m(EngineCore pid=9)\x1b[0m"
TASK = "\x1b[36m(TaskRunnerV1 pid=3)\x1b[0m"


def console(lines=3000):
    """Steps every 100 lines, an error at line 1500, an engine line every 500, words between."""
    made = []
    for number in range(1, lines + 1):
        if number == 1500:
            made.append("RuntimeError: CUDA error: device-side assert triggered")
        elif number % 500 == 0:
            made.append(f"{ENGINE} engine speaks {number}")
        elif number % 100 == 0:
            made.append(f"{TASK} step:{number // 100} - actor/entropy:0.5 - critic/score/mean:0.25")
        else:
            made.append(f"{TASK} \x1b[1mword\x1b[0m {number}")
    return "".join(line + "\n" for line in made)


@pytest.fixture
def run(make):
    log = console()
    at = {step: log.encode().index(b"step:%d " % step) for step in range(1, 31) if step % 5}
    steps = [StepRecord(step, make.start + step, offset, {"actor/entropy": 0.5}) for step, offset in at.items()]
    return make.run(attempts=[steps], log=log)


class Reader:
    """The log of a run, opened by `l`; `await log(*keys)` presses keys there and waits for what they begin."""

    def __init__(self, user):
        self.user = user

    async def __call__(self, *keys):
        await self.user(*keys, "...")

    @property
    def view(self):
        return self.user.screen.view

    @property
    def chosen(self):
        return self.view.chosen

    @property
    def text(self):
        return self.view.chosen.text

    @property
    def state(self):
        return words(self.user.one("#log-state").lines[:1])

    @property
    def drawn(self):
        return "\n".join(self.view.render_line(row).text for row in range(self.view.size.height))


@asynccontextmanager
async def reading(make, run, *keys, **more):
    async with make.open(run, **more) as user:
        await user("l", "LogScreen", *keys, "...")
        yield Reader(user)


async def test_it_opens_at_the_end_moves_through_the_whole_log_and_searches_it(make, run):
    async with reading(make, run) as log:
        assert log.chosen.shown == "(EngineCore) engine speaks 3000" and log.view.following
        assert "line 3,000 · following" in log.state
        await log(*["up"] * 40)
        assert log.chosen.shown == "(TaskRunnerV1) word 2960" and not log.view.following
        await log("home")
        assert log.chosen.shown == "(TaskRunnerV1) word 1"
        await log("pagedown")
        assert log.text == f"word {log.view.room * 2 - 1}"
        await log("f")
        assert log.text == "engine speaks 3000" and log.view.following and len(log.view.entries) == log.view.room
        await log("slash", *"SPEAKS 2", "enter")
        assert log.text == "engine speaks 2500"  # following: the newest is meant
        for key, text, told in (("N", "2000", ""), ("N", "2500", "from the end"), ("n", "2000", "from the top")):
            await log(key)
            assert log.text == f"engine speaks {text}" and told in log.state
        await log("slash", *"nowhere", "enter")
        assert log.text == "engine speaks 2000" and "no 'nowhere' in the log" in log.state
        await log("slash", *"engine speaks", "enter")
        await log("n", lambda: "5 lines with 'engine speaks'" in log.state)
        await log("ampersand")
        assert [each.text for each in log.view.entries] == [f"engine speaks {n}" for n in (500, 1000, 2000, 2500, 3000)]
        await log("escape", "LogScreen")
        assert len(log.view.entries) == log.view.room


async def test_a_log_that_grows_moves_only_a_screen_that_follows(make, run):
    async with reading(make, run, "up") as log:
        before = log.chosen
        with RunDir(run).attempt(1).console.open("a") as file:
            file.write("half a")
            file.flush()
            await log(1.2)
            assert log.chosen == before
            await log("f")
            assert log.text == "half a"
            file.write(" line\nand more\n")
        await log(lambda: [entry.text for entry in log.view.entries[-2:]] == ["half a line", "and more"])


async def test_long_lines_wrap_and_a_place_far_along_a_line_comes_into_sight(make):
    far = f"step:1 {'- a/b:0.5 ' * 100}- far/away:1 {'- c/d:2 ' * 100}"
    async with reading(make, make.run(log=f"first\n{'x' * 100} the end of it\n{far}\nlast\n")) as log:
        assert "the end of it" not in log.drawn
        await log("slash", *"FAR/", "enter")
        assert log.text.startswith("step:1") and "- far/away:1 -" in log.drawn
        assert " first" in log.drawn  # the lines around it stay where they are
        await log("home", "a", "w")
        assert "the end of it" in log.drawn and log.drawn.count("x") == 100


async def test_errors_steps_lines_and_one_source(make, run):
    async with reading(make, run, "d") as log:
        assert log.text.startswith("RuntimeError: CUDA error")
        assert any(role == "critical" for row in log.view.draw(*log.view.size) for _, role in row)
        await log("number_sign", *"12", "enter")
        assert log.text.startswith("step:12 - ")
        await log("number_sign", *":812", "enter")
        assert log.text == "word 812" and "line 812" in log.state
        for asked, told in (("5", "no step 5"), (":9999", "no line 9999"), ("x", "enter a step number")):
            await log("number_sign", *asked, "enter")
            assert told in log.state and log.text == "word 812"
        await log("f", "tab", "tab", "tab")
        assert "[engine]" in log.state
        assert [each.text for each in log.view.entries] == [f"engine speaks {n}" for n in (500, 1000, 2000, 2500, 3000)]
        await log("up", "up", "tab")
        assert log.text == "engine speaks 2000" and len(log.view.entries) == log.view.room
        await log("tab", "tab")
        assert log.view.entries == [] and "No lines from this source" in log.user.seen


async def test_copies_go_to_the_clipboard_and_to_a_file_and_escape_leaves_step_by_step(make, run, tmp_path):
    async with reading(make, run, "home", "space", "down", "down", "y") as log:
        text = "".join(f"(TaskRunnerV1) word {number}\n" for number in (1, 2, 3))
        copied = tmp_path / "cache" / "copied" / f"{run.name}.txt"
        assert log.user.app.clipboard == text == copied.read_text()
        await log("number_sign", *"3", "enter", "y")
        assert copied.read_text() == "(TaskRunnerV1) step:3 - actor/entropy:0.5 - critic/score/mean:0.25\n"
        await log("space", "slash", "l", "q")
        assert log.user.one("#log-prompt").value == "lq"
        await log("escape")
        assert log.view.has_focus and log.view.mark is not None
        await log("escape", "LogScreen")
        assert log.view.mark is None
        await log("escape", "DashboardScreen")


async def test_frames_of_a_native_stack_are_folded_but_no_error_no_hit_and_no_quoted_line(make, tmp_path):
    stamp = "[2026-11-21 09:27:29,283 E 15 15] logging.cc:474: "
    frames = [f"{stamp}    @     0x7fbb37{n:06x}        224  ray::core::Get{n}()" for n in range(40)]
    log = "\n".join(["first", *frames[:20], "RuntimeError: CUDA error", *frames[20:], "last"]) + "\n"
    async with reading(make, make.run(log=log)) as log:
        folded = [
            words([[(text, role)]]) for row in log.view.draw(*log.view.size) for text, role in row if role == "dim"
        ]
        assert [text for text in folded if "frames" in text] == ["20 frames of a native stack; a w shows them"] * 2
        assert [entry.text for entry in log.view.entries if not entry.folded] == [
            "first",
            "RuntimeError: CUDA error",
            "last",
        ]
        await log("home", "down", "y")
        assert log.user.app.clipboard == "".join(f"{frame}\n" for frame in frames[:20])
        await log("number_sign", *":7", "enter")
        assert log.text == frames[5] and "0x7fbb37000005" in log.drawn
        await log("f", "slash", *"get33(", "enter")
        assert log.text == frames[33] and any(
            role == "live" and text == "Get33(" for row in log.view.draw(99, 30) for text, role in row
        )
        assert "0x7fbb37000020" not in log.drawn
        await log("a", "w")
        assert "0x7fbb37000020" in log.drawn


async def test_attempts_and_a_run_without_a_log(make):
    run = make.run(attempts=[make.recorded(3), make.recorded(3)], log="same\n")
    RunDir(run).attempt(1).console.write_text("the first attempt\n")
    RunDir(run).attempt(2).console.unlink()
    async with reading(make, run) as log:
        assert log.view.entries == []
        RunDir(run).attempt(2).console.write_text("the second attempt\n")
        await log(lambda: log.chosen and log.text == "the second attempt")
        await log("left_square_bracket")
        assert log.text == "the first attempt" and "attempt 1" in log.state
        await log("left_square_bracket")
        assert "no older attempt" in log.state
        await log("right_square_bracket")
        assert log.text == "the second attempt"


@pytest.mark.parametrize("size", [(20, 5), (8, 3), (120, 40)])
async def test_any_size_and_wild_text(make, size):
    evil = "\x1b]0;owned\x07 [red]wide 漢字\x1b[2J\x9b3m\u202e" * 50 + "\n" + "\x00\xff\r\n" * 3 + "(a pid=1) \r50%\r"
    keys = ("right", "right", "left", "up", "up", "down", "pageup", "pagedown", "home")
    async with reading(make, make.run(log=evil), *keys, size=size) as log:
        assert log.view.entries and not {"\x1b", "\x9b", "\u202e"} & set(log.drawn)


@pytest.mark.parametrize(
    "keys", [("d",), ("slash", *"cache", "enter"), ("tab", "tab", "tab")], ids=["error", "search", "engine"]
)
def test_looks(shot, make, keys):
    run = make.run(attempts=[make.recorded(3)])
    RunDir(run).attempt(1).console.write_bytes(gzip.decompress((LOGS / "fail-kv-cache.log.gz").read_bytes()))
    assert shot(make.app(run), "l", *keys, "...")
