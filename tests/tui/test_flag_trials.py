"""From a flag to its fix: `health`, the page of the check, the editor and `try` have one value."""

import gzip
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import call
from pilots import message, until
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from launcher.check.config.plausible import unusual
from launcher.compare.trial_runs import TrialPlan, plan
from launcher.preset.field_values import where_of
from launcher.preset.files import load, restore
from launcher.preset.settle import configuration
from launcher.preset.yaml_text import text_of, value_of
from launcher.record.events import Event
from launcher.record.info import Edit, Origin
from launcher.record.layout import RunDir
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import Log
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.proposals import first_proposal
from launcher.runs.watch.steps import steps
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.navigation import navigation
from tui.kit.widgets.lines import Lines
from tui.pages.checks.check import CheckDetailScreen
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.editor.screen import EditorScreen
from tui.pages.trials.screen import TrialsScreen

BLOWUP = Path(__file__).parents[1] / "data" / "logs" / "kl-blowup.log.gz"
RULE = "KL-1"
LARGE = (160, 48)


def flagged(make: SimpleNamespace, settings: Sequence[str] = (), **info: Any) -> Path:
    """The steps of the run whose KL climbed, judged, as a run of a preset with these settings."""
    records = [record for _, record in steps(Log(BLOWUP, BLOWUP))]
    preset = restore("toy-cpu", load("toy-cpu").snapshot(), settings).snapshot()
    log = gzip.decompress(BLOWUP.read_bytes()).decode()
    run: Path = make.run(attempts=[records], state=make.ended("finished"), preset=preset, log=log, **info)
    found = judged(RunDir(run), [])
    make.write_state(run, make.ended("finished", checks=tuple(found.checklist.checks())))
    make.add_events(run, *(Event(make.start + change.step, change) for change in found.changes))
    return run


def after_a_fork(make: SimpleNamespace) -> Path:
    parent = make.run(hex_id="0ld", state=make.ended("finished"))
    diff = (Edit("actor.lr", 3e-4, 3e-3),)
    return flagged(make, ["actor.lr=3e-3"], after=Origin(parent.name, diff, 4))


MAKERS = {
    "advice": (flagged, "set in the preset"),
    "unusual": (lambda make: flagged(make, ["actor.entropy_coeff=-0.5"]), "now -0.5, below the usual 0 to 0.01"),
    "undone": (after_a_fork, "undoes what the fork changed"),
}


def page(app: App[Any]) -> str:
    """The rows of the check that is shown, folded lines joined."""
    rows = app.screen.query_one("#inspected-rows", Lines)
    return " ".join(" ".join("".join(text for text, _ in row) for row in rows.draw(*rows.size)).split())


async def on_page(pilot: Pilot[Any], rule: str = RULE) -> CheckDetailScreen:
    """The page of a check, once it has found what to try."""
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and app.screen.reader is not None)
    app.screen.call_later(partial(navigation(app).show, "check", app.screen.view, rule))  # type: ignore[attr-defined]
    await until(pilot, lambda: isinstance(app.screen, CheckDetailScreen) and "→" in page(app))
    assert isinstance(app.screen, CheckDetailScreen)
    return app.screen


@pytest.mark.parametrize("kind", MAKERS)
async def test_health_the_page_the_editor_and_try_have_one_value(make: SimpleNamespace, kind: str) -> None:
    made, reason = MAKERS[kind]
    run = made(make)
    proposal = first_proposal(Parent(RunDir(run)), RULE)
    assert proposal is not None and reason in proposal.words
    assert plan(RunDir(run), RULE, at=0).arms[1] == proposal.settings
    assert [f"{edit.key}={text_of(edit.now)}" for edit in proposal.edits] == [
        f"{key}={text_of(value_of(value))}" for key, _, value in (each.partition("=") for each in proposal.settings)
    ]

    told = call(["health", run.name])[0].decode()
    assert f"fix: {proposal.words}" in told
    *_, last = call(["health", run.name, "--json"])[0].splitlines()
    (row,) = [check for check in json.loads(last)["checks"] if check["rule"] == RULE]
    assert row["trial"]["settings"] == list(proposal.settings)

    app = make.app(run)
    async with app.run_test(size=LARGE) as pilot:
        await on_page(pilot)
        assert f"fix 1 e {proposal.words}" in page(app)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        draft = app.screen.draft  # type: ignore[attr-defined]
        for edit in proposal.edits:
            assert draft.value(where_of(edit.key)) == edit.now
        for _ in proposal.edits:
            await pilot.press("u")
        for edit in proposal.edits:
            assert draft.value(where_of(edit.key)) != edit.now, "undone"


def test_what_check_finds_unusual_is_what_is_tried(make: SimpleNamespace) -> None:
    run = flagged(make, ["actor.entropy_coeff=-0.5"])
    (finding,) = unusual(configuration(RunDir(run).read_info().preset or {}))
    proposal = first_proposal(Parent(RunDir(run)), RULE)
    assert proposal is not None
    assert {edit.key: edit.now for edit in proposal.edits} == finding.change


async def test_t_tries_the_fixes_of_the_check(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[TrialPlan] = []
    monkeypatch.setattr("launcher.compare.trial_runs.start_apart", begun.append)
    app = make.app(flagged(make))
    async with app.run_test(size=LARGE) as pilot:
        await on_page(pilot)
        await pilot.press("T")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        details = str(app.screen.query_one("#details Static", Static).render())
        assert f"{RULE} rose at step" in details
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, TrialsScreen))
        assert [planned.onset.rule for planned in begun] == [RULE]


async def test_who_only_watches_tries_nothing(make: SimpleNamespace) -> None:
    app = make.app(flagged(make), read_only=True)
    async with app.run_test(size=LARGE) as pilot:
        shown = await on_page(pilot)
        await pilot.press("T")
        await until(pilot, lambda: "Read-only" in message(app))
        assert app.screen is shown and "fix 1 e" not in page(app)
