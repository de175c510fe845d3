"""Errors inside the supervisor: each is recorded once with its traceback and counted; the other parts keep working."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import call
from driven import written

from launcher.health.rules.numbers import FiniteNumbers
from launcher.record.damage import Failure, Failures
from launcher.record.events import Note, read_events
from launcher.record.layout import RunDir, create
from launcher.record.state import current
from launcher.runs.judge.monitor import Monitor
from launcher.runs.supervise import supervisor
from launcher.runs.supervise.failures import FailureLog
from launcher.runs.supervise.protection import Keeper
from launcher.runs.supervise.supervisor import Supervisor
from launcher.runs.watch.steps import Scores
from tui.kit.run_words import notice

STEPS = 6
DRIVER = f"""
import time
for step in range(1, {STEPS + 1}):
    print(f"step:{{step}} - critic/score/mean:0.5 - actor/ppo_kl:0.001 - actor/entropy:1.0", flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setattr(supervisor, "TICK", 0.02)
    return create("x")


def supervise(run: RunDir, *broken: tuple[object, str, Callable[..., object]]) -> dict[str, Failure]:
    """One attempt in this process, with these methods broken; the failures by part and kind of error."""
    written(DRIVER, run=run)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, part in broken:
            patch.setattr(owner, name, part)
        Supervisor(run).supervise()
    return {f"{each.part} {each.error.partition(':')[0]}": each for each in current(run).failures}


def raising(*errors: Exception) -> Callable[..., None]:
    """A part that raises these one after the other, then the last of them again and again."""
    left: Iterator[Exception] = iter(errors)

    def part(*_: object, **__: object) -> None:
        raise next(left, errors[-1])

    return part


def test_two_parts_that_break_in_turn_are_both_recorded_and_the_others_work(run: RunDir) -> None:
    found = supervise(
        run,
        (Scores, "poll", raising(KeyError("first"), KeyError("again"), ValueError("other"))),
        (Keeper, "took", raising(RuntimeError("broken"))),
    )

    state = current(run)
    assert (state.state, state.step) == ("finished", STEPS)
    assert len((run.attempts / "1" / "steps.jsonl").read_text().splitlines()) == STEPS
    assert list(found) == ["checkpoints RuntimeError", "scores KeyError", "scores ValueError"]
    assert found["scores KeyError"].times == 2 and found["scores ValueError"].times > 1

    recorded = Failures.read(run.failures)
    assert recorded is not None and json.loads(run.failures.read_text())["schema"] == 1
    assert [(each.part, each.times) for each in recorded.failures] == [(e.part, e.times) for e in state.failures]
    assert all("Traceback" in each.traceback and "in part" in each.traceback for each in recorded.failures)
    told = [event.what.text for event in read_events(run.events) if isinstance(event.what, Note)]
    assert len(told) == 3 and all(str(run.failures) in text for text in told)


def test_one_part_that_breaks_in_two_ways_is_shown_as_damage(run: RunDir) -> None:
    supervise(run, (Scores, "poll", raising(KeyError("first"), ValueError("other\nline"))))
    damage = current(run).damaged
    assert damage[0] == "failures.json: scores: KeyError: 'first'"
    assert damage[1].startswith("failures.json: scores: ValueError: other line (")
    assert f"damaged  {damage[0]}\n" in call(["status", run.id])[0].decode()
    told = json.loads(call(["status", run.id, "--json"])[0])
    assert [each["error"] for each in told["failures"]] == ["KeyError: 'first'", "ValueError: other line"]
    assert told["damaged"] == list(damage)
    role, banner = notice(current(run)) or ("", "")
    assert role == "warn" and f"damaged: {damage[0]} (and 1 more)" in banner
    assert "damaged" in call(["list"])[0].decode()


def test_a_console_that_cannot_be_read_hides_neither_the_file_logger_nor_the_end(run: RunDir) -> None:
    def take(monitor: Monitor, lines: list[bytes], now: float) -> None:
        monitor.total = STEPS

    found = supervise(run, (Monitor, "feed_console", raising(TypeError("console"))), (Monitor, "feed_file", take))
    assert list(found) == ["console TypeError"]
    state = current(run)
    assert (state.state, state.total) == ("finished", STEPS)


@pytest.mark.parametrize(
    ("owner", "name", "error", "found"),
    [
        (Monitor, "state", ZeroDivisionError("pace"), "state ZeroDivisionError"),
        (FiniteNumbers, "judge", IndexError("rule"), "rules IndexError"),
        (supervisor, "outcome", LookupError("cause"), "diagnosis LookupError"),
    ],
)
def test_neither_the_state_nor_a_rule_nor_the_cause_loses_the_end(
    run: RunDir, owner: object, name: str, error: Exception, found: str
) -> None:
    failures = supervise(run, (owner, name, raising(error)))
    assert list(failures) == [found] and current(run).state == "finished"
    assert name != "judge" or (failures[found].times == 1 and current(run).step == STEPS)


def test_failures_of_an_earlier_attempt_are_kept(run: RunDir) -> None:
    def fail(log: FailureLog, times: int) -> None:
        for _ in range(times):
            with log.guard("scores"):
                raise KeyError("x")

    told: list[Failure] = []
    first = FailureLog(run, 1, told.append)
    fail(first, 5)
    first.write()
    second = FailureLog(run, 2, told.append)
    assert [each.times for each in second.summary] == [5]
    fail(second, 3)
    assert [(each.times, each.attempt, each.traceback) for each in second.summary] == [(8, 1, "")]
    assert [each.times for each in told] == [1, 6], "each supervisor tells of it once"


def test_a_sound_run_has_no_failures(run: RunDir) -> None:
    assert supervise(run) == {} and not run.failures.exists()
    assert "failures" not in json.loads(run.state.read_text())
