"""Runs of other machines in the list, in a real terminal, through a program that is called as ssh is."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal

from tui.entry import main

LOG = Path(__file__).parents[1] / "data" / "logs" / "grpo.log.gz"
PPO_TUI = [sys.executable, "-c", f"from {main.__module__} import main; main()"]

# Runs the command here, as sshd would there with the user's shell; one machine does not answer.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" = away ] && { echo "ssh: connect to host away port 22: No route to host" >&2; exit 255; }
exec sh -c "$3"
"""
THEIRS = f"""#!/bin/sh
PPO_TUI_HOME="$HERE/elsewhere" exec {sys.executable} -c 'from {main.__module__} import main; main()' "$@"
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir(exist_ok=True)
    for name, text in (("ssh", SSH), ("their-ppo-tui", THEIRS)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    hosts = "hosts:\n  me@box: their-ppo-tui\n  away:\nclusters: ['127.0.0.1:1']\n"
    (home / "config.yaml").write_text(hosts)
    env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HERE": str(tmp_path)}
    env |= {"PPO_TUI_HOME": str(home)}
    subprocess.run([programs / "their-ppo-tui", "import", LOG], env=env, check=True, capture_output=True)
    opened = Terminal(PPO_TUI, env)
    yield opened
    opened.close()


@pytest.mark.slow
def test_a_run_of_another_machine_is_opened_there_and_the_way_back_is_here(terminal: Terminal) -> None:
    terminal.wait_for(lambda text: "me@box  1 run" in text and "No route to host" in text)
    shown = terminal.wait_for(lambda text: "127.0.0.1:1  away: the Ray dashboard" in text)
    (listed,) = (line for line in shown.splitlines() if "grpo · " in line)
    assert "stopped" in listed and shown.index("Other machines") < shown.index(listed) < shown.index("Start a new")
    terminal.send("g")
    terminal.send("/grpo\r")
    terminal.wait_for(lambda text: "away" not in text and "grpo" in text)
    terminal.send("gj")
    terminal.wait_for(lambda text: "opens this run on me@box through ssh" in text)
    terminal.send("\r")
    terminal.wait_for(lambda text: "reward" in text and "q back" in text)
    terminal.send("q")
    terminal.wait_for(lambda text: "Start a new run" in text and "Other machines" not in text)
    terminal.send("q")
    terminal.wait_for(lambda text: "opens this run on me@box through ssh" in text)
