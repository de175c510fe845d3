"""What is taken for output of veRL: every log that we have, and no other text."""

import gzip
from pathlib import Path

import pytest
from console_logs import events_of, only
from tables import tabled

from launcher.console.reader import StepLine
from launcher.console.recognize import is_verl_output
from launcher.core.errors import UserError
from launcher.core.tail import chunks
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.log import Log, newest, resolve

DATA = Path(__file__).parents[1] / "data"
LOGS = [*(DATA / "logs").glob("*.gz"), *(DATA / "failures").glob("*.gz")]
TRACEBACK = 'Traceback (most recent call last):\n  File "{}", line 1, in <module>\nValueError: boo\n'


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_recorded_log_is_veRLs(path: Path) -> None:
    assert (newest(str(path)).kind == "metrics") == path.name.endswith(".jsonl.gz")


@tabled
def test_a_start_up_without_steps_is_veRLs(text: str) -> None:
    assert is_verl_output(lambda: [text.encode()])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.log", b"", "a.log is empty; use the console log"),
        ("a.log", b"hello world\n", "a.log has no output of veRL or another known framework"),
        ("a.log", bytes(range(256)) * 2000, "is a binary file"),
        ("a.log", bytes(1 << 20), "is a binary file"),
        ("a.log.gz", gzip.compress(b"hello world\n" * 1000), "no output"),
        ("a.log", TRACEBACK.format("x.py").encode(), "no output"),
        ("a.log", b"step: 5 of the recipe\n'quoted'\n", "no output"),
        ("a.py", b"import ray\nfrom verl.trainer.main_ppo import run_ppo\n", "no output"),
        ("run.sh", b"python3 -m verl.trainer.main_ppo \\\n  actor_rollout_ref.actor.optim.lr=1\n", "preset import"),
        ("a.jsonl", b'{"step": 1, "loss": 2}\n{"a": 1}\n', "a row per step, but too few metric names"),
    ],
    ids=["empty", "letter", "binary", "zeros", "packed", "traceback", "recipe", "source", "script", "json"],
)
def test_other_files_are_refused_with_what_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, said: str
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        import_logs([str(path)])
    assert said in str(refused.value) and str(path) in refused.value.message
    assert not (tmp_path / "home" / "runs").exists()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_of_a_log(tmp_path: Path, encoding: str, packed: bool) -> None:
    text = "step:1 - a/b:1.5 - c/d:2\nstep:2 - a/b:1.5 - c/é:3\n".encode(encoding)
    path = tmp_path / "train.log"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert isinstance(resolve(str(path)), Log)
    steps = [(step.step, step.line, step.data) for step in only(StepLine, events_of(b"".join(chunks(path))))]
    assert steps == [(1, 1, {"a/b": 1.5, "c/d": 2.0}), (2, 2, {"a/b": 1.5, "c/é": 3.0})]
