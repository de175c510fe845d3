"""Run directories that version 0.1 wrote (tests/data/runs-0.1.tar.xz): nothing of them is lost.

A toy run that was resumed and finished, one that was stopped with LEN-1 muted, one that failed over a key that
veRL does not have, a replay, and an imported log of a run that ran out of memory.
"""

import json
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from launcher.cli.main import main
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import Event
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, find
from launcher.record.levels import Level
from launcher.record.machine import MachineSample
from launcher.record.state import RunState, current
from launcher.runs.watch.reader import RunReader

FINISHED, STOPPED, FAILED = "6ca840-toy-cpu", "c40d5d-toy-cpu", "91cf71-toy-cpu"
REPLAYED, IMPORTED = "42b4b3-replay-learning", "957cfc-fail-oom"
RUNS = (FINISHED, STOPPED, FAILED, REPLAYED, IMPORTED)
each_run = pytest.mark.parametrize("name", RUNS)
Command = Callable[..., list[str]]


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


@pytest.fixture
def ppo_tui(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process; its lines on stdout."""

    def command(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["ppo-tui", *words])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert not end.value.code, said.err
        return said.out.splitlines()

    return command


def stored(path: Path) -> Any:
    value = orjson.loads(path.read_bytes())
    assert value.pop("schema") == 1
    return value


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def told(value: dict[str, Any]) -> dict[str, Any]:
    """What is not empty: 0.1 wrote also what it had nothing to say about, and an import less than a launch."""
    return {key: item for key, item in value.items() if item not in (None, [], {}, False)}


# What is read and written back


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


# What is shown


@pytest.mark.parametrize(
    ("name", "state", "outcome", "cause", "verdict", "flags", "muted"),
    [
        (FINISHED, "finished", None, "finished", "WARM", (), set()),
        (STOPPED, "stopped", None, "stopped", "WARM", (), {"LEN-1"}),
        (FAILED, "failed", None, "unknown-config-key", "WARM", (), set()),
        (REPLAYED, "stopped", None, "stopped", "NOTICE", ("TRUNC-1",), set()),
        (IMPORTED, "imported", "failed", "gpu-oom-update", "CRITICAL", ("ERR-1",), set()),
    ],
)
def test_how_a_run_is_doing(
    name: str, state: str, outcome: str | None, cause: str, verdict: str, flags: tuple[str, ...], muted: set[str]
) -> None:
    found = current(find(name))
    assert (found.state, found.outcome, found.cause) == (state, outcome, cause)
    assert (found.verdict, found.flags, found.muted) == (verdict, flags, muted)
    assert all(check.level >= Level.NOTICE for check in found.checks if check.rule in flags)


@pytest.mark.parametrize(
    ("name", "steps", "seams"),
    [
        (FINISHED, range(7), True),
        (STOPPED, range(10), False),
        (FAILED, (), False),
        (REPLAYED, range(29), False),
        (IMPORTED, (), False),
    ],
)
def test_a_reader_follows_it(name: str, steps: Sequence[int], seams: bool) -> None:
    reader = RunReader(find(name).path)
    changed = reader.poll()
    assert {"state", "events", "log"} <= changed and not reader.poll()
    assert list(reader.series.steps) == [*steps]
    assert bool(reader.series.seams) == seams
    assert reader.event_count == len(lines(reader.dir.events)) and reader.log
    assert len(reader.machine.times) == len(lines(reader.dir.machine))


def test_the_list_of_runs(ppo_tui: Command) -> None:
    rows = [json.loads(line) for line in ppo_tui("list", "--json")]
    assert [row["run"] for row in rows] == [REPLAYED, IMPORTED, FAILED, STOPPED, FINISHED] == [r.id for r in all_runs()]
    figures = [(row["step"], row["total"], row["duration"] and round(row["duration"])) for row in rows]
    assert figures == [(28, 60, 1), (None, 14, None), (None, None, 15), (9, 40, 148), (6, 6, 184)]
    assert [row["best_score"] for row in rows] == [pytest.approx(0.18125), None, None, 0.59375, 0.5625]
    head, *table = ppo_tui("list")
    assert head.split() == ["RUN", "STATE", "VERDICT", "STEP", "BEST", "TIME"]
    assert table[1].split() == [IMPORTED, "imported", "(failed)", "CRITICAL", "–/14", "–", "–"]


@each_run
def test_status_tells_what_state_json_says(run: RunDir, ppo_tui: Command) -> None:
    (line,) = ppo_tui("status", run.id, "--json")
    found, before = json.loads(line), stored(run.state)
    assert found.keys() - before.keys() <= {"schema", "startup", "checkpoints", "name"}
    for key in before.keys() - {"checks", "exit"}:
        assert found[key] == before[key], key
    said = ppo_tui("status", run.id)
    assert said[0] == f"run      {run.id}" and said[-1] == f"folder   {run.path}"
    assert any(line.startswith(f"state    {before['state']}") for line in said)


@pytest.mark.parametrize(
    ("name", "sentence", "flags"),
    [
        (FINISHED, "finished: too short — 26 of 49 rules judged", []),
        (STOPPED, "too short — ", []),
        (FAILED, "failed: too short — 0 of 49 rules judged", []),
        (REPLAYED, "NOTICE — ", [("TRUNC-1", 10, "NOTICE")]),
        (IMPORTED, "failed: CRITICAL — ", [("ERR-1", 0, "WARN"), ("ERR-1", 0, "CRITICAL")]),
    ],
)
def test_health_judges_it_as_version_0_1_did(
    name: str, sentence: str, flags: list[tuple[str, int, str]], ppo_tui: Command
) -> None:
    assert ppo_tui("health", name)[0].startswith(sentence)
    *changes, last = map(json.loads, ppo_tui("health", name, "--json"))
    loud = ("NOTICE", "WARN", "CRITICAL")
    high = [(change["rule"], change["step"], change["to"]) for change in changes if change["to"] in loud]
    assert high == flags
    assert last["verdict"] == stored(find(name).state)["verdict"] and len(last["rules"]) == 49


@each_run
def test_diagnose_names_the_same_cause(run: RunDir, ppo_tui: Command) -> None:
    (line,) = ppo_tui("diagnose", run.id, "--json")
    assert json.loads(line)["cause"] == stored(run.state)["cause"]


@each_run
def test_metrics_prints_every_step(run: RunDir, ppo_tui: Command) -> None:
    printed = [json.loads(line) for line in ppo_tui("metrics", run.id, "--json")]
    written = [(n, json.loads(line)) for n in run.attempt_numbers() for line in lines(run.attempt(n).steps)]
    assert printed == [{"step": step["step"], "attempt": number, **step["data"]} for number, step in written]


def test_runs_of_0_1_are_compared(ppo_tui: Command) -> None:
    (line,) = ppo_tui("compare", FINISHED, STOPPED, REPLAYED, "--json")
    found = json.loads(line)
    assert [fact["state"] for fact in found["runs"]] == ["finished", "stopped", "stopped"]
    assert [round(fact["duration"]) for fact in found["runs"]] == [184, 148, 1]
    differences = {entry["key"]: entry["values"] for entry in found["differences"]}
    assert differences["trainer.steps"] == [6, 40, None]  # as it was resumed
    table = ppo_tui("compare", FINISHED, IMPORTED)
    assert table[1].split() == ["state", "finished", "imported", "(failed)"]


def test_a_launch_that_an_import_wrote_has_no_command() -> None:
    assert find(IMPORTED).attempt(1).read_launch() == LaunchRecord(created=1795253480.0)
    assert find(IMPORTED).attempt(1).read_exit() == Exit(t=1795253480.0)
