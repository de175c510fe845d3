"""A bundle: what an issue needs, and nothing of who ran it where."""

import getpass
import json
import socket
import zipfile
from pathlib import Path

import pytest
from commands import call
from planted import PLANTED, planted_run
from tables import tabled

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from launcher.report.anonymous import Anonymous
from launcher.report.bundle import AROUND, packed, parts, write
from launcher.runs.act.import_logs import import_logs

LOGS = Path(__file__).parents[1] / "data" / "logs"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def planted(home: Path) -> RunDir:
    return planted_run(home)


def test_nothing_in_a_bundle_names_a_person_a_machine_or_a_secret(planted: RunDir) -> None:
    files = parts(planted)
    assert next(iter(files)) == "issue.md" and len(files) == 8 and files["case.md"].startswith("# Question")
    for name, text in files.items():
        for secret in (*PLANTED, socket.gethostname(), str(Path.home())):
            assert secret not in text, f"{secret} in {name}"
    together = "".join(files.values())
    for shown in ("~/verl/x.py", "<host-1>", "<ip-1>", "<email>", "/scratch/<user>_run", "HF_TOKEN=***"):
        assert shown in together


def test_the_parts_hold_what_maintainers_ask_for(planted: RunDir) -> None:
    files = parts(planted)
    assert "verl: 0.9.1" in files["versions.txt"]
    assert "files: ~/a.parquet" in files["config.yaml"]
    assert "## Stacks" in files["stacks.txt"] and "Fatal Python error: Aborted" in files["stacks.txt"]
    assert "session: session_1" in files["ray.txt"] and "## raylet.err" in files["ray.txt"]
    assert "GPU 0: H200" in files["gpus.txt"] and "1 other process" in files["gpus.txt"]
    issue = files["issue.md"]
    for part in ("### System Info", "### Reproduction", "~/.venv/bin/python -m verl.trainer.main_ppo", "KeyError"):
        assert part in issue
    assert issue.count("```") % 2 == 0


def test_the_cause_is_in_the_middle_of_200_lines(home: Path) -> None:
    run = import_logs([str(LOGS / "fail-oom.log.gz")])[0]
    lines = parts(run)["console.txt"].splitlines()
    (marked,) = [line for line in lines if line.startswith(">")]
    assert "torch.OutOfMemoryError: CUDA out of memory" in marked
    assert lines.index(marked) == AROUND // 2 and len(lines) <= AROUND + 1


@pytest.mark.parametrize(
    ("log", "title"),
    [
        ("frameworks/slime-collapse.log.gz", "slime-collapse, imported (unfinished): CRITICAL KL-1: Policy drift (KL)"),
        ("logs/cpu-toy.log.gz", "cpu-toy, imported (finished)"),
        ("logs/fail-oom.log.gz", "GPU out of memory in the actor update"),
    ],
)
def test_the_title_says_what_the_records_show(log: str, title: str, home: Path) -> None:
    issue = parts(import_logs([str(LOGS.parent / log)])[0])["issue.md"]
    assert issue.startswith(f"# [Bug] {title}") and issue.count(title) == 2


@pytest.mark.nightly("launcher/report/", "launcher/core/")
def test_a_bundle_is_a_small_zip_file_that_replaces_the_last_one(planted: RunDir, home: Path) -> None:
    noise = "x" * 100_000
    planted.attempt(1).console.write_text("\n".join(f"raylet {noise} {at}" for at in range(50)) + "\nKeyError: 'a'\n")
    target = home / "b.zip"
    for _ in range(2):
        assert write(planted, target) == target
    with zipfile.ZipFile(target) as archive:
        assert "b/issue.md" in archive.namelist()
        assert sum(each.file_size for each in archive.infolist()) < 1 << 20
        assert len(archive.read("b/issue.md")) < 65_536
    with pytest.raises(UserError, match=r"ends in \.zip"):
        write(planted, home / "b.tar")
    with pytest.raises(UserError, match="cannot write"):
        write(planted, home / "nowhere" / "b.zip")


def test_damaged_and_empty_runs_can_be_packed(home: Path) -> None:
    run = RunDir(home / "home" / "runs" / "abc123-empty")
    run.path.mkdir(parents=True)
    run.run_yaml.write_bytes(b"\xff: [")
    assert packed(parts(run), "b")


def test_the_command_writes_to_the_current_folder(planted: RunDir, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert json.loads(call(["bundle", planted.id, "--json"])[0])["file"] == f"{planted.id}-bundle.zip"
    assert (home / f"{planted.id}-bundle.zip").exists()


@tabled
def test_text_is_made_anonymous(before: str, after: str) -> None:
    hidden = Anonymous(["zoe"], ["node1.hpc.example.org"])
    hidden.learn([before])
    assert hidden.text(before) == after


def test_own_names_are_hidden_without_being_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "quentin")
    monkeypatch.setattr(socket, "gethostname", lambda: "tower-of-quentin")
    assert Anonymous().text("quentin at tower-of-quentin") == "<user> at <host-1>"
    named = Anonymous()
    named.learn(["(TaskRunner pid=7) TaskRunner hostname: rack-4.lab, PID: 7", "def __init__(hostname: str)"])
    assert named.text("no answer of rack-4 for str(host)") == "no answer of <host-2> for str(host)"
