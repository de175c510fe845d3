"""Software: judged for packages that are described and for those of this machine."""

import dataclasses
import http.server
import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tables import parts, tabled

from launcher.check import hardware, login, software
from launcher.check.facts import known_names
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.preset.files import load
from launcher.verl import env as verl_env
from launcher.verl.env import VerlEnv

REQUIRES = tuple(parts("preflight_software")["requires"][1])
GOOD = dict(parts("preflight_software")["good"][1])
USE = software.Use(gpu=True, engine="vllm", v1=True, critic=True, attention=None, loggers=("console", "file"), env={})


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """What is said of an interpreter with these packages; None takes one out."""

    def run(
        use: software.Use = USE,
        cuda: str | None = "13.0",
        partners: tuple[tuple[str, str], ...] = (),
        **packages: str | None,
    ) -> list[Finding]:
        changes = {name.replace("_", "-"): version for name, version in packages.items()}
        have = {name: version for name, version in {**GOOD, **changes}.items() if version}
        env = VerlEnv("/opt/python", "3.12.3", have, Path("/opt/verl"), REQUIRES, cuda, partners=partners)
        monkeypatch.setattr(verl_env, "probe", lambda _: env)
        return [each for each in software.check_packages("/opt/python", use) if each.level != "info"]

    return run


def test_what_compiles_kernels_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    env = VerlEnv("/opt/python", "3.12.3", GOOD, Path("/opt/verl"), REQUIRES, None, headers=False)
    monkeypatch.setattr(verl_env, "probe", lambda _: env)
    bare, full = (subject(load("gsm8k-0.5b-24gb", ["env.PATH=/nonexistent", *more])) for more in ((), ("env.CC=gcc",)))
    assert [each.message[:12] for each in software._compiler(bare)] == ["there is no ", "/opt/python "]
    assert [each.id for each in software._compiler(full)] == ["SW-15"]
    monkeypatch.setattr(verl_env, "probe", lambda _: dataclasses.replace(env, headers=True))
    assert not list(software._compiler(full))


def test_the_package_that_traces_rollouts_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    env = VerlEnv("/opt/python", "3.12.3", GOOD, Path("/opt/verl"), REQUIRES, None)
    monkeypatch.setattr(verl_env, "probe", lambda _: env)
    (only,) = software._required("/opt/python", "SW-8.trace", "weave")
    assert only.id == "SW-8" and "pip install weave" in only.fix
    assert not list(software._required("/opt/python", "SW-8.trace", "orjson"))


def test_the_probe_asks_for_every_package_that_a_setting_may_require() -> None:
    """One that it does not ask for would always be missing."""
    packages = known_names().software
    wanted = {*packages.trackers, *packages.trace_backends, *packages.remote.values(), *software.ENGINES.values()}
    assert {*wanted, "liger-kernel", "nvtx"} <= {*verl_env.PACKAGES}


@tabled
def test_a_set_of_packages(use, packages, expected, judged):
    found = judged(dataclasses.replace(USE, **use), **packages)
    assert [[each.id, each.level, each.group] for each in found] == [[*each[:2], "software"] for each in expected]
    for each, (_, _, *words) in zip(found, expected, strict=True):
        assert [part for part in words if part not in each.message + each.fix] == []


@tabled
def test_what_reads_remote_paths_and_profiles_is_there(settings, expected, monkeypatch):
    env = VerlEnv("/opt/python", "3.12.3", GOOD, Path("/opt/verl"), REQUIRES, None)
    what = subject(load("gsm8k-0.5b-24gb", [*settings, "env.PATH=/nonexistent"]))
    monkeypatch.setattr(verl_env, "probe", lambda _: env)
    found = [*software._remote(what), *software._profiler(what)]
    assert [each.id for each in found] == expected
    have = dataclasses.replace(env, packages={**GOOD, "s3fs": "1", "nvtx": "1"})
    monkeypatch.setattr(verl_env, "probe", lambda _: have)
    left = [*software._remote(what), *software._profiler(what)]
    assert not [each for each in left if "s3fs" in each.fix or "nvtx" in each.fix]


def test_packages_without_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in images that set PYTHONDONTWRITEBYTECODE: the start is slow until somebody compiles them."""
    torch = tmp_path / "torch" / "__init__.py"
    torch.parent.mkdir()
    torch.write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(verl_env, "probe", verl_env.probe.__wrapped__)

    def found() -> list[Finding]:
        return [each for each in software.check_packages(sys.executable, USE) if each.id == "SW-13"]

    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert found() == []  # the first run writes it
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (only,) = found()
    assert only.level == "warning" and str(tmp_path) in only.message
    subprocess.run(shlex.split(only.fix.partition("`")[2].rstrip("`")), check=True)
    assert found() == []


def test_a_tracker_without_a_network(judged: Callable[..., list[Finding]], tmp_path: Path) -> None:
    def with_server(url: str, logger: str = "wandb", variable: str = "WANDB_BASE_URL") -> list[Finding]:
        env = {"HOME": str(tmp_path), variable: url, "WANDB_API_KEY": "x", "no_proxy": "*"}
        return judged(dataclasses.replace(USE, loggers=(logger,), env=env), mlflow="3.1")

    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    assert with_server(address) == [] and with_server(address, "mlflow", "MLFLOW_TRACKING_URI") == []
    server.shutdown()
    server.server_close()
    (only,) = with_server(address.replace("//", "//me:pw@"))
    assert (only.id, only.level) == ("SW-12", "warning") and "me:pw" not in only.message
    assert only.fix == "set env.WANDB_MODE=offline"
    (only,) = with_server(address, "mlflow", "MLFLOW_TRACKING_URI")
    assert only.fix == "set env.MLFLOW_TRACKING_URI=sqlite:////tmp/mlruns.db"


def test_this_environment_is_fit_for_the_toy() -> None:
    """The .venv that runs the tests, by the words of its own veRL."""
    if verl_env.probe(sys.executable).verl != "0.9.1":
        pytest.skip("veRL is not installed")
    found = list(software.checks(subject(load("toy-cpu"))))
    assert [each for each in found if each.level != "info"] == []
    wanted = software.wanted(verl_env.probe(sys.executable).requires, "vllm")
    assert wanted["vllm"] == "==0.24.0" and wanted["tensordict"].startswith("!=0.9.0")


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    (only,) = software.check_packages(str(tmp_path / "python"), USE)
    assert (only.id, only.level) == ("SW-1", "error")


def test_under_assumption_nothing_of_this_machine_is_judged() -> None:
    what = subject(load("gsm8k-0.5b-24gb"), assume="1x24")
    for module in (software, hardware, login):
        assert list(module.checks(what)) == []


def test_liger_is_asked_for_where_the_preset_wants_it() -> None:
    what = subject(load("toy-cpu", ["model.use_liger=true"]))
    found = [each for each in software.checks(what) if each.keys == (software.LIGER,)]
    installed = "liger-kernel" in verl_env.probe(what.python).packages
    assert [each.level for each in found] == ([] if installed or not what.verl else ["error"])


def test_doctor(ppo_tui, tmp_path):
    done = ppo_tui("doctor", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["findings"] and {"id", "group", "level", "message", "fix"} <= told["findings"][0].keys()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    for python, words in (
        ("/nowhere/python", "/nowhere/python"),
        (f"{tmp_path}/bare/bin/python", "veRL is not installed"),
    ):
        done = ppo_tui("doctor", PPO_TUI_PYTHON=python)
        assert done.returncode == 1 and words in done.stdout
