"""Pictures of the dashboard for the README and docs/start/dashboard.md: screenshot.py docs/pictures

The cells of Textual's own SVG, painted on a grid: renderers that ignore `textLength` squeeze an SVG's curves, and
few fonts have braille. Needs Pillow and DejaVu Sans Mono.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from every_screen import settled
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin
from PIL.ImageFont import FreeTypeFont
from terminal_cells import BLOCKS, DOTS, cells

from launcher.cli.screen import ScreenRequest
from launcher.record.check import flags_of
from launcher.record.layout import RunDir
from launcher.record.process import ProcessId
from launcher.record.state import current
from launcher.runs.judge.run_checklist import checklist_maker, recorded_sizes
from launcher.runs.watch.steps import steps
from launcher.settings import Settings
from tui.app import PpoTui

FONTS = Path("/usr/share/fonts/truetype/dejavu")
WIDTH, HEIGHT = 12, 24  # of a cell, in pixels
COLUMNS, ROWS = 100, 30
DATA = Path(__file__).parents[1] / "tests" / "data"
LAYER = "Text"  # the name of the text layer of a PNG


async def drawn(run: Path, theme: str) -> str:
    """The dashboard of a run as Textual's SVG."""
    os.environ["TERM"] = "xterm-256color"
    app = PpoTui(ScreenRequest(run=str(run.absolute()), read_only=False, settings=Settings(theme=theme)))
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        await settled(pilot)
        await pilot.press("down")
        await pilot.pause(3)
        return app.export_screenshot()


def painted(svg: str, columns: int, rows: int) -> Image.Image:
    """The cells of the SVG as pixels."""
    fonts = {bold: ImageFont.truetype(FONTS / f"DejaVuSansMono{'-Bold' * bold}.ttf", 19) for bold in (False, True)}
    picture = Image.new("RGB", (columns * WIDTH, rows * HEIGHT), "#121212")
    draw = ImageDraw.Draw(picture)
    for y, row in enumerate(cells(svg, columns, rows)):
        for x, (_, _, _, back) in enumerate(row):
            left, top = x * WIDTH, y * HEIGHT
            draw.rectangle((left, top, left + WIDTH - 1, top + HEIGHT - 1), back or "#121212")
        for x, (sign, color, bold, _) in enumerate(row):
            _sign(draw, sign, (x * WIDTH, y * HEIGHT), color, fonts[bold])
    return picture


def _sign(draw: ImageDraw.ImageDraw, sign: str, place: tuple[int, int], colour: str, font: FreeTypeFont) -> None:
    """Braille and blocks as rectangles, everything else from the font."""
    x, y = place
    if 0x2800 <= ord(sign) <= 0x28FF:
        for bit, (column, row) in enumerate(DOTS):
            if ord(sign) - 0x2800 >> bit & 1:
                left, top = x + 2 + column * 6, y + 2 + row * 6
                draw.ellipse((left, top, left + 3, top + 3), colour)
    elif sign in BLOCKS:
        draw.rectangle((x, y + HEIGHT - 3 * (BLOCKS.index(sign) + 1), x + WIDTH - 1, y + HEIGHT - 1), colour)
    elif sign.strip("\xa0 "):
        draw.text((x, y), sign, colour, font)


def text_of(svg: str, columns: int, rows: int) -> str:
    """Its lines, which become the picture's text layer; a test compares them."""
    return "\n".join("".join(sign for sign, *_ in row).rstrip() for row in cells(svg, columns, rows))


def live(run: RunDir, step: int) -> None:
    """Cuts a recorded run after a step and writes its state at that step, judged by the current rules."""
    attempt = run.attempt(1)
    done = [record for _, record in steps(run) if record.step <= step]
    checklist = checklist_maker(run.read_info(), recorded_sizes(run), None)(attempt.read_launch().keys)
    for record in done:
        checklist.step(record.step, record.data, t=record.t)
    now, me, checks = done[-1].t, ProcessId.of(os.getpid()), tuple(checklist.checks())
    for path in (run.events, run.machine, attempt.steps):
        path.write_text("".join(line for line in path.open() if json.loads(line)["t"] <= now))
    attempt.exit.unlink()
    state = replace(current(run), state="running", exit=None, step=step, phase="rollout", phase_since=now, updated=now)
    left = (state.total - step) * state.step_seconds
    state = replace(
        state, supervisor=me, driver=me, heartbeat=time.time(), beat=None, eta=left, done=now + left, checks=checks
    )
    replace(state, verdict=str(checklist.verdict), flags=flags_of(checks), last_score=None).write(run.state)


def pictures(home: Path) -> dict[str, str]:
    """The pictures of docs/pictures as SVG, from recorded runs in `home`, the PPO_TUI_HOME."""
    with tarfile.open(DATA / "gpu" / "sums.tar.xz") as tar:
        tar.extractall(home, filter="data")
    command = [
        sys.executable,
        "-m",
        "launcher.cli.main",
        "import",
        *sorted((DATA / "logs").glob("kl-blowup.*"), reverse=True),
    ]
    flagged = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    watched = home / "runs" / "da2c09-sums"
    live(RunDir(watched), 8)
    asyncio.run(drawn(watched, "dark"))  # the first look also lists what rose before it
    return {
        "dashboard-dark": asyncio.run(drawn(watched, "dark")),
        "dashboard-light": asyncio.run(drawn(watched, "light")),
        "dashboard-flagged": asyncio.run(drawn(home / "runs" / flagged, "dark")),
    }


def main() -> None:
    home = Path(tempfile.mkdtemp())
    os.environ["PPO_TUI_HOME"] = str(home)
    for name, svg in pictures(home).items():
        layer = PngImagePlugin.PngInfo()
        layer.add_itxt(LAYER, text_of(svg, COLUMNS, ROWS))
        painted(svg, COLUMNS, ROWS).save(Path(sys.argv[1], f"{name}.png"), optimize=True, pnginfo=layer)
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
