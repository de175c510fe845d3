"""Following files that grow, shrink, come and go."""

from pathlib import Path

import pytest

from launcher.core.tail import LineTail, Tail


def test_half_a_line_waits_for_its_rest(tmp_path: Path) -> None:
    path, tail = tmp_path / "log", LineTail(tmp_path / "log")
    assert tail.read() == []  # not there yet
    with path.open("ab", buffering=0) as file:
        for part, lines in ((b"on", []), (b"e\ntw", [b"one"]), (b"o", []), (b"\n\n", [b"two", b""])):
            file.write(part)
            assert tail.read() == lines
    assert tail.read() == [] and tail.restarts == 0


@pytest.mark.slow
def test_a_file_that_was_started_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, tail = tmp_path / "log", LineTail(tmp_path / "log")
    path.write_bytes(b"old\nhalf")
    assert tail.read() == [b"old"]
    path.write_bytes(b"new\n")
    assert tail.read() == [b"new"] and tail.restarts == 1


def test_what_cannot_be_read_now_is_read_later(tmp_path: Path) -> None:
    folder, tail = tmp_path / "attempt", Tail(tmp_path / "attempt" / "log")
    folder.write_text("in the way")
    assert tail.read() == b""
    folder.unlink()
    folder.mkdir()
    (folder / "log").write_bytes(b"there")
    assert tail.read() == b"there"
