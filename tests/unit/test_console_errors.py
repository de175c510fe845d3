"""Which lines of a console log report an error, to the reader and to the search alike."""

import re

import pytest
from console_logs import DATA, TASK, events_of, only

from launcher.console.marks import MARKS, MARKS_INSIDE
from launcher.console.reader import Notable, PhaseChange
from launcher.console.search import TROUBLE


@pytest.mark.parametrize("text", (DATA / "error_lines.txt").read_text("utf-8").splitlines())
@pytest.mark.parametrize("prefix", ["", TASK, "\x1b[36m(vLLMHttpServer pid=1)\x1b[0m (EngineCore pid=2) "])
def test_errors_are_notable_and_found_by_the_search(text: str, prefix: str) -> None:
    raw = f"{prefix}{text}".encode()
    assert TROUBLE.test(raw) and any(map(raw.__contains__, TROUBLE.hints))
    (notable,) = only(Notable, events_of(f"fine\n{prefix}{text}\nfine\n"))
    assert (notable.line.number, notable.line.offset) == (2, 5)
    text = text.removeprefix("(raylet) ")
    assert notable.line.text == (text if prefix else re.sub(r"^\[rank\d\]: ?", "", text))


def test_events_stand_in_the_order_of_their_lines() -> None:
    text = "".join(f"Segmentation fault {n}\n{TASK}step:{n} - a/b:1\n" for n in range(200)) + "core dumped\n" * 200
    events = [event for event in events_of(text, 5000) if not isinstance(event, PhaseChange)]
    lines = [event.line.number if isinstance(event, Notable) else getattr(event, "line", 0) for event in events]
    assert lines == list(range(1, 421)), "the last 180 repeat the 20 before them"


def test_a_phrase_stands_once_in_the_table() -> None:
    marks = (*MARKS, *MARKS_INSIDE)
    phrases = [phrase for mark in marks for phrase in mark.phrases]
    names = [mark.name for mark in marks if mark.name != "tracker"]  # one row for each tracker
    assert len(set(names)) == len(names)
    assert len(set(phrases)) == len(phrases)
