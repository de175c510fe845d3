import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from commands import call
from quoted import quoted
from tables import tabled

from launcher.core.errors import UserError
from launcher.core.files import append_lines
from launcher.record import control
from launcher.record.info import Origin, RunInfo
from launcher.record.layout import all_runs, appearing, create, find, require_name
from launcher.record.machine import MachineSample
from launcher.record.state import RunState
from launcher.runs.supervise.disk import MachineLog
from launcher.runs.watch.log import Log, resolve

pytestmark = pytest.mark.usefixtures("home")


def make(name: str, created: float) -> str:
    run = create(name)
    RunInfo(run.id, name, created).write(run.run_yaml)
    RunState("finished", created=created).write(run.state)
    return run.id


def test_a_run_is_its_owners_alone_and_its_id_says_the_name() -> None:
    run = create("my run/ö")
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    assert run.id.endswith("-my-run") and "/" not in run.id


def test_a_run_appears_in_one_step_or_never(home: Path) -> None:
    with pytest.raises(KeyboardInterrupt), appearing("x") as (run, hidden):
        RunInfo(run.id, "x").write(hidden.run_yaml)
        assert all_runs() == [] and not run.path.exists()
        raise KeyboardInterrupt
    assert list((home / "runs").iterdir()) == []
    abandoned = home / "runs" / ".new-abc-x"
    abandoned.mkdir()  # its start was killed
    os.utime(abandoned, (1e9, 1e9))
    with appearing("x") as (run, hidden):
        RunInfo(run.id, "x").write(hidden.run_yaml)
        os.utime(hidden.path, (1e9, 1e9))
        with appearing("y"):
            assert hidden.path.exists(), "that one is still being filled"
    assert not abandoned.exists() and run.id in [each.id for each in all_runs()]


def test_runs_are_found_by_id_prefix_name_and_last_newest_first() -> None:
    old, new = make("alpha", 100.0), make("beta", 200.0)
    assert [run.id for run in all_runs()] == [new, old]
    assert find("last").id == new and find(old).id == old and find(old[:5]).id == old and find("alpha").id == old


def test_of_runs_with_the_same_name_the_newest_is_meant_and_a_note_says_so() -> None:
    _, _, newest, notes = make("other", 1.0), make("same", 1.0), make("same", 2.0), list[str]()
    assert find("same", notes.append).id == newest
    assert [quoted(note) for note in notes] == [["2", newest]]
    assert find(newest, notes.append).id == newest and find("other", notes.append).id and len(notes) == 1


@pytest.mark.parametrize("command", [["stop"], ["delete", "--yes"]])
def test_what_stops_or_deletes_a_run_takes_no_name_of_several(command: list[str]) -> None:
    same, only = [make("same", 2.0), make("same", 1.0)], make("other", 3.0)
    _, error, code = call([*command, "same"])
    assert code == 2 and f"'same' matches 2 runs ({same[0]}, {same[1]})".encode() in error
    assert [run.id for run in all_runs()] == [only, *same]
    assert b"this is the newest" in call(["status", "same"])[1]
    assert only.encode() in call([*command, "other"])[1] and same[1].encode() in call([*command, same[1]])[1]
    assert (len(all_runs()) == 1) == (command[0] == "delete")


def test_a_word_that_is_a_name_and_the_start_of_another_id_is_neither() -> None:
    by_id = make("alpha", 1.0)
    by_name = make(by_id[:4], 2.0)
    with pytest.raises(UserError, match=f"{by_name} .* {by_id}") as caught:
        find(by_id[:4])
    assert caught.value.hint and by_name in caught.value.hint
    assert find(by_name).id == by_name and find(by_id).id == by_id and find("alpha").id == by_id


def test_a_word_that_is_a_run_and_a_file_is_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = make("base.log", 1.0)
    monkeypatch.chdir(tmp_path)
    assert resolve("base.log").path == find(named).path
    Path("base.log").write_text("step:1 - actor/lr:1e-6\n")
    for word in ("base.log", named, named[:5]):
        Path(word).write_text("step:1 - actor/lr:1e-6\n")
        with pytest.raises(UserError, match=f"'{word}' .* ./{word} .* {named} "):
            resolve(word)
    assert isinstance(resolve("./base.log"), Log)


@pytest.mark.parametrize("name", ["last", ".x", "-x", "a b", "a/b", "ü", "x" * 41, "a\n"])
def test_a_name_has_few_letters(name: str) -> None:
    with pytest.raises(UserError, match="is not allowed"):
        require_name(name)
    for allowed in ("", "a", "lr_1e-6.v2", "7", "x" * 40):
        require_name(allowed)
    with pytest.raises(UserError, match="is the id of a run"):
        require_name(make("alpha", 1.0))


@pytest.mark.parametrize("preset", ["toy-cpu", "null", "two: words"])
def test_a_named_run_keeps_the_name_of_its_preset(preset: str) -> None:
    run = create("mine")
    RunInfo(run.id, "mine", 1.0, preset_name=preset, preset={}).write(run.run_yaml)
    head = run.read_head()
    assert (run.read_name(), head.of_preset, head.named) == ("mine", preset, True)
    assert run.read_info().of_preset == preset
    RunInfo(run.id, "mine", 1.0, preset={}).write(run.run_yaml)
    assert (run.read_head().of_preset, run.read_head().named, run.read_info().of_preset) == ("mine", False, "mine")


@pytest.mark.parametrize("name", ["plain", "123", "null", "two: words # here", "of two\nlines", "nämlich"])
def test_the_name_of_a_run_is_read_without_all_that_stands_around_it(name: str) -> None:
    run = create("other")
    assert run.read_name() is None
    run.run_yaml.write_text("id: 7f3a-other\nhost: {name: vm}\n")
    assert run.read_name() is None and run.read_info().name == ""
    RunInfo(run.id, name, preset={"name": "below"}, host={"name": "vm"}).write(run.run_yaml)
    assert run.read_name() == name == run.read_info().name


FALSE = "a\non_cpu: true\nafter: x\npreset: {}\nreplay_of: y\n- trainer.device=cpu\n"


@pytest.mark.parametrize(
    "info",
    [
        RunInfo("1", "x", preset={"on_cpu": True, "after": {"text": FALSE}, "note": FALSE}, preset_notes=(FALSE,)),
        RunInfo("1", "x", argv=("python", FALSE, "after: x"), env={"A": FALSE}, cwd=FALSE),
        RunInfo("1", "x", preset={"model": "m"}, on_cpu=True, after=Origin("2", step=3)),
        RunInfo("1", "x", argv=("trainer.device=cpu",), replay_of="2"),
        RunInfo("1", "x", preset={"model": "m"}, imported_from=("a.log",)),
    ],
)
def test_single_lines_of_run_yaml_say_what_all_of_it_says(info: RunInfo) -> None:
    run = create("x")
    info.write(run.run_yaml)
    whole, head = run.read_info(), run.read_head()
    assert (head.name, head.on_cpu) == (whole.name, whole.on_cpu)
    assert ("after" in head.keys) == (whole.after is not None)
    assert head.resumable == (bool(whole.preset) and not whole.from_log)


@tabled
def test_a_run_that_is_not_there_is_named_with_the_nearest_one(word: str, sentence: str) -> None:
    make("alpha", 1.0)
    with pytest.raises(UserError, match=r"no run named|file not found") as caught:
        find(word)
    assert sentence in str(caught.value)


def test_a_run_that_we_may_not_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as home:
        monkeypatch.setenv("PPO_TUI_HOME", home)
        ours, theirs = create("ours"), create("theirs")
        for run in (ours, theirs):
            RunInfo(run.id, run.id).write(run.run_yaml)
        for folder in (ours.path.parent.parent, ours.path.parent, ours.path):
            folder.chmod(0o755)
        ours.run_yaml.chmod(0o644)
        theirs.path.chmod(0)
        root = os.geteuid() == 0  # which reads everything
        os.setresuid(*(65534, 65534, 0) if root else (-1, -1, -1))
        try:
            assert [run.id for run in all_runs()] == [ours.id]
        finally:
            os.setresuid(*(0, 0, 0) if root else (-1, -1, -1))
            theirs.path.chmod(0o700)


def test_a_half_line_left_by_a_kill_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a":1}\n{"cut')
    append_lines(path, [b'{"b":2}\n'])
    assert path.read_bytes() == b'{"a":1}\n{"cut\n{"b":2}\n'


def test_requests_are_taken_once_and_in_order() -> None:
    run = create("x")
    control.request(run, "stop", by="cli")
    control.request(run, "mute", rule="KL-1")
    for number, text in enumerate(("garbage", "[]", '{"verb":"reboot"}', '{"by":"nobody"}')):
        (run.control / f"{number}-stop.json").write_text(text)
    taken = control.take(run)
    assert [(r.verb, r.by, r.rule) for r in taken] == [("stop", "cli", None), ("mute", "user", "KL-1")]
    assert control.take(run) == [] and list(run.control.iterdir()) == []


def test_samples_of_the_machine_stay_bounded_and_the_newest_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launcher.runs.supervise.disk._MOST", 4096)
    log = MachineLog(tmp_path / "gpu.jsonl")
    for t in range(400):
        log.add(MachineSample(float(t)))
    lines = (tmp_path / "gpu.jsonl").read_bytes().splitlines()
    assert sum(map(len, lines)) < 4200
    times = [MachineSample.from_json(json.loads(line)).t for line in lines]
    assert times[0] == 0 and times[-20:] == [*range(380, 400)] and times == sorted(set(times))
