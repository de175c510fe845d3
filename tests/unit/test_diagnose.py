"""Why runs failed: recorded logs and those of tests/data/consoles.toml. The golden has the whole diagnoses.

tests/data/failures/real-*: veRL 0.9.1 on the CPU with one setting broken; only folder names were replaced.
"""

import gzip
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_logs import DATA, FAILED_PROMPT, JOB, SYNC, diagnosis_of, stored
from console_rows import Ending, endings
from hypothesis import given
from hypothesis import strategies as st

import launcher
from launcher.console.causes import catalogue
from launcher.console.diagnose import diagnose, errors_so_far
from launcher.console.diagnosis import LONGEST
from launcher.console.evidence import Evidence
from launcher.console.tracebacks import Folders, Owner

FAILED = sorted(path.name[:-7] for path in DATA.glob("*/*.log.gz") if path.name.startswith(("fail-", "real-")))


@pytest.mark.parametrize("ending", endings(), ids=lambda ending: ending.why)
def test_a_console_has_this_cause_with_these_lines(ending: Ending) -> None:
    found = diagnosis_of(ending.console, **ending.known)
    assert (found.cause, [quote.line for quote in found.evidence]) == (ending.cause, ending.lines)


@pytest.mark.parametrize("name", [name for name in FAILED if "hang" not in name])
def test_a_recorded_failure_has_its_cause_whether_or_not_the_exit_code_is_known(name: str) -> None:
    data = stored(name)
    found, ended = diagnosis_of(data), diagnosis_of(data, exit_code=1)
    assert found.failed and (ended.cause, ended.evidence) == (found.cause, found.evidence)
    lines = data.decode(errors="replace").split("\n")
    assert found.evidence[0].text.removesuffix(" …") in lines[found.evidence[0].line - 1]


@pytest.mark.parametrize("head", ["2025-11-24T15:40:09.031Z ", "2025-11-24T15:40:09+01:00 stderr F ", "^C"])
def test_the_heads_of_log_collectors_and_terminals_change_nothing(head: str) -> None:
    for name in ("fail-broken-reward", "fail-kv-cache", "real-no-plugin"):
        data = stored(name)
        headed = b"".join(head.encode() + line for line in data.splitlines(keepends=True))
        assert diagnosis_of(headed) == diagnosis_of(data)


def test_a_library_is_known_by_its_folder_or_by_what_lies_in_it() -> None:
    folders = Folders()
    known = {
        "/home/ray/my_reward.py": Owner.USER,
        "/work/verl/my_reward.py": Owner.USER,
        "/work/verl/verl/trainer/ppo/core_algos.py": Owner.VERL,
        "/opt/kit/site/verl/protocol.py": Owner.VERL,
        "/opt/kit/site/ray/_private/worker.py": Owner.LIBRARY,
        "/opt/kit/site/tensordict/base.py": Owner.LIBRARY,
        "/usr/lib/python3.12/json/decoder.py": Owner.LIBRARY,
        "<frozen os>": Owner.LIBRARY,
        "/work/ppo-tui/launcher/inside/ppo_tui_inside/plugin/defects.py": Owner.LIBRARY,
        "/opt/kit/my_reward.py": Owner.USER,
    }
    assert {path: folders.owner(path) for path in known} == known


def test_evidence_is_short_and_shows_where_it_was_cut() -> None:
    found = diagnosis_of(JOB + "ValueError: " + "x" * 100_000 + "\n", exit_code=1)
    assert len(found.evidence[0].text) == LONGEST and found.evidence[0].text.endswith("x …")
    assert len(found.title) < 300


@pytest.mark.nightly("launcher/console/")
@pytest.mark.slow
def test_memory_is_bounded_however_many_processes_and_errors_there_are() -> None:
    def endless(count: int) -> Iterator[bytes]:
        for number in range(1, count):
            worker = b"(AgentLoopWorkerTQ pid=%d) " % number
            yield worker + b"Traceback (most recent call last):\n"
            yield worker + b"ValueError: response %d\n" % number
            yield worker + b"[prompt] user\n"
            yield b"Traceback (most recent call last):\n" if number == 1 else b"KeyError: %d\n" % number

    def peak(count: int) -> int:
        tracemalloc.start()
        diagnose(endless(count))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(2)  # reads the causes
    assert peak(4_000) < 1.5 * peak(2_000)


def healthy_logs() -> Iterator[tuple[str, bytes]]:
    """All recorded logs of veRL that no error ended, with those of the demo and of version 0.1."""
    names = ("cpu-toy", "grpo", "kl-blowup", "learning", "nan", "resume", "sglang", "two-gpus")
    yield from ((name, stored(name)) for name in names)
    demo = Path(launcher.__path__[0]) / "demo"
    yield from ((path.name, gzip.decompress(path.read_bytes())) for path in sorted(demo.glob("*.log.gz")))
    with tarfile.open(DATA / "runs-0.1.tar.xz") as archive:
        for attempt in ("6ca840-toy-cpu/attempts/1", "6ca840-toy-cpu/attempts/2", "c40d5d-toy-cpu/attempts/1"):
            file = archive.extractfile(f"{attempt}/console.log")
            assert file is not None
            yield attempt, file.read()


@pytest.mark.nightly("launcher/console/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("log", [pytest.param(data, id=name) for name, data in healthy_logs()])
def test_no_line_of_a_healthy_run_is_an_error(log: bytes) -> None:
    """Cut at ten places, and ended in ways that are not in the log: nothing is quoted but how far it got."""
    lines = log.partition(b"*** SIGTERM")[0].splitlines(keepends=True)
    ends = ({"exit_code": 143, "requested_by": "user"}, {"exit_code": 1}, {"exit_code": 137}, {"alive": False}, {})
    for tenth in range(1, 11):
        cut = b"".join(lines[: len(lines) * tenth // 10])
        evidence = Evidence()
        evidence.read([cut])
        assert not [*evidence.facts.errors, *evidence.errors.values(), *evidence.final_errors, *evidence.unknown_errors]
        assert evidence.facts.named is None and evidence.facts.repeated is None and errors_so_far([cut]) is None
        marks = map(evidence.quote, ("step", "last", "progress", "final", "validated_first", "nan"))
        reached = {quote.line for quote in marks if quote is not None}
        waits = {evidence.quote("worker_groups"), evidence.quote("config_ends")}
        reached |= {quote.line for quote in waits if quote is not None}
        for end in ends:
            found = diagnosis_of(cut, **end)
            assert {quote.line for quote in found.evidence} <= reached, found
            assert "rror was printed" not in found.meaning and "find the cause of this error" not in str(found.fixes)


LINES = """ray::A.b() (pid=1)
full_key: critic
step:1 - a:1
[response] x
KeyError: 'prompt'
AssertionError
Killed
Exception ignored in: x
ray init kwargs: {}
(
[
  File "
Training Progress: 100%|█| 2/2 [00:00<?
Total training steps: 3
*** SIGTERM received at time=1 ***"""
PIECES = st.one_of(st.text(max_size=60), st.sampled_from((JOB + SYNC + FAILED_PROMPT + LINES).splitlines()))


@given(
    st.lists(st.tuples(PIECES, st.sampled_from(["", "TaskRunnerV1", "WorkerDict", "AgentLoopWorkerTQ", "raylet"]))),
    st.one_of(st.none(), st.integers(-70, 300)),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "user"]),
)
def test_any_log_gets_a_diagnosis(
    texts: list[tuple[str, str]], exit_code: int | None, alive: bool | None, requested_by: str | None
) -> None:
    lines = [(f"({source} pid=1) " if source else "") + text + "\n" for text, source in texts]
    data = "".join(lines).encode(errors="replace")
    found = diagnose([data], exit_code=exit_code, alive=alive, requested_by=requested_by)
    known = {cause.id for cause in catalogue()} | {"unknown", "stopped", "finished", "running"}
    assert found.cause in known
    assert all(1 <= item.line <= data.count(b"\n") for item in found.evidence)
    assert (exit_code == 0) <= (found.cause in ("finished", "stopped"))
