"""Consoles that are kept to a size: what every reader makes of the gap in their middle."""

import errno
import os
from pathlib import Path

import pytest

from launcher.console.pager import LogPager
from launcher.console.search import Search, containing
from launcher.core import gap
from launcher.core.errors import UserError
from launcher.core.files import size
from launcher.core.tail import Tail, chunks
from launcher.runs.supervise.disk import ConsoleLimit

MIB = 1 << 20


def grow(path: Path, first: int, many: int) -> None:
    with path.open("ab") as file:
        for number in range(first, first + many):
            file.write(b"line %07d %s\n" % (number, b"x" * 100))


@pytest.fixture
def console(tmp_path: Path) -> Path:
    """8 MiB of lines of 114 bytes, kept to 1 MiB, and then some more."""
    path = tmp_path / "console.log"
    grow(path, 0, 80_000)
    gap.limit(path, MIB)
    file = os.open(path, os.O_RDONLY)
    if not gap.find(file):
        pytest.skip("this file system has no holes")
    os.close(file)
    return path


def test_head_and_tail_stay_where_they_were_and_the_middle_takes_no_room(console: Path) -> None:
    before = console.stat().st_size
    assert before == 80_000 * 114 and size(console.parent) < 0.8 * MIB
    grow(console, 80_000, 10_000)
    gap.limit(console, MIB)
    assert console.stat().st_size == 90_000 * 114 and size(console.parent) < 0.8 * MIB
    lines = console.read_bytes().split(b"\n")
    said = [line for line in lines if not line.startswith(b"line ")]
    (removed, after) = said
    assert after == b"" and removed.rstrip(b"\0").endswith(b"of this log here (max_console_size in config.yaml)")
    kept = [int(line[5:12]) for line in lines if line.startswith(b"line ")]
    begin, end = lines.index(removed), len(kept)
    assert kept[:begin] == [*range(begin)] and begin * 114 > MIB // 8
    assert kept[begin:] == [*range(90_000 - (end - begin), 90_000)] and (end - begin) * 114 > MIB // 2 - 114


def test_a_log_page_pages_numbers_and_searches_across_the_gap(console: Path) -> None:
    pager = LogPager(console)
    pager.count()
    forward = [line.offset for line in pager.forward(0)]
    assert forward == [line.offset for line in pager.backward(pager.size)][::-1]
    assert [pager.number_at(offset) for offset in forward[-500:]] == [*range(len(forward) - 499, len(forward) + 1)]
    assert pager.offset_of(len(forward) - 3) == forward[-4]
    (told,) = [entry for entry in pager.page(0, 1 << 20).entries if entry.text.startswith("ppo-tui")]
    assert "MiB of this log here" in told.text
    assert pager.start_of(told.end - 1) == told.offset
    wanted = containing("line 0079990")
    assert Search(pager, wanted, 0, forward=True).run() == 79_990 * 114
    assert Search(pager, containing("line 0000007"), pager.size, forward=False).run() == 7 * 114


def test_a_tail_passes_the_gap_and_counts_it(console: Path) -> None:
    tail, read = Tail(console), 0
    while chunk := tail.read():
        read += len(chunk)
    assert tail.passed > 7 * MIB and read + tail.passed == tail.offset == console.stat().st_size
    assert b"".join(chunks(console)).replace(b"\0", b"") == console.read_bytes().replace(b"\0", b"")


def test_where_no_hole_can_be_made_it_is_said_once_and_the_log_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text("max_console_size: 1 MiB\n")
    path, said = tmp_path / "console.log", list[str]()
    grow(path, 0, 20_000)
    monkeypatch.setattr(gap, "_punch", lambda *_: os.pread(-1, 1, 0))  # raises OSError
    kept = ConsoleLimit(path, said.append)
    kept.apply()
    kept.apply()
    assert len(said) == 1 and "console.log" in said[0] and os.strerror(errno.EBADF) in said[0]
    assert path.read_bytes().count(b"line ") == 20_000 and b"ppo-tui" not in path.read_bytes()


@pytest.mark.parametrize("value", ["lots", "0.5 MiB", "12", "[1]"])
def test_a_wrong_size_is_said_and_the_default_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    from launcher.settings import max_console_size

    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    (tmp_path / "config.yaml").write_text(f"max_console_size: {value}\n")
    with pytest.raises(UserError, match=r"config.yaml, line 1: max_console_size: .*; use a size such as '500 MiB'"):
        max_console_size()
    said: list[str] = []
    ConsoleLimit(tmp_path / "console.log", said.append).apply()
    assert len(said) == 1 and said[0].endswith("console.log is kept to 1 GiB")
