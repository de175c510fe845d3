"""Run directories that version 0.1 wrote (tests/data/runs-0.1.tar.xz): nothing of them is lost.

What commands show of them is in the golden file (test_golden.py).

A toy run that was resumed and finished, one that was stopped with LEN-1 muted, one that failed over a key that
veRL does not have, a replay, and an imported log of a run that ran out of memory.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from commands import call

from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import Event
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, find
from launcher.record.machine import MachineSample
from launcher.record.state import RunState
from launcher.runs.watch.reader import RunReader

FINISHED, STOPPED, FAILED = "6ca840-toy-cpu", "c40d5d-toy-cpu", "91cf71-toy-cpu"
REPLAYED, IMPORTED = "42b4b3-replay-learning", "957cfc-fail-oom"
RUNS = (FINISHED, STOPPED, FAILED, REPLAYED, IMPORTED)
each_run = pytest.mark.parametrize("name", RUNS)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("0.1")
    with tarfile.open(Path(__file__).parents[1] / "data" / "runs-0.1.tar.xz") as archive:
        archive.extractall(folder / "runs", filter="data")
    return folder


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(home))


@pytest.fixture
def run(name: str) -> RunDir:
    return find(name)


def stored(path: Path) -> Any:
    value = orjson.loads(path.read_bytes())
    assert value.pop("schema") == 1
    return value


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def told(value: dict[str, Any]) -> dict[str, Any]:
    """What is not empty: 0.1 wrote also what it had nothing to say about, and an import less than a launch."""
    return {key: item for key, item in value.items() if item not in (None, [], {}, False)}


@each_run
def test_events_are_the_same_lines(run: RunDir) -> None:
    found = [(Event.from_line(line), line) for line in lines(run.events)]
    assert found
    for event, line in found:
        assert event is not None
        without = line.replace(b',"rule":null', b"") if b'"kind":"action"' in line else line
        assert event.to_line() == without


@pytest.mark.parametrize("name", [FINISHED, STOPPED, FAILED, REPLAYED])
def test_samples_of_the_machine_are_the_same_lines(run: RunDir) -> None:
    found = lines(run.machine)
    assert found
    for line in found:
        assert orjson.dumps(MachineSample.from_json(orjson.loads(line)).to_json()) + b"\n" == line


@each_run
def test_the_state_is_the_same_but_for_limits_metrics_and_fixes(run: RunDir) -> None:
    before = stored(run.state)
    if before["exit"]:
        assert before["exit"].pop("schema") == 1
    after = RunState.from_json(before).to_json()
    for check in after["checks"]:
        assert (check.pop("keys"), check.pop("bounds"), check.pop("fixes")) == ([], [], [])
    assert len(after["checks"]) == 31 and after == before


@each_run
def test_beginnings_and_ends_of_attempts_are_the_same(run: RunDir) -> None:
    assert run.attempt_numbers() == ([1, 2] if run.id == FINISHED else [1])
    for number in run.attempt_numbers():
        attempt = run.attempt(number)
        launch = stored(attempt.launch)
        written = attempt.read_launch().to_json()
        assert {key: written[key] for key in launch} == launch
        assert told(written).keys() - launch.keys() == ({"cwd"} if run.id == IMPORTED else set())
        record = attempt.read_exit()
        assert record is not None and record.to_json() == stored(attempt.exit)


@each_run
def test_run_yaml_keeps_all_that_it_says(run: RunDir, tmp_path: Path) -> None:
    from ruamel.yaml import YAML

    before = YAML(typ="safe").load(run.run_yaml)
    info = run.read_info()
    on_cpu = {"on_cpu": True} if run.id in (FINISHED, STOPPED, FAILED) else {}  # 0.1 did not write it down
    assert told(info.to_json()) | {"schema": 1} == told(before) | on_cpu
    info.write(tmp_path / "run.yaml")
    assert RunInfo.read(tmp_path / "run.yaml") == info
    assert run.read_name() == info.name == before["name"]


@pytest.mark.parametrize(("name", "steps"), zip(RUNS, (7, 10, 0, 29, 0), strict=True))
def test_a_reader_follows_it(name: str, steps: int) -> None:
    reader = RunReader(find(name).path)
    changed = reader.poll()
    assert {"state", "events", "log"} <= changed and not reader.poll()
    assert list(reader.series.steps) == [*range(steps)] and bool(reader.series.seams) == (name == FINISHED)
    assert reader.event_count == len(lines(reader.dir.events)) and reader.log
    assert len(reader.machine.times) == len(lines(reader.dir.machine))


def test_a_launch_that_an_import_wrote_has_no_command() -> None:
    assert find(IMPORTED).attempt(1).read_launch() == LaunchRecord(created=1795253480.0)
    assert find(IMPORTED).attempt(1).read_exit() == Exit(t=1795253480.0)


def test_runs_of_0_1_are_compared() -> None:
    found = json.loads(call(["compare", FINISHED, STOPPED, REPLAYED, "--json"])[0])
    facts = [(fact["state"], round(fact["duration"])) for fact in found["runs"]]
    assert facts == [("finished", 184), ("stopped", 148), ("stopped", 1)]
    (steps,) = (entry["values"] for entry in found["differences"] if entry["key"] == "trainer.steps")
    assert steps == [6, 40, None], "as it was resumed"
