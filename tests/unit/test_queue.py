"""The queue: its order, and what each of its runs waits for."""

import contextlib
import dataclasses
import errno
import json
import os
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import queue_writers
import typer
from commands import call
from fake_nvml import FakeGpu, FakeNvml

from launcher.cli import queueing as commands
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.preset.translate import Launch
from launcher.record import queued
from launcher.record.events import Action, EventLog
from launcher.record.layout import RunDir, appearing, create
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from launcher.record.state import RunState
from launcher.runs.act import queue_runner as going
from launcher.runs.act.start import Plan
from launcher.runs.supervise.spawn import write_launch
from launcher.runs.watch.turns import turns

GIB = 1 << 30


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[FakeGpu]:
    """Four free ones."""
    found = [FakeGpu(uuid=f"GPU-{n}") for n in range(4)]
    FakeNvml(found).install(monkeypatch)
    return found


def enqueue(id: str, needs: int = 1, **values: Any) -> Queued:
    """An entry that passed its preflight."""
    entry = Queued(id, id, {}, os.uname().nodename, needs, queued.new_place(), time.time(), **values)
    entry.save()
    Checked(ended=1.0).save(id)
    return entry


def live(name: str, keys: dict[str, Any], **env: str) -> RunDir:
    """A run that trains, as far as its files tell."""
    run = create(name)
    run.run_yaml.write_text(f"id: {run.id}\nname: {name}\n")
    launch = Launch(argv=[], env=env, unset=[], keys=keys)
    write_launch(run, run.add_attempt(), launch, created=1.0, run_created=1.0)
    become(run, "running")
    return run


def become(run: RunDir, state: str) -> None:
    now, us = time.time(), ProcessId.of(os.getpid()) if state == "running" else None
    RunState(state, attempt=1, created=1.0, supervisor=us, updated=now, heartbeat=now).write(run.state)


def waits() -> dict[str, str | None]:
    return {turn.entry.id: turn.waits for turn in turns()}


def chosen() -> dict[str, tuple[str, ...]]:
    return {turn.entry.id: turn.gpus for turn in turns() if turn.due}


def test_several_sets_of_gpus_are_used_side_by_side(gpus: list[FakeGpu]) -> None:
    run = live("a", {"trainer.n_gpus_per_node": 2}, CUDA_VISIBLE_DEVICES="0,2")
    enqueue("any")
    enqueue("named", 2, gpus=("0", "1"))
    enqueue("large", 2)
    enqueue("small")
    assert chosen() == {"any": ("3",)}, "GPU 1 is free, and another one names it"
    found = waits()
    assert found["named"] == f"GPU 0 is used by {run.id}"
    assert found["large"] is not None and found["large"].startswith(f"2 GPUs; GPU 0 is used by {run.id}, GPU 1 is rese")
    become(run, "finished")
    assert chosen() == {"any": ("3",), "named": ("0", "1")}, "GPU 3 is free for longer than GPU 2"
    assert "GPU 2 is reserved for large" in str(waits()["small"]), "a smaller one does not pass it for ever"


def test_a_run_has_the_gpus_that_its_shell_named(gpus: list[FakeGpu], monkeypatch: pytest.MonkeyPatch) -> None:
    """On two H200 the queue took GPU 0 for that of a run which had been started with CUDA_VISIBLE_DEVICES=1."""
    with monkeypatch.context() as shell:
        shell.setenv("CUDA_VISIBLE_DEVICES", "1,3")
        run = live("a", {"trainer.n_gpus_per_node": 1})
        apart = {"trainer.n_gpus_per_node": 1, "actor_rollout_ref.rollout.n_gpus_per_node": 1}
        shell.setenv("CUDA_VISIBLE_DEVICES", "2,3")
        other = live("b", apart)
    enqueue("x", 1)
    enqueue("y", gpus=("1",))
    enqueue("z", gpus=("3",))
    assert chosen() == {"x": ("0",)}
    first = live("c", {"trainer.n_gpus_per_node": 1})
    assert str(waits()["x"]).startswith(f"1 GPU; GPU 0 is used by {first.id}, GPU 1"), (
        "without names it has the first ones"
    )
    assert waits()["y"] == f"GPU 1 is used by {run.id}" and waits()["z"] == f"GPU 3 is used by {other.id}"


def test_memory_that_others_hold_keeps_a_gpu_from_the_queue(gpus: list[FakeGpu]) -> None:
    for gpu in gpus:
        gpu.used = 20 * GIB
    gpus[3].used = GIB
    enqueue("free")
    enqueue("waits", gpus=("1",))
    free, waiting = turns()
    assert free.due and free.gpus == ("3",)
    assert waiting.waits == "GPU 1 has 20.0 GiB in use" and waiting.outside
    gpus[1].used = 0
    assert chosen()["waits"] == ("1",)


def test_the_gpu_that_is_free_for_longest_is_taken_first(gpus: list[FakeGpu]) -> None:
    runs = [
        live(name, {"trainer.n_gpus_per_node": 1}, CUDA_VISIBLE_DEVICES=gpu)
        for name, gpu in zip("abc", "021", strict=True)
    ]
    for run in runs:
        become(run, "finished")
        time.sleep(0.01)
    enqueue("x", 2)
    enqueue("y")
    enqueue("z")
    assert chosen() == {"x": ("3", "0"), "y": ("2",), "z": ("1",)}
    gpus[3].used = 20 * GIB
    turns()
    gpus[3].used = 0
    assert chosen()["z"] == ("3",), "another program had it just now"


def test_what_is_not_checked_reserves_nothing(gpus: list[FakeGpu]) -> None:
    for id in ("unchecked", "checking", "killed", "refused"):
        enqueue(id, 4)
    us, gone = ProcessId.of(os.getpid()), ProcessId(1 << 22, 1, "x")
    queued.change(queued.find("unchecked"), recheck=True)
    Checked(1, checker=us).save("checking")
    Checked(1, checker=gone).save("killed")
    Checked(1, 1.0, refused="it would fail").save("refused")
    enqueue("x", 4)
    *others, x = turns()
    assert x.due and x.state == "checked" and len(x.gpus) == 4
    assert [(each.state, each.unchecked, each.lost) for each in others] == [
        ("queued", True, False),
        ("checking", True, False),
        ("queued", True, False),
        ("checked", False, True),
    ]
    assert [each.waits for each in others][:2] == ["its preflight, which has not begun", "its preflight"]
    queued.change(others[3].entry, skipped=others[3].waits)
    assert turns()[3].state == "refused"


def test_a_start_keeps_the_gpus_that_it_was_given(gpus: list[FakeGpu]) -> None:
    enqueue("starting", starter=ProcessId.of(os.getpid()), given=("2",))
    enqueue("x", 4)
    first, second = turns()
    assert first.gpus == ("2",) and first.state == "starting" and not first.due
    assert "GPU 2 is reserved for starting" in str(second.waits)


def test_gpus_by_uuid_and_those_hidden_here(gpus: list[FakeGpu], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    gpus[1].used = 20 * GIB
    enqueue("named", gpus=("GPU-1",))
    enqueue("any")
    assert waits()["named"] == "GPU GPU-1 has 20.0 GiB in use" and chosen() == {"any": ("2",)}
    gpus[1].used = 0
    enqueue("same", gpus=("1",))
    assert waits()["same"] == "GPU 1 is reserved for named", "two names of one GPU"


def test_where_gpus_cannot_be_told_one_run_has_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNvml([], broken="Driver Not Loaded").install(monkeypatch)
    enqueue("a"), enqueue("b")
    assert chosen() == {"a": ()} and waits()["b"] == "1 GPU; the machine is reserved for a"


def test_more_gpus_than_there_are_waits_for_them_all_and_the_preflight_refuses_it(gpus: list[FakeGpu]) -> None:
    run = live("a", {"trainer.n_gpus_per_node": 1})
    enqueue("x", 8)
    assert waits()["x"] == f"8 GPUs; GPU 0 is used by {run.id}"
    become(run, "finished")
    assert waits()["x"] is None


def test_runs_on_the_cpu_wait_for_each_other_and_for_no_gpu(home: Path) -> None:
    run = live("a", {"trainer.device": "cpu", "trainer.n_gpus_per_node": 1})
    enqueue("x", 0)
    assert waits() == {"x": f"CPU: used by {run.id}"}
    (home / "config.yaml").write_text("max_cpu_runs: 2\n")
    enqueue("y", 0)
    assert waits() == {"x": None, "y": f"CPU: used by {run.id}, x"}
    (home / "config.yaml").write_text("max_cpu_runs: many\n")
    with pytest.raises(UserError, match=r"config.yaml, line 1: max_cpu_runs: 'many' is not allowed"):
        turns()


def test_a_run_follows_another_one_only_when_that_finishes() -> None:
    run = live("a", {})
    enqueue("x", 0, after=run.id)
    enqueue("y", 0, after="x")
    assert waits() == {"x": f"after {run.id}, which is running", "y": "after x, which has not started"}
    become(run, "finished")
    assert waits()["x"] is None
    become(run, "failed")
    (lost, _) = turns()
    assert lost.lost and lost.waits and run.id in lost.waits and lost.waits.endswith("failed")


def test_a_failed_run_that_is_to_be_retried_keeps_its_place() -> None:
    run = live("a", {"trainer.device": "cpu"})
    become(run, "failed")
    enqueue("x", 0)
    enqueue("y", 0, after=run.id)
    assert [turn.due or turn.lost for turn in turns()] == [True, True]
    EventLog(run.events).add(Action("retry", step=3))
    assert [turn.due or turn.lost for turn in turns()] == [False, False]
    assert all(turn.outside for turn in turns()), "it looks again"
    EventLog(run.events).add(Action("resume", step=3))
    assert waits()["x"] is None


def test_what_is_paused_skipped_or_of_another_machine_is_not_started() -> None:
    entry = enqueue("x", 0)
    queued.change(entry, paused=True)
    queued.change(enqueue("y", 0), skipped="no veRL")
    dataclasses.replace(enqueue("z", 0), host="elsewhere").save()
    waiting = waits()
    elsewhere = str(waiting.pop("z"))
    assert waiting == {"x": "paused", "y": "no veRL"}
    assert "host elsewhere" in elsewhere and "'ppo-tui queue resume z'" in elsewhere
    queued.change(entry, paused=False)
    assert waits()["x"] is None
    queued.pause(on=True)
    assert waits()["x"] == "the queue is paused"


def test_started_now_is_started_whatever_the_machine_does(gpus: list[FakeGpu]) -> None:
    live("a", {"trainer.n_gpus_per_node": 4})
    queued.change(enqueue("x", gpus=("1",)), now=True)
    queued.change(enqueue("y", 2), now=True)
    assert chosen() == {"x": ("1",), "y": ("0", "1")}


@pytest.mark.slow
def test_two_writers_lose_no_change_and_no_entry_comes_back() -> None:
    assert queue_writers.race(12) == []


def test_a_move_that_fails_leaves_the_old_or_the_new_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where moves have used up the room between two places, so that one move changes several entries."""
    for id in "abcde":
        enqueue(id, 0)
        dataclasses.replace(queued.find(id), place=100.0).save()
    queued.move(queued.find("d"), -2)
    assert [each.id for each in queued.entries()] == list("adbce")
    queued.move(queued.find("a"), 99)
    assert [each.id for each in queued.entries()] == list("dbcea")
    order, write, random = list("dbcea"), Queued.write, Random(50)
    for _ in range(150):
        id, to, fails = random.choice("abcde"), random.randrange(6), random.choice((None, None, 1, 2, 3))
        moved = [each for each in order if each != id]
        moved.insert(min(to, 4), id)
        written: list[str] = []

        def limited(entry: Queued, path: Path, fails: int | None = fails, written: list[str] = written) -> None:
            written.append(entry.id)
            if len(written) == fails:
                raise OSError(errno.ENOSPC, "full")
            write(entry, path)

        with monkeypatch.context() as disk, contextlib.suppress(OSError):
            disk.setattr(Queued, "write", limited)
            queued.move(queued.find(id), to=to)
        now = [each.id for each in queued.entries()]
        assert now == (order if len(written) == fails else moved)
        order = now


def test_what_was_changed_since_it_was_judged_is_not_started() -> None:
    judged, us = enqueue("x", 0), ProcessId.of(os.getpid())
    queued.change(judged, note="#later")
    assert not queued.decide(judged, starter=us) and not queued.find("x").starting
    judged = queued.find("x")
    queued.pause(on=True)
    assert not queued.decide(judged, starter=us)
    queued.pause(on=False)
    assert queued.decide(judged, starter=us) and queued.find("x").starting
    (other := enqueue("y", 0)).remove()
    for act in (other.remove, partial(queued.change, other, paused=True), partial(queued.move, other, 1)):
        with pytest.raises(UserError, match="run y is no longer in the queue"):
            act()
    assert not queued.decide(other, starter=us) and queued.get("y") is None


def test_an_entry_whose_run_is_there_waits_no_longer_and_damaged_ones_hide_no_other() -> None:
    entry = enqueue("0f-x", 0)
    queued.change(entry, starter=ProcessId.of(os.getpid()))
    entry = queued.find("0f")
    assert turns()[0].state == "starting"
    with pytest.raises(UserError, match="is being started"):
        entry.remove()
    (paths.runs_dir() / ".new-0f-x" / "attempts").mkdir(parents=True)  # a start that was killed
    with appearing("x", entry.id) as (run, _):
        pass
    assert run.path.is_dir() and run.id == entry.id and queued.entries() == []
    assert not [*paths.queue_dir().glob("*.json")], "it would come back when the run is deleted"
    with pytest.raises(FileExistsError), appearing("x", entry.id):
        pass
    (paths.queue_dir() / "1.json").write_text("{")
    (paths.queue_dir() / "2.json").write_text('{"id": "2", "name": 3}')
    enqueue("y", 0)
    assert [each.id for each in queued.entries()] == ["y"]


def test_what_is_added_is_kept_as_it_is_now(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(going, "wake_queue", lambda: None)
    file = tmp_path / "mine.yaml"
    file.write_text("extends: toy-cpu\nactor:\n  lr: 1e-5\n")
    first = going.add(Plan.of(str(file), ["trainer.steps=3"]))
    file.unlink()
    assert (first.needs, first.preset["actor"]["lr"], first.preset["trainer"]["steps"]) == (0, 1e-5, 3)
    second = going.add(Plan.of("toy-cpu"), after="mine")
    given = going.add(Plan.of("toy-cpu", name="base"))
    assert [given.name, given.of_preset, given.id[7:]] == ["base", "toy-cpu", "base"] and queued.find("base") == given
    given.remove()
    assert second.after == first.id and [each.id for each in queued.entries()] == [first.id, second.id]
    with pytest.raises(UserError, match=r"--gpus 0,1 does not match: toy-cpu uses no GPU"):
        going.add(Plan.of("toy-cpu"), gpus="0,1")
    on_two = Plan.of("toy-cpu", ["trainer.device=cuda", "trainer.gpus=2"])
    with pytest.raises(UserError, match=r"--gpus 0,0 does not .* toy-cpu uses 2 GPUs .*; list 2 GPUs, or omit"):
        going.add(on_two, gpus="0,0")
    third = going.add(on_two, gpus="0,1")
    assert third.gpus == ("0", "1") and third.preset["env"]["CUDA_VISIBLE_DEVICES"] == "0,1"
    with pytest.raises(UserError, match="no run"):
        going.add(Plan.of("toy-cpu"), after="nothing")


def test_the_commands_change_the_queue_and_print_it(capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> tuple[str, str]:
        command_line.main([*words], "queue", standalone_mode=False)
        found = capsys.readouterr()
        return found.out.strip(), found.err.strip()

    def added(*words: str) -> str:
        return str(json.loads(call(["run", "--queue", *words, "--json"])[0])["run"])

    command_line = typer.main.get_command(commands.app)
    assert said() == ("", "the queue is empty; add a run with 'ppo-tui run PRESET --queue'")
    assert said("pause")[1] == "paused the queue"
    first, second = added("toy-cpu", "trainer.steps=2"), added("toy-cpu")
    said("pause", first)
    said("move", second, "1")
    lines = [json.loads(line) for line in said("--json")[0].splitlines()]
    assert [(line["run"], line["state"], line["settings"]) for line in lines] == [
        (second, "queued", []),
        (first, "paused", ["trainer.steps=2"]),
    ]
    table, note = said()
    assert table.splitlines()[1].split(maxsplit=3) == [second, "queued", "CPU", "the queue is paused"]
    assert note == "the queue is paused; 'ppo-tui queue resume' resumes it"
    for changing in ("pause", "resume", "remove", "start"):
        said("resume")
        with pytest.raises(UserError, match=rf"'toy-cpu' matches 2 runs \({second}, {first}\)"):
            said(changing, "toy-cpu")
    said("pause")
    with pytest.raises(UserError, match="the queue is paused"):
        said("start", first)
    assert said("remove", first[:6])[1] == f"removed {first} from the queue"
    assert [each.id for each in queued.entries()] == [second]
