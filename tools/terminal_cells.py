"""Reads the cells of a terminal from Textual's SVG."""

import html
import re
from typing import TypeAlias

_CELL, _LINE = 12.2, 24.4  # of Textual's SVG
_STYLE = re.compile(r"\.terminal-\d+-(r\d+) \{ fill: (#\w+)(;font-weight: bold)?")
_RECT = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"')
_TEXT = re.compile(r'<text class="terminal-\d+-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
BLOCKS = "▁▂▃▄▅▆▇█"
DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))  # column and row of each bit of a braille sign

Cell: TypeAlias = tuple[str, str, bool, str | None]
"""A sign, its color, whether it is bold, and the color behind it."""


def cells(svg: str, columns: int, rows: int) -> list[list[Cell]]:
    """The rows of cells in Textual's SVG."""
    styles = {name: (color, bool(bold)) for name, color, bold in _STYLE.findall(svg)}
    backs = [[None] * columns for _ in range(rows)]
    for color, *numbers in _RECT.findall(svg):
        x, y, width, height = map(float, numbers)
        for row in backs[round(y / _LINE) : round(y / _LINE) + round(height / _LINE)]:
            left = round(x / _CELL)
            row[left : left + round(width / _CELL)] = [color] * min(round(width / _CELL), columns - left)
    found = [[(" ", "", False, back) for back in row] for row in backs]
    for name, x, y, text in _TEXT.findall(svg):
        if name in styles:
            row, left = found[int(float(y) / _LINE)], round(float(x) / _CELL)
            for at, sign in enumerate(html.unescape(text).replace("\xa0", " ")[: columns - left], left):
                row[at] = (sign, *styles[name], row[at][3])
    return found
