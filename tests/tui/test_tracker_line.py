"""The run in its trackers, on its dashboard."""

from types import SimpleNamespace

from pilots import drawn, message

from launcher.record.state import TrackedRun
from tui.pages.dashboard.head_lines import TrackerLine

LINK = "https://wandb.ai/me/gsm8k/runs/ab"
TRACKERS = (TrackedRun("wandb", LINK), TrackedRun("swanlab", folder="/x", command="swanlab sync /x"))


async def test_the_dashboard_shows_the_link_and_copies_it(make: SimpleNamespace) -> None:
    app = make.app(make.run(attempts=[make.recorded(12)], state=make.running(trackers=TRACKERS)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert drawn(app, TrackerLine).strip() == f"wandb {LINK}"
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
