"""Links of trackers in a console, and the runs of trackers as runs."""

from tables import tabled

from launcher.health.checklist import Checklist
from launcher.record.state import RunState, TrackedRun
from launcher.runs.judge.monitor import Monitor
from launcher.runs.judge.sink import Sink


def seen(text: str) -> tuple[TrackedRun, ...]:
    monitor = Monitor(Sink(), lambda keys: Checklist(config=keys), {}, file_logger=False)
    monitor.feed_console(text.encode(), 1.0)
    monitor.close(1.0)
    return monitor.state(RunState("running"), 1.0).trackers


@tabled
def test_what_trackers_print(lines: str, expected: dict[str, str]) -> None:
    assert seen(f"{lines}\n") == (TrackedRun(**expected),)


def test_words_of_a_tracker_are_clean() -> None:
    (found,) = seen("wandb: 🚀 View run at https://wandb.ai/x\x07\u202ey\n")
    assert found.words.isascii() and found.words.isprintable()
