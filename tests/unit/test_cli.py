"""The command line as scripts see it: exit codes, an error and a hint on lines of their own, JSON on stdout."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tables import tabled

from launcher.record.layout import RunDir

LOGS = Path(__file__).parents[1] / "data" / "logs"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@tabled
def test_wrong_use_is_an_error_and_a_hint_on_stderr_and_exit_2(in_process, tmp_path, words, sentence):
    (tmp_path / "letter.sh").write_text("#!/bin/sh\necho hello world\n")
    (tmp_path / "binary.log").write_bytes(bytes(range(256)))
    (tmp_path / "empty.sh").touch()
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "odd.yaml").write_text("b: 1\n")
    (tmp_path / "broken.yaml").write_text("actor: {lr: 1e-6\nmodel: [")
    before = sorted({*tmp_path.iterdir(), tmp_path / "home"})
    done = in_process(*(each.replace("LOGS", str(LOGS)) for each in words))
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    error, *hints = done.stderr.splitlines()
    assert error.startswith("error: ") and not error.endswith(".") and sentence in done.stderr
    assert len(hints) <= 1 and all(hint.startswith("hint: ") for hint in hints)
    assert not (tmp_path / "home" / "runs").exists() or not any((tmp_path / "home" / "runs").iterdir())
    assert sorted({*tmp_path.iterdir(), tmp_path / "home"}) == before and (tmp_path / "there.csv").read_text() == "mine"


def test_without_verl_the_sentence_says_how_to_get_it(ppo_tui: Command, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')  # an interpreter without site-packages
    bare.chmod(0o755)
    done = ppo_tui("run", "toy-cpu", PPO_TUI_PYTHON=str(bare))
    assert done.returncode == 2 and "veRL is not installed" in done.stderr and "requirements-cpu.txt" in done.stderr
    done = ppo_tui("run", "toy-cpu", PPO_TUI_PYTHON="/nonexistent")
    assert done.returncode == 2 and "PPO_TUI_PYTHON" in done.stderr
    assert not [*(tmp_path / "home" / "runs").iterdir()]


def test_chosen_keys_keep_nan_as_a_word(in_process: Command) -> None:
    key = "actor/grad_norm"
    steps = [
        json.loads(line)
        for line in in_process("metrics", str(LOGS / "nan.log.gz"), "--key", key, "--json").stdout.splitlines()
    ]
    assert all(step.keys() <= {"step", "attempt", key} for step in steps)
    assert "nan" in [step.get(key) for step in steps]


def test_a_group_of_commands_alone_tells_its_help(in_process: Command) -> None:
    told = in_process("data").stderr
    assert told.startswith("Usage: ppo-tui data ") and "\n  Documentation: ppo-tui help tutorials/" in told


def test_the_verdict_of_health_comes_first_and_a_finished_run_is_told_once(in_process: Command) -> None:
    log = str(LOGS / "kl-blowup.log.gz")
    done = in_process("health", log)
    first, *rows = done.stdout.splitlines()
    assert first.startswith("CRITICAL") and not any(row.startswith(("OK", "N-A", "step ")) for row in rows)
    assert "other rules: --all lists them" in done.stderr
    first, *more = in_process("health", log, "--all", "--events").stdout.splitlines()
    assert {*rows} < {*more} and more[-1].startswith("step ") and any(row.startswith("OK") for row in more)
    assert in_process("diagnose", str(LOGS / "cpu-toy.log.gz")).stdout.splitlines()[0] == "Finished"


def test_every_command_has_a_help_that_fits_the_terminal(in_process, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = in_process("--help").stdout
    for name in ("run", "attach", "list", "status", "stop", "metrics", "preset", "import", "data"):
        assert f"\n  {name} " in listed
        assert in_process(name, "--help").returncode == 0


def test_delete_asks_where_it_can_and_refuses_where_it_cannot(in_process: Command) -> None:
    imported = json.loads(in_process("import", str(LOGS / "nan.log.gz"), "--json").stdout)
    refused = in_process("delete", "last")
    assert refused.returncode == 2 and "--yes" in refused.stderr and Path(imported["dir"]).exists()
    deleted = in_process("delete", "last", "--yes", "--json")
    assert json.loads(deleted.stdout) == imported and not Path(imported["dir"]).exists()


def test_escapes_in_a_log_do_not_reach_the_terminal(in_process: Command, tmp_path: Path) -> None:
    log = tmp_path / "evil.log"
    log.write_bytes(
        b"\x1b]0;owned\x07step:1 - actor/entropy:0.5\nTraceback (most recent call last):\nValueError: \x1b[2Jboo\n"
    )
    for words in (["diagnose", str(log)], ["metrics", str(log), "--key", "actor/entropy"], ["health", str(log)]):
        assert "\x1b" not in in_process(*words).stdout


def test_what_the_machine_refuses_is_one_line_and_exit_1(ppo_tui: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    done = ppo_tui("import", str(LOGS / "nan.log.gz"), PPO_TUI_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path}/file/runs: Not a directory\nhint: name a folder, not a file\n"


@pytest.mark.parametrize("size", [12, 3000])
def test_a_broken_gzip_file_is_named(in_process: Command, tmp_path: Path, size: int) -> None:
    packed = bytearray((LOGS / "nan.log.gz").read_bytes())
    packed[size : size + 200] = bytes(200)
    log = tmp_path / "broken.log.gz"
    log.write_bytes(packed)
    for command in ("metrics", "health", "diagnose", "import"):
        done = in_process(command, str(log))
        assert done.returncode == 2 and done.stderr.startswith(f"error: cannot read {log}: "), done.stderr


def test_letters_that_the_terminal_lacks_are_replaced(ppo_tui: Command, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("Error executing job\nTraceback (most recent call last):\nValueError: größer\n", "utf-8")
    done = ppo_tui("diagnose", str(log), PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "ValueError: gr??er" in done.stdout, done.stderr
    assert "No entry of the catalog matches." in done.stdout


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error() -> None:
    words = [sys.executable, "-c", "from tui.entry import main; main()", "metrics", str(LOGS / "nan.log.gz"), "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_exit_from_within_a_command_keeps_its_code() -> None:
    """Only a reader that goes away is no error: whatever else ends the process early may be one."""
    script = "import sys; from launcher.cli.main import main; main(lambda request: sys.exit(3))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert done.returncode == 3


def test_a_no_deletes_nothing(in_process: Command, tmp_path: Path) -> None:
    in_process("import", str(LOGS / "nan.log.gz"))
    screen, terminal = os.openpty()
    os.write(screen, b"n\n")
    done = subprocess.run(
        [sys.executable, "-c", "from tui.entry import main; main()", "delete", "last"],
        env={**os.environ, "PPO_TUI_HOME": str(tmp_path / "home")},
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    os.close(screen), os.close(terminal)
    assert done.returncode == 1 and done.stderr.endswith("cancelled\n"), done.stderr
    assert any((tmp_path / "home" / "runs").iterdir())


def test_a_folder_named_presets_on_the_python_path_is_not_ours(ppo_tui: Command, tmp_path: Path) -> None:
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "__init__.py").touch()
    assert "toy-cpu" in ppo_tui("preset", "list", PYTHONPATH=str(tmp_path)).stdout


def test_stop_says_what_it_did(ppo_tui: Command) -> None:
    run = ppo_tui("demo", str(LOGS / "cpu-toy.log.gz"), "--speed", "1", "--detach").stdout.strip()
    done = [ppo_tui("stop", run, *words, "--json") for words in ([], ["--wait"], [])]
    said = [each.stderr for each in done]
    assert json.loads(done[2].stdout) == {"run": run, "state": "stopped", "left": []}
    assert said[0] == f"stopping run {run}\n"
    assert said[1] in (f"run {run} is stopped\n", f"run {run} is not running (state: stopped)\n")
    assert said[2] == f"run {run} is not running (state: stopped)\n"


@pytest.mark.parametrize("words", [[], ["attach", "--read-only", "last"], ["attach", "last"]])
def test_the_screen_opens_without_typer(words, monkeypatch, capsys):
    """What opens the screen alone is understood without the command line; a mistake is told all the same."""
    from launcher.cli import main as cli

    asked: list[object] = []
    monkeypatch.setattr(cli, "on_terminal", lambda: True)
    monkeypatch.setattr(cli, "find", lambda *word: RunDir(Path("/nowhere/abc")))
    monkeypatch.setattr(sys, "argv", ["ppo-tui", *words])
    monkeypatch.setitem(sys.modules, "launcher.cli.root", None)  # an import of it fails
    with pytest.raises(SystemExit) as left:
        cli.main(lambda request: asked.append(request) or 3)  # type: ignore[func-returns-value]
    assert left.value.code == 3
    assert [(each.run, each.read_only) for each in asked] == [  # type: ignore[attr-defined]
        ("/nowhere/abc" if words else None, "--read-only" in words)
    ]


@pytest.mark.parametrize("words", [["resume"], ["fork"], ["try", "--yes"], ["eval"], ["export", "--model"]])
def test_what_needs_a_preset_has_a_hint_on_an_imported_run(words, in_process):
    run = in_process("import", str(Path(__file__).parents[1] / "data" / "logs" / "nan.log.gz")).stdout.split()[0]
    done = in_process(*words, "last")
    wrong, action = done.stderr.splitlines()
    assert done.returncode == 2 and "it is an imported log" in wrong and action.startswith("hint: "), run


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        *((words.split(), "cannot read /proc/nope/runs: ") for words in ("list", "list --json", "status last")),
        *((words.split(), "cannot write to /proc/nope/") for words in ("run toy-cpu", "run --queue toy-cpu")),
    ],
)
def test_a_home_that_cannot_be_made_is_an_error(in_process, monkeypatch, words, wrong):
    """Before any check, which takes minutes without a cache."""
    monkeypatch.setenv("PPO_TUI_HOME", "/proc/nope")
    done = in_process(*words)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(f"error: {wrong}")
    assert done.stderr.endswith("\nhint: set PPO_TUI_HOME to another folder\n")


NAN = str(LOGS / "nan.log.gz")


def test_a_file_is_replaced_when_asked_and_its_name_is_printed(in_process: Command, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("old")
    done = in_process("export", NAN, "--output", "x.csv", "--key", "critic/score/mean", "--overwrite")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x.csv\n", "")
    assert (tmp_path / "x.csv").read_text().startswith("step,attempt,critic/score/mean\n1,1,0.14")


def test_jsonl_says_what_metrics_says(in_process: Command, tmp_path: Path) -> None:
    assert in_process("export", NAN, "--output", "x.jsonl").returncode == 0
    printed = in_process("metrics", NAN, "--json").stdout.splitlines()
    written = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == [json.loads(line) for line in printed] != []


def test_runs_stand_side_by_side(in_process: Command) -> None:
    for name in ("kl-blowup", "nan"):
        assert in_process("import", str(LOGS / f"{name}.log.gz")).returncode == 0
    done = in_process("compare", "kl-blowup", "nan")
    assert done.returncode == 0 and done.stderr.count("was made elsewhere") == 2
    table = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert table.keys() >= {"RUN", "state", "verdict", "step", "best score", "last score", "KL", "duration"}
    assert table["step"].split() == ["step", "27/58", "2/58"]

    found = json.loads(in_process("compare", "nan", "kl-blowup", "--json").stdout)
    assert [run["name"] for run in found["runs"]] == ["nan", "kl-blowup"]
    assert "actor.clip_grad" in [each["key"] for each in found["differences"]]
    assert found["runs"][0]["step"] == 2 and found["runs"][1]["verdict"] == "CRITICAL"

    twice = in_process("compare", "nan", "last")
    assert twice.returncode == 2 and "listed twice" in twice.stderr
