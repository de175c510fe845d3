"""The fewest settings with which a run fails: by real checks, and by small drivers below a real supervisor."""

import time
from pathlib import Path
from typing import Any

import pytest
from driven import driven

from launcher.core.errors import UserError
from launcher.preset.files import LoadedPreset, load
from launcher.record.attempt import Exit
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, appearing
from launcher.record.state import RunState
from launcher.report import bundle
from launcher.report import minimal as core
from launcher.report.minimal import Minimal, minimal, of_finding, shrink

NOISE = (
    *("actor.lr=2e-4", "trainer.steps=20", "kl.loss_coef=0.002", "rollout.temperature=0.9"),
    *("trainer.validate_every=5", "data.seed=7", "actor.clip_ratio=0.25", "critic.lr=2e-3"),
)
BROKEN = [
    ("P10", "actor.ppo_micro_batch_size_per_gpu=24"),
    ("V3", "actor.ppo_mini_batch_size=128"),
    ("P10", "actor.ppo_mini_batch_size=48"),
    ("CPU-3", "rollout.engine=vllm"),
    ("KEY-1", "actor_rollout_ref.actor.optim.lrr=1"),
    ("P22", "actor.optimizer=Nope"),
    ("CPU-2", "actor.strategy=fsdp"),
    ("P10", "trainer.gpus=2"),
    ("V10", "actor.ulysses_sequence_parallel_size=2"),
    ("P2", "rollout.tensor_model_parallel_size=2"),
    ("P16", "actor.use_dynamic_bsz=true actor.ppo_max_token_len_per_gpu=10"),
    ("ALG-4", "algorithm=nope"),
    ("P19", "actor.loss_mode=nope"),
    ("P30", "reward.manager=nope"),
    ("P28", "data.train=/nonexistent/a.parquet"),
    ("P28", "data.val=/nonexistent/b.parquet"),
    ("MODEL-4", "model.path=/nonexistent/model"),
    ("P30", "reward.path=/nonexistent/r.py"),
    ("P21", "trainer.loggers=[nope]"),
    ("V3", "data.train_batch_size=2"),
    ("V14", "rollout.mode=sync"),
    ("V7", "ref.log_prob_micro_batch_size_per_gpu=null"),
    ("ALG-1", "critic.enable=false"),
]
ANSWER = "raise KeyError('answer')"
OTHER = "raise ValueError('something else')"
HANGS = "import time; print('step:1 - critic/score/mean:0.1', flush=True); time.sleep(600)"
SAID: list[str] = []


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    SAID.clear()
    return tmp_path


def by_check(preset: LoadedPreset) -> Minimal:
    found = of_finding(preset, set(), SAID.append)
    assert found is not None
    finding, fails = found
    return shrink(preset, fails, f"finding {finding.id}", "check", SAID.append, likely=finding.keys)


@pytest.mark.parametrize(("rule", "settings"), BROKEN)
def test_what_a_check_finds_is_left_alone(rule: str, settings: str) -> None:
    found = by_check(load("toy-cpu", [*NOISE[:4], *settings.split(), *NOISE[4:]]))
    assert found.failure == f"finding {rule}"
    assert set(found.settings) == set(settings.split()) and found.complete
    assert found.before == len(NOISE) + len(settings.split())


def test_a_preset_for_gpus_is_shrunk_over_the_toy_as_well() -> None:
    found = by_check(load("gsm8k-0.5b-h800", ["actor.ppo_micro_batch_size_per_gpu=24"]))
    assert found.failure == "finding P10" and found.before > 20
    assert len(found.settings) <= 3 and "actor.ppo_micro_batch_size_per_gpu=24" in found.settings
    assert SAID[-1].startswith("probe ")


def test_a_command_for_the_toy_comes_with_the_settings() -> None:
    found = by_check(load("toy-cpu", [*NOISE, "trainer.loggers=[nope]"]))
    assert found.command == "ppo-tui run toy-cpu 'trainer.loggers=[nope]' --force"
    assert found.told == ("1 of 9 settings is enough on the toy preset toy-cpu: finding P21 stays (2 probes by check).")


def drives(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver of a short run does: fail as asked where two settings come together."""

    def start(loaded: LoadedPreset, *, id: str, **_: Any) -> RunDir:
        preset = loaded.preset
        code = OTHER if preset.actor.lr == 2e-4 else HANGS
        code = ANSWER if preset.actor.lr == 2e-4 and preset.rollout.temperature == 0.9 else code
        return driven("toy-probe", loaded, code, id)

    monkeypatch.setattr(core, "start", start)
    monkeypatch.setattr(core, "POLL", 0.05)


def failed(*settings: str) -> RunDir:
    """A run that failed in the driver, without a step."""
    with appearing("toy-cpu") as (run, hidden):
        attempt, now = hidden.add_attempt(), time.time()
        attempt.console.write_text(
            "Traceback (most recent call last):\n  File \"/x/a.py\", line 3, in f\nKeyError: 'answer'\n"
        )
        Exit(1, None, None, now).write(attempt.exit)
        preset = load("toy-cpu", settings).snapshot()
        RunInfo(run.id, "toy-cpu", now, preset=preset, on_cpu=True, overrides=settings).write(hidden.run_yaml)
        RunState("failed", attempt=1, created=now, exit=Exit(1, None, None, now)).write(hidden.state)
    return run


def test_what_no_check_finds_is_left_by_short_runs_which_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    drives(monkeypatch)
    run = failed(*NOISE[:4])
    found = minimal(run, SAID.append, poll=0.05)
    assert found.settings == ("actor.lr=0.0002", "rollout.temperature=0.9")
    assert found.method == "short runs" and found.failure == "failure 'Unknown failure: KeyError: 'answer''"
    assert [each.id for each in all_runs()] == [run.id]
    assert "0.9" in found.command and "--force" not in found.command
    issue = bundle.parts(run, found)["issue.md"]
    assert "ppo-tui run toy-cpu actor.lr=0.0002 rollout.temperature=0.9" in issue and "2 of 4 settings" in issue


def test_an_interruption_ends_the_probe_and_keeps_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    drives(monkeypatch)
    run = failed(*NOISE[:4])

    def interrupted(text: str) -> None:
        SAID.append(text)
        if text.startswith("probe 2: ") and "of 4 settings" in text:
            monkeypatch.setattr(core.time, "sleep", stops)

    def stops(_: float) -> None:
        monkeypatch.undo()
        monkeypatch.setenv("PPO_TUI_HOME", str(run.path.parents[1]))
        raise KeyboardInterrupt

    found = minimal(run, interrupted, poll=0.05)
    assert not found.complete and found.settings and "interrupted" in found.told
    assert [each.id for each in all_runs()] == [run.id]


def test_a_failure_that_the_toy_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    drives(monkeypatch)
    with pytest.raises(UserError, match="does not occur with these settings on toy-cpu"):
        minimal(failed("actor.lr=1e-4"), SAID.append, poll=0.05)


def test_a_run_that_did_not_fail_is_refused() -> None:
    run = failed()
    Exit(0, None, None, time.time()).write(run.attempt(1).exit)
    with pytest.raises(UserError, match="has not failed"):
        minimal(run, SAID.append)
