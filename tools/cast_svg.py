"""Makes one animated SVG from a terminal's frames: each row is drawn once, and CSS shows it during its frames."""

import html
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from terminal_cells import BLOCKS, DOTS, Cell

WIDTH, HEIGHT, MARGIN = 10, 20, 10  # of a cell, and around the terminal
BACK, CAPTION = "#121212", "#fed75f"


class Frame(NamedTuple):
    """Rows of a terminal, a line below them, and their duration."""

    rows: Sequence[Sequence[Cell]]
    says: str
    seconds: float


def animated(frames: Sequence[Frame], columns: int, rows: int) -> str:
    """The SVG. It stays on the last frame for readers who disable motion."""
    shown = dict[tuple[int, str], list[int]]()
    for number, frame in enumerate(frames):
        caption = [(sign, CAPTION, False, None) for sign in frame.says]
        for y, row in enumerate([*frame.rows, caption]):
            if drawn := "".join(_row(row)):
                shown.setdefault((y, drawn), []).append(number)
    ends = [0.0]
    for frame in frames:
        ends.append(ends[-1] + frame.seconds)
    kinds = {tuple(numbers): f"k{at}" for at, numbers in enumerate(dict.fromkeys(map(tuple, shown.values())))}
    width, height = columns * WIDTH + 2 * MARGIN, (rows + 1) * HEIGHT + 2 * MARGIN
    style = ["text{font:16.6px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"]
    style += ["path{stroke-width:2.8;stroke-linecap:round}.b{font-weight:bold}"]
    for numbers, name in kinds.items():
        if len(numbers) == len(frames):
            continue
        points = [f"{100 * ends[at] / ends[-1]:.2f}%{{visibility:{word}}}" for at, word in _turns(numbers, len(frames))]
        style.append(f"@keyframes {name}{{{''.join(points)}}}")
        rest = "" if len(frames) - 1 in numbers else ";visibility:hidden"
        style.append(f".{name}{{animation:{name} {ends[-1]:.1f}s step-end infinite{rest}}}")
    style.append("@media(prefers-reduced-motion:reduce){g{animation:none!important}}")
    body = [
        f'<g class="{kinds[tuple(numbers)]}" transform="translate({MARGIN},{MARGIN + y * HEIGHT})">{drawn}</g>'
        for (y, drawn), numbers in shown.items()
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    paper = f'<rect width="{width}" height="{height}" rx="6" fill="{BACK}"/>'
    head += "<title>A recording of ppo-tui</title>"
    return "\n".join([head, f"<style>{''.join(style)}</style>", paper, *body, "</svg>", ""])


def _turns(numbers: Sequence[int], count: int) -> Iterator[tuple[int, str]]:
    """The frames at which a row appears and disappears."""
    before = None
    for at in range(count):
        word = "visible" if at in numbers else "hidden"
        if word != before:
            yield at, word
        before = word


def _row(row: Sequence[Cell]) -> Iterator[str]:
    at = 0
    for back, group in groupby(row, key=lambda cell: cell[3]):
        length = len(list(group))
        if back not in (None, BACK):
            yield f'<rect x="{at * WIDTH}" width="{length * WIDTH}" height="{HEIGHT}" fill="{back}"/>'
        at += length
    at = 0
    for (color, bold), group in groupby(row, key=lambda cell: cell[1:3]):
        text = "".join(cell[0] for cell in group)
        yield from _run(at, text, color, bold)
        at += len(text)


def _run(at: int, text: str, color: str, bold: bool) -> Iterator[str]:
    """Signs of one style: dots and bars as a path, because few fonts have them, other signs as text."""
    dots = [
        f"M{WIDTH * (at + n) + 3 + 5 * column} {3 + 5 * row}h0"
        for n, sign in enumerate(text)
        if "\u2800" <= sign <= "\u28ff"
        for bit, (column, row) in enumerate(DOTS)
        if ord(sign) - 0x2800 >> bit & 1
    ]
    if dots:
        yield f'<path stroke="{color}" d="{"".join(dots)}"/>'
    bars = [
        (WIDTH * (at + n), HEIGHT * (BLOCKS.index(sign) + 1) / len(BLOCKS))
        for n, sign in enumerate(text)
        if sign in BLOCKS
    ]
    if bars:
        paths = "".join(f"M{x} {HEIGHT}v-{tall:g}h{WIDTH}v{tall:g}z" for x, tall in bars)
        yield f'<path fill="{color}" d="{paths}"/>'
    words = "".join(" " if "\u2800" <= sign <= "\u28ff" or sign in BLOCKS else sign for sign in text)
    for begin, piece in _pieces(words):
        weight = ' class="b"' if bold else ""
        length = len(piece) * WIDTH
        yield (
            f'<text x="{(at + begin) * WIDTH}" y="15" fill="{color}" textLength="{length}"{weight}>'
            f"{html.escape(piece, quote=False)}</text>"
        )


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Groups of words, with the column of each."""
    at = 0
    for piece in text.split("  "):
        if stripped := piece.strip(" "):
            yield at + len(piece) - len(piece.lstrip(" ")), stripped
        at += len(piece) + 2
