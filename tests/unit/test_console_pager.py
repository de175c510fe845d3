"""Any line of a log by its place, and searching through it."""

import tracemalloc
from pathlib import Path

import pytest
from console_logs import ODD_BYTES, events_of, only, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import tabled

from launcher.console import pager as paging
from launcher.console.lines import LONGEST, LineSplitter
from launcher.console.pager import LogPager, RawLine, shown
from launcher.console.reader import Notable
from launcher.console.search import TROUBLE, Search, Wanted, both, containing, group_of, written_by

BLOCK = 64  # bytes read at once here, so that small files have many seams
PARTS = st.sampled_from([*ODD_BYTES, b"x" * (BLOCK - 1), b"ab\n" * (BLOCK // 2)])
WILD = st.lists(st.one_of(PARTS, st.binary(max_size=5)), max_size=12).map(b"".join)
few = settings(max_examples=200)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "BLOCK", BLOCK)


def paged(folder: Path, data: bytes) -> LogPager:
    (folder / "console.log").write_bytes(data)
    pager = LogPager(folder / "console.log")
    pager.count()
    return pager


def cut(data: bytes) -> list[RawLine]:
    """The lines of the file, by the shortest way."""
    *whole, rest = data.split(b"\n")
    lines, offset = [], 0
    for line in [line + b"\n" for line in whole] + ([rest] if rest else []):
        lines.append(RawLine(offset, offset + len(line), line.removesuffix(b"\n")[:LONGEST]))
        offset += len(line)
    return lines


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@few
@given(WILD)
def test_forward_backward_and_by_number_are_the_same_lines(tmp_path: Path, data: bytes) -> None:
    pager = paged(tmp_path, data)
    lines = cut(data)
    assert list(pager.forward(0)) == lines
    assert list(pager.backward(len(data))) == lines[::-1]
    for number, line in list(enumerate(lines, 1))[:: max(len(lines) // 20, 1)]:
        assert pager.offset_of(number) == line.offset
        assert pager.number_at(line.offset) == pager.number_at(line.end - 1) == number
        assert pager.start_of(line.end - 1) == line.offset
        assert next(pager.forward(line.offset)) == next(pager.backward(line.end)) == line
    assert pager.offset_of(len(lines) + 1) is pager.offset_of(0) is None


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@few
@given(WILD)
def test_a_line_is_what_the_splitter_says_last_about_it(tmp_path: Path, data: bytes) -> None:
    splitter = LineSplitter()
    said = {line.number: (line.source, line.text) for line in [*splitter.feed(data), *splitter.close()]}
    pager = paged(tmp_path, data)
    for number, line in enumerate(pager.forward(0), 1):
        entry = shown(line)
        assert (entry.source, entry.text) == said.get(number, ("", ""))


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@few
@given(WILD, st.integers(0, 1 << 20), st.booleans())
def test_search_finds_what_looking_at_every_line_finds(tmp_path: Path, data: bytes, at: int, forward: bool) -> None:
    pager = paged(tmp_path, data)
    start = pager.start_of(at % (len(data) + 1))
    wanted = containing("Text")
    lines = cut(data)
    hits = [line.offset for line in lines if "text" in shown(line).shown.lower()]
    hits = [hit for hit in hits if (hit >= start if forward else hit < start)]
    found = Search(pager, wanted, start, forward=forward).run()
    assert found == (None if not hits else hits[0] if forward else hits[-1])


def test_it_grows_with_the_file(tmp_path: Path) -> None:
    pager = paged(tmp_path, b"one\ntwo")
    assert [shown(line).text for line in pager.forward(0)] == ["one", "two"]
    with pager.path.open("ab") as file:
        file.write(b" and a half\n" + b"three\n" * 30_000)
    assert [line.raw for line in pager.forward(4)] == [b"two"]  # nothing is seen before `look`
    assert pager.look() and not pager.look()
    assert next(pager.forward(4)).raw == b"two and a half"
    assert pager.number_at(pager.size - 1) is None  # not counted yet
    pager.count()
    assert pager.number_at(pager.size - 1) == 30_002


def test_the_file_is_closed_when_nobody_has_the_pager_any_more(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        paged(tmp_path, b"one\n")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_equal_lines_are_one_entry(tmp_path: Path) -> None:
    same = b"(WorkerDict pid=%d) slow down\n"
    data = b"first\n" + b"".join(same % pid for pid in (7, 8, 9)) + b"last\nlast\n"
    pager = paged(tmp_path, data)
    forward, backward = pager.page(0, 3), pager.page_before(len(data), 3)
    assert forward.entries == backward.entries
    assert [(entry.shown, entry.repeats) for entry in forward.entries] == [
        ("first", 1),
        ("(WorkerDict) slow down", 3),
        ("last", 2),
    ]
    assert [(entry.offset, entry.end) for entry in forward.entries] == [(0, 6), (6, 93), (93, len(data))]


@pytest.mark.slow
def test_a_page_stops_reading_when_nothing_fits_the_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.console.pager._BUDGET", 1 << 18)
    pager = paged(tmp_path, b"driver\n" * 200_000 + b"(EngineCore pid=8) ready\n")
    keep = written_by("engine")
    page = pager.page(0, 5, keep)
    assert page.entries == [] and 0 < page.reached < 1 << 19
    assert keep is not None
    assert Search(pager, Wanted(keep), page.reached, forward=True).run() == 1_400_000


def test_a_progress_bar_of_any_length_is_shown_as_it_ended(tmp_path: Path) -> None:
    bar = b"".join(b"loading %d of 30000\r" % done for done in range(1, 30_001))
    pager = paged(tmp_path, b"first\n(EngineCore pid=8) " + bar + b"\nnext\n")
    assert pager.size > 2 * LONGEST
    for lines in (pager.forward(0), pager.backward(pager.size)):
        assert [shown(line).shown for line in lines][1] == "(EngineCore) loading 30000 of 30000"
    found = Search(pager, containing("30000 of 30000"), 0, forward=True).run()
    assert found == len(b"first\n")


@pytest.mark.parametrize("name", ["fail-oom", "fail-no-flash-attn", "fail-broken-reward", "two-gpus", "nan"])
def test_errors_are_those_that_the_health_rules_see(tmp_path: Path, name: str) -> None:
    data = stored(name)
    expected = sorted({event.line.number for event in only(Notable, events_of(data))})
    pager = paged(tmp_path, data)
    found, at = [], 0
    while (offset := Search(pager, TROUBLE, at, forward=True).run()) is not None:
        found.append(pager.number_at(offset))
        at = next(pager.forward(offset)).end
    assert found == expected


@tabled
def test_groups_of_sources(source: str, group: str) -> None:
    assert group_of(source) == group


def test_a_filter_narrows_a_search(tmp_path: Path) -> None:
    pager = paged(tmp_path, b"slow\n(EngineCore pid=8) slow\n")
    wanted = both(containing("slow"), written_by("engine"))
    assert Search(pager, wanted, 0, forward=True).run() == 5
    assert Search(pager, wanted, 5, forward=False).run() is None


def test_a_search_can_be_cancelled(tmp_path: Path) -> None:
    search = Search(paged(tmp_path, b"x\n" * 10), containing("x"), 0, forward=True)
    search.cancel()
    assert search.run() is None and search.done == 0


def test_a_line_of_megabytes_takes_little_memory(tmp_path: Path) -> None:
    pager = paged(tmp_path, b"x" * (20 << 20) + b"\nnext\n")
    tracemalloc.start()
    lines = list(pager.forward(0)), list(pager.backward(pager.size))[::-1]
    found = Search(pager, containing("next"), 0, forward=True).run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines[0] == lines[1] and len(lines[0][0].raw) == LONGEST
    assert found == (20 << 20) + 1
    assert peak < 16 << 20
