"""The recording of `ppo-tui demo`: it plays to its end, and each line that says what to press is true."""

import io
import re

import pytest

from launcher.cli import plain
from launcher.record.events import Action, LevelChange
from launcher.record.state import RunState, current
from launcher.runs.act.demo import RECORDING, line, next_part, play_recording, recording
from launcher.runs.watch.reader import RunReader

PRESSED = re.compile(r"\b[Pp]ress (\S+)(?: for [^,.;]*, (\S+) to)?|, (\S+) (?:for|to) ")
KEYS = {"?": "question_mark", "esc": "escape"}


def level(events, attempt, rule, step):
    """The level of a rule after a step of an attempt."""
    at, found = 1, "OK"
    for what in (event.what for event in events):
        at += isinstance(what, Action) and what.verb == "resume"
        earlier = at < attempt or (at == attempt and getattr(what, "step", None) is not None and what.step <= step)
        if isinstance(what, LevelChange) and what.rule == rule and earlier:
            found = str(what.after)
    return found


@pytest.fixture
def played(home):
    """The whole recording, as `--plain` follows it."""
    run, out = play_recording(speed=10_000), io.StringIO()
    assert plain.follow(run, out, interval=0.05) == 0
    lines = out.getvalue().splitlines()
    second = recording()[1][1]
    assert f"resume from step {second.resume_step} {' '.join(second.settings)}" in lines
    assert lines[-1] == "finished" and any("KL-1 WARN -> CRITICAL" in each for each in lines)
    return run


async def test_the_demo_waits_for_a_key_after_three_steps(home, make):
    run = play_recording(10_000, waits=True)
    async with make.open(run.path, read_only=True) as user:
        for at in ((1, 11), (1, 18), (2, 5)):
            await user(lambda at=at: run.waits.exists() and ((now := current(run)).attempt, now.step) == at)
            await user("down")
        await user(lambda: current(run).state == "finished")


async def test_each_line_of_the_demo_is_true_and_its_keys_work(played, make):
    assert sum(path.stat().st_size for path in RECORDING.iterdir()) < 300_000
    reader = RunReader(played.path)
    reader.poll()
    assert reader.state.state == "finished" and reader.state.attempt == 2
    assert 1.5 < reader.state.step_seconds < 2.5, "as logged, in the time of its last step"
    lines = [text for part in recording()[1] for text in (*(said for _, said in part.says), part.ended)]
    assert all(len(text) <= 78 for text in lines), "one line at 80 columns"
    shown = set[str]()
    for number, steps in ((1, range(0, 20)), (2, range(5, 31))):
        for step in steps:
            text = line(reader.info, RunState("running", attempt=number, step=step)) or ""
            shown.add(text)
            for rule, said in re.findall(r"([A-Z]+-\d) is ([A-Z]+)", text):
                assert level(list(reader.events), number, rule, step) == said, (step, text)
    assert shown == {text for text in lines if text not in {part.ended for part in recording()[1]}}
    stopped = RunState("stopped", attempt=1, exit=reader.state.exit)
    assert next_part(reader.info, stopped) == recording()[1][1] and next_part(reader.info, reader.state) is None
    async with make.open(played.path, read_only=True) as user:
        await user(lambda: user.screen.query("DemoLine") and user.one("DemoLine").size)
        assert user.drawn("DemoLine").strip() == lines[-1]
        keys = {key for text in lines for found in PRESSED.findall(text) for key in found if key}
        assert keys >= {"h", "v", "q"} and {KEYS.get(key, key) for key in keys} <= set(user.screen.active_bindings)
        for size in ((160, 48), (40, 12), (20, 5), (80, 24)):
            await user.resize_terminal(*size)
            await user()
        assert user.drawn("DemoLine").strip() == lines[-1]
