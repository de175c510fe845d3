"""Eight kinds of logs from elsewhere through the commands, from the file to the run that is made of it."""

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import call

DATA = Path(__file__).parents[1] / "data"
OF_TRL = DATA / "frameworks" / "trl.tar.xz"


def unpacked(name: str) -> bytes:
    return gzip.decompress((DATA / "logs" / name).read_bytes())


def file_of(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def of_trl(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        with tarfile.open(OF_TRL) as packed:
            packed.extractall(folder, filter="data")
        return folder / name

    return write


CONSOLE = unpacked("kl-blowup.log.gz")
PARTS = ("step", "seconds", "stages", "usual")  # of `time`; what a setting explains is known of a run only
EIGHT: dict[str, tuple[Callable[[Path], Path], str]] = {
    "console": (file_of("run.log", CONSOLE), "stopped"),
    "metrics": (file_of("metrics.jsonl", unpacked("kl-blowup.jsonl.gz")), "running"),
    "UTF-16": (file_of("run.log", CONSOLE.decode().replace("\n", "\r\n").encode("utf-16")), "stopped"),
    "gz": (file_of("run.log.gz", gzip.compress(CONSOLE)), "stopped"),
    "TRL": (of_trl("ruined/console.log"), "finished"),
    "W&B": (of_trl("ruined/wandb"), "finished"),
    "cut": (file_of("run.log", CONSOLE[: len(CONSOLE) * 2 // 3]), "running"),
    "pasted": (file_of("run.log", CONSOLE), "stopped"),
}


def rows(*words: str) -> list[dict[str, object]]:
    out, err, code = call([*words, "--json"])
    assert not code, err.decode()
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.nightly("launcher/cli/", "launcher/console/", "launcher/metrics/", "launcher/runs/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("kind", EIGHT)
def test_a_log_and_the_run_that_is_made_of_it_have_the_same_answers(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    write, cause = EIGHT[kind]
    path = word = str(write(tmp_path))
    if kind == "pasted":
        word = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))

    (made,) = rows("import", word)

    run = str(made["run"])
    steps = rows("metrics", path)
    assert len(steps) > 5 and rows("metrics", run) == steps
    (*changes, judged), (*of_run, again) = rows("health", path), rows("health", run)
    assert of_run == changes and {**again, "checks": 0} == {**judged, "checks": 0}
    (found,), (of_run_found,) = rows("diagnose", path), rows("diagnose", run)
    assert (found["cause"], of_run_found["cause"]) == (cause, cause)
    if kind not in ("TRL", "W&B"):  # which log no times of stages
        (time,), (of_run_time,) = rows("time", path), rows("time", run)
        assert [time[part] for part in PARTS] == [of_run_time[part] for part in PARTS]
