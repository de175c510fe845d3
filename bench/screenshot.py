"""A picture of the dashboard on a run, as SVG: python bench/screenshot.py RUN_DIR OUT.svg --size 100x30"""

import argparse
import asyncio
from pathlib import Path

from launcher.screen_request import ScreenRequest
from tui.app import PpoTui


async def draw(run: Path, out: Path, columns: int, rows: int) -> None:
    app = PpoTui(ScreenRequest(run=str(run.absolute()), read_only=False))
    async with app.run_test(size=(columns, rows)) as pilot:
        await pilot.pause(1.5)
        out.write_text(app.export_screenshot(title="ppo-tui"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="100x30")
    arguments = parser.parse_args()
    columns, rows = map(int, arguments.size.split("x"))
    asyncio.run(draw(arguments.run, arguments.out, columns, rows))


if __name__ == "__main__":
    main()
