"""What is judged between steps: silence, and lines of the log."""

from pathlib import Path

import pytest
from quoted import quoted
from rule_levels import row

from launcher.health.checklist import Checklist
from launcher.record.levels import Level
from launcher.runs.watch.log import newest
from launcher.runs.watch.steps import steps as steps_of

DATA = Path(__file__).parents[1] / "data"


def healthy(step: int) -> dict[str, float]:
    return {"actor/pg_loss": 0.01, "actor/entropy": 0.5 + 0.001 * step}


# The clock


def silence(checklist: Checklist) -> str:
    return next(row.message for row in checklist.checks() if row.rule == "STALL-1")


def test_silence_is_judged_against_the_usual_gap() -> None:
    checklist = Checklist()
    assert checklist.tick(0.0) != []  # the clock starts
    for step in range(1, 6):
        assert not [c for c in checklist.step(step, healthy(step), t=300.0 * step) if c.rule == "STALL-1"]
    assert checklist.tick(1500.0 + 1200) == []
    assert quoted(silence(checklist)) == ["20m", "00s", "5m", "00s"]
    (warn,) = checklist.tick(1500.0 + 1201)
    assert (warn.step, warn.rule, warn.after) == (5, "STALL-1", Level.WARN)
    assert quoted(warn.message) == ["20m", "01s", "5m", "00s"]
    (critical,) = checklist.tick(1500.0 + 3001)
    assert critical.after == Level.CRITICAL
    cleared = [change for change in checklist.step(6, healthy(6), t=6000.0) if change.rule == "STALL-1"]
    assert [(change.before, change.after) for change in cleared] == [(Level.CRITICAL, Level.OK)]
    checklist.ended(0)
    assert checklist.tick(1e9) == []


def test_a_run_that_never_makes_its_first_step() -> None:
    checklist = Checklist()
    checklist.tick(0.0)
    assert checklist.tick(1200.0) == []
    assert silence(checklist) == "20m 00s since the start"
    assert [change.after for change in checklist.tick(1201.0)] == [Level.WARN]
    assert silence(checklist) == "no step for 20m 01s since the start"
    assert [change.after for change in checklist.tick(3601.0)] == [Level.CRITICAL]


@pytest.mark.parametrize(("usual", "after"), [(32.0, 180.0), (120.0, 360.0), (None, 600.0)])
def test_a_first_step_that_takes_three_times_the_usual(usual: float | None, after: float) -> None:
    checklist = Checklist({"algorithm.filter_groups.enable": True})
    checklist.tick(0.0)
    assert checklist.tick(100.0 + after, first_step=(100.0, usual)) == []
    (warn,) = checklist.tick(111.0 + after, first_step=(100.0, usual))
    assert warn.after == Level.WARN and warn.message.startswith("the first step has taken ")
    assert warn.message.endswith("; the filter may drop most groups") and ("usual" in warn.message) == bool(usual)
    assert checklist.step(1, healthy(1), t=1000.0) and row(checklist, "STALL-1").level == Level.OK


def test_a_first_step_alone_tells_no_usual_gap() -> None:
    checklist = Checklist()
    checklist.tick(0.0)
    checklist.step(1, healthy(1), t=100.0)
    assert checklist.tick(130.0) == []
    assert silence(checklist) == "30s since the last step"


def test_the_pause_before_a_resumed_attempt_is_no_gap_between_steps() -> None:
    checklist = Checklist()
    for step in range(1, 11):
        checklist.step(step, healthy(step), t=60.0 * step)
    start = 100_000.0
    checklist.tick(start)
    checklist.step(11, healthy(11), t=start + 300)
    assert checklist.tick(start + 300 + 239) == []
    assert [change.after for change in checklist.tick(start + 300 + 241)] == [Level.WARN]


def test_a_file_cannot_stall() -> None:
    checklist = Checklist(clock=False)
    checklist.tick(0.0)
    assert checklist.tick(1e9) == []
    assert row(checklist, "STALL-1").level == Level.N_A


# The log


LINES = [line.split("\t") for line in (DATA / "health_lines.tsv").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("level", "line"), LINES)
def test_what_counts_as_an_error_in_the_log(level: str, line: str) -> None:
    changes = Checklist().log_line(line.replace("␛", "\x1b"), 7)
    assert [str(change.after) for change in changes] == ([] if level == "-" else [level])


JOB, TRACE = "Error executing job with overrides: ['a=b']", "Traceback (most recent call last):"
TASK = "ray.exceptions.RayTaskError(KeyError): ray::f() (pid=3)"
WRITE = "RuntimeError: [enforce fail at inline_container.cc:603] . file write failed"


@pytest.mark.parametrize(
    ("lines", "changes", "message", "fix"),
    [
        (f"{JOB}\n{TRACE}\n{TASK}\n{WRITE}", "1 WARN, 4 CRITICAL", f"{WRITE} (line 4)", "max_actor_ckpt_to_keep"),
        (f"{JOB}\n{TASK}\nKeyError: 'x'", "1 WARN, 3 CRITICAL", "KeyError: 'x' (line 3)", ""),
        (f"{JOB}\n\n\n\n\n\n\n\nKeyboardInterrupt", "1 WARN", "KeyboardInterrupt", ""),
        (f"{TRACE}\nstep{50 * chr(10)}ValueError: of a library", "1 WARN", f"{TRACE} (line 1)", ""),
    ],
)
def test_the_last_exception_of_a_block_is_the_message(lines: str, changes: str, message: str, fix: str) -> None:
    checklist, found = Checklist(), list[str]()
    for number, line in enumerate(lines.split("\n"), start=1):
        told = checklist.step(1, healthy(1)) if line == "step" else checklist.log_line(line, number, step=3)
        found += [f"{number} {change.after}" for change in told if change.rule == "ERR-1"]
    check = row(checklist, "ERR-1")
    assert ", ".join(found) == changes and check.since == 3
    assert check.message.startswith(message) and fix in str(check.fixes)


def test_an_error_fades_while_the_run_goes_on_and_stays_when_the_process_dies_of_it() -> None:
    """A healthy run in the calibration set has a harmless Traceback at its start."""
    checklist, levels = Checklist(), []
    checklist.log_line(TRACE, 5)
    for step in range(1, 22):
        checklist.step(step, healthy(step))
        levels.append(row(checklist, "ERR-1").level)
    assert levels == [Level.WARN] * 2 + [Level.NOTICE] * 17 + [Level.OK] * 2
    assert row(checklist, "ERR-1").message == "no errors in the last steps"
    dead = Checklist()
    dead.log_line("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", 9)
    dead.ended(1)
    assert dead.verdict == Level.CRITICAL


@pytest.mark.parametrize(
    ("total", "last", "level"),
    [(3, "", Level.OK), (None, "Final validation metrics: {'acc': 0.5}", Level.OK), (9, "", Level.WARN)],
)
def test_an_error_after_the_last_step_is_none_of_training(total: int | None, last: str, level: Level) -> None:
    checklist = Checklist({"trainer.total_training_steps": total} if total else {}, clock=False)
    for step in range(1, 4):
        checklist.step(step, healthy(step))
    for line in (last, TRACE, "RuntimeError: DataLoader worker (pid 4) is killed by signal: Terminated."):
        checklist.log_line(line, 10)
    assert min(row(checklist, "ERR-1").level, Level.WARN) == level


def test_ticks_and_lines_of_the_log_change_nothing_of_the_rules_on_steps() -> None:
    steps = [record.data for _, record in steps_of(newest(str(DATA / "logs" / "cpu-toy.jsonl.gz")))]
    live, replayed = Checklist(clock=True), Checklist(clock=False)
    for step, data in enumerate(steps, start=1):
        for second in range(3):
            live.tick(3.0 * step + second, gpu=(10.0, 100.0), host=(10.0, 100.0))
            live.log_line("INFO: nothing to see", step, step=step)
        found, again = (judge.step(step, data, t=3.0 * step) for judge in (live, replayed))
        assert [each for each in found if each.rule != "STALL-1"] == again
