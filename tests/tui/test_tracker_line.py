"""The run in its trackers, on its dashboard; and runs of trackers by the import dialog."""

from pathlib import Path
from types import SimpleNamespace

from pilots import drawn, message, until
from textual.widgets import TextArea

from launcher.record.state import TrackedRun
from tui.kit.dialogs.paste import PasteScreen
from tui.pages.dashboard.head_lines import TrackerLine
from tui.pages.dashboard.screen import DashboardScreen
from tui.pages.runs.screen import RunsScreen

LINK = "https://wandb.ai/me/gsm8k/runs/ab"
TRACKERS = (TrackedRun("wandb", LINK), TrackedRun("swanlab", folder="/x", command="swanlab sync /x"))


async def test_the_dashboard_shows_the_link_and_copies_it(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(12)], state=make.running(trackers=TRACKERS)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert drawn(app, TrackerLine).split() == ["wandb", LINK, "a", "k", "copies", "it", "·", "+1"]
        await pilot.press("a", "k")
        await pilot.pause()
        assert app.clipboard == LINK and f"Copied: wandb {LINK}" in message(app)
        await pilot.resize_terminal(160, 48)
        await pilot.pause()
        assert "swanlab sync /x" in drawn(app, TrackerLine)
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert not app.screen.query_one(TrackerLine).size


async def test_a_run_without_a_tracker_has_no_row_for_it(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(12)], state=make.running()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert not app.screen.query_one(TrackerLine).size
        await pilot.press("a", "k")
        await pilot.pause()
        assert "No tracker" in message(app) and not app.clipboard


async def test_the_import_dialog_takes_a_folder_of_events(make: SimpleNamespace, home: Path, tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path / "my board"))
    summary = Summary(value=[Summary.Value(tag="critic/score/mean", simple_value=0.5)])
    writer.add_event(Event(step=4, wall_time=1_795_000_000.0, summary=summary))
    writer.close()
    async with make.app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        await pilot.press("i")
        await until(pilot, lambda: isinstance(pilot.app.screen, PasteScreen))
        pilot.app.screen.query_one(TextArea).insert(f"{tmp_path}/my board")
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(pilot.app.screen, DashboardScreen))
        await until(pilot, lambda: pilot.app.screen.reader is not None)
        assert pilot.app.screen.reader.state.step == 4
