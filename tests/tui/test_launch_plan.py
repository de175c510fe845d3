"""What a launch comes to before it is drawn: essentials, command, settings."""

import dataclasses
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from whole_run import whole_run

from tui.pages.launch.launch_plan import examine, plan, settings_with


def test_an_earlier_run_on_this_machine_shows_how_long_it_takes(home: Path) -> None:
    run = whole_run(home)
    launch = run.attempt(1).launch
    assert "unknown until a run of this preset has been measured" in str(plan("toy-cpu", []).essentials)
    dataclasses.replace(run.attempt(1).read_launch(), host=socket.gethostname()).write(launch)
    words = " ".join("".join(text for text, _ in row) for row in plan("toy-cpu", []).essentials)
    assert "time about 2m 00s: 0s to start, 60 steps of 2 s; as in run 7f3a" in " ".join(words.split())


def test_a_later_fix_of_the_same_field_replaces_the_earlier_one() -> None:
    settings = settings_with(["actor.lr=1e-6", "rollout.n=2"], {"actor.lr": 2e-6, "data.train": ["a", "b"]})
    assert settings == ["rollout.n=2", "actor.lr=2e-06", "data.train=[a,b]"]
    assert settings_with(settings, {"trainer.project": None, "rollout.n": 4})[-2:] == [
        "trainer.project=null",
        "rollout.n=4",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy-cpu", "gsm8k-0.5b-24gb", "gsm8k-grpo-24gb", "math-7b-8gpu"])
def test_shipped_presets_say_what_they_come_to(home: Path, name: str) -> None:
    found = plan(name, [])
    assert len(found.essentials) >= 3 and found.subject is not None
    assert all(len("".join(text for text, _ in row)) < 100 for row in found.essentials[1:])
    assert "verl.trainer.main_ppo" in found.command


def test_without_verl_sw_1_has_the_command_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    monkeypatch.setenv("PPO_TUI_PYTHON", str(tmp_path / "bare/bin/python"))
    launch = plan("toy-cpu", [])
    assert launch.command.startswith("no command: ") and launch.subject is not None
    found = [*launch.findings, *examine(launch.subject, lambda _: None, lambda: False)]
    assert "PRESET" not in {each.id for each in found}
    assert ["pip install -r" in each.fix for each in found if each.id == "SW-1"] == [True]
