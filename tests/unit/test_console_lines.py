"""Console bytes to clean lines."""

import re
import tracemalloc

from console_logs import ODD_BYTES
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled

from launcher.console.lines import LONGEST, Line, LineSplitter

PARTS = st.sampled_from([*ODD_BYTES, b" 50%|"])
WILD = st.lists(st.one_of(PARTS, st.binary(max_size=5))).map(b"".join)


def split(data: bytes) -> list[Line]:
    splitter = LineSplitter()
    return [*splitter.feed(data), *splitter.close()]


@tabled
def test_source_and_text(raw: str, source: str, pid: int, text: str) -> None:
    assert split(raw.encode("latin-1") + b"\n") == [Line(1, 0, source, text, pid)]


def test_numbers_count_newlines_and_offsets_count_bytes() -> None:
    data = "é\r\n\n█ 1\r█ 2\rdone\nlast".encode()
    lines = split(data)
    assert [(line.number, line.text) for line in lines] == [
        (1, "é"),
        (2, ""),
        (3, "█ 1"),
        (3, "█ 2"),
        (3, "done"),
        (4, "last"),
    ]
    for line in lines:
        assert data[line.offset :].startswith(line.text.encode())


def test_parts_after_a_carriage_return_keep_the_source() -> None:
    lines = split(b"(WorkerDict pid=7) \rLoading:   0%|\rLoading: 100%|\nLoading\n")
    assert [(line.source, line.pid, line.text) for line in lines] == [
        ("WorkerDict", 7, ""),
        ("WorkerDict", 7, "Loading:   0%|"),
        ("WorkerDict", 7, "Loading: 100%|"),
        ("", 0, "Loading"),
    ]


@given(WILD, st.lists(st.integers(1, 9), min_size=1))
def test_how_the_bytes_arrive_makes_no_difference(data: bytes, sizes: list[int]) -> None:
    splitter = LineSplitter()
    lines, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        lines += splitter.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    lines += splitter.close()
    assert lines == split(data)


@given(WILD)
def test_every_line_is_clean_and_in_its_place(data: bytes) -> None:
    for line in split(data):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line.text)
        assert data[: line.offset].count(b"\n") + 1 == line.number


def test_a_line_of_megabytes_is_cut_and_the_next_one_found() -> None:
    data = b"x" * (3 << 20) + b"\nnext\n"
    first, second = split(data)
    assert len(first.text) == LONGEST
    assert second == Line(2, (3 << 20) + 1, "", "next")
    pieces = LineSplitter()
    fed = [line for at in range(0, len(data), 4096) for line in pieces.feed(data[at : at + 4096])]
    assert fed == [first, second]


def test_memory_is_bounded_without_any_newline() -> None:
    splitter = LineSplitter()
    chunk = b"x" * (1 << 16)
    tracemalloc.start()
    for _ in range(500):
        splitter.feed(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * LONGEST
