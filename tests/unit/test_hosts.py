"""`--host` and `list --hosts`: the ppo-tui of other machines, through a program that is called as ssh is."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import call

Command = Callable[..., "subprocess.CompletedProcess[str]"]

# Runs the command here, as sshd would there with the user's shell; one host does not answer.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
[ "$2" = away ] && { echo "ssh: connect to host away port 22: No route to host" >&2; exit 255; }
exec sh -c "$3"
"""
PPO_TUI = f"""#!/bin/sh
PPO_TUI_HOME="$HERE/elsewhere" exec {sys.executable} -m launcher.cli.main "$@"
"""


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a ppo-tui that reaches another one, whose home is beside it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("ssh", SSH), ("their-ppo-tui", PPO_TUI)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HERE", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("hosts:\n  me@box: their-ppo-tui\n  away:\n")
    return home


def test_runs_of_other_machines_are_listed_and_a_machine_that_is_away_is_told(
    ppo_tui: Command, box: Path, tmp_path: Path
) -> None:
    log = Path(__file__).parents[1] / "data" / "logs" / "grpo.log.gz"
    done = ppo_tui("--host", "me@box", "import", str(log))
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "elsewhere" / "runs").iterdir()
    there, away = (json.loads(line) for line in ppo_tui("list", "--hosts", "--json").stdout.splitlines())
    assert there["host"] == "me@box" and there["runs"][0]["run"] == run.name and there["away"] is None
    assert "No route to host" in away["away"] and away["runs"] == []
    assert run.name in ppo_tui("list", "--hosts").stdout
    assert not (box / "runs").exists()


def test_a_machine_that_is_not_reached_exits_with_1_and_says_what_to_try(ppo_tui: Command, box: Path) -> None:
    done = ppo_tui("--host", "away", "list")
    assert done.returncode == 1 and "error: ssh to 'away' failed\nhint: try 'ssh away'" in done.stderr
    done = ppo_tui("--host", "no-ppo-tui-here", "list", PATH=f"{box.parent / 'bin'}:/usr/bin:/bin")
    assert done.returncode == 1 and "error: no ppo-tui found on 'no-ppo-tui-here'\nhint: name its path" in done.stderr
    assert ppo_tui("--host", "me@box", "status", "nothing").returncode == 2, "that of the ppo-tui there"


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "$(x)", "a;b", ""])
def test_what_is_no_host_never_reaches_ssh(box: Path, host: str) -> None:
    _, err, code = call(["--host", host, "list"])
    assert code == 2 and b"is not an SSH host" in err
