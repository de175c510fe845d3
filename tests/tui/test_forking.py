"""Forks and trials from the screen: the question, what it starts, the parent's curve behind, one value everywhere."""

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from commands import call

from launcher.check.config.plausible import unusual
from launcher.compare.trial_runs import plan
from launcher.preset.field_values import where_of
from launcher.preset.files import load, restore
from launcher.preset.settle import configuration
from launcher.preset.yaml_text import text_of, value_of
from launcher.record.events import Event
from launcher.record.info import Edit, Origin
from launcher.record.layout import RunDir
from launcher.record.queued import Queued
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import Log
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.proposals import first_proposal
from launcher.runs.watch.steps import steps
from tui.kit.navigation import navigation

SNAPSHOT = load("toy-cpu").snapshot()


def with_checkpoints(run, *steps):
    for step in steps:
        (run / "checkpoints" / f"global_step_{step}" / "actor").mkdir(parents=True)
    (run / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(str(steps[-1]))
    return run


BLOWUP = Path(__file__).parents[1] / "data" / "logs" / "kl-blowup.log.gz"
RULE = "KL-1"


async def test_y_asks_for_checkpoint_and_changes_and_opens_the_fork(make, monkeypatch):
    run = with_checkpoints(make.run(attempts=[make.recorded(9)], state=make.ended("finished"), preset=SNAPSHOT), 4, 8)
    later, after = make.recorded(12)[10:], Origin(run.name, step=8)
    child = make.run(hex_id="f0f0f0", attempts=[later], state=make.ended("finished"), after=after)
    asked = []

    def start(plan, *_, **__):
        asked.append((plan.changes, plan.origin.run, plan.origin.step, plan.checkpoint.name))
        return RunDir(child)

    monkeypatch.setattr("launcher.runs.act.fork.start", start)
    async with make.open(run) as user:
        await user("a", "f", "AskScreen")
        field = user.one("Input")
        assert field.value == "8 "
        field.value = "5"
        await user(lambda: "0, 4, 8" in str(user.one("#wrong").render()))
        field.value = "8 actor.lr=1e-6"
        await user("enter", lambda: user.is_on("DashboardScreen") and user.screen.directory == child)
        assert asked == [(("actor.lr=1e-6",), run.name, 8, "global_step_8")]
        await user(lambda: user.one("#chart-0").plot.behind is not None)
        plot = user.one("#chart-0").plot
        assert plot.behind.points.steps[-1] == 9 and plot.curves[0].points.steps[0] == 10
        await user(lambda: "░ parent" in user.drawn("MetricChart"))


@pytest.mark.parametrize(
    ("key", "steps", "typed", "sent", "asked"),
    [
        ("R", (20, 40), "40 trainer.steps=100 ", "40 trainer.steps=100 actor.lr=1e-6", ("resume", 40, 2)),
        ("R", (), "0 ", "0", ("fork", 0, 0)),
        ("S", (20,), "0 ", "0 data.seed=2", ("fork", 0, 1)),
    ],
)
async def test_one_dialog_resumes_and_starts_again(make, monkeypatch, key, steps, typed, sent, asked):
    ended, done = make.ended("finished", step=40, total=40), []
    run = make.run(attempts=[make.recorded(40)], state=ended, preset=SNAPSHOT)
    if steps:
        with_checkpoints(run, *steps)
    for name in ("resume", "fork"):

        def act(_, settings, *__, step, name=name, **___):
            done.append((name, step, len(settings)))
            return RunDir(run)

        monkeypatch.setattr(f"launcher.runs.act.{name}.{name}", act)
    async with make.open(run) as user:
        await user(key, "AskScreen")
        field = user.one("Input")
        assert field.value == typed
        field.value = "7 lr"
        await user("enter", lambda: "7 is not the step of a checkpoint" in str(user.one("#wrong").render()))
        field.value = sent
        await user("enter", lambda: done == [asked])


async def test_behind_a_fork_of_a_fork_are_the_steps_of_both_and_who_only_watches_forks_nothing(make):
    ended, steps = make.ended("finished"), make.recorded(9)
    first = make.run(attempts=[steps], state=ended)
    second = make.run(hex_id="b0", attempts=[steps[6:]], state=ended, after=Origin(first.name, step=5))
    third = make.run(hex_id="c0", attempts=[steps[8:]], state=ended, after=Origin(second.name, step=7))
    async with make.open(with_checkpoints(third, 8), read_only=True) as user:
        await user(lambda: user.one("#chart-0").plot.behind is not None)
        plot = user.one("#chart-0").plot
        assert list(plot.behind.points.steps)[-9:] == list(range(1, 10)) and plot.curves[0].points.steps[0] == 8
        await user("a", "f", "DashboardScreen")


async def test_the_trials_of_a_run_are_a_page_with_verdicts(make):
    run = make.run(attempts=[make.recorded(9)], state=make.ended("finished"), preset=SNAPSHOT)
    control, fix = (Origin(run.name, diff, 4, "KL-1") for diff in ((), (Edit("actor.lr", 3e-4, 1e-5),)))
    sick, preset = make.checks(KL_1=("CRITICAL", "KL 0.3")), {"trainer": {"steps": 20}}
    make.run(hex_id="aaaaaa", state=make.ended("stopped", checks=sick), after=control, preset=preset)
    make.run(hex_id="bbbbbb", state=make.ended("finished", step=20), after=fix, preset=preset)
    async with make.open(run) as user:
        await user("a", "t", "TrialsScreen", lambda: len(user.one("Items").items) == 3)
        shown = user.drawn("Items")
        for part in ("KL-1 from step 4", "repeated", "fixed", "actor.lr=1e-5", "control run"):
            assert part in shown
        await user("down", "e", "EditorScreen")
        assert user.screen.draft.value(("actor", "lr")) == 1e-5
        user.app.pop_screen()
        await user("enter", lambda: user.is_on("DashboardScreen") and user.screen.directory.name[:4] == "bbbb")


async def test_trials_start_when_confirmed_and_their_newest_message_is_shown(make, monkeypatch):
    state, rose = (
        make.ended("finished", checks=make.checks(KL_1=("CRITICAL", "KL 0.3"))),
        ("KL-1", "CRITICAL", "KL 0.3"),
    )
    run = make.run(attempts=[make.recorded(9)], state=state, preset=SNAPSHOT, events=[make.rise(6, *rose)])
    begun = []
    monkeypatch.setattr("launcher.compare.trial_runs.start_apart", begun.append)
    async with make.open(run) as user:
        await user("a", "t", "TrialsScreen", lambda: "Press T" in user.drawn("Items"), "T", "ConfirmScreen")
        details = str(user.one("#details Static").render())
        for part in ("KL-1 rose at step 6; trials from the start", "control run", "Cost: "):
            assert part in details
        await user("y", lambda: [each.run.id for each in begun] == [run.name])
        RunDir(run).trials_log.write_text("queued abc: the control run\nleft out \x1b[2Jactor.lr=1: refused\n")
        await user(lambda: "left out actor.lr=1: refused" in str(user.one("#said").render()))
        origin = Origin(run.name, trial="KL-1")
        Queued("0a11-ppo", "ppo", SNAPSHOT, "h", 0, 1.0, make.start, ("actor.lr=1e-6",), origin=origin).save()
        await user(lambda: "actor.lr=1e-6" in user.drawn("Items"))
        assert "waiting in the queue" in user.drawn("Items")
        await user("T", lambda: "1 trial of this run already in the queue" in user.message)


def flagged(make, settings=(), **info):
    """The steps of the run whose KL climbed, judged, as a run of a preset with these settings."""
    records = [record for _, record in steps(Log(BLOWUP, BLOWUP))]
    preset = restore("toy-cpu", load("toy-cpu").snapshot(), settings).snapshot()
    log = gzip.decompress(BLOWUP.read_bytes()).decode()
    run = make.run(attempts=[records], state=make.ended("finished"), preset=preset, log=log, **info)
    found = judged(RunDir(run), [])
    make.write_state(run, make.ended("finished", checks=tuple(found.checklist.checks())))
    make.add_events(run, *(Event(make.start + change.step, change) for change in found.changes))
    return run


def after_a_fork(make):
    parent = make.run(hex_id="0ld", state=make.ended("finished"))
    diff = (Edit("actor.lr", 3e-4, 3e-3),)
    return flagged(make, ["actor.lr=3e-3"], after=Origin(parent.name, diff, 4))


MAKERS = {
    "advice": (flagged, "set in the preset"),
    "unusual": (lambda make: flagged(make, ["actor.entropy_coeff=-0.5"]), "now -0.5, below the usual 0 to 0.01"),
    "undone": (after_a_fork, "undoes what the fork changed"),
}


def page(user):
    """The rows of the check that is shown, folded lines joined."""
    return " ".join(user.drawn("#inspected-rows").split())


async def on_page(user):
    """The page of the check, once it has found what to try."""
    user.screen.call_later(partial(navigation(user.app).show, "check", user.screen.view, RULE))
    await user("CheckDetailScreen", lambda: "→" in page(user))


@pytest.mark.parametrize("kind", MAKERS)
async def test_health_the_page_the_editor_and_try_have_one_value(make, monkeypatch, kind):
    made, reason = MAKERS[kind]
    run, begun = made(make), []
    proposal = first_proposal(Parent(RunDir(run)), RULE)
    assert reason in proposal.words
    if kind == "unusual":
        (finding,) = unusual(configuration(RunDir(run).read_info().preset or {}))
        assert {edit.key: edit.now for edit in proposal.edits} == finding.change
    assert plan(RunDir(run), RULE, at=0).arms[1] == proposal.settings
    assert [f"{edit.key}={text_of(edit.now)}" for edit in proposal.edits] == [
        f"{key}={text_of(value_of(value))}" for key, _, value in (each.partition("=") for each in proposal.settings)
    ]
    assert f"fix: {proposal.words}" in call(["health", run.name])[0].decode()
    *_, last = call(["health", run.name, "--json"])[0].splitlines()
    (row,) = [check for check in json.loads(last)["checks"] if check["rule"] == RULE]
    assert row["trial"]["settings"] == list(proposal.settings)
    monkeypatch.setattr("launcher.compare.trial_runs.start_apart", begun.append)
    async with make.open(run, size=(160, 48)) as user:
        await on_page(user)
        assert f"fix 1 e {proposal.words}" in page(user)
        await user("e", "EditorScreen")
        draft = user.screen.draft
        assert all(draft.value(where_of(edit.key)) == edit.now for edit in proposal.edits)
        await user(*["u"] * len(proposal.edits))
        assert all(draft.value(where_of(edit.key)) != edit.now for edit in proposal.edits), "undone"
        if kind == "advice":
            await user("escape", "CheckDetailScreen", "T", "ConfirmScreen")
            assert f"{RULE} rose at step" in str(user.one("#details Static").render())
            await user("y", "TrialsScreen")
            assert [planned.onset.rule for planned in begun] == [RULE]


async def test_who_only_watches_tries_nothing(make):
    async with make.open(flagged(make), read_only=True, size=(160, 48)) as user:
        await on_page(user)
        await user("T", lambda: "Read-only" in user.message, "CheckDetailScreen")
        assert "fix 1 e" not in page(user)
