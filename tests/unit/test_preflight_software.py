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
from tables import tabled

from launcher.check import hardware, login, software
from launcher.check.facts import known_names
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.preset.files import load
from launcher.verl import env as verl_env
from launcher.verl.env import VerlEnv

REQUIRES = (
    "numpy>=2.0.0",
    "ray[default]>=2.41.0",
    "tensordict!=0.9.0,<=0.10.0,>=0.8.0",
    "transformers!=5.6.0,<5.11,>=5.5.3",
    "datasets",
    "wandb",
    'TransferQueue>=0.1.10; extra == "verl-core"',
    'torch==2.11.0; extra == "vllm"',
    'vllm==0.24.0; extra == "vllm"',
    'transformers==5.9.0; extra == "vllm"',
    "not a requirement ==",
)
GOOD = {
    "verl": "0.9.1",
    "vllm": "0.24.0",
    "torch": "2.11.0",
    "transformers": "5.9.0",
    "ray": "2.60.0",
    "flash-attn": "2.8.3",
    "flashinfer-python": "0.6.0",
    "TransferQueue": "0.1.11",
    "tensordict": "0.10.0",
    "numpy": "2.2.0",
    "orjson": "3.10.0",
    "datasets": "4.0.0",
    "wandb": "0.20.0",
}
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


def test_the_supported_set_says_nothing(judged: Callable[..., list[Finding]]) -> None:
    assert judged() == []


@tabled
def test_each_gap_comes_with_a_command(judged, packages, rule, level, words):
    (only,) = judged(**packages)
    assert (only.id, only.level, only.group) == (rule, level, "software")
    assert words in only.message
    assert "/opt/python -m pip install" in only.fix


def test_a_package_built_for_another_torch_is_named(judged: Callable[..., list[Finding]]) -> None:
    asked = (
        ("torchvision", "torch==2.12.0"),
        ("hydra-core", "antlr4-python3-runtime==4.9.*"),
        ("hydra-core", "PyYAML"),
    )
    (only,) = judged(partners=asked)
    assert only.id == "SW-3" and "torch is 2.11.0; torchvision requires ==2.12.0" in only.message
    assert [each.id for each in judged(partners=asked[1:], antlr4_python3_runtime="4.13.2")] == ["SW-3"]


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


def test_an_engine_that_veRL_refuses(judged: Callable[..., list[Finding]]) -> None:
    found = judged(vllm="0.12.0")
    assert [(each.id, each.level) for each in found] == [("SW-3", "warning"), ("SW-5", "error")]
    assert "requires at least 0.18.0" in found[1].message


def test_flash_attn_is_an_error_where_nothing_replaces_it(judged: Callable[..., list[Finding]]) -> None:
    (only,) = [each for each in judged(verl="0.8.0", flash_attn=None) if each.id == "SW-7"]
    assert only.level == "error" and "algorithm.adv_estimator=grpo" in only.fix
    grpo = dataclasses.replace(USE, critic=False, attention="sdpa")
    assert not [each for each in judged(grpo, verl="0.8.0", flash_attn=None) if each.id == "SW-7"]


def test_what_was_switched_off_is_not_missed(judged: Callable[..., list[Finding]]) -> None:
    assert judged(dataclasses.replace(USE, env={"VLLM_USE_FLASHINFER_SAMPLER": "0"}), flashinfer_python=None) == []
    assert judged(dataclasses.replace(USE, v1=False), TransferQueue=None) == []


def test_trackers(judged: Callable[..., list[Finding]], tmp_path: Path) -> None:
    mlflow = dataclasses.replace(USE, loggers=("console", "mlflow"))
    assert [each.id for each in judged(mlflow)] == ["SW-8"]
    wandb = dataclasses.replace(USE, loggers=("wandb",), env={"HOME": str(tmp_path)})
    (only,) = judged(wandb)
    assert only.id == "SW-9" and "env.WANDB_MODE=offline" in only.fix and "wandb login" in only.fix
    assert judged(dataclasses.replace(wandb, env={"WANDB_MODE": "offline"})) == []


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
    assert with_server("sqlite:////data/mlruns.db", "mlflow", "MLFLOW_TRACKING_URI") == []


def test_the_cpu_asks_for_no_gpu_software(judged: Callable[..., list[Finding]]) -> None:
    cpu = dataclasses.replace(USE, gpu=False, engine="hf", attention="eager")
    assert judged(cpu, cuda=None, vllm=None, flash_attn=None, torch="2.13.0+cpu") == []


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


def test_doctor(ppo_tui: Callable[..., object]) -> None:
    done = ppo_tui("doctor", "--json")
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    told = json.loads(done.stdout)  # type: ignore[attr-defined]
    assert told["findings"] and {"id", "group", "level", "message", "fix"} <= told["findings"][0].keys()
    nothing = ppo_tui("doctor", PPO_TUI_PYTHON="/nowhere/python")
    assert nothing.returncode == 1  # type: ignore[attr-defined]
    assert "/nowhere/python" in nothing.stdout  # type: ignore[attr-defined]


def test_doctor_where_veRL_is_missing(ppo_tui: Callable[..., object], tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    done = ppo_tui("doctor", PPO_TUI_PYTHON=str(tmp_path / "bare/bin/python"))
    assert "veRL is not installed" in done.stdout and done.returncode == 1  # type: ignore[attr-defined]
