"""Pictures of the dashboard for the README: screenshot.py RUN_DIR OUT.png --size 100x30 --theme light

The cells of Textual's own SVG, painted on a grid: renderers that ignore `textLength` squeeze an SVG's curves, and
few fonts have braille. Needs Pillow and DejaVu Sans Mono.
"""

import argparse
import asyncio
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont
from terminal_cells import BLOCKS, DOTS, cells

from launcher.cli.screen import ScreenRequest
from launcher.settings import Settings
from tui.app import PpoTui

FONTS = Path("/usr/share/fonts/truetype/dejavu")
WIDTH, HEIGHT = 12, 24  # of a cell, in pixels


async def drawn(run: Path, columns: int, rows: int, theme: str) -> str:
    """The dashboard of a run as Textual's SVG."""
    app = PpoTui(ScreenRequest(run=str(run.absolute()), read_only=False, settings=Settings(theme=theme)))
    async with app.run_test(size=(columns, rows)) as pilot:
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="100x30")
    parser.add_argument("--theme", default="dark")
    arguments = parser.parse_args()
    columns, rows = map(int, arguments.size.split("x"))
    svg = asyncio.run(drawn(arguments.run, columns, rows, arguments.theme))
    painted(svg, columns, rows).save(arguments.out, optimize=True)


if __name__ == "__main__":
    main()
