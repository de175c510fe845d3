"""Pictures of the dashboard for the README: python bench/screenshot.py RUN_DIR OUT.png --size 100x30 --theme light

The cells of Textual's own SVG, painted on a grid: renderers that ignore `textLength` squeeze an SVG's curves, and
few fonts have braille. Needs Pillow and DejaVu Sans Mono.
"""

import argparse
import asyncio
import html
import re
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

from launcher.cli.screen import ScreenRequest
from launcher.settings import Settings
from tui.app import PpoTui

FONTS = Path("/usr/share/fonts/truetype/dejavu")
WIDTH, HEIGHT = 12, 24  # of a cell, in pixels
_CELL, _LINE = 12.2, 24.4  # of Textual's SVG
_STYLE = re.compile(r"\.terminal-\d+-(r\d+) \{ fill: (#\w+)(;font-weight: bold)?")
_RECT = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"')
_TEXT = re.compile(r'<text class="terminal-\d+-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_BLOCKS = "▁▂▃▄▅▆▇█"
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))  # column and row of each bit of a braille sign


async def drawn(run: Path, columns: int, rows: int, theme: str) -> str:
    """The dashboard of a run as Textual's SVG."""
    app = PpoTui(ScreenRequest(run=str(run.absolute()), read_only=False, settings=Settings(theme=theme)))
    async with app.run_test(size=(columns, rows)) as pilot:
        await pilot.pause(3)
        return app.export_screenshot()


def painted(svg: str, columns: int, rows: int) -> Image.Image:
    """The cells of the SVG as pixels."""
    styles = {name: (colour, bool(bold)) for name, colour, bold in _STYLE.findall(svg)}
    fonts = {bold: ImageFont.truetype(FONTS / f"DejaVuSansMono{'-Bold' * bold}.ttf", 19) for bold in (False, True)}
    backgrounds = [(colour, *map(float, numbers)) for colour, *numbers in _RECT.findall(svg)]
    picture = Image.new("RGB", (columns * WIDTH, rows * HEIGHT), backgrounds[0][0] if backgrounds else "#121212")
    draw = ImageDraw.Draw(picture)
    for colour, x, y, width, height in backgrounds:
        left, top = round(x / _CELL) * WIDTH, round(y / _LINE) * HEIGHT
        right, bottom = left + round(width / _CELL) * WIDTH, top + round(height / _LINE) * HEIGHT
        if right > left and bottom > top:
            draw.rectangle((left, top, right - 1, bottom - 1), colour)
    for name, x, y, text in _TEXT.findall(svg):
        if name in styles:
            colour, bold = styles[name]
            for at, sign in enumerate(html.unescape(text)):
                place = (round(float(x) / _CELL) + at) * WIDTH, int(float(y) / _LINE) * HEIGHT
                _sign(draw, sign, place, colour, fonts[bold])
    return picture


def _sign(draw: ImageDraw.ImageDraw, sign: str, place: tuple[int, int], colour: str, font: FreeTypeFont) -> None:
    """Braille and blocks as rectangles, everything else from the font."""
    x, y = place
    if 0x2800 <= ord(sign) <= 0x28FF:
        for bit, (column, row) in enumerate(_DOTS):
            if ord(sign) - 0x2800 >> bit & 1:
                left, top = x + 2 + column * 6, y + 2 + row * 6
                draw.ellipse((left, top, left + 3, top + 3), colour)
    elif sign in _BLOCKS:
        draw.rectangle((x, y + HEIGHT - 3 * (_BLOCKS.index(sign) + 1), x + WIDTH - 1, y + HEIGHT - 1), colour)
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
