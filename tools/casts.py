"""Animations for the tutorials and the README: casts.py docs/pictures [NAME...]

Recorded from the real commands and the real screen on recorded runs, by casts.toml. An SVG without a script: a changed
row of the terminal is drawn once, and CSS shows it during its frames.
"""

import argparse
import asyncio
import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from caches import share
from cast_svg import Frame, animated
from doc_pages import DOCS
from every_screen import settled
from page_outputs import printed, save
from page_pictures import furnish
from terminal_cells import Cell, cells
from textual.pilot import Pilot

from launcher.cli.screen import ScreenRequest
from launcher.core.tables import read_tables
from launcher.record.layout import RunDir, all_runs, find
from launcher.record.state import current
from launcher.runs.act.demo import play_recording
from launcher.settings import Settings
from tui.app import PpoTui

TABLE = Path(__file__).with_suffix(".toml")
LOGS = Path(__file__).parent.parent / "tests" / "data" / "logs"
COLUMNS, ROWS = 80, 24
LINES = 20  # that a command prints
TYPED, PRINTED, SHOWN, PLAYED = 1.2, 4.0, 3.5, 0.7  # seconds of a frame
TEXT, PROMPT = "#d0d0d0", "#5fafff"


class Shell(NamedTuple):
    """A terminal with a shell: its lines, and its folder."""

    folder: Path
    lines: list[list[Cell]]

    def frame(self, seconds: float) -> Frame:
        blank: list[Cell] = []
        return Frame([*self.lines[-ROWS:], *[blank] * (ROWS - len(self.lines))], "", seconds)

    def run(self, command: str, start: str) -> Iterator[Frame]:
        """The command, then its output from the line that begins with `start`."""
        prompt = [("$", PROMPT, True, None), (" ", TEXT, False, None)]
        for at in range(0, len(command), COLUMNS - 2):
            piece = command[at : at + COLUMNS - 2]
            self.lines.append((prompt if at == 0 else []) + [(sign, TEXT, True, None) for sign in piece])
        yield self.frame(TYPED)
        lines = printed(command, self.folder, Path(os.environ["PPO_TUI_HOME"]), COLUMNS)
        pieces = [line[at : at + COLUMNS] for line in lines for at in range(0, len(line) or 1, COLUMNS)]
        first = next(at for at, line in enumerate(pieces) if line.startswith(start))
        shown = [*["..."][: bool(first)], *pieces[first : first + LINES], *["..."][: len(pieces) > first + LINES]]
        self.lines.extend([(sign, TEXT, False, None) for sign in line] for line in shown)
        yield self.frame(PRINTED)


@contextlib.asynccontextmanager
async def screen(run: RunDir) -> AsyncIterator[Pilot[Any]]:
    app = PpoTui(ScreenRequest(run=str(run.path), settings=Settings(theme="dark")))
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        await settled(pilot)
        await asyncio.sleep(1)
        yield pilot


async def shown(pilot: Pilot[Any], says: str, seconds: float = SHOWN) -> Frame:
    """The screen after it settled."""
    await settled(pilot)
    await asyncio.sleep(0.7)
    await pilot.pause()
    return Frame(cells(pilot.app.export_screenshot(), COLUMNS, ROWS), says, seconds)


async def on_screen(acts: list[dict[str, Any]]) -> list[Frame]:
    """The page opened by the first act, and the keys of the others."""
    first, frames = acts[0], []
    played = "demo" in first
    run = play_recording(None) if played else find(first["open"])
    async with screen(run) as pilot:
        for place in first.get("steps", ()):
            while ((state := current(run)).attempt, state.step or 0) < tuple(place):
                await pilot.pause(0.1)
            frames.append(await shown(pilot, first["says"], PLAYED))
        frames.append(await shown(pilot, first["says"]))
        for act in acts[1:]:
            await pilot.press(*act["press"].split())
            frames.append(await shown(pilot, act["says"]))
    return frames


def prepare(name: str, cast: dict[str, Any], home: Path, folder: Path) -> None:
    """The runs of a cast, and the files that its page requires."""
    share(home, Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))
    if cast.get("pages"):
        furnish(home)
    for log in cast.get("logs", ()):
        plain = folder / f"{log}.log"
        plain.write_bytes(gzip.decompress((LOGS / f"{log}.log.gz").read_bytes()))
        subprocess.run([sys.executable, "-m", "launcher.cli.main", "import", plain], check=True, capture_output=True)
    page = DOCS / "tutorials" / f"{name}.md"
    if page.exists():
        save(page, folder)
    if "before" in cast:
        printed(cast["before"], folder, home)


def recorded(name: str, cast: dict[str, Any]) -> str:
    """The animation of a cast."""
    home, folder = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    os.environ["PPO_TUI_HOME"] = str(home)
    try:
        prepare(name, cast, home, folder)
        shell, frames, acts = Shell(folder, []), list[Frame](), list(cast["acts"])
        while acts:
            act = acts.pop(0)
            if "type" in act:
                frames += shell.run(act["type"], act.get("from", ""))
                continue
            session = [act]
            while acts and "press" in acts[0]:
                session.append(acts.pop(0))
            frames += asyncio.run(on_screen(session))
        return animated(frames, COLUMNS, ROWS)
    finally:
        assert all(not current(run).live for run in all_runs())
        shutil.rmtree(home)
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="such as gsm8k; all if none is named")
    arguments = parser.parse_args()
    for name, cast in read_tables(TABLE).items():
        if not arguments.names or name in arguments.names:
            path = arguments.out / f"{name}.svg"
            path.write_text(recorded(name, cast), "utf-8")
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
