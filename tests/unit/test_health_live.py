"""What is judged between steps: silence, and lines of the log."""

import pytest

from launcher.health.checklist import Checklist
from launcher.record.check import Check
from launcher.record.levels import Level


def row(checklist: Checklist, rule: str) -> Check:
    return next(found for found in checklist.checks() if found.rule == rule)


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
    assert silence(checklist) == "20m 00s since the last step (usual 5m 00s)"
    (warn,) = checklist.tick(1500.0 + 1201)
    assert (warn.step, warn.rule, warn.after) == (5, "STALL-1", Level.WARN)
    assert warn.message == "no new step for 20m 01s (usual 5m 00s)"
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


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.", Level.CRITICAL),
        ("\x1b[36m(TaskRunner pid=12)\x1b[0m ray.exceptions.RayTaskError(ValueError): ray::f()", Level.WARN),
        ("ray.exceptions.RayTaskError(QuotaGone): ray::f() (pid=3)", Level.CRITICAL),
        ("(vLLMHttpServer pid=1, ip=10.0.0.2) (EngineCore pid=2) Traceback (most recent call last):", Level.WARN),
        (
            "(vLLMHttpServer pid=1) (Worker pid=2) ERROR 11-21 15:17:54 [multiproc_executor.py:1000] "
            "Traceback (most recent call last):",
            Level.WARN,
        ),
        ("[rank0]: torch.distributed.DistBackendError: NCCL error in: ...", Level.CRITICAL),
        ("RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed", Level.CRITICAL),
        ("OSError: [Errno 28] No space left on device", Level.CRITICAL),
        ("(raylet) Spilled 2048 MiB, 3 objects", None),
        ("(raylet pid=1) Spilled 2048 MiB, 3 objects", Level.WARN),
        ("(WorkerDict pid=1) WARN: grad_norm is not finite: nan", Level.WARN),
        ("Sequence group 0 is preempted by PreemptionMode.RECOMPUTE", Level.WARN),
        ("Failed to save the checkpoint", Level.WARN),
        ("Warning: Failed to set NUMA affinity: libnuma.so", None),
        ("timing_s/agent_loop/num_preempted/min:0", None),
        ("Answer: in Java this is an OutOfMemoryError: the heap is full", None),
        ("    raise ValueError('RayTaskError')", None),
        ("ValueError: nothing that is known", None),
    ],
)
def test_what_counts_as_an_error_in_the_log(line: str, level: Level | None) -> None:
    checklist = Checklist()
    changes = checklist.log_line(line, 7)
    assert [change.after for change in changes] == ([] if level is None else [level])


def test_the_last_exception_of_a_block_is_the_message_and_brings_its_fixes() -> None:
    checklist = Checklist()
    block = [
        "Error executing job with overrides: []",
        "Traceback (most recent call last):",
        "ray.exceptions.RayTaskError(RuntimeError): ray::WorkerDict.save() (pid=3)",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 64 vs 0, file write failed",
    ]
    for number, line in enumerate(block, start=40):
        checklist.log_line(line, number, step=3)
    found = row(checklist, "ERR-1")
    assert (found.level, found.since) == (Level.CRITICAL, 3)
    assert found.message == f"{block[-1]} (line 43)"
    assert any(fix.key == "trainer.max_actor_ckpt_to_keep" for fix in found.fixes)


def test_critical_waits_for_the_exception_that_a_heading_announces() -> None:
    checklist = Checklist()
    heading = "ray.exceptions.RayTaskError(KeyError): ray::f() (pid=3)"
    told = [
        checklist.log_line(line, number)
        for number, line in enumerate(["Error executing job with overrides: ['a=b']", heading, "KeyError: 'x'"])
    ]
    assert [[(change.after, change.message) for change in changes] for changes in told] == [
        [(Level.WARN, "Error executing job (line 0)")],
        [],
        [(Level.CRITICAL, "KeyError: 'x' (line 2)")],
    ]


def test_an_interrupt_of_the_driver_is_no_critical_error() -> None:
    checklist = Checklist()
    checklist.log_line("Error executing job with overrides: []", 1)
    checklist.log_line("KeyboardInterrupt", 9)
    assert row(checklist, "ERR-1").level == Level.WARN


def test_an_exception_long_after_a_block_is_none_of_it() -> None:
    checklist = Checklist()
    checklist.log_line("Traceback (most recent call last):", 5)
    checklist.step(1, healthy(1))
    assert checklist.log_line("ValueError: printed by a library", 60) == []
    assert row(checklist, "ERR-1").message == "Traceback (most recent call last): (line 5)"


def test_an_error_fades_while_the_run_goes_on() -> None:
    """A healthy run in the calibration set has a harmless Traceback at its start."""
    checklist = Checklist()
    checklist.log_line("Traceback (most recent call last):", 5)
    levels = []
    for step in range(1, 22):
        checklist.step(step, healthy(step))
        levels.append(row(checklist, "ERR-1").level)
    assert levels == [Level.WARN] * 2 + [Level.NOTICE] * 17 + [Level.OK] * 2


def test_an_error_stays_when_the_process_dies_of_it() -> None:
    checklist = Checklist()
    checklist.log_line("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", 9)
    checklist.ended(1)
    assert checklist.verdict == Level.CRITICAL
