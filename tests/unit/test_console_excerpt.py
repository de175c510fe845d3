"""A log of gigabytes is read in part: the same lines, numbers and end as the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.console import excerpt
from launcher.console.diagnose import diagnose
from launcher.console.excerpt import parts

LINES = st.lists(
    st.sampled_from([b"x\n", b"step:3 - a:1\n", b"ValueError: x\n", b"y" * 40 + b"\n", b"half"]), max_size=60
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"HEAD": 600, "TAIL": 600, "MIDDLE": 200, "_BLOCK": 100}.items():
        monkeypatch.setattr(excerpt, name, size)


@given(LINES, st.integers(1, 90))
def test_no_byte_is_lost_and_little_is_read(lines: list[bytes], size: int) -> None:
    log = b"".join(lines)
    found = list(parts(log[at : at + size] for at in range(0, len(log), size)))
    assert b"".join(part.data for part in found) == log
    assert len(log) > 1000 or all(part.read for part in found)


def test_a_large_log_gives_the_same_diagnosis_with_the_same_line_numbers() -> None:
    begin = ["(TaskRunner pid=7) Training Progress:   0%|          | 0/9000 [00:00<?, ?it/s]"]
    middle = [f"(TaskRunner pid=7) step:{at} - critic/score/mean:0.5" for at in range(1, 400)]
    noise = ["(Worker pid=9) nothing that says anything"] * 2000
    end = ["Error executing job with overrides: []", "Traceback (most recent call last):"]
    end += ['  File "/home/me/reward.py", line 3, in score', "KeyError: 'answer'"]
    log = "\n".join([*begin, *middle, *noise, *end, ""]).encode()
    found = diagnose([log[at : at + 777] for at in range(0, len(log), 777)], exit_code=1)
    assert [quote.line for quote in found.evidence if "KeyError" in quote.text] == [
        len([*begin, *middle, *noise, *end])
    ]
    assert "in the middle of the log were not read" in found.meaning
    stopped = diagnose([log[: log.index(b"Error executing")]], exit_code=143, requested_by="user")
    assert "after step 399" in stopped.meaning  # whose line stands in what was left out
