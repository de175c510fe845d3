"""A log from elsewhere has the same steps, metrics, flags and cause whichever way it comes in."""

import gzip
import lzma
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from launcher.core.errors import UserError
from launcher.record.events import LevelChange, read_kind
from launcher.record.layout import RunDir
from launcher.runs.act import attach_file, demo
from launcher.runs.act.import_logs import import_logs, import_text
from launcher.runs.judge.pasted_text import log_in
from launcher.runs.judge.run_checklist import judged
from launcher.runs.supervise import follow, supervisor
from launcher.runs.supervise.supervisor import Supervisor
from launcher.runs.watch.log import Log, resolve
from launcher.runs.watch.run_diagnosis import diagnosis
from launcher.runs.watch.steps import steps
from launcher.scripts import pasted

DATA = Path(__file__).parents[1] / "data"
PACKED = {
    path.stem: path for kind in ("logs/*.gz", "frameworks/*.gz", "trackers/*.xz") for path in sorted(DATA.glob(kind))
}
PARTS = ("console.log", "trainer_state.json", "tb", "wandb")
OF_TRL = [f"{name}/{part}" for name in ("healthy", "ruined", "broken") for part in PARTS]
OF_TIME = ("STALL-1",)  # rules about when something was printed


class Answer(NamedTuple):
    """Metrics by step, flags by step, the cause of the end."""

    steps: dict[int, dict[str, str]]
    flags: list[tuple[int, str, str]]
    cause: str | None


def answer(source: RunDir | Log, changes: list[LevelChange]) -> Answer:
    found = {record.step: {name: repr(value) for name, value in record.data.items()} for _, record in steps(source)}
    flags = [(each.step, each.rule, str(each.after)) for each in changes if each.notable and each.rule not in OF_TIME]
    return Answer(found, sorted(flags), diagnosis(source).cause)


def of_run(run: RunDir) -> Answer:
    return answer(run, read_kind(run.events, LevelChange))


def supervised(run: RunDir) -> Answer:
    Supervisor(run).supervise()
    return of_run(run)


def as_file(path: Path) -> Answer:
    log = resolve(str(path))
    assert isinstance(log, Log)
    return answer(log, judged(log, []).changes)


WAYS: dict[str, Callable[[Path], Answer]] = {
    "import": lambda path: of_run(import_logs([str(path)])[-1]),
    "follow": lambda path: supervised(attach_file.attach_file(str(path), {})),
    "paste": lambda path: of_run(import_text(log_in(path.read_text("utf-8"), pasted.read(path.read_text("utf-8")))[0])),
    "demo": lambda path: supervised(demo.replay(str(path), 1e9)),
}


def differing(expected: Answer, path: Path) -> Iterator[str]:
    """What of each way is not as expected."""
    for way, come_in in WAYS.items():
        if way == "paste" and (path.is_dir() or path.suffix == ".db"):  # is not text
            continue
        try:
            found = come_in(path)
        except UserError:
            yield f"{way}: refused"
            continue
        added = {name for step, data in found.steps.items() for name in data.keys() - expected.steps.get(step, {})}
        for step in found.steps.values():
            for name in added:
                step.pop(name, None)
        yield from (f"{way}: {name}" for name in sorted(added))
        for part in Answer._fields:
            if (theirs := getattr(found, part)) != (ours := getattr(expected, part)):
                yield f"{way}: {part}" + (f" {theirs}, not {ours}" if part == "cause" else "")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(supervisor, "TICK", 0.01)
    for name in ("_LOOK", "_QUIET", "_DONE", "_FORSAKEN"):
        monkeypatch.setattr(follow, name, 0.01)
    for module in (attach_file, demo):
        monkeypatch.setattr(module, "spawn_supervisor", lambda run: None)


@pytest.fixture(scope="module")
def of_trl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trl")
    with tarfile.open(DATA / "frameworks" / "trl.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.mark.nightly(
    "launcher/console/", "launcher/health/", "launcher/metrics/", "launcher/runs/", "launcher/scripts/"
)
@pytest.mark.parametrize("name", [*PACKED, *OF_TRL])
def test_each_way_in_has_the_same_answer(name: str, of_trl: Path, tmp_path: Path) -> None:
    path = of_trl / name
    if (packed := PACKED.get(name)) is not None:
        path = tmp_path / name
        path.write_bytes((lzma if packed.suffix == ".xz" else gzip).decompress(packed.read_bytes()))
    assert not [*differing(as_file(path), path)]
