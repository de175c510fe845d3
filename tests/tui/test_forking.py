"""A fork from the screen: the question, what it starts, and the parent's curve behind its own."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pilots import drawn, message, until
from textual.widgets import Input, Static

from launcher.compare.trial_runs import TrialPlan
from launcher.preset.files import load
from launcher.record.info import Edit, Origin
from launcher.record.layout import RunDir
from launcher.record.queued import Queued
from launcher.runs.act.start import Plan
from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.lists import Items
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.editor.screen import EditorScreen
from tui.pages.trials.screen import TrialsScreen

HOME = (80, 24)
SNAPSHOT = load("toy-cpu").snapshot()


def with_checkpoints(run: Path, *steps: int) -> Path:
    for step in steps:
        (run / "checkpoints" / f"global_step_{step}" / "actor").mkdir(parents=True)
    (run / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(str(steps[-1]))
    return run


async def test_y_asks_for_checkpoint_and_changes_and_opens_the_fork(
    make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = with_checkpoints(make.run(attempts=[make.recorded(9)], state=make.ended("finished"), preset=SNAPSHOT), 4, 8)
    later, after = make.recorded(12)[10:], Origin(run.name, step=8)
    child = make.run(hex_id="f0f0f0", attempts=[later], state=make.ended("finished"), after=after)
    asked: list[Any] = []

    def start(plan: Plan, *_: object, **__: object) -> RunDir:
        assert plan.origin is not None and plan.checkpoint is not None
        asked.append((plan.changes, plan.origin.run, plan.origin.step, plan.checkpoint.name))
        return RunDir(child)

    monkeypatch.setattr("launcher.runs.act.fork.start", start)
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
        await pilot.press("a", "f")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        field = app.screen.query_one(Input)
        assert field.value == "8 "
        field.value = "5"
        await until(pilot, lambda: "0, 4, 8" in str(app.screen.query_one("#wrong", Static).render()))
        field.value = "8 actor.lr=1e-6"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.directory == child)
        assert asked == [(("actor.lr=1e-6",), run.name, 8, "global_step_8")]
        await until(pilot, lambda: app.screen.query_one("#chart-0", MetricChart).plot.behind is not None)
        plot = app.screen.query_one("#chart-0", MetricChart).plot
        assert plot.behind.points.steps[-1] == 9 and plot.curves[0].points.steps[0] == 10
        await until(pilot, lambda: "░ parent" in drawn(app, MetricChart))


@pytest.mark.parametrize(
    ("key", "steps", "typed", "sent", "asked"),
    [
        ("R", (20, 40), "40 trainer.steps=100 ", "40 trainer.steps=100 actor.lr=1e-6", ("resume", 40, 2)),
        ("R", (), "0 ", "0", ("fork", 0, 0)),
        ("S", (20,), "0 ", "0 data.seed=2", ("fork", 0, 1)),
    ],
)
async def test_one_dialog_resumes_and_starts_again(
    make: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    steps: tuple[int, ...],
    typed: str,
    sent: str,
    asked: tuple[str, int, int],
) -> None:
    ended = make.ended("finished", step=40, total=40)
    run = make.run(attempts=[make.recorded(40)], state=ended, preset=SNAPSHOT)
    if steps:
        with_checkpoints(run, *steps)
    done: list[tuple[str, int, int]] = []
    for name in ("resume", "fork"):

        def act(_: object, settings: Sequence[str], *__: object, step: int, name: str = name, **___: object) -> RunDir:
            done.append((name, step, len(settings)))
            return RunDir(run)

        monkeypatch.setattr(f"launcher.runs.act.{name}.{name}", act)
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        field, said = app.screen.query_one(Input), app.screen.query_one("#wrong", Static)
        assert field.value == typed
        field.value = "7 lr"
        await pilot.press("enter")
        await until(pilot, lambda: "7 is not the step of a checkpoint" in str(said.render()))
        field.value = sent
        await pilot.press("enter")
        await until(pilot, lambda: done == [asked])


async def test_behind_a_fork_of_a_fork_are_the_steps_of_both(make: SimpleNamespace) -> None:
    first = make.run(attempts=[make.recorded(9)], state=make.ended("finished"))
    second = make.run(
        hex_id="b0b0b0", attempts=[make.recorded(9)[6:]], state=make.ended("finished"), after=Origin(first.name, step=5)
    )
    third = make.run(
        hex_id="c0c0c0",
        attempts=[make.recorded(9)[8:]],
        state=make.ended("finished"),
        after=Origin(second.name, step=7),
    )
    app = make.app(third)
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
        await until(pilot, lambda: app.screen.query_one("#chart-0", MetricChart).plot.behind is not None)
        plot = app.screen.query_one("#chart-0", MetricChart).plot
        assert list(plot.behind.points.steps)[-9:] == list(range(1, 10)) and plot.curves[0].points.steps[0] == 8


async def test_who_only_watches_forks_nothing(make: SimpleNamespace) -> None:
    run = with_checkpoints(make.run(attempts=[make.recorded(9)], state=make.ended("finished")), 4)
    app = make.app(run, read_only=True)
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
        await pilot.press("a", "f")
        await pilot.pause()
        assert isinstance(app.screen, DashboardScreen)


async def test_the_trials_of_a_run_are_a_page_with_verdicts(make: SimpleNamespace) -> None:
    run = make.run(attempts=[make.recorded(9)], state=make.ended("finished"), preset=SNAPSHOT)
    control, fix = (Origin(run.name, diff, 4, "KL-1") for diff in ((), (Edit("actor.lr", 3e-4, 1e-5),)))
    sick = make.checks(KL_1=("CRITICAL", "KL 0.3"))
    preset = {"trainer": {"steps": 20}}
    make.run(hex_id="aaaaaa", state=make.ended("stopped", checks=sick), after=control, preset=preset)
    make.run(hex_id="bbbbbb", state=make.ended("finished", step=20), after=fix, preset=preset)
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
        await pilot.press("a", "t")
        await until(pilot, lambda: isinstance(app.screen, TrialsScreen) and len(app.screen.query_one(Items).items) == 3)
        shown = drawn(app, Items)
        assert "KL-1 from step 4" in shown and "repeated" in shown and "fixed" in shown
        assert "actor.lr=1e-5" in shown and "control run" in shown
        await pilot.press("down", "e")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        assert app.screen.draft.value(("actor", "lr")) == 1e-5
        app.pop_screen()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.directory.name[:4] == "bbbb")


async def test_trials_start_when_confirmed_and_their_newest_message_is_shown(
    make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick = make.checks(KL_1=("CRITICAL", "KL 0.3"))
    rose = make.rise(6, "KL-1", "CRITICAL", "KL 0.3")
    run = make.run(
        attempts=[make.recorded(9)], state=make.ended("finished", checks=sick), preset=SNAPSHOT, events=[rose]
    )
    begun: list[TrialPlan] = []
    monkeypatch.setattr("launcher.compare.trial_runs.start_apart", begun.append)
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
        await pilot.press("a", "t")
        await until(pilot, lambda: isinstance(app.screen, TrialsScreen) and "Press T" in drawn(app, Items))
        await pilot.press("T")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        details = str(app.screen.query_one("#details Static", Static).render())
        assert (
            "KL-1 rose at step 6; trials from the start" in details and "control run" in details and "Cost: " in details
        )
        await pilot.press("y")
        await until(pilot, lambda: [each.run.id for each in begun] == [run.name])
        RunDir(run).trials_log.write_text("queued abc: the control run\nleft out \x1b[2Jactor.lr=1: refused\n")
        said = app.screen.query_one("#said", Static)
        await until(pilot, lambda: "left out actor.lr=1: refused" in str(said.render()))
        origin = Origin(run.name, trial="KL-1")
        Queued("0a11-ppo", "ppo", SNAPSHOT, "h", 0, 1.0, make.start, ("actor.lr=1e-6",), origin=origin).save()
        await until(pilot, lambda: "actor.lr=1e-6" in drawn(app, Items))
        assert "waiting in the queue" in drawn(app, Items)
        await pilot.press("T")
        await until(pilot, lambda: "1 trial of this run already in the queue" in message(app))
