"""What is collected when a run stalls."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.runs.supervise.driver import Driver
from launcher.runs.supervise.stalled import StallReport
from launcher.runs.watch.history import stall_report

SECRET = "abcdef0123456789abcdef0123456789abcdef01"


@pytest.mark.slow
def test_a_stall_is_written_down_once_with_the_last_lines_and_the_processes(tmp_path: Path):
    run = RunDir(tmp_path / "run")
    attempt = run.attempt(1)
    attempt.path.mkdir(parents=True)
    attempt.console.write_text(
        "\x1b[36m(WorkerDict pid=11)\x1b[0m loading\n(WorkerDict pid=11) in all_reduce\n"
        f"(WorkerDict pid=12) WANDB_API_KEY={SECRET}\nstep:1\n"
    )
    told, done = list[str](), threading.Event()

    def note(text: str) -> None:
        told.append(text)
        done.set()

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as hung:
        driver = Driver(ProcessId.of(hung.pid) or ProcessId(hung.pid), "run")
        reports = StallReport(run, attempt, "run", note)
        reports.rose("KL-1", driver)
        reports.rose("STALL-1", driver)
        assert done.wait(300)
        hung.kill()
    found = stall_report(run)
    assert found is not None
    file, lines = found
    assert str(file.absolute()) in told[0] and len(told) == 1
    assert "WorkerDict pid=11: in all_reduce" in lines and "driver: step:1" in lines
    assert any(line.startswith(f"{hung.pid} ") for line in lines)
    assert SECRET not in "\n".join(lines) and "\x1b" not in "\n".join(lines)
    reports.rose("STALL-1", None)
    assert len(told) == 1
