"""Hardware and login: judged for this machine and for ones that are described."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tables import tabled
from waiting import PATIENCE, wait_until

from launcher.check import hardware, login
from launcher.check.subject import Subject, subject
from launcher.core.format import GIB
from launcher.machine.capacity import Gpu, Machine
from launcher.preset.files import load
from launcher.record.layout import create
from launcher.record.process import RUN
from launcher.record.state import RunState


def ids(findings: object) -> list[tuple[str, str]]:
    return [(each.id, each.level) for each in findings]  # type: ignore[attr-defined]


def test_who_holds_a_gpu() -> None:
    free, busy = Gpu("H200", 140 * GIB, GIB), Gpu("H200", 140 * GIB, 40 * GIB, ("python of anna (pid 4711)",))
    machine = Machine((free, busy), 64 * GIB, 64 * GIB, 16, assumed=False)
    assert list(hardware.gpus(machine, 1)) == []
    (only,) = hardware.gpus(machine, 2)
    assert only.level == "warning" and "anna" in only.message and "40.0 of 140.0 GiB" in only.message


def test_doctor_names_the_gpus() -> None:
    machine = Machine((Gpu("NVIDIA H200", 140 * GIB, 0),) * 2, 64 * GIB, 64 * GIB, 16, assumed=False)
    first = next(iter(hardware.of_machine(machine, sys.executable)))
    assert first.id == "HW-0" and first.message.startswith("NVIDIA H200 140.0 GiB, NVIDIA H200 140.0 GiB")


@tabled
def test_driver_and_generation(cuda, number, power, expected):
    assert [[*each] for each in ids(hardware.check_driver(cuda, "580.1", number, [power]))] == expected


def with_checkpoints(*settings: str) -> Subject:
    return subject(load("gsm8k-0.5b-24gb", settings), assume="1x24")


ACTOR, CRITIC = "trainer.max_actor_ckpt_to_keep", "trainer.max_critic_ckpt_to_keep"


@tabled
def test_room_for_checkpoints(settings, free, level, words, monkeypatch):
    """11 GiB each."""
    monkeypatch.setattr(hardware, "_free", lambda _: free * GIB)
    found = list(hardware.checkpoints(with_checkpoints(*settings)))
    assert [each.level for each in found] == ([level] if level else [])
    keeps, _, last = words.partition("; ")
    assert all(f", and {keeps}; " in each.message and each.fixes[-1].text.startswith(last) for each in found)


def test_the_path_of_rays_sockets_is_limited(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 60)
    assert ids(hardware.ray_folder({"RAY_TMPDIR": str(long)})) == [("HW-9", "error")]
    assert ("HW-9", "error") not in ids(hardware.ray_folder({}))


@tabled
def test_a_folder_that_cannot_be_written_is_named_with_its_variable(kind, env, words, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PPO_TUI_HOME", env.get("PPO_TUI_HOME", str(tmp_path)))
    env = {"HOME": str(tmp_path)} | {name: value.format(tmp=tmp_path) for name, value in env.items()}
    found = list(hardware.folders(env, [kind]))
    assert ids(found) == [("HW-10", "error")] * bool(words) and words in "".join(each.message for each in found)


@pytest.mark.parametrize(
    ("settings", "without"),
    [
        ((), set()),
        (("rollout.enforce_eager=true",), {"engine"}),
        (("+actor_rollout_ref.rollout.engine_kwargs.vllm.compilation_config.level=0",), {"engine"}),
        (("model.path={tmp}", "data.custom_cls.path=x.py"), {"hub", "data"}),
        (("env.HF_HUB_OFFLINE=1",), {"hub"}),
        (("env.HF_HOME={tmp}",), set()),
    ],
)
def test_a_run_writes_to_the_folders_of_what_it_uses(settings, without, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    found = hardware.written(with_checkpoints(*(each.format(tmp=tmp_path) for each in settings)))
    assert set(found) == {"ray", "data", "hub", "kernels", "engine"} - without


def test_limits_of_a_small_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_free", lambda _: 64 << 20)
    monkeypatch.setattr(hardware.resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(hardware.os, "geteuid", lambda: 1000)  # the limit of processes does not bind root
    few = [("HW-8", "warning")] * 2  # files, processes
    assert ids(hardware.limits(several=True)) == [("HW-7", "error"), *few, ("HW-8", "info")]
    assert ids(hardware.limits(several=False)) == [("HW-7", "warning"), *few]


@pytest.mark.slow
def test_a_stale_ray_address_is_told_and_taken_out() -> None:
    env = {"RAY_ADDRESS": "10.0.0.1:6379"}
    assert ("LOGIN-2", "info") in ids(login.of_login(env))
    assert ("LOGIN-2", "info") not in ids(login.of_login(env, joins=True))
    told = [found.message for found in login.of_login({"RAY_ADDRESS": "ray://me:hunter2@head:10001"})]
    assert any("ray://head:10001" in text for text in told) and not any("hunter2" in text for text in told)


def test_a_system_that_kills_at_logout(tmp_path: Path) -> None:
    logind, linger = tmp_path / "logind.conf", tmp_path / "linger"
    logind.write_text("[Login]\n#KillUserProcesses=yes\n")
    assert ids(login.at_logout(logind, linger)) == []
    (tmp_path / "logind.conf.d").mkdir()
    (tmp_path / "logind.conf.d/10.conf").write_text("[Login]\nKillUserProcesses = yes\n")
    assert ids(login.at_logout(logind, linger)) == [("LOGIN-5", "warning")]
    linger.mkdir()
    (linger / login.getpass.getuser()).touch()
    assert ids(login.at_logout(logind, linger)) == []


def test_ports_and_sessions(tmp_path: Path) -> None:
    (tmp_path / "range").write_text("40000\t40100\n")
    assert ids(login.ports(tmp_path / "range")) == [("LOGIN-4", "warning")]
    (tmp_path / "range").write_text("32768\t60999\n")
    assert ids(login.ports(tmp_path / "range")) == []
    for number in range(3):
        session = tmp_path / f"ray/session_2026-{number}"
        session.mkdir(parents=True)
        with (session / "log").open("wb") as file:
            file.truncate(5 * GIB)
    assert ids(login.ray_sessions(tmp_path / "ray")) == [("LOGIN-3", "warning")]


@pytest.mark.xdist_group("raylet")  # one case after the other: each sees all processes of this name
@tabled
def test_ray_without_the_leader_of_its_session_is_named_with_its_run(whose, live, fix, tmp_path, monkeypatch):
    """A process named raylet in a session of its own, whose leader ends; a run that may need it is waited for."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    run = create("x")
    run.run_yaml.write_text("{}")
    RunState(whose).write(run.state)
    if whose == "removed":
        shutil.rmtree(run.path)
    monkeypatch.setenv(RUN, run.id if whose else "")
    raylet = tmp_path / "raylet"
    raylet.symlink_to("/bin/sleep")
    script = f"{raylet} 600 >/dev/null & echo $!; read _"
    leader = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    pid = int(leader.stdout.readline())
    if whose == "elsewhere":
        monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "other"))
    live, fix = (words.format(run=run.id, pid=pid, home=tmp_path) for words in (live, fix))
    try:
        wait_until(lambda: psutil.Process(pid).name() == "raylet")
        mine = [each for each in login.ray_left() if run.id in each.message or str(pid) in each.fix]
        now = " ".join(each.message + each.fix for each in mine)
        assert live in now and "kill" not in now and (f"run {run.id}" if whose else "other program") in now
        leader.communicate("\n", timeout=PATIENCE)  # reaped: its session has no leader any more
        assert fix in [each.fix for each in login.ray_left()]
    finally:
        os.kill(pid, 9)


@pytest.mark.parametrize(
    ("escape", "clipboard", "count"), [("10", "on", 0), ("500", "external", 1), ("500", "off", 2), (None, None, 0)]
)
def test_tmux(escape: str | None, clipboard: str | None, count: int) -> None:
    assert len(list(login.tmux(escape, clipboard))) == count
