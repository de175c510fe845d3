"""`ppo-tui selftest`: faults in a run's own figures, and which rule would have told them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.core.errors import UserError
from launcher.health.faults import FAULTS
from launcher.record.levels import Level
from launcher.runs.watch.selftest import selftest
from launcher.runs.watch.source import resolve

Command = Callable[..., "subprocess.CompletedProcess[str]"]
LOGS = Path(__file__).parent.parent / "data" / "logs"


@pytest.mark.slow
def test_the_faults_of_a_real_run_are_told() -> None:
    step, after, found = selftest(resolve(str(LOGS / "cpu-toy.jsonl.gz")), None, ["data.max_response_length=8"])
    assert (step, after) == (35, 45)
    tested = {each.fault: each for each in found}
    assert tested["NaN in the policy loss, once"].alarms == dict.fromkeys(
        (Level.NOTICE, Level.WARN, Level.CRITICAL), ("NUM-1", 0)
    )
    assert tested["entropy to 3 % in 5 steps"].alarms[Level.WARN].rule == "ENT-1"
    assert tested["steps take twice as long"].alarms[Level.WARN].rule == "THR-1"
    assert tested["+0.5 GB per step, of 80"].skipped.startswith("MEM-1 is not judged")
    assert sum(Level.WARN in each.alarms for each in tested.values()) >= 28


@pytest.mark.slow
def test_a_run_that_is_flagged_already(ppo_tui: Command) -> None:
    done = ppo_tui("selftest", str(LOGS / "kl-blowup.jsonl.gz"), "--at", "17", "--json")
    lines = {line["fault"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert lines["KL jumps (×8 + 0.8)"] == {
        "fault": "KL jumps (×8 + 0.8)",
        "at": 17,
        "steps": 10,
        "skipped": "KL-1 is already raised",
    }
    assert lines["NaN in the policy loss, once"]["critical"] == {"rule": "NUM-1", "after": 0}


def test_a_run_that_is_too_short_and_a_step_that_is_not_there(tmp_path: Path) -> None:
    log = tmp_path / "short.jsonl"
    log.write_text("".join(json.dumps({"step": n, "data": {"actor/pg_loss": 0.1}}) + "\n" for n in range(1, 25)))
    with pytest.raises(UserError, match="--at 3 is not allowed; use a step from 10 to 14 of this run"):
        selftest(resolve(str(log)), 3, [])
    assert all(each.skipped for each in selftest(resolve(str(log)), 12, [])[2] if not each.fault.startswith("NaN"))
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:19]))
    with pytest.raises(UserError, match="has 19 training steps, and a self-test needs at least 20"):
        selftest(resolve(str(log)), None, [])


@pytest.mark.parametrize(
    ("fault", "old"), [("KL jumps (×8 + 0.8)", "critic/kl"), ("entropy to 3 % in 5 steps", "actor/entropy_loss")]
)
def test_the_metrics_of_an_old_verl_are_changed_under_their_names(fault: str, old: str) -> None:
    found = next(each for each in FAULTS if each.name == fault)
    step = {old: 0.5}
    found.change(step, 0, {old: 0.5})
    assert set(step) == {old} and step[old] != 0.5
