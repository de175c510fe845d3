"""import, metrics, health and diagnose over real logs."""

import gzip
import math
from pathlib import Path

import orjson
import pytest

from launcher.core.errors import UserError
from launcher.record.levels import Level
from launcher.record.state import current
from launcher.runs.act.import_logs import import_logs
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.history import elapsed
from launcher.runs.watch.log import Log, resolve
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.steps import steps

LOGS = Path(__file__).parents[1] / "data" / "logs"
RUNS = ("cpu-toy", "grpo", "kl-blowup", "learning", "nan", "resume", "two-gpus")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


def logged(name: str) -> dict[int, dict[str, float | None]]:
    with gzip.open(LOGS / f"{name}.jsonl.gz") as file:
        return {record["step"]: record["data"] for record in map(orjson.loads, file)}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_an_import_of_both_sources_has_every_step_and_key_of_the_file_logger(name: str) -> None:
    (run,) = import_logs([str(LOGS / f"{name}.log.gz"), str(LOGS / f"{name}.jsonl.gz")])
    found = {record.step: record.data for _, record in steps(run)}
    expected = logged(name)
    assert found.keys() >= expected.keys()
    for step, data in expected.items():
        for key, value in data.items():
            if isinstance(value, (int, float)):
                assert found[step][key] == value, (step, key)
            elif value is None:
                assert not math.isfinite(found[step][key]), (step, key)


def test_attempts_whose_steps_continue_are_one_run_with_a_seam() -> None:
    (run,) = import_logs([str(LOGS / "learning.log.gz"), str(LOGS / "resume.log.gz")])
    reader = RunReader(run.path)
    reader.poll()
    assert run.attempt_numbers() == [1, 2] and reader.series.seams
    score = reader.series.get("critic/score/mean")
    assert score is not None and list(score.steps) == list(range(1, 29))


@pytest.mark.slow
def test_an_imported_run_is_judged_and_timed_over_all_its_attempts() -> None:
    (run,) = import_logs([str(LOGS / "learning.log.gz"), str(LOGS / "resume.log.gz")])
    (first,) = import_logs([str(LOGS / "learning.log.gz")])
    state = current(run)
    levels = {check.rule: check.level for check in state.checks}
    assert levels["THR-1"] == Level.OK and state.verdict != "WARM"  # 28 steps are enough of a baseline
    checklist = judged(run, []).checklist
    assert {check.rule: check.level for check in checklist.checks()} == levels
    seconds, alone = elapsed(run, state), elapsed(first, current(first))
    assert seconds is not None and alone is not None and 100 < seconds - alone < 200
    reader = RunReader(run.path)
    reader.poll()
    assert reader.state.seconds == seconds and not reader.poll()


@pytest.mark.slow
def test_logs_that_do_not_continue_are_a_run_each() -> None:
    names = ("grpo", "kl-blowup", "nan", "two-gpus")  # first steps 0, 0, 1 and 0
    assert len(import_logs([str(LOGS / f"{name}.log.gz") for name in names])) == 4


def test_settings_on_the_command_line_beat_the_logs_own_configuration() -> None:
    log = resolve(str(LOGS / "kl-blowup.log.gz"))
    off = ["algorithm.use_kl_in_reward=False", "actor_rollout_ref.actor.use_kl_loss=False"]
    checklist = judged(log, off).checklist
    assert {check.rule: check.level for check in checklist.checks()}["KL-1"] == Level.N_A


def test_a_size_that_is_no_size_is_refused() -> None:
    with pytest.raises(UserError, match=r"gpu_total_gb=big"):
        judged(resolve(str(LOGS / "nan.log.gz")), ["gpu_total_gb=big"])


def test_a_metrics_file_is_told_from_a_console_log_by_its_content(tmp_path: Path) -> None:
    odd = tmp_path / "console.log"
    odd.write_bytes(gzip.decompress((LOGS / "nan.jsonl.gz").read_bytes()))
    assert resolve(str(odd)) == Log(odd, table=odd, name="console")


def test_a_missing_file_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"file not found: nowhere\.log"):
        resolve("nowhere.log")
