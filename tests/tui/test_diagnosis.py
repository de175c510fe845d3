"""What a failed run says of itself: cause, lines of the log, fixes; from its dashboard, on a page, on ERR-1's page."""

import pytest
from console_logs import DATA, stored

from launcher.preset.files import load, restore
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs

SITE = "/opt/lib/python3.12/site-packages/"
BROKEN = "RuntimeError: unexpected precision: bf8"
OOM = "GPU out of memory in the actor update"
MICRO = "actor.ppo_micro_batch_size_per_gpu"


@pytest.fixture
def failed(make):
    """A run of ours that ran out of GPU memory at step 30."""
    log = make.log + stored("fail-oom").decode()[stored("fail-oom").decode().index("Error executing job") :]
    state = make.ended("failed", step=30, error=OOM, cause="gpu-oom-update", checks=make.checks())
    preset = load("gsm8k-0.5b-24gb").snapshot()
    return make.run(attempts=[make.recorded(30)], state=state, log=log, preset=preset)


@pytest.fixture
def imported(make):
    """Its id is new each time, but for the folder's."""
    run = import_logs([str(DATA / "logs" / "fail-oom.log.gz")])[0].path
    return run.rename(run.with_name("7f3a1c-fail-oom"))


def panel(user):
    return user.one("DiagnosisPanel")


async def test_a_failed_run_shows_cause_evidence_fixes_and_then_the_log(make, failed):
    async with make.open(failed) as user:
        said = user.drawn("DiagnosisPanel")
        assert OOM in " ".join(user.drawn("Banner").split()) and OOM not in said  # once
        assert "do not fit" in said and "torch.OutOfMemoryError: CUDA out of memory" in said
        assert f"e lower {MICRO} to 1" in said
        assert [chart.display for chart in user.screen.query("MetricChart")][:2] == [True, True]
        assert "rc=1" not in user.drawn("LogTail") and user.drawn("LogTail").strip()
        assert user.screen.active_bindings["d"].enabled
        await user("down")
        names, checks = panel(user).names, user.one("Checklist")
        assert panel(user).cursor == names[0] and "❯fix" in user.drawn("DiagnosisPanel")
        await user("up", *["down"] * (len(names) - 1))
        assert panel(user).cursor == names[-1] and "❯" in user.drawn("DiagnosisPanel")  # scrolled to
        for keys, at in (("down", (None, checks.first)), ("down up up", (names[-1], None)), ("escape", (None, None))):
            await user(*keys.split())
            assert (panel(user).cursor, checks.cursor) == at
        for keys in (("down", "e"), ("d", "e"), ("enter",)):
            await user(*keys, "EditorScreen")
            draft = user.screen.draft
            assert draft.loaded().preset.actor.ppo_micro_batch_size_per_gpu == 1
            assert draft.run == RunDir(failed).id and not draft.path.exists()
            await user("escape", "ChooseScreen", "d", lambda: not user.is_on("EditorScreen"), "...")
        await user("DiagnosisScreen", "T", "AskScreen")  # a fix is tried in a fork
        assert user.one("Input").value.split()[1:] == [f"{MICRO}=1"]
        await user("escape", "DiagnosisScreen", *["down"] * 4, "e", lambda: "outside ppo-tui" in user.message)
        for size in ((80, 24), (20, 5)):
            await user.resize_terminal(*size)
            await user("DiagnosisScreen")
            said = " ".join(user.drawn("DiagnosisList").split())
            assert OOM in said and "Also on the GPU" in said and "free_cache_engine" not in said
        await user("d", "DashboardScreen")


async def test_an_imported_run_that_died_before_its_first_step_shows_no_charts_and_is_fixed_too(make, imported):
    async with make.open(imported) as user:
        said = user.drawn("DiagnosisPanel")
        assert said.index("ppo-tui check PRESET") < said.index("line 1364    torch.OutOfMemoryError")  # the last fix
        assert not any(chart.size for chart in user.screen.query("MetricChart"))
        assert user.one("LogTail").size.height >= 3
        await user("down", "e", "EditorScreen")
        preset = user.screen.draft.loaded().preset
        assert preset.actor.ppo_micro_batch_size_per_gpu == 64 and preset.data.train_batch_size == 512
        assert "read from its log" in user.screen.draft.text
        await user("escape", "ChooseScreen", "d", "DashboardScreen", "...")
        at = panel(user).names.index("line 1358") - panel(user).names.index(panel(user).cursor)
        await user(*["down"] * at, "enter", "LogScreen", lambda: not user.screen.view.following)
        view = user.screen.view
        assert view.pager.number_at(view.chosen.offset) == 1358 and "in logprobs_from_logits_v2" in view.chosen.text


async def test_t_isolates_a_failure_without_an_entry(make, monkeypatch):
    begun = []
    monkeypatch.setattr("launcher.compare.trial_runs.start_apart", begun.append)
    code = f'File "{SITE}verl/utils/torch_dtypes.py", line 69, in to_dtype'
    given = "Error executing job with overrides: ['actor_rollout_ref.actor.fsdp_config.model_dtype=bf8']"
    log = f"{given}\nTraceback (most recent call last):\n  {code}\n{BROKEN}\n"
    state = make.ended("failed", step=0, error=BROKEN, cause="unknown")
    preset = restore("toy-cpu", load("toy-cpu").snapshot(), ["actor.model_dtype=bf8"]).snapshot()
    async with make.open(make.run(state=state, log=log, preset=preset)) as user:
        await user("d")
        assert "e isolate: set actor.model_dtype=fp32 (now bf8)" in user.drawn("DiagnosisList")
        await user("T", "ConfirmScreen")
        assert "isolation, not a fix" in str(user.one("#details Static").render())
        await user("y", "TrialsScreen")
    assert [(planned.arms, planned.until) for planned in begun] == [((("actor.model_dtype=fp32",),), 2)]


async def test_errors_of_a_live_run_are_explained_on_the_page_of_their_check(make):
    checks = make.checks(ERR_1=("CRITICAL", "torch.OutOfMemoryError: CUDA out of memory (line 7)"))
    log = make.log + stored("fail-oom").decode()
    run = make.run(attempts=[make.recorded(30)], state=make.running(checks=checks, step=30), log=log)
    async with make.open(run) as user:
        assert not panel(user).size
        await user(
            "enter", lambda: OOM in "".join(text for row in user.one("#inspected-rows").lines for text, _ in row)
        )
        await user("d", "DiagnosisScreen")
        assert OOM in user.drawn("DiagnosisList")


async def test_a_stopped_run_has_who_stopped_it(make):
    log = "step:3 - actor/entropy:0.4\n*** SIGTERM received at time=1 on cpu 4 ***\n"
    async with make.open(make.run(attempts=[make.recorded(30)], state=make.ended("stopped"), log=log)) as user:
        assert not panel(user).size
        await user("d", "DiagnosisScreen", lambda: "Stopped " in user.drawn("DiagnosisList"))


@pytest.mark.parametrize("state", ["finished", "running"])
async def test_a_run_that_did_not_fail_has_no_diagnosis(make, state):
    made = make.running() if state == "running" else make.ended(state)
    async with make.open(make.run(attempts=[make.recorded(30)], state=made, log=make.log)) as user:
        await user("d", "DashboardScreen")
        assert not panel(user).size and not user.screen.active_bindings["d"].enabled


async def test_what_a_log_says_cannot_act_on_the_terminal(make):
    log = 'Error executing job with overrides: []\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n'
    run = make.run(state=make.ended("failed", error="x"), log=log + "EvilError: \x1b[2J[bold]\x07 over\n")
    async with make.open(run) as user:
        said = user.drawn("DiagnosisPanel")
        assert "[bold] over" in said and "\x1b" not in said and "\x07" not in said


@pytest.mark.parametrize(
    ("which", "size", "keys"),
    [("failed", (80, 24), ""), ("failed", (160, 48), ""), ("imported", (80, 24), ""), ("failed", (80, 24), "d")],
    ids=["failed-80x24", "failed-160x48", "imported-80x24", "page"],
)
def test_looks(shot, make, request, which, size, keys):
    assert shot(make.app(request.getfixturevalue(which)), *keys, size=size)
