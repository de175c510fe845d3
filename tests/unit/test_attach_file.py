"""A log that another program writes is followed as a run: judged, recorded, ended."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from commands import call
from foreign_logs import FORMS, Steps
from quoted import quoted
from waiting import wait_for, wait_until

from launcher.core.errors import UserError
from launcher.core.tail import records
from launcher.record.events import Note, read_kind
from launcher.record.info import Head
from launcher.record.layout import RunDir, all_runs
from launcher.record.machine import MachineSample, ProcessesSample
from launcher.record.state import current
from launcher.runs.act.attach_file import attach_file, attach_when_begun
from launcher.runs.act.import_logs import import_logs
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import kept
from launcher.runs.watch.history import log_end
from launcher.runs.watch.log import newest
from launcher.runs.watch.possible import Verb, refusal
from launcher.runs.watch.run_diagnosis import explained
from launcher.runs.watch.startup import Usual, startup
from launcher.runs.watch.steps import steps

pytestmark = pytest.mark.slow
WRITER = (
    "import sys, time\nfor part in sys.stdin:\n    print(part, end='', flush=True)\ntime.sleep(float(sys.argv[1]))\n"
)
OWN = {"actor/grad_norm": 1.0, "response_length/mean": 7.0}  # what only one framework calls so
RUN: Steps = [
    (step, {"critic/score/mean": 0.5, "actor/kl_loss": 0.01 * step, "actor/entropy": 0.4, "actor/lr": 1e-6, **OWN})
    for step in range(1, 31)
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))


def logged(run: RunDir) -> list[int]:
    return [record.step for _, record in steps(run)]


def begin(log: Path, text: str, seconds: float) -> "subprocess.Popen[str]":
    """Writes a log by a process that holds it open for so many seconds."""
    with log.open("w") as out:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(seconds)], stdin=subprocess.PIPE, stdout=out, text=True
        )
    assert writer.stdin is not None
    writer.stdin.write(text)
    writer.stdin.close()
    return writer


def test_a_console_is_followed_until_its_writer_ends(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    writer = begin(log, FORMS["trl"][1](RUN), 20)
    wait_until(lambda: log.stat().st_size > 5000)

    run = attach_file(str(log), {})

    assert attach_file(str(log), {}).id == run.id  # one supervisor per log
    with pytest.raises(UserError, match="with other settings"):
        attach_file(str(log), {"data.train_batch_size": 8})
    state = wait_for(run, lambda state: state.step == 30 and state.state == "running")
    assert state.total == 30
    assert state.phase == "" and startup((), state, Usual({}), None) is None  # the log shows no phases
    assert any(note.text.startswith("TRL: ") for note in read_kind(run.events, Note))
    wait_until(lambda: next(records(run.machine), None))
    sample = MachineSample.from_line(next(records(run.machine)))
    assert sample is not None and sample.run == ProcessesSample()  # whose processes are not known
    assert refusal(Verb.STOP, state, Head.read(run.run_yaml)) is not None
    assert refusal(Verb.FORK, state, Head.read(run.run_yaml)) == ("only its log is known", "")
    writer.kill()
    assert wait_for(run, lambda state: not state.live).state == "finished"
    assert logged(run) == list(range(1, 31))
    assert attach_file(str(log), {}).id == run.id  # it has all of the log
    others = []
    for _ in range(2):  # it is about to grow, also after the following was stopped
        with log.open("a") as out, subprocess.Popen(["sleep", "30"], stdout=out) as writer:
            others.append(attach_file(str(log), {}))
            stop(others[-1], wait=True)
            writer.kill()
    assert len({run.id, *(other.id for other in others)}) == 3


def test_a_log_that_ends_before_its_last_step_shows_since_when_it_is_silent(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    writer = begin(log, FORMS["trl"][1](RUN).partition(f"| 20/{len(RUN)}")[0], 30)
    wait_until(lambda: log.stat().st_size > 3000)
    run = attach_file(str(log), {})
    wait_for(run, lambda state: state.step == 19)
    writer.kill()

    state = wait_for(run, lambda state: not state.live)

    assert (state.state, state.step, state.error) == ("ended", 19, None)
    assert f"{datetime.fromtimestamp(log.stat().st_mtime):%Y-%m-%d %H:%M}" in log_end(state)
    found = explained(run).problem
    assert (quoted(found.meaning), found.evidence) == (["19", "30"], ()) and "exit code" in " ".join(found.lines())


def test_a_log_with_the_line_that_ends_a_training_is_finished(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    rows = [line.rpartition("\r")[2] for line in FORMS["trl"][1](RUN).split("\n")]  # without bars: no total is known
    *done, last = [row for row in rows if row.startswith("{")]
    writer = begin(log, "\n".join([*done[:12], last, "{'eval_loss': '0.2', 'epoch': '0.6'}\n"]), 30)
    wait_until(lambda: log.stat().st_size > 1000)
    run = attach_file(str(log), {})
    wait_for(run, lambda state: state.step == 12)
    writer.kill()

    assert wait_for(run, lambda state: not state.live).state == "finished"
    assert current(import_logs([str(log)])[0]).outcome == "finished"
    found = explained(newest(str(log))).diagnosis
    assert (found.cause, found.title, [each.line for each in found.evidence]) == (
        "finished",
        "Finished after logged line 12",
        [13],
    )
    os.utime(shutil.copy(log, tmp_path / "old.log"), (1e9, 1e9))
    run = attach_file(str(tmp_path / "old.log"), {})
    assert wait_for(run, lambda state: not state.live).state == "finished", "nobody has held it open for long"
    log.write_text("\n".join([*done[:12], last, *done[12:14], ""]))  # it trains again
    assert current(import_logs([str(log)])[0]).outcome == "running"


def test_a_log_is_attached_before_its_first_step_and_waited_for(tmp_path: Path) -> None:
    log, seen = tmp_path / "logs" / "run.log", list[str]()
    log.parent.mkdir()
    parts = [
        "",
        "/opt/slime/slime/utils/http.py:12: UserWarning: x\n",
        "\x1b[36m(RolloutManager pid=5)\x1b[0m loading weights\n",
        FORMS["slime"][1](RUN),
    ]

    def write_more(missing: str, seconds: float) -> None:
        seen.append(missing)
        with log.open("a") as out:
            out.write(parts.pop(0))

    run = attach_when_begun(str(log.parent), {}, None, write_more)

    assert [each.partition(" ")[2] for each in seen] == [
        "has no log",
        "is empty",
        *2 * ["is a log of slime without a step"],
    ]
    wait_for(run, lambda state: state.step is not None)
    stop(run, wait=True)
    other = tmp_path / "notes.txt"
    other.write_text("hello\n")
    with pytest.raises(UserError, match="has no output"):
        attach_when_begun(str(other), {}, None, lambda missing, seconds: pytest.fail(missing))


@pytest.mark.parametrize("form", ["trainer_state", "prime-rl file", "csv"])
def test_rows_are_followed_until_it_is_stopped(form: str, tmp_path: Path) -> None:
    _, write, name = FORMS[form]
    log = tmp_path / "logs" / name
    log.parent.mkdir()
    log.write_text(write(RUN[:10]))
    run = attach_file(str(log.parent), {"trainer.total_training_steps": 50})
    wait_for(run, lambda state: (state.step or 0) >= 7)

    log.write_text(write(RUN))

    wait_for(run, lambda state: state.step == 30)  # also the last step, once the log is quiet
    stop(run, wait=True)
    assert current(run).state == "stopped"
    assert logged(run) == list(range(1, 31))


@pytest.mark.parametrize("form", ["prime-rl", "csv"])
def test_a_log_that_is_replaced_is_followed_as_another_run(form: str, tmp_path: Path) -> None:
    _, write, name = FORMS[form]
    log, new = tmp_path / name, tmp_path / "new"
    log.write_text(write(RUN))
    run = attach_file(str(log), {"data.train_batch_size": 8})
    wait_for(run, lambda state: (state.step or 0) >= 25)

    log.write_text(write([(step, {**data, "actor/entropy": 0.3}) for step, data in RUN[:20]]))  # it is started again

    wait_until(lambda: 15 < logged(run)[-1] <= 20)
    new.write_text(write([(step, {**data, "critic/score/mean": 7.0}) for step, data in RUN]))
    os.utime(new, (1e9, 1e9))
    new.replace(log)
    state = wait_for(run, lambda state: not state.live)
    assert (state.state, "replaced by another log" in str(state.error)) == ("ended", True)
    wait_until(lambda: len(all_runs()) == 2)
    other = next(each for each in all_runs() if each.id != run.id)
    wait_for(other, lambda state: (state.step or 0) >= 25)
    assert max(logged(run)[-15:]) <= 20 and attach_file(str(log), {"data.train_batch_size": 8}).id == other.id
    stop(other, wait=True)


def test_veRLs_own_files_are_followed_also_after_the_supervisor_was_killed(tmp_path: Path) -> None:
    whole = gzip.decompress(Path("tests/data/logs/cpu-toy.log.gz").read_bytes())
    log = tmp_path / "x.log"
    log.write_bytes(whole[: len(whole) // 2])
    run = attach_file(str(log), {})
    supervisor = wait_for(run, lambda state: state.step is not None).supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not supervisor.alive())

    assert kept(run).live
    with log.open("ab") as more:
        more.write(whole[len(whole) // 2 :])

    last = [record.step for _, record in steps(newest("tests/data/logs/cpu-toy.log.gz"))][-1]
    wait_for(run, lambda state: state.step == last)
    assert run.attempt(1).console.read_bytes() == whole
    assert len(logged(run)) == len(set(logged(run)))
    stop(run, wait=True)


def test_a_packed_log_does_not_grow() -> None:
    with pytest.raises(UserError, match="compressed"):
        attach_file("tests/data/logs/cpu-toy.log.gz", {})


def test_a_word_that_is_a_run_and_a_file_is_an_error_with_both_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").write_text(FORMS["trl"][1](RUN))
    run = call(["import", "./x"])[0]

    assert call(["attach", run.decode().strip(), "--detach"])[0] == run
    _, error, code = call(["attach", "x", "--detach"])

    assert code == 2 and b"'x' is a run and a file" in error and b"./x for the file" in error
