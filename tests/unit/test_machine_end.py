"""A cause needs evidence: whose signal 9 it was, and a disk that was full, by the records of the machine."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from console_logs import DATA, JOB, TASK, diagnosis_of
from driven import driven
from waiting import wait_for

from launcher.console.diagnose import diagnose
from launcher.console.diagnosis import Diagnosis
from launcher.core.tail import chunks
from launcher.machine import host
from launcher.record.attempt import OF_HOST, MachineEnd, OomKills
from launcher.record.layout import RunDir
from launcher.record.machine import DiskSpace, HostSample
from launcher.record.state import RunState
from launcher.runs.watch.run_diagnosis import diagnosis

GIB = 1 << 30
LOGS = sorted(path for path in DATA.rglob("*") if path.name.endswith((".log", ".log.gz")))
SHOWN = re.compile(r"out of memory|oom|low on memory|memory pressure|Memory on the node", re.IGNORECASE)
FREE, FULL = HostSample(3 * GIB, 24 * GIB), HostSample(23 * GIB, 24 * GIB)
STEP = TASK + "step:3 - actor/entropy:0.4\n"


def machine(before: OomKills | None, after: OomKills | None, memory: HostSample | None = FREE) -> MachineEnd:
    return MachineEnd(before, after, memory)


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        (None, "killed"),
        (machine(None, None), "killed"),
        (machine(OomKills(), OomKills()), "killed"),
        (machine(OomKills(2), OomKills(2)), "killed-not-oom"),
        (machine(OomKills(2), OomKills(3)), "host-oom-killed"),
        (machine(OomKills(2, 0, "/g"), OomKills(9, 0, "/g")), "killed-not-oom"),  # the others were of other programs
        (machine(OomKills(2, 0, "/g"), OomKills(3, 1, "/g")), "host-oom-killed"),
        (machine(OomKills(2, 0, "/g"), OomKills(2, 7, "/h")), "killed-not-oom"),  # another group
        (machine(OomKills(5), OomKills(0)), "killed"),  # the host was restarted
        (machine(OomKills(2), OomKills(2), FULL), "host-oom-killed"),
        (machine(None, None, FULL), "host-oom-killed"),
    ],
)
def test_signal_9_is_out_of_memory_only_by_a_counter_or_a_full_memory(found: MachineEnd | None, cause: str) -> None:
    shell = "/opt/run.sh: line 23:  1569 Killed                  python3 -m verl.trainer.main_ppo\n"
    for log in (STEP, STEP + shell):
        assert diagnosis_of(log, exit_code=137, machine=found).cause == cause
    assert diagnosis_of(STEP, exit_code=137, machine=found).fixes
    assert diagnosis_of(STEP, exit_code=137, machine=found, requested_by="user").cause == "stopped"


def test_a_worker_without_last_words_died_for_memory_where_the_kernel_counted_it() -> None:
    died = STEP + JOB + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    assert diagnosis_of(died, exit_code=1).cause == "worker-died"
    counted = machine(OomKills(2), OomKills(3))
    found = diagnosis_of(died, exit_code=1, machine=counted)
    assert found.cause == "host-oom-killed" and f"({OF_HOST}) rose by 1" in found.meaning
    found = diagnosis_of(died, exit_code=1, machine=machine(OomKills(2), OomKills(2)))
    assert found.cause == "worker-died" and "did not rise" in found.meaning


def test_a_disk_explains_only_what_nothing_else_does() -> None:
    full = MachineEnd(disks=(DiskSpace("/a", 1 << 40, 1 << 41), DiskSpace("/b", 4096, 2_097_152)))
    for code in (1, 128 + signal.SIGBUS, 128 + signal.SIGSEGV):
        found = diagnosis_of(STEP, exit_code=code, machine=full)
        assert found.cause == "disk-full-run" and found.meaning.endswith("/b had 4,096 of 2,097,152 bytes free.")
    for number, cause in ((signal.SIGKILL, "killed"), (signal.SIGHUP, "killed-by-signal")):
        assert diagnosis_of(STEP, exit_code=128 + number, machine=full).cause == cause
    assert diagnosis_of(STEP, exit_code=0, machine=full).cause == "finished"
    known = JOB + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n"
    assert diagnosis_of(STEP + known, exit_code=1, machine=full).cause == "gpu-oom"
    roomy = replace(full, disks=full.disks[:1])
    assert diagnosis_of(STEP, exit_code=1, machine=roomy).title == "Run ended without an error message"


def _ends(path: Path) -> Iterator[tuple[MachineEnd | None, Diagnosis]]:
    log = list(chunks(path))
    for code, found in ((None, None), (1, None), (137, None), (137, machine(OomKills(7), OomKills(7)))):
        yield found, diagnose(log, exit_code=code, machine=found)


@pytest.mark.nightly("launcher/console/", "launcher/machine/", "tests/data/", every=8)
@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_no_recorded_log_is_out_of_memory_without_a_line_that_shows_it(part: int) -> None:
    assert len(LOGS) > 200
    for path in LOGS[part::8]:
        for found, result in _ends(path):
            if result.cause.startswith("host-oom"):
                assert any(SHOWN.search(quote.text) for quote in result.evidence), (path, result)
            assert result.cause != "killed-not-oom" or found is not None, path
            assert result.cause != "disk-full-run", path


def test_the_counters_of_this_machine_are_read_again_from_the_same_file(tmp_path: Path) -> None:
    before = host.oom_kills()
    assert host.oom_kills(before.counter).since(before) in (None, (0, before.counter or OF_HOST))
    own = tmp_path / "memory.events"
    own.write_text("low 0\noom 5\noom_kill 2\noom_group_kill 9\n")
    assert host.oom_kills(str(own)).group == 2
    assert host.oom_kills(str(tmp_path / "gone")).group is None
    assert host.oom_kills(str(tmp_path / "gone")).counter is None
    (space,) = host.disks([tmp_path, tmp_path, tmp_path / "gone"])
    assert space.path == str(tmp_path) and 0 < space.free <= space.total and not space.full


def ended(run: RunDir) -> RunState:
    return wait_for(run, lambda state: not state.live)


@pytest.mark.slow
def test_a_driver_that_somebody_kills_is_not_out_of_memory(home: Path) -> None:
    run = driven("import time; print('ray init kwargs: {}', flush=True); time.sleep(600)")
    driver = wait_for(run, lambda state: state.driver is not None).driver
    assert driver is not None
    os.kill(driver.pid, signal.SIGKILL)
    state = ended(run)
    found = state.exit.machine if state.exit else None
    assert found is not None and found.oom_before == run.attempt(1).read_launch().oom_kills and found.disks
    expected = "killed" if found.oom_killed is None else "killed-not-oom"
    if found.oom_killed and found.oom_killed[0]:
        pytest.skip("the kernel ended another program on this host meanwhile")
    assert (state.state, state.cause) == ("failed", expected) and diagnosis(run).cause == expected


_FILLS = """
import os, sys
print("local_global_step_folder: checkpoints/global_step_2", flush=True)
try:
    with open("big", "wb") as file:
        while True:
            file.write(bytes(1 << 16))
except OSError:
    os._exit(1)
"""
_INSIDE = "mount -t tmpfs -o size=3m tmpfs {home} && exec {python} {file} {home}"
_OWN_MOUNTS = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "sh", "-c"]


@pytest.mark.slow
def test_a_disk_that_a_checkpoint_filled_is_named_with_its_bytes(tmp_path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        home = tmp_path / "full"
        home.mkdir()
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        inside = _INSIDE.format(home=home, python=sys.executable, file=__file__)
        told = subprocess.run([*_OWN_MOUNTS, inside], capture_output=True, text=True, check=False, env=env)
        if told.returncode == 0:
            cause, meaning = told.stdout.splitlines()
            assert cause == "disk-full-run" and re.search(rf"{home}/\S+ had [\d,]+ of 3,145,728 bytes free\.$", meaning)
            return
        assert "unshare" in told.stderr or "mount" in told.stderr, told.stderr
    pytest.skip("this system mounts no file system without privileges")


if __name__ == "__main__":  # in a mount namespace of its own
    os.environ["PPO_TUI_HOME"] = sys.argv[1]
    full = driven(_FILLS)
    ended(full)
    print(diagnosis(full).cause, diagnosis(full).meaning, sep="\n")


@pytest.mark.parametrize(
    ("end", "code", "kernel", "oomd"),
    [
        (machine(OomKills(2), OomKills(2)), 137, "excluded", "excluded"),
        (machine(OomKills(2), OomKills(2)), None, "excluded", "possible"),  # its first supervisor was killed, too
        (machine(OomKills(2, 0, "/g"), OomKills(3, 1, "/g")), 137, "likely: /g rose by 1", "excluded"),
        (machine(None, None), 137, "possible", "excluded"),
    ],
)
def test_the_senders_of_signal_9_with_what_excludes_them(
    end: MachineEnd, code: int | None, kernel: str, oomd: str
) -> None:
    worker = TASK + JOB + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    for log, code_ in ((STEP, code), (worker, 1 if code else None)):
        found = diagnosis_of(log, exit_code=code_, alive=False, machine=end)
        (first, its), (_, limit), (_, group), (_, other) = found.senders
        assert first == "kernel's OOM killer" and its == limit and its.startswith(kernel)
        assert group.startswith(oomd) and other.startswith("possible")
        shown = [row for row in found.problem(()).rows() if row in found.senders]
        assert shown == list(found.senders) and found.to_json()["senders"] == dict(found.senders)
        assert any("ppo-tui resume" in fix.text for fix in found.fixes)
    assert diagnosis_of(STEP, exit_code=137).senders == () == diagnosis_of(STEP, exit_code=1, machine=end).senders
