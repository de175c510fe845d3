"""What the supervisor collected when a run stalled."""

from pathlib import Path

from launcher.core.text import clean
from launcher.record.layout import RunDir


def stall_report(run: RunDir) -> tuple[Path, list[str]] | None:
    """The newest attempt's `stall.txt` and its lines; None where there is none. Never raises."""
    last = run.last_attempt()
    if last is None:
        return None
    try:
        text = last.stall.read_text("utf-8", errors="replace")
    except OSError:
        return None
    return last.stall, [clean(line) for line in text.splitlines()]
