"""A log that is synced, rotated, cut or replaced while it is followed; and when a log that is followed has ended."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from growing_logs import WRITERS, Step, run_of
from waiting import wait_until

from launcher.core import clock
from launcher.metrics.frameworks import reference
from launcher.record.attempt import Followed
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir
from launcher.runs.supervise import follow
from launcher.runs.supervise.follow import FileDriver
from launcher.runs.watch.log import Log, newest


class Watched:
    """A log and its driver, on a clock that is given; `writers` hold the log open."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str = "veRL") -> None:
        self.kind, name, self.write = WRITERS[form]
        self.log = tmp_path / "logs" / name
        self.log.parent.mkdir(parents=True)
        self.log.write_bytes(self.write(run_of(1, 8)))
        path = self.log.parent if form == "wandb" else self.log
        found = newest(str(path)).framework
        self.framework, self.turns, self.now = found, 0, 1000.0 + path.stat().st_mtime
        self.writers: list[int] = []
        self.attempt = AttemptDir(tmp_path / "attempts" / "1")
        self.attempt.path.mkdir(parents=True)
        monkeypatch.setattr(follow, "_LOOK", 0.01)
        monkeypatch.setattr(follow, "holders", lambda path: iter(self.writers))
        monkeypatch.setattr(follow, "written", lambda path: self.now)
        monkeypatch.setattr(clock, "now", self._turn)
        self.told: list[str] = []
        self.info, self.followed = RunInfo(framework=reference(found)), Followed(str(path), self.kind)
        self.driver = self.begin()

    def begin(self) -> FileDriver:
        self.driver = FileDriver(self.attempt, self.info, self.followed, self.told.append)
        return self.driver

    def _turn(self) -> float:
        self.turns += 1
        return self.now

    def ended_after(self, seconds: float) -> bool:
        """Whether it has ended by then; it looks several times."""
        self.now += seconds
        enough = self.turns + 20
        wait_until(lambda: self.turns > enough or not self.driver.running())
        return not self.driver.running()

    def copied(self) -> list[int]:
        """The steps that were copied; the last one waits until the log is quiet."""
        self.now += 11
        console, metrics = self.attempt.logs()
        return [step.step for step in Log(self.attempt.path, console, metrics, self.framework).steps()]

    def replace(self, run: Sequence[Step]) -> None:
        (new := self.log.with_name("new")).write_bytes(self.write(run))
        new.replace(self.log)

    def assert_has(self, *spans: tuple[int, int]) -> None:
        expected = [step for first, last in spans for step in range(first, last + 1)]
        wait_until(lambda: self.copied() == expected, lambda: (self.copied(), self.told, self.driver.trouble))


@pytest.fixture(params=WRITERS)
def watched(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    watched = Watched(tmp_path, monkeypatch, request.param)
    watched.assert_has((1, 8))
    yield watched
    watched.driver.terminate()
    wait_until(lambda: not watched.driver.running())


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")
def test_a_copy_that_is_synced_is_the_same_log(watched: Watched) -> None:
    for last in (12, 15):
        (source := watched.log.with_name("source")).write_bytes(watched.write(run_of(1, last)))
        subprocess.run(["rsync", "-a", source, watched.log], check=True, timeout=60)
        watched.assert_has((1, last))


def test_a_log_that_replaces_another_one_is_not_joined_to_it(watched: Watched) -> None:
    watched.replace(run_of(1, 30, 7.0))

    wait_until(lambda: not watched.driver.running())

    assert watched.driver.replaced and watched.driver.trouble is None
    watched.assert_has((1, 8))


@pytest.mark.parametrize("way", ["create", "copytruncate"])
def test_a_log_that_is_rotated_goes_on(watched: Watched, way: str) -> None:
    if way == "create":
        watched.log.rename(watched.log.with_name("old.1"))
    watched.log.write_bytes(watched.write(run_of(9, 12)))
    watched.assert_has((1, 12))
    watched.replace(run_of(9, 15))
    watched.assert_has((1, 15))


def test_a_log_that_is_away_for_a_while_goes_on(watched: Watched) -> None:
    watched.log.rename(away := watched.log.parents[1] / "away")
    enough = watched.turns + 5
    wait_until(lambda: watched.turns > enough or not watched.driver.running())
    assert watched.driver.running(), watched.driver.trouble
    away.write_bytes(watched.write(run_of(1, 12)))
    away.rename(watched.log)
    watched.assert_has((1, 12))


def test_a_writer_that_does_not_append_goes_on_behind_a_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(tmp_path, monkeypatch)
    with watched.log.open("r+b") as log:
        log.seek(0, os.SEEK_END)
        watched.assert_has((1, 8))
        os.truncate(watched.log, 0)
        log.write(watched.write(run_of(9, 12)))
    watched.assert_has((1, 12))
    watched.driver.terminate()


def test_a_training_that_begins_again_in_the_same_file_is_the_same_run(watched: Watched) -> None:
    watched.log.write_bytes(watched.write(run_of(1, 5, 2.0)))
    watched.assert_has((1, 8), (1, 5))


def test_the_next_process_goes_on_where_the_one_before_it_stopped(watched: Watched) -> None:
    watched.driver.terminate()
    wait_until(lambda: not watched.driver.running())
    watched.log.write_bytes(watched.write(run_of(1, 12)))
    watched.begin()
    watched.assert_has((1, 12))


def test_a_log_has_ended_as_what_is_known_of_its_writer_and_its_steps_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for case, (closed, complete, before, after, seconds) in enumerate(
        [
            (True, True, [], [], 10),  # its last line
            (True, True, [1], [1], 10),  # its program only cleans up
            (False, True, [1], [], 10),  # all steps, and its writer left
            (False, False, [1], [], 10),
            (False, True, [], [], 600),  # all steps; nobody was seen to write it
            (False, False, [], [], 86400),
        ]
    ):
        log = Watched(tmp_path / str(case), monkeypatch)
        log.writers = before
        assert not log.ended_after(0)
        log.driver.closed, log.driver.complete, log.writers = closed, complete, after
        log.driver.written_here = log.driver.written_here or bool(before)
        assert not log.ended_after(seconds - 1), case
        assert log.ended_after(2), case
    log = Watched(tmp_path / "open", monkeypatch)
    log.writers, log.driver.complete = [1], True
    assert not log.ended_after(0) and not log.ended_after(1e6)
    log.writers = []
    assert log.ended_after(0)
