"""Tables of commands: folded in a terminal, a line a row for scripts."""

import io
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from launcher.cli import output
from launcher.core.paths import own_command

ROWS = [("NAME", "ABOUT"), ("a", "one two three four five six seven eight nine ten"), ("bbbbbb", "short")]


def test_a_script_gets_a_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    output.put_table(ROWS)
    assert capsys.readouterr().out.splitlines()[1] == "a       " + ROWS[1][1]


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (80, ["a       one two three four five six seven eight nine ten"]),
        (40, ["a       one two three four five six", "        seven eight nine ten"]),
        (30, ["a", "    one two three four five", "    six seven eight nine ten"]),
    ],
)
def test_a_terminal_gets_whole_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, row: list[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda **_: os.terminal_size((width, 24)))
    output.put_table(ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1 : 1 + len(row)] == row and lines[-1] == "bbbbbb  short"


def test_a_reader_that_has_gone_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits in a buffer fails when the interpreter ends, and Python writes about it."""
    taken = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(taken, encoding="utf-8"))
    output.put_table(ROWS)
    assert taken.getvalue().endswith(b"short\n")


@pytest.mark.nightly("ppo_tui.py", "tui/entry.py", "launcher/cli/", "launcher/core/", every=5)
@pytest.mark.slow
@pytest.mark.parametrize("words", ["list", "list --json", "status nope", "help KL-1", "nonsense", "--version", "queue"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_output_is_closed_ends_as_usual(
    words: str, closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    line = shlex.join([*own_command("launcher.cli.main"), *words.split()])
    done = subprocess.run(["sh", "-c", f"{line} {closed}"], capture_output=True, text=True)
    assert done.returncode == (2 if words in ("status nope", "nonsense") else 0)
    assert "Traceback" not in done.stdout + done.stderr
