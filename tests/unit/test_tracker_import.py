"""Runs of wandb, TensorBoard, MLflow and Trackio, written by their own packages, become runs."""

import builtins
import lzma
import math
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from console_logs import stored
from foreign_logs import FORMS
from terminal import Terminal
from waiting import PATIENCE

from launcher.console.reader import ConfigDump, ConsoleReader
from launcher.core.errors import UserError
from launcher.core.progress import narrated
from launcher.record.events import Note, read_kind
from launcher.record.layout import RunDir, all_runs
from launcher.record.levels import Level
from launcher.record.state import RunState
from launcher.runs.act.import_logs import import_logs
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import resolve
from launcher.runs.watch.steps import steps
from launcher.runs.watch.tracker_files import is_tracker

STEPS = {
    step: {"actor/entropy": 0.1 / step, "critic/score/mean": step / 7, "perf/nan": math.nan, "perf/inf": -math.inf}
    for step in range(1, 31)
}
DATA = Path(__file__).parents[1] / "data" / "trackers"
T = 1_795_000_000.0

_WANDB = """
import json, math, sys, wandb
folder, config, log, last, code = sys.argv[1:]
run = wandb.init(project="p", name="baseline", id="ab", mode="offline", dir=folder, config=json.load(open(config)))
if log:
    print(open(log).read())
for step in range(1, int(last) + 1):
    run.log({"actor/entropy": 0.1 / step, "critic/score/mean": step / 7}, step=step)
    run.log({"perf/nan": math.nan, "perf/inf": -math.inf, "text": "x" * 2000, "on": True}, step=step)
run.finish(exit_code=int(code))
"""


def nested(keys: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in keys.items():
        *path, last = key.split(".")
        block = tree
        for name in path:
            block = block.setdefault(name, {})
        block[last] = value
    return tree


def dumped() -> dict[str, Any]:
    """The configuration that a real run of veRL resolved, which its wandb logger passes on."""
    events = ConsoleReader().feed(stored("learning"))
    return next(event.keys for event in events if isinstance(event, ConfigDump))


def offline_run(folder: Path, config: dict[str, Any], log: Path | None = None, code: int = 0) -> Path:
    """A run of wandb's own, made in a process without network and login."""
    file = folder / "config.json"
    file.write_bytes(orjson.dumps(config))
    words = [sys.executable, "-c", _WANDB, str(folder), str(file), str(log or ""), str(len(STEPS)), str(code)]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    subprocess.run(words, env=env, check=True, capture_output=True, timeout=120, cwd=folder)
    (made,) = (folder / "wandb").glob("offline-run-*-ab")
    return made


@pytest.fixture(scope="module")
def wandb_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return offline_run(tmp_path_factory.mktemp("tracker"), nested(dumped()))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))


def values(run: RunDir) -> dict[int, dict[str, float]]:
    return {record.step: record.data for _, record in steps(run)}


def same(one: dict[int, dict[str, float]], other: dict[int, dict[str, float]]) -> bool:
    return repr(sorted(one.items())) == repr(sorted(other.items()))


def notes(run: RunDir) -> list[str]:
    return [note.text for note in read_kind(run.events, Note)]


@pytest.mark.slow
def test_an_offline_run_of_wandb_has_its_metrics_times_and_settings(wandb_run: Path) -> None:
    (run,) = import_logs([str(wandb_run)])
    found = {step: {key: data[key] for key in STEPS[1]} for step, data in values(run).items()}
    assert same(found, STEPS) and all("text" not in data for data in values(run).values())
    state, info = RunState.read(run.state), run.read_info()
    assert state is not None and (state.state, state.outcome) == ("imported", "finished")
    assert abs((state.ended or 0) - wandb_run.stat().st_mtime) < 120 and not notes(run)
    assert info.name == "baseline" and info.imported_from == (str(wandb_run),)
    (by_console,) = import_logs([str(Path(__file__).parents[1] / "data" / "logs" / "learning.log.gz")])
    expected = by_console.read_info().preset
    assert info.preset is not None and expected is not None and info.preset["data"] == expected["data"]
    assert run.attempt(1).read_launch().keys["data.train_batch_size"] == dumped()["data.train_batch_size"]


@pytest.mark.slow
def test_a_damaged_run_of_wandb_keeps_what_can_be_read(wandb_run: Path, tmp_path: Path) -> None:
    def changed(name: str, content: bytes) -> RunDir:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run-ab.wandb").write_bytes(content)
        return import_logs([str(folder)])[0]

    (file,) = wandb_run.glob("*.wandb")
    whole = file.read_bytes()
    assert len(whole) > 2 * (1 << 15)  # several blocks
    cut = changed("cut", whole[: len(whole) // 2 + 5])
    assert 3 < len(values(cut)) < 30 and values(cut)[1]["actor/entropy"] == 0.1 and "its end" in notes(cut)[0]
    place = (1 << 15) + 5000
    hit = changed("hit", whole[:place] + bytes(100) + whole[place + 100 :])
    assert {1, 30} <= values(hit).keys() and "run-ab.wandb is damaged (at byte" in notes(hit)[0]
    for size in (0, 3, 7, 20):
        with pytest.raises(UserError, match="has no metrics"):
            changed(f"only-{size}", whole[:size])


@pytest.mark.slow
def test_a_failed_run_of_wandb_with_the_console_of_verl(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(stored("fail-oom"))
    folder = offline_run(tmp_path, {}, log, code=1)
    (run,) = import_logs([str(folder.with_name("latest-run"))])
    state = RunState.read(run.state)
    assert state is not None and (state.outcome, state.cause) == ("failed", "gpu-oom-update")
    assert run.read_info().preset is not None and run.attempt(1).console.exists()
    shutil.rmtree(folder / "files")
    (run,) = import_logs([str(folder)])
    state = RunState.read(run.state)
    assert state is not None and state.outcome == "failed" and len(values(run)) == 30


def test_files_of_a_run_downloaded_from_wandb(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "wandb-summary.json").write_text('{"_step": 7, "_timestamp": 1.5, "actor/entropy": 0.25, "x": "NaN"}')
    (files / "config.yaml").write_text("trainer:\n  desc: null\n  value: {n_gpus_per_node: 2}\n")
    (run,) = import_logs([str(tmp_path)])
    assert values(run)[7]["actor/entropy"] == 0.25 and math.isnan(values(run)[7]["x"]) and "no history" in notes(run)[0]
    assert run.attempt(1).read_launch().keys == {"trainer.n_gpus_per_node": 2}


def events_of(folder: Path, first: int, last: int, at: float = T) -> Path:
    """Scalars as the writer of torch, which veRL uses, leaves them."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step in range(first, last + 1):
        for key, value in STEPS[step].items():
            summary = Summary(value=[Summary.Value(tag=key, simple_value=value)])
            writer.add_event(Event(step=step, wall_time=at + step, summary=summary))
    writer.close()
    (made,) = [file for file in folder.glob("*tfevents*") if not file.name.startswith("old")]
    return made


def as_float32(values: dict[int, dict[str, float]]) -> dict[int, dict[str, float]]:
    def narrow(value: float) -> float:
        return float(struct.unpack("f", struct.pack("f", value))[0])

    return {step: {key: narrow(value) for key, value in data.items()} for step, data in values.items()}


def test_events_of_tensorboard_have_their_metrics_and_times(tmp_path: Path) -> None:
    file = events_of(tmp_path / "gsm8k", 1, 30)
    for word in (file, file.parent, tmp_path):
        (run,) = import_logs([str(word)])
        found = {step: {key: data[key] for key in STEPS[1]} for step, data in values(run).items()}
        assert same(found, as_float32(STEPS)) and run.read_info().name == "gsm8k"
        assert [record.t for _, record in steps(run)] == [T + step for step in STEPS]
        assert run.read_info().preset is None and not notes(run)


def test_scalars_of_tensorflow_2_are_read(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    writer.add_event(Event(step=3, wall_time=T, summary=scalar_pb("actor/entropy", 0.5)))
    writer.close()
    (run,) = import_logs([str(tmp_path)])
    assert values(run)[3]["actor/entropy"] == 0.5


def test_events_of_a_resumed_run_are_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "gsm8k"
    first = events_of(folder, 1, 12)
    first.rename(folder / f"old.{first.name}")
    (folder / f"old.{first.name}").rename(folder / "events.out.tfevents.0.host")
    second = tmp_path / "second"
    events_of(second, 11, 30, T + 100).rename(folder / "events.out.tfevents.1.host")
    (run,) = import_logs([str(folder)])
    assert run.attempt_numbers() == [1, 2] and len(values(run)) == 30


def test_damaged_events_keep_what_can_be_read(tmp_path: Path) -> None:
    file = events_of(tmp_path / "a", 1, 30)
    whole = file.read_bytes()
    for content in (whole[:-7], whole[: len(whole) // 2] + bytes(9) + whole[len(whole) // 2 + 9 :]):
        file.write_bytes(content)
        (run,) = import_logs([str(file)])
        assert values(run)[1]["actor/entropy"] == pytest.approx(0.1) and "is damaged after byte" in notes(run)[0]
    for content in (b"", b"\0" * 64, whole[:20]):
        file.write_bytes(content)
        with pytest.raises(UserError, match="has no metrics"):
            import_logs([str(file)])


def database(folder: Path, tracker: str) -> Path:
    """A file that mlflow 3.17.2 or trackio 0.43.0 wrote, with the 30 steps and a configuration."""
    file = folder / f"{tracker}.db"
    file.write_bytes(lzma.decompress((DATA / f"{tracker}.db.xz").read_bytes()))
    return file


@pytest.mark.parametrize("tracker", ["mlflow", "trackio"])
def test_a_database_has_metrics_times_and_settings(tracker: str, tmp_path: Path) -> None:
    file = database(tmp_path, tracker)
    for word in (file, tmp_path):
        (run,) = import_logs([str(word)])
        found = {step: {key: data[key] for key in STEPS[1]} for step, data in values(run).items()}
        assert same(found, STEPS) and run.read_info().name == "baseline" and not notes(run)
        keys, state = run.attempt(1).read_launch().keys, RunState.read(run.state)
        assert keys["data.train_files"] == ["/a", "/b"] and keys["actor_rollout_ref.actor.optim.lr"] == 3e-4
        assert keys["data.val_files"] is None and keys["actor_rollout_ref.model.trust_remote_code"] is False
        assert all(record.t > 1.79e9 for _, record in steps(run))
        assert state is not None and (state.outcome == "finished" or tracker == "trackio")
    if tracker == "mlflow":
        assert values(run)[1]["val-core/x/reward/mean@1"] == 0.5


@pytest.mark.parametrize("tracker", ["mlflow", "trackio"])
def test_a_database_of_a_stranger_is_refused(tracker: str, tmp_path: Path) -> None:
    file = database(tmp_path, tracker)
    whole = file.read_bytes()
    with closing(sqlite3.connect(file)) as base:
        base.execute("UPDATE runs SET start_time = 'x'" if tracker == "mlflow" else "UPDATE metrics SET metrics = '['")
        base.commit()
    with pytest.raises(UserError, match="other values"):
        import_logs([str(file)])
    file.write_bytes(whole[:40_000])
    with pytest.raises(UserError, match=f"cannot read .*{tracker}.db"):
        import_logs([str(file)])
    with closing(sqlite3.connect(tmp_path / "other.db")) as base:
        base.execute("CREATE TABLE x (y)")
    with pytest.raises(UserError, match="has no metrics"):
        import_logs([str(tmp_path / "other.db")])


@pytest.mark.parametrize("package", ["wandb", "tensorboard"])
def test_a_missing_package_has_its_extra(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run-ab.wandb").touch()
    (tmp_path / "events.out.tfevents.1").touch()
    found = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(name=package)
        return found(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError) as caught:
        import_logs([str(tmp_path / {"wandb": "run-ab.wandb", "tensorboard": "events.out.tfevents.1"}[package])])
    assert f"requires the package {package}" in caught.value.message
    assert caught.value.hint == "run pip install 'ppo-tui[trackers]'"


@pytest.fixture(params=["tensorboard", "mlflow", "trackio", pytest.param("wandb", marks=pytest.mark.slow)])
def tracked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file of a run of each tracker."""
    if request.param == "wandb":
        return next(request.getfixturevalue("wandb_run").glob("*.wandb"))  # type: ignore[no-any-return]
    return events_of(tmp_path, 1, 30) if request.param == "tensorboard" else database(tmp_path, request.param)


def test_a_tracker_is_judged_as_the_run_that_it_becomes(tracked: Path) -> None:
    log, run = resolve(str(tracked)), import_logs([str(tracked)])[-1]

    assert [record.data for _, record in steps(log)] == [record.data for _, record in steps(run)]
    of_log, of_run = judged(log, []), judged(run, [])
    assert of_log.changes == of_run.changes and of_log.checklist.checks() == of_run.checklist.checks()
    assert [check.level for check in of_log.checklist.checks()].count(Level.N_A) < 45


def test_other_folders_and_files_are_not_of_a_tracker(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("x")
    assert not any(map(is_tracker, (tmp_path, tmp_path / "run.log", tmp_path / "missing", Path("\0"))))


def test_reading_reports_how_far_it_is(tracked: Path) -> None:
    told: list[tuple[int, int, str]] = []
    runs = list[RunDir]()
    import_logs([str(tracked)], progress=lambda *each: told.append(each), made=runs.append)
    seen = [each[:2] for each in told if each[2] == "reading"]
    size = tracked.stat().st_size
    read = [done for done, _ in seen]
    assert {total for _, total in seen} == {size} and read == sorted(read) and len(set(read)) > 2
    done, total, doing = told[-1]
    assert doing == "judging" and done > 0.9 * total and len(runs) == len(all_runs())
    assert 0 < read[0] <= size / 2 and read[-2] >= size - 7 and read[-1] == size  # 7: the head of wandb's log


def test_an_interrupt_while_reading_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, temporary = events_of(tmp_path / "a", 1, 30), tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def interrupted(done: int, total: int, doing: str) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_logs([str(file)], progress=interrupted)
    assert not [*temporary.iterdir()] and not [*(tmp_path / "home").glob("runs/*")]


def test_progress_is_printed_after_a_second_and_then_every_five(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    report = narrated(said.append)
    for now in (10.0, 10.9, 11.0, 11.1, 15.9, 16.0):
        monkeypatch.setattr("time.monotonic", lambda now=now: now)
        report(int(now * 20e6), 399_000_001, "reading")
    monkeypatch.undo()
    assert said == ["reading: 220 of 400 MB", "reading: 320 of 400 MB"]


@pytest.mark.parametrize("form", ["trl", "csv", "trainer_state"])
def test_health_reports_how_much_of_a_log_is_judged(form: str, tmp_path: Path) -> None:
    log, reports = tmp_path / FORMS[form][2], list[tuple[int, int, str]]()
    row = {"critic/score/mean": 0.5, "actor/entropy": 0.1, "response_length/mean": 7.0}
    log.write_text(FORMS[form][1]([(step, row) for step in range(2000)]))
    judged(resolve(str(log)), [], lambda *report: reports.append(report))
    size = log.stat().st_size
    assert reports[-1] == (size, size, "judging")


def test_ctrl_c_ends_an_import_with_130() -> None:
    terminal = Terminal([sys.executable, "-c", "from tui.entry import main; main()", "import", "-"], os.environ)
    try:
        terminal.wait_for(lambda text: "paste the text" in text)
        terminal.send("\x03")
        assert terminal.process.wait(PATIENCE) == 130
    finally:
        terminal.close()
