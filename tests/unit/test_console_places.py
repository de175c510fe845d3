"""The lines that matter are found without reading the others."""

from console_logs import TASK, events_of, only
from hypothesis import given
from hypothesis import strategies as st
from tables import parts

from launcher.console.reader import ConsoleReader, Event, StepLine
from launcher.console.scanner import Scanner

PIECES, PREFIXES = (parts("console_places")[name][1] for name in ("PIECES", "PREFIXES"))
LINES = st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from(PIECES), st.sampled_from(["\n", "\n", "\r"])))


@given(LINES, st.lists(st.integers(1, 120), min_size=1))
def test_the_lines_that_matter_are_found_in_chunks_of_any_size(lines: list[tuple[str, ...]], sizes: list[int]) -> None:
    data = "".join("".join(line) for line in lines).encode()
    every = ConsoleReader()
    every._scanner = Scanner()  # which reads each line
    wanted = every.feed(data) + every.close()
    reader, quick = ConsoleReader(), ConsoleReader(only_steps=True)
    events: list[Event] = []
    steps: list[Event] = []
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        events += reader.feed(data[at : at + size])
        steps += quick.feed(data[at : at + size])
        at += size
    assert repr(events + reader.close()) == repr(wanted)
    assert repr(only(StepLine, steps + quick.close())) == repr(only(StepLine, wanted))


def test_places_of_a_long_log_are_exact() -> None:
    noise = "".join(f"(W pid={number}) noise {number}\n" for number in range(5000))
    data = f"{noise}{TASK}step:1 - a/b:1.0\n{noise}{TASK}step:2 - a/b:2.0\n".encode()
    steps = only(StepLine, events_of(data, 1 << 14))
    assert [(step.line, step.offset) for step in steps] == [(5001, len(noise)), (10_002, data.rindex(TASK.encode()))]
