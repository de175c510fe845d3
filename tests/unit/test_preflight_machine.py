"""Hardware and login: judged for this machine and for ones that are described."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
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


@pytest.mark.parametrize(
    ("cuda", "number", "power", "expected"),
    [
        ("13.0", 13000, (9, 0), []),
        ("12.8", 13000, (8, 0), []),
        (None, 12040, (8, 6), []),
        ("13.0", 12080, (8, 9), [("HW-3", "error")]),
        ("12.8", 12080, (7, 0), [("HW-4", "error")]),
    ],
)
def test_driver_and_generation(
    cuda: str | None, number: int, power: tuple[int, int], expected: list[tuple[str, str]]
) -> None:
    assert ids(hardware.check_driver(cuda, "580.1", number, [power])) == expected


def with_checkpoints(*settings: str) -> Subject:
    return subject(load("gsm8k-0.5b-24gb", settings), assume="1x24")


ACTOR, CRITIC = "trainer.max_actor_ckpt_to_keep", "trainer.max_critic_ckpt_to_keep"


@pytest.mark.parametrize(
    ("settings", "free", "level", "words"),
    [
        ((), 34, None, ""),
        ((), 32, "warning", f"3 are on the disk at a time; or set {ACTOR}=2 and {CRITIC}=2"),
        ((), 8, "error", "3 are on the disk at a time; free disk space"),
        ((f"{ACTOR}=1", f"{CRITIC}=1"), 23, None, ""),  # the only one is removed after the next was written
        ((f"{ACTOR}=1", f"{CRITIC}=1"), 21, "warning", "2 are on the disk at a time; free disk space"),
        ((f"{ACTOR}=1",), 32, "warning", f"3 are on the disk at a time; or set {ACTOR}=2"),
        ((f"{ACTOR}=1", "algorithm=grpo"), 8, "warning", "2 are on the disk at a time; free disk space"),
        ((f"{CRITIC}=0",), 100, "warning", f"all of them are kept; or set {ACTOR}=9 and {CRITIC}=9"),
        ((f"{CRITIC}=0", "trainer.steps=25", "trainer.save_every=10"), 32, "warning", "all 3 are kept; or set"),
        (("trainer.steps=25", "trainer.save_every=20"), 23, None, ""),
        (("trainer.keep_best=2",), 50, "warning", f"5 are on the disk at a time; or set {ACTOR}=2"),
        (("trainer.save_every=-1",), 1, None, ""),
    ],
)
def test_room_for_checkpoints(
    settings: tuple[str, ...], free: int, level: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize(
    ("kind", "env", "words"),
    [
        ("data", {"HF_HOME": "/proc/x"}, "/proc/x/datasets, which HF_HOME sets, cannot be written"),
        ("data", {"HF_HOME": "/proc/x", "HF_DATASETS_CACHE": "{tmp}"}, ""),
        ("data", {"XDG_CACHE_HOME": "/proc"}, "/proc/huggingface/datasets, which XDG_CACHE_HOME sets"),
        ("hub", {"HF_HOME": "/proc/x"}, "/proc/x/hub, which HF_HOME sets, cannot be written"),
        ("hub", {"HF_HOME": "/proc/x", "HF_HUB_CACHE": "{tmp}"}, ""),
        ("engine", {"VLLM_CACHE_ROOT": "/proc/x"}, "/proc/x/torch_compile_cache, which VLLM_CACHE_ROOT sets"),
        ("engine", {"XDG_CACHE_HOME": "/proc"}, "/proc/vllm/torch_compile_cache, which XDG_CACHE_HOME sets"),
        ("kernels", {"TRITON_HOME": "/proc"}, "/proc/.triton/cache, which TRITON_HOME sets"),
        ("ray", {"TMPDIR": "/proc"}, "/proc/ray, which TMPDIR sets"),
        ("ray", {"PPO_TUI_HOME": "/proc/x"}, "/proc/x/runs, which PPO_TUI_HOME sets"),
        ("hub", {}, ""),
    ],
)
def test_a_folder_that_cannot_be_written_is_named_with_its_variable(
    kind: str, env: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_run_writes_to_the_folders_of_what_it_uses(
    settings: tuple[str, ...], without: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize(
    ("whose", "live", "fix"),
    [
        ("running", "run `ppo-tui list`", "wait until `ppo-tui status {run}` shows that it has ended"),
        ("stopped", "run `ppo-tui list`", "run `ppo-tui clean`"),
        ("elsewhere", "run `PPO_TUI_HOME={home} ppo-tui list`", "run `PPO_TUI_HOME={home} ppo-tui clean`"),
        ("removed", "run `ps -f {pid}`", "run `kill {pid}`"),
        ("", "run `ps -f {pid}`", "run `kill {pid}` if no program of yours uses them"),
    ],
)
def test_ray_without_the_leader_of_its_session_is_named_with_its_run(
    whose: str, live: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert leader.stdout is not None
    pid = int(leader.stdout.readline())
    if whose == "elsewhere":
        monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "other"))
    live, fix = (words.format(run=run.id, pid=pid, home=tmp_path) for words in (live, fix))
    try:
        wait_until(lambda: psutil.Process(pid).name() == "raylet")
        now = " ".join(each.message + each.fix for each in login.ray_left())
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
