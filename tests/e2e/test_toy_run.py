"""The whole path, nothing faked: veRL 0.9.1 PPO on the CPU, its supervisor, the dashboard in a terminal."""

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from terminal import Terminal
from valid_json import validate
from waiting import PATIENCE, wait_for

from launcher.core.format import number
from launcher.record.layout import RunDir

PPO_TUI = str(Path(sys.executable).parent / "ppo-tui")
HANGS = """
import itertools, time
calls = itertools.count()
def ask_judge():
    time.sleep(3600)
def score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    if next(calls) > 4 * 64:  # prompts
        ask_judge()
    return float(ground_truth in solution_str)
"""
STARTS = 5  # Ray itself gives up when it has not started in 30 seconds, which a busy machine may need

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("toy run"),  # one after the other: each is several processes with torch
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs veRL: pip install ppo-tui[cpu]"),
]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, toy_build: Any) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    (home / "cache").symlink_to(toy_build.cache)
    return {**os.environ, "PPO_TUI_HOME": str(home), "SECRET_TEST_TOKEN": "hf_do_not_write_me_down"}


def ppo_tui(env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([PPO_TUI, *words], env=env, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
    validate(words, done.stdout)
    return done


def status(env: dict[str, str], run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ppo_tui(env, "status", run, "--json").stdout)
    return found


def start(env: dict[str, str], *settings: str, step: int) -> dict[str, str]:
    """A toy run that has done `step` steps."""
    for _ in range(STARTS):
        started = ppo_tui(env, "run", "toy-cpu", *settings, "--detach", "--json")
        assert started.returncode == 0, started.stderr
        found: dict[str, str] = json.loads(started.stdout)

        try:
            state = wait_for(RunDir(Path(found["dir"])), lambda now: (now.step or 0) >= step or not now.live)
        except BaseException:
            ppo_tui(env, "stop", found["run"], "--wait")
            raise
        if (state.step or 0) >= step:
            return found
        cause = json.loads(ppo_tui(env, "diagnose", found["run"], "--json").stdout)
        assert cause["cause"] == "ray-start", cause
    raise AssertionError(f"Ray did not start {STARTS} times")


@pytest.fixture(scope="module")
def run(env: dict[str, str]) -> Iterator[dict[str, str]]:
    """A toy run that has done three steps and would go on for long."""
    found = start(env, "trainer.steps=500", "trainer.validate_every=-1", "trainer.save_every=2", step=3)
    yield found
    ppo_tui(env, "stop", found["run"], "--wait")


def logged(run: dict[str, str]) -> dict[int, dict[str, float]]:
    lines = (Path(run["dir"]) / "attempts/1/metrics.jsonl").read_text().splitlines()
    return {record["step"]: record["data"] for record in map(json.loads, lines)}


def _shows(text: str, data: dict[str, float]) -> bool:
    """Whether a screen has the numbers of a step."""
    keys = ("critic/score/mean", "actor/entropy", "actor/kl_loss")
    return all(key in data and number(data[key]) in text for key in keys)


def test_the_screen_shows_the_file_loggers_numbers(env: dict[str, str], run: dict[str, str]) -> None:
    terminal = Terminal([PPO_TUI, "attach", run["run"]], env)
    try:
        # the charts can be one poll ahead of the head
        terminal.wait_for(lambda t: any(_shows(t, data) for data in logged(run).values()))
        head = (r"\brunning\b", r"\btoy-cpu\b", r"\bstep [1-9]\d*/500\b")
        terminal.wait_for(lambda t: all(re.search(each, t) for each in head))
    finally:
        terminal.close()


def test_steps_jsonl_and_the_metrics_command_equal_the_file_logger(env: dict[str, str], run: dict[str, str]) -> None:
    lines = ppo_tui(env, "metrics", run["run"], "--json").stdout.splitlines()
    told = {record.pop("step"): record for record in map(json.loads, lines)}
    expected = logged(run)
    for step in (1, 2, 3):
        assert told[step].pop("attempt") == 1
        for key, value in expected[step].items():
            assert told[step][key] == value, (step, key)


def test_only_the_driver_imports_verl(run: dict[str, str]) -> None:
    """The workers are forks: one that imports for itself prints this line, too."""
    console = (Path(run["dir"]) / "attempts/1/console.log").read_text(errors="replace")
    assert console.count("Platform override from VERL_PLATFORM: cpu") == 1


@pytest.mark.nightly("launcher/inside/ppo_tui_inside/", "launcher/verl/requirements-cpu.txt")
def test_several_agent_workers_share_no_ids(env: dict[str, str]) -> None:
    """Ray ends a process that gets two tasks with the same id."""
    settings = ("trainer.steps=4", "trainer.validate_first=false", "trainer.validate_every=-1", "trainer.save_every=-1")
    found = start(env, "rollout.agent_workers=4", *settings, step=4)
    test_only_the_driver_imports_verl(found)
    state = wait_for(RunDir(Path(found["dir"])), lambda now: not now.live)
    assert state.state == "finished", state


def test_closing_the_terminal_changes_nothing_for_the_run(env: dict[str, str], run: dict[str, str]) -> None:
    before = status(env, run["run"])
    terminal = Terminal([PPO_TUI, "attach", run["run"]], env)
    terminal.wait_for(lambda t: "toy-cpu" in t)
    terminal.hang_up()
    after = wait_for(RunDir(Path(run["dir"])), lambda now: (now.step or 0) >= before["step"] + 2)
    assert after.state == "running" and after.driver is not None and after.driver.to_json() == before["driver"]


def test_no_secret_of_the_environment_is_written_down(run: dict[str, str]) -> None:
    ours = [path for path in Path(run["dir"]).rglob("*") if path.is_file() and path.name != "console.log"]
    assert len(ours) >= 5
    for path in ours:
        assert b"hf_do_not_write_me_down" not in path.read_bytes(), path


def test_stop_leaves_no_process_and_is_not_a_failure(env: dict[str, str], run: dict[str, str]) -> None:
    driver = status(env, run["run"])["driver"]["pid"]
    members = _session_of(driver)
    assert len(members) > 5, "driver, Ray and workers"
    bystanders = {p.pid for p in psutil.process_iter()} - set(members)
    stopped = ppo_tui(env, "stop", run["run"], "--wait")
    assert stopped.returncode == 0, stopped.stderr
    assert _session_of(driver) == []
    assert os.getpid() in bystanders and psutil.pid_exists(os.getpid())
    state = status(env, run["run"])
    assert state["state"] == "stopped" and state["exit"]["requested_by"] and state["exit"]["code"] in (134, 137, 143)
    shown = json.loads(ppo_tui(env, "diagnose", run["run"], "--json").stdout)
    assert shown["cause"] == "stopped"


@pytest.mark.nightly("launcher/runs/act/use_checkpoint.py", "launcher/inside/")
def test_a_checkpoint_becomes_a_model(env: dict[str, str], run: dict[str, str]) -> None:
    merged = ppo_tui(env, "export", "--model", run["run"], "--json")
    assert merged.returncode == 0, merged.stderr
    folder = Path(json.loads(merged.stdout)["dir"])
    assert folder.parent == Path(run["dir"]) / "merged"
    with (folder / "model.safetensors").open("rb") as file:
        names = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    assert json.loads((folder / "config.json").read_text())["vocab_size"] in [
        size for entry in names.values() for size in entry.get("shape", ())
    ]
    assert (folder / "tokenizer_config.json").exists()


@pytest.mark.nightly("launcher/runs/act/", "launcher/inside/")
def test_a_checkpoint_is_scored_next_to_the_model_before_and_nothing_is_trained(
    env: dict[str, str], run: dict[str, str]
) -> None:
    for _ in range(STARTS):
        done = ppo_tui(env, "eval", run["run"], "data.val_max_samples=16", "--base", "--json")
        if "Ray failed to start" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert any(re.fullmatch(r"val-core/.+/acc/mean@\d+", key) for key in found["scores"])
    base = found["base"]
    assert 8 <= base["prompts"] <= 16, "rows may repeat a prompt"
    assert base["difference"] == pytest.approx(base["after"] - base["before"])
    assert base["low"] <= base["difference"] <= base["high"] and 0 <= base["before"] < 1
    assert len(base["gained"]) + len(base["lost"]) <= base["prompts"]
    steps = [json.loads(line) for line in ppo_tui(env, "metrics", found["run"], "--json").stdout.splitlines()]
    assert len(steps) == 1 and steps[0]["step"] >= 2 and steps[0]["step"] % 2 == 0
    assert not any(key.startswith("actor/") for key in steps[0])


@pytest.mark.nightly("launcher/inside/ppo_tui_inside/plugin/")
def test_with_adapters_actor_and_critic_learn(env: dict[str, str]) -> None:
    """LoRA: the reference is the actor without its adapter."""
    adapters = ["model.lora_rank=4", "critic.lora_rank=4"]
    found = start(env, *adapters, "trainer.steps=3", "trainer.validate_first=false", step=3)
    state = wait_for(RunDir(Path(found["dir"])), lambda now: not now.live)
    assert state.state == "finished", state
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


@pytest.mark.nightly("launcher/runs/supervise/stalls/", "launcher/inside/ppo_tui_inside/stacks.py")
def test_a_reward_function_that_does_not_return_is_named_with_its_line(env: dict[str, str], tmp_path: Path) -> None:
    (file := tmp_path / "judge.py").write_text(HANGS)
    settings = ("trainer.steps=200", "trainer.validate_first=false", "trainer.validate_every=-1")
    found = start(env, *settings, f"reward.path={file}", "reward.function=score", "--force", step=2)
    try:
        state = wait_for(RunDir(Path(found["dir"])), lambda now: now.standstill is not None or not now.live)
        assert state.standstill is not None and state.standstill.reason == "reward", state
        assert "judge.py" in state.standstill.evidence[0] and "ask_judge" in state.standstill.evidence[0]
        shown = json.loads(ppo_tui(env, "diagnose", found["run"], "--json").stdout)
        assert shown["standstill"]["reason"] == "reward" and shown["stall_report"]
    finally:
        ppo_tui(env, "stop", found["run"], "--wait")


@pytest.mark.nightly("launcher/runs/act/rehearse.py", "launcher/preset/rehearsal", "launcher/inside/")
def test_a_preset_for_a_gpu_runs_small_on_the_cpu_and_leaves_nothing(env: dict[str, str], toy_build: Any) -> None:
    toy, before = toy_build.cache / "toy", {*Path(env["PPO_TUI_HOME"]).glob("runs/*")}
    settings = [f"model.path={toy}/model", f"data.train={toy}/data/train.parquet", f"data.val={toy}/data/test.parquet"]
    done = ppo_tui(env, "check", "gsm8k-grpo-24gb", *settings, "--rehearse", "--json")
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["id"] == "REHEARSAL"]
    assert found["level"] == "info", found
    assert re.search("rehearsal: (starting|validating|generating|scoring|computing|updating|saving)", done.stderr)
    assert {*Path(env["PPO_TUI_HOME"]).glob("runs/*")} == before
