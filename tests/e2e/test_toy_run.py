"""The whole path, nothing faked: veRL 0.9.1 PPO on the CPU, its supervisor, the dashboard in a terminal."""

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from terminal import Terminal

from launcher.format import number

PPO_TUI = str(Path(sys.executable).parent / "ppo-tui")
PATIENCE = 240  # seconds to the third step: 45 on two free cores, several times that on busy ones

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"),
]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = str(tmp_path_factory.mktemp("home"))
    return {**os.environ, "PPO_TUI_HOME": home, "SECRET_TEST_TOKEN": "hf_do_not_write_me_down"}


def ppo_tui(env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PPO_TUI, *words], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)


def status(env: dict[str, str], run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ppo_tui(env, "status", run, "--json").stdout)
    return found


one_run = pytest.mark.xdist_group("toy run")


@pytest.fixture(scope="module")
def run(env: dict[str, str]) -> Iterator[dict[str, str]]:
    """A toy run that has done three steps and would go on for long."""
    started = ppo_tui(
        env,
        "run",
        "toy-cpu",
        "trainer.steps=500",
        "trainer.validate_every=-1",
        "trainer.save_every=2",
        "--detach",
        "--json",
    )
    assert started.returncode == 0, started.stderr
    found: dict[str, str] = json.loads(started.stdout)
    deadline = time.monotonic() + PATIENCE
    while (state := status(env, found["run"]))["step"] is None or state["step"] < 3:
        assert state["state"] in ("starting", "running"), state
        assert time.monotonic() < deadline, state
        time.sleep(1)
    yield found
    ppo_tui(env, "stop", found["run"], "--wait")


def logged(run: dict[str, str]) -> dict[int, dict[str, float]]:
    lines = (Path(run["dir"]) / "attempts/1/metrics.jsonl").read_text().splitlines()
    return {record["step"]: record["data"] for record in map(json.loads, lines)}


@one_run
def test_the_screen_shows_the_file_loggers_numbers(env: dict[str, str], run: dict[str, str]) -> None:
    terminal = Terminal([PPO_TUI, "attach", run["run"]], env)
    try:
        text = terminal.wait_for(lambda t: bool(re.search(r"step [1-9]\d*/500", t)) and "entropy" in t)
        found = re.search(r"step (\d+)/500", text)
        assert found is not None
        data = logged(run)[int(found[1])]
        for key in ("critic/score/mean", "actor/entropy", "actor/kl_loss"):
            assert number(data[key]) in text, f"{key} {data[key]} of step {found[1]} is not on the screen:\n{text}"
        assert "running" in text and "toy-cpu" in text
    finally:
        terminal.close()


@one_run
def test_steps_jsonl_and_the_metrics_command_equal_the_file_logger(env: dict[str, str], run: dict[str, str]) -> None:
    lines = ppo_tui(env, "metrics", run["run"], "--json").stdout.splitlines()
    told = {record.pop("step"): record for record in map(json.loads, lines)}
    expected = logged(run)
    for step in (1, 2, 3):
        assert told[step].pop("attempt") == 1
        for key, value in expected[step].items():
            assert told[step][key] == value, (step, key)


@one_run
def test_closing_the_terminal_changes_nothing_for_the_run(env: dict[str, str], run: dict[str, str]) -> None:
    before = status(env, run["run"])
    terminal = Terminal([PPO_TUI, "attach", run["run"]], env)
    terminal.wait_for(lambda t: "toy-cpu" in t)
    terminal.hang_up()
    deadline = time.monotonic() + 60
    while (after := status(env, run["run"]))["step"] < before["step"] + 2:
        assert time.monotonic() < deadline, after
        time.sleep(0.5)
    assert after["state"] == "running" and after["driver"] == before["driver"]


@one_run
def test_no_secret_of_the_environment_is_written_down(run: dict[str, str]) -> None:
    ours = [path for path in Path(run["dir"]).rglob("*") if path.is_file() and path.name != "console.log"]
    assert len(ours) >= 5
    for path in ours:
        assert b"hf_do_not_write_me_down" not in path.read_bytes(), path


@one_run
def test_stop_leaves_no_process_and_is_not_a_failure(env: dict[str, str], run: dict[str, str]) -> None:
    driver = status(env, run["run"])["driver"]["pid"]
    members = _session_of(driver)
    assert len(members) > 5, "driver, Ray and workers"
    bystanders = {p.pid for p in psutil.process_iter()} - set(members)
    started = time.monotonic()
    stopped = ppo_tui(env, "stop", run["run"], "--wait")
    assert stopped.returncode == 0, stopped.stderr
    assert time.monotonic() - started < 30
    assert _session_of(driver) == []
    assert os.getpid() in bystanders and psutil.pid_exists(os.getpid())
    state = status(env, run["run"])
    assert state["state"] == "stopped" and state["exit"]["requested_by"] and state["exit"]["code"] in (134, 137, 143)
    shown = json.loads(ppo_tui(env, "diagnose", run["run"], "--json").stdout)
    assert shown["cause"] == "stopped"


@one_run
def test_a_checkpoint_becomes_a_model(env: dict[str, str], run: dict[str, str]) -> None:
    merged = ppo_tui(env, "merge", run["run"], "--json")
    assert merged.returncode == 0, merged.stderr
    folder = Path(json.loads(merged.stdout)["dir"])
    assert folder.parent == Path(run["dir"]) / "merged"
    with (folder / "model.safetensors").open("rb") as file:
        names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    assert json.loads((folder / "config.json").read_text())["vocab_size"] in [
        size for entry in names.values() for size in entry.get("shape", ())
    ]
    assert (folder / "tokenizer_config.json").exists()


@one_run
def test_a_checkpoint_is_scored_and_nothing_is_trained(env: dict[str, str], run: dict[str, str]) -> None:
    done = ppo_tui(env, "eval", run["run"], "data.val_max_samples=16", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert any(re.fullmatch(r"val-core/.+/acc/mean@\d+", key) for key in found["scores"])
    steps = [json.loads(line) for line in ppo_tui(env, "metrics", found["run"], "--json").stdout.splitlines()]
    assert len(steps) == 1 and steps[0]["step"] >= 2 and steps[0]["step"] % 2 == 0
    assert not any(key.startswith("actor/") for key in steps[0])


def test_with_adapters_actor_and_critic_learn(env: dict[str, str]) -> None:
    """LoRA: the reference is the actor without its adapter."""
    words = ["model.lora_rank=4", "critic.lora_rank=4", "trainer.steps=3", "trainer.validate_first=false"]
    started = ppo_tui(env, "run", "toy-cpu", *words, "--detach", "--json")
    assert started.returncode == 0, started.stderr
    found = json.loads(started.stdout)
    deadline = time.monotonic() + PATIENCE
    while (state := status(env, found["run"]))["state"] not in ("finished", "failed"):
        assert time.monotonic() < deadline, state
        time.sleep(1)
    assert state["state"] == "finished", state
    first, _, third = (logged(found)[step] for step in (1, 2, 3))
    assert all(step[f"{model}/grad_norm"] > 0 for step in (first, third) for model in ("actor", "critic"))
    # actor and reference are the same before the first update; by the third the adapter is away from it
    assert 0 <= first["actor/kl_loss"] < third["actor/kl_loss"]


def _session_of(leader: int) -> list[int]:
    """Live processes of a session; those that only wait to be reaped hold nothing any more."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
