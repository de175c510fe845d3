"""What a failed run says of itself: cause, lines of the log, fixes; from its dashboard, on a page, on ERR-1's page."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from console_logs import DATA, stored
from pilots import drawn, message, until
from textual.pilot import Pilot
from textual.widgets import Input, Static

from launcher.compare.trial_runs import TrialPlan
from launcher.preset.files import load, restore
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs
from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets.chart_widgets import MetricChart
from tui.kit.widgets.lines import Lines
from tui.kit.widgets.log_tail import LogTail
from tui.pages.dashboard.checklist import Checklist
from tui.pages.dashboard.diagnosis_panel import DiagnosisPanel
from tui.pages.dashboard.head_lines import Banner
from tui.pages.diagnosis.screen import DiagnosisList, DiagnosisScreen
from tui.pages.editor.screen import EditorScreen
from tui.pages.log.screen import LogScreen
from tui.pages.trials.screen import TrialsScreen

HOME = (80, 24)
SITE = "/opt/lib/python3.12/site-packages/"
BROKEN = "RuntimeError: unexpected precision: bf8"
OOM = "GPU out of memory in the actor update"
MICRO = "actor.ppo_micro_batch_size_per_gpu"
Compare = Callable[..., bool]


@pytest.fixture
def failed(make: SimpleNamespace) -> Path:
    """A run of ours that ran out of GPU memory at step 30."""
    log = make.log + stored("fail-oom").decode()[stored("fail-oom").decode().index("Error executing job") :]
    state = make.ended("failed", step=30, error=OOM, cause="gpu-oom-update", checks=make.checks())
    preset = load("gsm8k-0.5b-24gb").snapshot()
    path: Path = make.run(attempts=[make.recorded(30)], state=state, log=log, preset=preset)
    return path


@pytest.fixture
def imported(make: SimpleNamespace) -> Path:
    return import_logs([str(DATA / "logs" / "fail-oom.log.gz")])[0].path


async def opened(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def panel(app: Any) -> DiagnosisPanel:
    found: DiagnosisPanel = app.screen.query_one(DiagnosisPanel)
    return found


async def test_a_failed_run_shows_cause_evidence_fixes_and_then_the_log(make: SimpleNamespace, failed: Path) -> None:
    app = make.app(failed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        said = drawn(app, DiagnosisPanel)
        assert OOM in " ".join(drawn(app, Banner).split()) and OOM not in said  # once
        assert "do not fit" in said and "torch.OutOfMemoryError: CUDA out of memory" in said
        assert f"e lower {MICRO} to 1" in said
        assert [chart.display for chart in app.screen.query(MetricChart)][:2] == [True, True]
        assert "rc=1" not in drawn(app, LogTail) and drawn(app, LogTail).strip()
        assert app.screen.active_bindings["d"].enabled


async def test_a_run_that_died_before_its_first_step_shows_no_charts(make: SimpleNamespace, imported: Path) -> None:
    app = make.app(imported)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        said = drawn(app, DiagnosisPanel)
        assert said.index("ppo-tui check PRESET") < said.index("line 1364    torch.OutOfMemoryError")  # the last fix
        assert not any(chart.size for chart in app.screen.query(MetricChart))
        assert app.screen.query_one(LogTail).size.height >= 3


async def test_the_cursor_goes_through_the_diagnosis_and_then_the_checks(make: SimpleNamespace, failed: Path) -> None:
    app = make.app(failed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "down")
        names, checks = panel(app).names, app.screen.query_one(Checklist)
        assert panel(app).cursor == names[0] and "❯fix" in drawn(app, DiagnosisPanel)
        await opened(pilot, "up", *["down"] * (len(names) - 1))
        assert panel(app).cursor == names[-1] and "❯" in drawn(app, DiagnosisPanel)  # scrolled to
        await opened(pilot, "down")
        assert (panel(app).cursor, checks.cursor) == (None, checks.first)
        await opened(pilot, "down", "up", "up")
        assert (panel(app).cursor, checks.cursor) == (names[-1], None)
        await opened(pilot, "escape")
        assert (panel(app).cursor, checks.cursor) == (None, None)


async def test_enter_on_evidence_goes_to_its_line(make: SimpleNamespace, imported: Path) -> None:
    app = make.app(imported)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "down")
        second = panel(app).names.index("line 1358")
        await opened(pilot, *["down"] * second, "enter")
        assert isinstance(app.screen, LogScreen)
        await until(pilot, lambda: not app.screen.view.following)
        view = app.screen.view
        assert view.pager.number_at(view.chosen.offset) == 1358
        assert "in logprobs_from_logits_v2" in view.chosen.text


@pytest.mark.parametrize("keys", [("down", "e"), ("d", "e")])
async def test_a_fix_becomes_a_change_of_a_new_preset(
    make: SimpleNamespace, failed: Path, keys: tuple[str, ...]
) -> None:
    app = make.app(failed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, *keys)
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        draft = app.screen.draft
        assert draft.loaded().preset.actor.ppo_micro_batch_size_per_gpu == 1
        assert draft.run == RunDir(failed).id and not draft.path.exists()


async def test_an_imported_run_is_fixed_too(make: SimpleNamespace, imported: Path) -> None:
    app = make.app(imported)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "down", "e")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        preset = app.screen.draft.loaded().preset
        assert preset.actor.ppo_micro_batch_size_per_gpu == 64 and preset.data.train_batch_size == 512
        assert "read from its log" in app.screen.draft.text


async def test_what_no_preset_can_do_is_said(make: SimpleNamespace, failed: Path) -> None:
    app = make.app(failed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "d", *["down"] * 4, "e")
        assert isinstance(app.screen, DiagnosisScreen) and "outside ppo-tui" in message(app)


async def test_a_fix_is_tried_in_a_fork(make: SimpleNamespace, failed: Path) -> None:
    app = make.app(failed)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "d", "T")
        await until(pilot, lambda: isinstance(app.screen, AskScreen))
        assert app.screen.query_one(Input).value.split()[1:] == [f"{MICRO}=1"]


async def test_t_isolates_a_failure_without_an_entry(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[TrialPlan] = []
    monkeypatch.setattr("launcher.compare.trial_runs.start_apart", begun.append)
    code = f'File "{SITE}verl/utils/torch_dtypes.py", line 69, in to_dtype'
    given = "Error executing job with overrides: ['actor_rollout_ref.actor.fsdp_config.model_dtype=bf8']"
    log = f"{given}\nTraceback (most recent call last):\n  {code}\n{BROKEN}\n"
    state = make.ended("failed", step=0, error=BROKEN, cause="unknown")
    preset = restore("toy-cpu", load("toy-cpu").snapshot(), ["actor.model_dtype=bf8"]).snapshot()
    app = make.app(make.run(state=state, log=log, preset=preset))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "d")
        assert "e isolate: set actor.model_dtype=fp32 (now bf8)" in drawn(app, DiagnosisList)
        await opened(pilot, "T")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "isolation, not a fix" in str(app.screen.query_one("#details Static", Static).render())
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, TrialsScreen))
    assert [(planned.arms, planned.until) for planned in begun] == [((("actor.model_dtype=fp32",),), 2)]


@pytest.mark.parametrize("size", [(80, 24), (20, 5)])
async def test_the_page_has_all_of_it(make: SimpleNamespace, failed: Path, size: tuple[int, int]) -> None:
    app = make.app(failed)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, "d")
        said = " ".join(drawn(app, DiagnosisList).split())
        assert OOM in said and "Also on the GPU" in said and "free_cache_engine" not in said
        await opened(pilot, "d")
        assert not isinstance(app.screen, DiagnosisScreen)


async def test_errors_of_a_live_run_are_explained_on_the_page_of_their_check(make: SimpleNamespace) -> None:
    checks = make.checks(ERR_1=("CRITICAL", "torch.OutOfMemoryError: CUDA out of memory (line 7)"))
    log = make.log + stored("fail-oom").decode()
    run = make.run(attempts=[make.recorded(30)], state=make.running(checks=checks, step=30), log=log)
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert not panel(app).size
        await opened(pilot, "enter")
        page = app.screen.query_one("#inspected-rows", Lines)
        await until(pilot, lambda: OOM in "".join(text for row in page.lines for text, _ in row))
        await opened(pilot, "d")
        assert isinstance(app.screen, DiagnosisScreen) and OOM in drawn(app, DiagnosisList)


async def test_a_stopped_run_has_who_stopped_it(make: SimpleNamespace) -> None:
    log = "step:3 - actor/entropy:0.4\n*** SIGTERM received at time=1 on cpu 4 ***\n"
    app = make.app(make.run(attempts=[make.recorded(30)], state=make.ended("stopped"), log=log))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        assert not panel(app).size
        await opened(pilot, "d")
        await until(pilot, lambda: isinstance(app.screen, DiagnosisScreen) and "Stopped " in drawn(app, DiagnosisList))


@pytest.mark.parametrize("state", ["finished", "running"])
async def test_a_run_that_did_not_fail_has_no_diagnosis(make: SimpleNamespace, state: str) -> None:
    made = make.running() if state == "running" else make.ended(state)
    app = make.app(make.run(attempts=[make.recorded(30)], state=made, log=make.log))
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot, "d")
        assert not panel(app).size and not app.screen.active_bindings["d"].enabled
        assert not isinstance(app.screen, DiagnosisScreen)


async def test_what_a_log_says_cannot_act_on_the_terminal(make: SimpleNamespace) -> None:
    log = 'Error executing job with overrides: []\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n'
    run = make.run(state=make.ended("failed", error="x"), log=log + "EvilError: \x1b[2J[bold]\x07 over\n")
    app = make.app(run)
    async with app.run_test(size=HOME) as pilot:
        await opened(pilot)
        said = drawn(app, DiagnosisPanel)
        assert "[bold] over" in said and "\x1b" not in said and "\x07" not in said


@pytest.mark.parametrize(
    ("which", "size"),
    [("failed", (80, 24)), ("failed", (160, 48)), ("imported", (80, 24))],
    ids=["failed-80x24", "failed-160x48", "imported-80x24"],
)
def test_looks(
    snap_compare: Compare, make: SimpleNamespace, request: pytest.FixtureRequest, which: str, size: tuple[int, int]
) -> None:
    run = request.getfixturevalue(which)
    if which == "imported":  # whose id is new each time
        run = run.rename(run.with_name("7f3a1c-fail-oom"))
    assert snap_compare(make.app(run), terminal_size=size, run_before=opened)


def test_looks_of_the_page(snap_compare: Compare, make: SimpleNamespace, failed: Path) -> None:
    assert snap_compare(make.app(failed), terminal_size=HOME, run_before=lambda pilot: opened(pilot, "d"))
