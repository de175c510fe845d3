"""The action of an error can be done: its numbers are valid, its folder is the missing one, its kind is right."""

import errno
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from launcher.check import hardware
from launcher.core import files, paths
from launcher.core.errors import UserError, of_writing
from launcher.core.format import amount
from launcher.core.text import allowed_steps
from launcher.metrics.glossary import describe
from launcher.metrics.store import SeriesStore
from launcher.preset.draft import target
from launcher.record.events import Action, EventLog, StateChange
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import RunState
from launcher.runs.watch.reader import RunReader
from launcher.settings import read_alerts

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("steps", [[6], [0, 10], [5, 10, 15], list(range(1, 61)), [3, 4, 5], [7, 8]])
def test_the_steps_of_a_hint_exist(steps: Sequence[int]) -> None:
    hint = allowed_steps(steps, "--step")
    assert {int(number) for number in re.findall(r"\d+", hint)} <= set(steps)
    assert hint.startswith("use ") and "--step" in hint


@pytest.mark.parametrize("name", ["a.yaml", "train.jsonl"])
def test_a_folder_is_named_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match="is a folder; name a file"):
        files.require_file(tmp_path / name)
    with pytest.raises(UserError, match=f"file not found: .*did you mean '{name}'"):
        files.require_file(tmp_path / f"{name[:-1]}x")


def test_the_missing_folder_of_a_file_is_to_be_created(tmp_path: Path) -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory")
    assert of_writing(tmp_path / "a b" / "x", missing).hint == f"create the folder: mkdir -p '{tmp_path}/a b'"
    assert of_writing(tmp_path / "x", missing).hint == "choose another folder", "its folder is there"
    assert "free disk space" in of_writing(tmp_path / "x", OSError(errno.ENOSPC, "full")).hint


@pytest.mark.parametrize(
    ("number", "path", "ours"),
    [
        (errno.EROFS, "/h/.data", True),
        (errno.EACCES, "/h/.data/ppo-tui/runs/x", True),
        (errno.ENOSPC, "/h/.data", False),
        (errno.EROFS, "/h/other", False),
    ],
)
def test_a_home_that_is_refused_can_be_another_one(
    number: int, path: str, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PPO_TUI_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/h/.data")
    assert ("PPO_TUI_HOME" in paths.home_hint(OSError(number, "refused", path))) == ours


@pytest.mark.parametrize("wanted", [300 << 10, 20 << 20, 5 << 30])
def test_no_size_is_rounded_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int) -> None:
    monkeypatch.setattr(hardware, "_free", lambda _: wanted // 3)
    (finding,) = hardware.disk(tmp_path, wanted, "the run")
    assert amount(wanted) in finding.message and not re.search(r"(?<![.\d])0(?:\.0)? GiB", finding.message)


def test_no_share_is_a_share_of_a_share() -> None:
    """Where a metric is explained, its unit follows: `prompts that were solved (share)`."""
    text = (ROOT / "launcher/metrics/glossary.toml").read_text("utf-8")
    keys = re.findall(r'^"([^"]+)" = \{unit = "share"', text, re.MULTILINE)
    wrong = [key for key in keys if re.match(r"(?:of|share|size)\b", describe(key).meaning)]
    assert len(keys) >= 40 and wrong == []


@pytest.mark.parametrize("name", ["my toy/é", "a/b", "/tmp/x", "../x"])
def test_a_preset_is_not_written_where_nobody_looks(name: str) -> None:
    with pytest.raises(UserError, match="is not a valid preset name"):
        target(name)


@pytest.mark.parametrize("wrong", ["me: a@b.org", "me: 7", "me:"])
def test_a_wrong_target_of_alerts_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text(f"alerts:\n  phone: ntfys://ntfy.sh/x\n  {wrong}\n")
    with pytest.raises(UserError, match=r"alerts: me: .* is not an address"):
        read_alerts()


def test_a_removed_run_keeps_what_was_shown(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "aaa0-mine")
    run.path.mkdir()
    RunInfo(run.id, "mine", 0.0, {}).write(run.run_yaml)
    RunState("finished", step=60, total=60).write(run.state)
    reader = RunReader(run.path)
    reader.poll()
    for path in run.path.iterdir():
        path.unlink()
    run.path.rmdir()
    reader.poll()
    assert (reader.state.step, reader.state.error) == (60, "the run's folder was removed")
    assert reader.state.state == "lost" and not reader.state.damaged


def test_a_resumed_run_begins_with_its_new_steps(tmp_path: Path) -> None:
    import io

    from launcher.cli.plain import _Printer
    from launcher.metrics.records import StepRecord

    run = RunDir(tmp_path / "aaa0-mine")
    run.path.mkdir()
    RunInfo(run.id, "mine", 0.0, {}).write(run.run_yaml)
    RunState("running", attempt=2).write(run.state)
    log = EventLog(run.events)
    log.add(StateChange("running", "finished"))
    log.add(Action("resume", step=2))
    log.add(StateChange("finished", "starting"))
    reader, out = RunReader(run.path), io.StringIO()
    reader.series = SeriesStore()
    reader.series.add_all([StepRecord(step, 0.0, None, {"critic/score/mean": 0.5}) for step in (1, 2, 3)], 1)
    printer = _Printer(reader, out)
    printer.begin_at_resume()
    printer.print_new()
    assert out.getvalue() == "finished -> starting\n", "step 3 is of the attempt before"
    reader.series.add(StepRecord(3, 1.0, None, {"critic/score/mean": 0.7}), 2)
    printer.print_new()
    assert out.getvalue().splitlines()[1:] == ["step 3  reward 0.700"]
