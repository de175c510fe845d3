"""The keys of the dashboard, and those that cannot work now: the footer leaves them out, a press gives the reason."""

import os
from dataclasses import replace

import pytest
from pilots import words

from launcher.record import queued
from launcher.record.attempt import Followed
from launcher.record.control import take
from launcher.record.layout import RunDir
from launcher.record.queued import Queued
from tui.kit.page import Offers
from tui.pages.help.screen import LEGENDS


def help_of(user):
    return words(user.one("HelpText").draw(72, 1000))


def labels(user, count=20):
    return user.one("KeyBar").labels[:count]


def asked(user):
    return " ".join(str(each.render()) for each in user.screen.query("Static"))


async def test_stop_asks_and_yes_sends_the_request(make, warned):
    control = RunDir(warned).control
    async with make.open(warned) as user:
        for refusal in ("n", "escape", "enter"):  # enter presses the safe button
            await user("x", "ConfirmScreen", refusal, "DashboardScreen")
        assert list(control.iterdir()) == []
        await user("x", "ConfirmScreen", "y", lambda: any(control.iterdir()))
        # as its supervisor does: a stop that nobody takes kills it, which is this process
        (sent,) = take(RunDir(warned))
        assert (sent.verb, sent.by) == ("stop", "screen")
        await user(lambda: user.message == f"Stop requested: {warned.name}")
        await user("q")
    assert user.app.return_code == 0 and list(control.iterdir()) == []


@pytest.mark.parametrize(("speed", "ends"), [(None, "no longer read; no process"), (9.0, "no longer played")])
async def test_a_log_has_no_process(make, warned, speed, ends):
    attempt = RunDir(warned).last_attempt()
    replace(attempt.read_launch(), follow=Followed("/a.log", "console", speed)).write(attempt.launch)
    async with make.open(warned) as user:
        await user("x", "ConfirmScreen")
        assert ends in asked(user) and "SIGTERM" not in asked(user)


async def test_a_stop_that_ended_the_run_itself_says_so(make, warned, monkeypatch):
    def stop(run, *, by, narrate):
        narrate("the run had a supervisor that did not respond")
        return "stopped"

    monkeypatch.setattr("launcher.runs.act.stop.stop", stop)
    told = f"{warned.name} is stopped; the run had a supervisor that did not respond"
    async with make.open(warned, size=(160, 48)) as user:
        await user("x", "ConfirmScreen", "y", lambda: user.message == told)


async def test_a_watched_run_cannot_be_stopped(make, warned):
    async with make.open(warned, read_only=True) as user:
        assert "watching" in user.drawn("HeaderLine")
        await user("x", "DashboardScreen")
        assert "Read-only" in user.message and list(RunDir(warned).control.iterdir()) == []


async def test_the_keys_of_the_footer_are_those_of_help_and_palette_and_neighbours_are_a_key_away(make, warned):
    older = make.run(hex_id="0ld", name="older", state=make.ended("finished", created=make.start - 100))
    async with make.open(warned) as user:
        footer = {b.binding.description for b in user.screen.active_bindings.values() if b.binding.show and b.enabled}
        assert footer == {"events", "rules", "metrics", "log", "stop", "back", "quit", "actions", "help", "palette"}
        titles = {command.title.lower().partition(" (")[0] for command in user.app.get_system_commands(user.screen)}
        assert footer <= titles
        for columns, more in ((80, False), (160, True), (80, False)):
            await user.resize_terminal(columns, 48)
            await user(lambda more=more: ({"machine", "samples", "compare"} <= set(labels(user))) is more)
            assert {"rules", "metrics", "log", "help"} <= set(labels(user))
        await user("question_mark", "HelpScreen")
        assert "Stop the run; asks first" in help_of(user)
        await user("escape", "DashboardScreen", "h", "ChecksScreen")  # h, q and escape go back from there
        titles = [command.title for command in user.app.get_system_commands(user.screen)]
        assert titles.count("Back (esc)") == 1 and sorted(titles) == sorted(set(titles))
        await user("h", "DashboardScreen", "l", "LogScreen")
        with RunDir(warned).attempt(1).console.open("a") as file:
            file.write("one more line\n")
        await user(lambda: "one more line" in user.seen, "l", "DashboardScreen", "left_square_bracket")
        await user(lambda: user.screen.is_attached and getattr(user.screen, "directory", None) == older, "...")
        await user("left_square_bracket")  # there is no older one
        assert user.screen.directory == older
        await user("right_square_bracket", lambda: getattr(user.screen, "directory", None) == warned)


async def test_escape_leads_to_the_list_and_q_ends_the_program_where_it_began(make):
    async with make.open(make.run(attempts=[make.recorded(9)], state=make.ended("finished"))) as user:
        assert "quit" in labels(user)
        await user(
            "down", "escape", "DashboardScreen", "escape", "RunsScreen"
        )  # the choice of a check is given up first
        await user("enter", "DashboardScreen", "...")
        assert "quit" not in labels(user)
        await user("q", "RunsScreen", "q")
        assert not user.app.is_running


async def test_a_run_without_a_checkpoint_can_start_again_but_not_merge(make):
    stopped = make.run(attempts=[make.recorded(62)], state=make.ended("stopped"), preset={})
    make.run(hex_id="b1", attempts=[make.recorded(62)], state=make.ended("stopped"), preset={})
    async with make.open(stopped, size=(160, 48)) as user:
        await user("R", "AskScreen")
        assert "No checkpoint: " in asked(user)
        await user("escape", "x", lambda: user.message == "The run has ended", "question_mark", "HelpScreen")
        assert "Turn a checkpoint into a Hugging Face model\n" in help_of(user)
        assert " no complete checkpoint (trainer.save_every)\n" in help_of(user).partition("Not now")[2]
        await user("escape", "DashboardScreen")
        await user.resize_terminal(80, 24)
        await user("l", "LogScreen")
        assert "next" not in labels(user)
        for key in "nN":
            await user(key, lambda: user.message == "Search first (/)")
        await user("escape", "DashboardScreen", "a", "t", "TrialsScreen")
        await user(lambda: "No trial can start now" in user.drawn("Items"))
        assert "Press T" not in user.drawn("Items") and "try" not in labels(user)
        await user("escape", "DashboardScreen")
        for page in ("", "c"):
            if page:
                await user(page, "CompareScreen", lambda: len(user.screen.runs) == 2)
            before = labels(user)
            assert "close cursor" not in before  # the footer begins with the keys of the cursor
            await user("left", lambda: {"move", "close cursor"} <= {*labels(user, 3)}, "escape")
            await user(lambda before=before: labels(user) == before)


async def test_the_footer_of_a_failed_run_begins_with_its_cause(make):
    state = make.ended("failed", error="RuntimeError: x")
    async with make.open(make.run(attempts=[make.recorded(20)], state=state)) as user:
        await user(lambda: labels(user, 1) == ["diagnosis"], "l", "LogScreen", lambda: labels(user, 1) == ["cause"])


async def test_the_footer_of_the_queue_says_what_space_does_now(make):
    async with make.open() as user:
        await user("Q", "QueueScreen")
        assert labels(user) == ["back", "help", "palette"]
        await user("S", lambda: user.message == "The queue is empty", "escape", "RunsScreen")
        for id, state in (("0a-run", {}), ("0b-paused", {"paused": True}), ("0c-skipped", {"skipped": "no model"})):
            Queued(id, "x", {}, os.uname().nodename, needs=1, place=ord(id[1]), added=make.start, **state).save()
        queued.pause(on=True)
        await user("Q", lambda: labels(user, 1) == ["resume the queue"], "down")
        await user(lambda: labels(user, 2) == ["resume the queue", "resume"], "down")
        await user(lambda: labels(user, 2) == ["resume the queue", "try again"], "up", "up")
        await user(lambda: "pause" in labels(user, 9) and labels(user, 1) == ["resume the queue"])


@pytest.mark.parametrize(
    ("key", "sections"), [("", ["Rules", "Charts"]), ("s", ["Scores", "Samples"]), ("b", ["Memory", "Charts"])]
)
async def test_the_help_explains_the_signs_of_its_page_alone(make, warned, key, sections):
    async with make.open(warned) as user:
        below = user.screen
        if key:
            await user(key, lambda: user.screen is not below)
        await user("question_mark", "HelpScreen")
        assert [line for line in help_of(user).splitlines() if line in LEGENDS] == sections
        assert all("  " in line[2:] for line in help_of(user).splitlines() if line.startswith("  · not judged"))


def test_a_refusal_is_no_action_that_works():
    class Page(Offers):
        def refusal(self, action):
            return "why" if action == "stop" else None

    check = Page().check_action
    assert check("stop", ()) is None and check("note", ()) is True
