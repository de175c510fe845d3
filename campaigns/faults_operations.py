"""The operations of `faults.py`, on a home with two runs, three waiting runs, presets, a draft and settings."""

import itertools
import os
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults import Operation, both
from whole_run import whole_run

from launcher import settings
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.metrics import names
from launcher.metrics.records import StepRecord
from launcher.preset import drafts
from launcher.preset.files import load, users
from launcher.preset.translate import Launch
from launcher.record import control, queued
from launcher.record.attempt import Exit, LaunchRecord
from launcher.record.events import Event, EventLog, LevelChange, Note, read_events
from launcher.record.info import Preflight, RunInfo
from launcher.record.layout import RunDir, all_runs, create
from launcher.record.levels import Level
from launcher.record.note import RunNote, last_look, looked, read_note
from launcher.record.state import RunState, StateFile, current, stored
from launcher.runs.supervise.disk import DiskSink
from launcher.runs.supervise.protection import Keeper, protect
from launcher.runs.supervise.spawn import write_launch
from launcher.runs.watch.checkpoints import checkpoints, latest_checkpoint
from launcher.runs.watch.steps import steps

_NEW = re.compile(r"\b0001[0-9a-f]{2}(?=-)")  # in the ids that `fixed_ids` makes for an operation
DRIVER = """
import os, time
print("Total training steps: 3", flush=True)
with open(os.environ["VERL_FILE_LOGGER_PATH"], "a", 1) as file:
    for step in (1, 2, 3):
        print(f"step:{step} - critic/score/mean:0.5 - training/global_step:{step}", flush=True)
        print('{"step": %d, "data": {"critic/score/mean": 0.51}}' % step, file=file)
        time.sleep(0.1)
"""
SCRIPT = "python -m verl.trainer.main_ppo trainer.total_epochs=3 data.train_batch_size=64\n"


def fixed_ids(first: int = 0x100) -> None:
    """Makes the same ids in each process."""
    numbers = itertools.count(first)
    secrets.token_hex = lambda nbytes=None: f"{next(numbers):0{2 * (nbytes or 3)}x}"


def house() -> None:
    """Makes the old state of every operation."""
    fixed_ids(0)
    home, data = Path("home").absolute(), Path("data")
    data.mkdir()
    (data / "script.sh").write_text(SCRIPT)
    (data / "out.sh").write_text("# a script of before\n")
    runs = [whole_run(home, "7f3a1c"), whole_run(home, "7f3a1d", failed=False)]
    for run, created in zip(runs, (1e9, 2e9), strict=True):
        for step in (10, 20):
            (folder := run.checkpoints / f"global_step_{step}" / "actor").mkdir(parents=True)
            (folder / "weights").write_text(f"{step}")
        (run.checkpoints / "latest_checkpointed_iteration.txt").write_text("20")
        (found := current(run)).__class__.write(found, run.state)
        RunState.write(_dated(found, created), run.state)
    (data / "a.log").write_bytes(runs[0].attempt(1).console.read_bytes())
    paths.presets_dir().mkdir()
    (paths.presets_dir() / "mine.yaml").write_text("# my preset\nextends: toy-cpu\nactor:\n  lr: 1e-4\n")
    (paths.presets_dir() / "child.yaml").write_text("# its child\nextends: mine\ntrainer:\n  steps: 7\n")
    paths.settings_file().write_text("# mine\ntheme: nord\nmax_cpu_runs: 2\n")
    names.toggle("critic/score/mean")
    (draft := drafts.open_draft("child")).set(("trainer", "steps"), 9)
    drafts.keep_unsaved(draft)
    queued.pause(on=True)
    from launcher.runs.act.queue_runner import add
    from launcher.runs.act.start import Plan

    for number in range(3):
        add(Plan.of("toy-cpu", [f"data.seed={number}"], note="#tag"))


def view() -> Any:
    """The stores' content, without times."""
    runs = {_name(run.id): _run(run) for run in all_runs()}
    queue = [[_name(entry.id), entry.settings, entry.paused, entry.note, entry.after] for entry in queued.entries()]
    presets = {name: [path.read_text(), _loaded(name)] for name, path in sorted(users().items())}
    own = [settings.read({}).theme, settings.max_cpu_runs(), str(settings.read_keep()), names.pinned()]
    child = drafts.open_draft("child" if "child" in presets else "toy-cpu")
    data = {path.name: path.read_text() for path in sorted(Path("data").iterdir()) if path.name[0] != "."}
    found = {"runs": runs, "queue": queue, "paused": queued.paused(), "presets": presets, "settings": own}
    return found | {"draft": drafts.restore_unsaved(child), "data": data}


def _name(id: str) -> str:
    return _NEW.sub("new", id)


def _loaded(name: str) -> Any:
    try:
        return load(name).snapshot()
    except UserError as error:
        return str(error)


def _run(run: RunDir) -> dict[str, Any]:
    state, info = current(run), run.read_info()
    newest = latest_checkpoint(run)
    begins = (found := stored(run)) is not None and found.state == "queued"  # lost after some time without supervisor
    launches = [LaunchRecord.read(run.attempt(number).launch) for number in run.attempt_numbers()]
    kept = {place.name: sorted(each.name for each in place.glob("global*")) for place in (run.protected, run.best)}
    return {
        "state": [
            "queued" if begins else state.state,
            state.outcome,
            state.step,
            state.attempt,
            state.damaged,
            state.verdict,
        ],
        "info": [info.name, info.preset, info.overrides, bool(info.after), info.imported_from],
        "note": str(read_note(run.note)),
        "looked": last_look(run.id) is not None,
        "steps": [[number, record.step, _measured(record.data)] for number, record in steps(run)],
        "events": [*dict.fromkeys(map(_told, read_events(run.events)))],  # an action that is repeated counts once
        "attempts": [_name(str(launch.argv)) for launch in launches if launch],
        "checkpoints": [[*checkpoints(run)], newest and newest[0]],
        "kept": kept,
        "requests": len([*run.control.glob("[0-9]*.json")]),
    }


def _measured(data: dict[str, float]) -> dict[str, float]:
    """The driver's metrics; the supervisor's machine samples depend on the time."""
    return {key: value for key, value in data.items() if not key.startswith("machine/")}


def _told(event: Event) -> str:
    return f"{event.what.kind} {_name(str(event.what.to_json()))}"


def _dated(state: RunState, created: float) -> RunState:
    import dataclasses

    return dataclasses.replace(state, created=created)


def first() -> RunDir:
    return RunDir(paths.runs_dir() / "7f3a1c-toy-cpu")


def cli(*words: str) -> Callable[[], None]:
    """A call of a command, as typed by a user."""

    def act() -> None:
        from launcher.cli.main import main

        fixed_ids()
        sys.argv = ["ppo-tui", *words]
        main()

    return act


def call(act: Callable[[], object]) -> Callable[[], None]:
    """A change without a command; it fails like the command line."""

    def wrapped() -> None:
        fixed_ids()
        try:
            act()
        except (UserError, OSError) as error:
            sys.exit(print(f"error: {error}") or 1)

    return wrapped


def save() -> None:
    (draft := drafts.open_draft("child")).set(("trainer", "steps"), 8)
    draft.save()
    drafts.forget_unsaved(draft)


def keep() -> None:
    house()
    with paths.settings_file().open("a") as file:
        file.write("keep: 1 runs\n")
    for run in all_runs():
        run.note.unlink()


def rise() -> None:
    protect(first(), LevelChange(15, "KL-1", Level.OK, Level.CRITICAL), [])


def protected() -> None:
    """Protects an earlier checkpoint, and keeps one as the best."""
    house()
    for place in (first().protected, first().best):
        (folder := place / "global_step_5" / "actor").mkdir(parents=True)
        (folder / "weights").write_text("5")


def best() -> None:
    run = first()
    keeper = Keeper(run, run.attempt(1), RunInfo(preset={"trainer": {"keep_best": 1}}))
    keeper.took([StepRecord(step, 1.0, None, {"val-core/x/acc/mean@1": step / 10}) for step in (5, 10)])


def step() -> None:
    run = first()
    DiskSink(run.attempt(1), EventLog(run.events)).steps([StepRecord(25, 1.0, None, {"critic/score/mean": 0.5})])


def end() -> None:
    """Writes a supervisor's files at the end of the driver."""
    run = first()
    Exit(code=0).write(run.attempt(1).exit)
    StateFile(run).write(RunState("finished", attempt=1, created=1e9, step=25))


def unchecked(act: Callable[[], object]) -> Callable[[], None]:
    """Runs without the preflight, which changes nothing, and the supervisor: `supervise` covers its points."""

    def wrapped() -> None:
        from launcher.check import gate
        from launcher.runs.act import queue_runner, resume, start

        gate.admit = lambda *_, **__: Preflight()
        queue_runner.admit_waiting = lambda *_, **__: Preflight()
        start.spawn_supervisor = resume.spawn_supervisor = lambda _: None
        act()

    return call(wrapped)


def composed() -> None:
    """Makes the old state, and composes veRL's configuration."""
    from launcher.preset.translate import RunFolders
    from launcher.runs.act.start import Plan

    house()
    Plan.of("toy-cpu").launch(RunFolders.below(Path("x")))


def fork() -> None:
    from launcher.runs.act.fork import fork as begin

    begin(first(), ["actor.lr=1e-5"], step=10)


def resume() -> None:
    from launcher.runs.act.resume import resume as go_on

    go_on(first(), ["trainer.steps=60"])


def take() -> None:
    """Starts the queue's first run."""
    from launcher.runs.act.queue_runner import _start
    from launcher.runs.watch.turns import turns

    _start(turn := turns()[0])
    if not turn.entry.run.path.exists():
        raise UserError("the entry keeps the reason")


def probed() -> None:
    """Makes the old state with an ended probe of `tune`."""
    from launcher.check.subject import subject
    from launcher.estimate.tuning import Space
    from launcher.runs.act.tune import STEPS, _tag, _words

    house()
    loaded = load("toy-cpu")
    space = Space(subject(loaded))
    run = whole_run(Path("home").absolute(), "7f3a1e", failed=False)
    (point := space.next([])), loaded
    words = _words(space.change(point), STEPS) if point else []
    RunInfo(run.id, "toy-cpu", 1.0, overrides=tuple(words)).write(run.run_yaml)
    RunNote(tags=(_tag(loaded, space, STEPS),)).write(run.note)


def begun() -> None:
    """Makes a run ready for its supervisor; its driver trains three steps."""
    house()
    run = create("begun")
    RunInfo(run.id, "begun", 3e9).write(run.run_yaml)
    attempt = run.add_attempt()
    argv = [sys.executable, "-S", "-c", DRIVER]
    launch = Launch(argv, {"VERL_FILE_LOGGER_PATH": str(attempt.metrics)}, [], {"trainer.logger": ["console", "file"]})
    write_launch(run, attempt, launch, created=3e9)


def supervise() -> None:
    run = next(run for run in all_runs() if run.id.endswith("begun"))
    before = stored(run)
    more = [] if before is not None and before.state == "queued" else ["--adopt"]
    words = paths.own_command("launcher.runs.supervise", str(run.path), *more)
    os.execv(words[0], words)


def watched(old: Any, new: Any, now: Any) -> bool:
    """Whether a run opens at any time of its supervisor, with its first steps, each once."""
    mine = next(id for id in new["runs"] if id.endswith("begun"))
    others = [{**each, "runs": {**each["runs"], mine: None}} for each in (old, now)]
    steps = now["runs"][mine]["steps"]
    return (
        others[0] == others[1]
        and not now["runs"][mine]["state"][4]
        and steps == new["runs"][mine]["steps"][: len(steps)]
    )


def ended(old: Any, new: Any, now: Any) -> bool:
    """Whether the run has ended after another supervisor, with all steps if its driver was started."""
    run = now["runs"][next(id for id in new["runs"] if id.endswith("begun"))]
    whole = len(run["steps"]) in (0, 3)
    return watched(old, new, now) and whole and run["state"][0] in ("finished", "failed", "lost")


OPERATIONS = (
    Operation("note", house, cli("status", "--note", "7f3a1c-toy-cpu", "another note #more")),
    Operation("look", house, call(lambda: looked("7f3a1d-toy-cpu-x"))),
    Operation("copy a preset", house, cli("preset", "copy", "mine", "other")),
    Operation("rename a preset", house, cli("preset", "rename", "mine", "other"), both),
    Operation("delete a preset", house, cli("preset", "delete", "child", "--yes")),
    Operation("save a preset", house, call(save)),
    Operation("import a preset", house, cli("preset", "import", "data/script.sh")),
    Operation("export a preset", house, cli("preset", "export", "toy-cpu", "--output", "data/out.sh")),
    Operation("theme", house, call(lambda: settings.keep_theme("dracula"))),
    Operation("pin", house, call(lambda: names.toggle("actor/entropy"))),
    Operation("request", house, call(lambda: control.request(first(), "mute", rule="KL-1"))),
    Operation("import a log", house, cli("import", "data/a.log")),
    Operation("add to the queue", house, cli("run", "--queue", "toy-cpu")),
    Operation("pause a waiting run", house, cli("queue", "pause", "000001")),
    Operation("move in the queue", house, cli("queue", "move", "000002", "1")),
    Operation("remove from the queue", house, cli("queue", "remove", "000001")),
    Operation("protect", protected, call(rise), both, both),
    Operation("keep the best", protected, call(best), both),
    Operation("delete", house, cli("delete", "7f3a1c-toy-cpu", "--yes")),
    Operation("clean", keep, cli("clean", "--yes")),
    Operation("record a step", house, call(step)),
    Operation("record an event", house, call(lambda: EventLog(first().events).add(Note("written"), 1.0))),
    Operation("record the end", house, call(end)),
    Operation("tune", probed, cli("tune", "toy-cpu", "--name", "fast", "--limit", "1")),
    Operation("fork", composed, unchecked(fork), verl=True),
    Operation("resume", composed, unchecked(resume), both, verl=True),
    Operation("start from the queue", composed, unchecked(take), verl=True),
    Operation("supervise", begun, supervise, watched, ended),
)
