"""A picture of every page: make pictures ARGS="queue --size 80x24 --look dark --look ascii"

The pages show runs from tests/data: three recorded runs, a failure, two runs of an H100, a run with every file, and a
queue. Names after the options select pages. A look is a theme, or 16-colors, no-color, ascii.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from console_logs import diagnosis_of, stored
from every_screen import MAKERS, ROADS, settled, walk
from rich.color import Color, ColorSystem
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from screenshot import painted
from textual.screen import Screen
from textual.worker import WorkerCancelled
from whole_run import whole_run

from launcher.cli.screen import ScreenRequest
from launcher.data.toy import RECIPE
from launcher.preset.files import load
from launcher.preset.settle import offers
from launcher.record.layout import RunDir, all_runs
from launcher.record.queued import Queued
from launcher.record.state import TrackedRun, current
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import Explanation
from launcher.settings import Settings
from tui.app import PpoTui
from tui.kit.charts.lens import Lens
from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.navigation import RunView
from tui.pages.diagnosis.screen import DiagnosisScreen
from tui.pages.queue import screen as queue

DATA = Path(__file__).parent.parent / "tests" / "data"
LOGS = ("cpu-toy", "grpo", "learning", "kl-blowup")
GPU_RUNS = ("7d6e4c-gsm8k-format-reward", "06aff8-gsm8k-format-reward")
# Pages in other states: the run that they are about, by a part of its name, the page, and the keys pressed on it.
SCENES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "FailedScene": ("fail-oom", "DashboardScreen", ()),
    "TrackedScene": ("cpu-toy", "DashboardScreen", ()),
    "CursorScene": ("kl-blowup", "DashboardScreen", ("home", "shift+right")),
    "PresetScene": ("", "RunsScreen", ("G", "k")),
    "RefusedScene": ("", "RunsScreen", ("G", "k", "enter")),
    "ImportScene": ("", "RunsScreen", ("i",)),
    "CopyScene": ("", "RunsScreen", ("G", "y")),
    "DataScene": ("", "RunsScreen", ("a", "d")),
}
TRACKERS = (
    TrackedRun("wandb", "https://wandb.ai/a-team/verl-toy/runs/5d0k8c1w"),
    TrackedRun("swanlab", folder="/data/swanlog", command=f"swanlab sync /data/{'trials/' * 14}swanlog/run-20261125"),
)
LONGEST = 20.0  # seconds that a page may take
SIZES = ("80x24", "120x36", "160x48")
LOOKS = ("dark", "light")
ANSI, PLAIN, ASCII = "16-colors", "no-color", "ascii"


def furnish(home: Path) -> Path:
    """Fills an empty PPO_TUI_HOME; returns the run for the pictures."""
    (home / "cache" / "toy").mkdir(parents=True)
    (home / "cache" / "toy" / "recipe").write_text(RECIPE)
    whole_run(home)
    with tarfile.open(DATA / "gpu" / "runs.tar.xz") as tar:
        members = [item for item in tar.getmembers() if set(Path(item.name).parts) & set(GPU_RUNS)]
        tar.extractall(home, members, filter="data")
    command = [sys.executable, "-m", "launcher.cli.main", "import"]
    for name in ("fail-oom", *LOGS):
        files = sorted(map(str, (DATA / "logs").glob(f"{name}.*.gz")), reverse=True)  # the console first
        subprocess.run([*command, *files], check=True, capture_output=True)
    run = RunDir(home / "runs" / GPU_RUNS[-1])
    run.attempt(1).console.write_bytes(gzip.decompress((DATA / "logs" / "learning.log.gz").read_bytes()))
    shutil.copytree(DATA / "samples" / "rollout", run.rollouts)
    shutil.copytree(DATA / "samples" / "validation", run.validations)
    for place, name in enumerate(("gsm8k-0.5b-24gb", "gsm8k-grpo-24gb")):
        added, preset = time.time() - 900, load(name).snapshot()
        entry = Queued(f"0a1{place}-{name}", name, preset, host="h", needs=1, place=place, added=added, paused=True)
        entry.save()
    tracked = _run_of("cpu-toy")
    dataclasses.replace(current(tracked), trackers=TRACKERS).write(tracked.state)
    return run.path


def _run_of(part: str) -> RunDir:
    return next(run for run in all_runs() if part in run.id)


def diagnosed() -> DiagnosisScreen:
    """The page of the run that ran out of memory."""
    reader = RunReader(_run_of("fail-oom").path)
    reader.poll()
    found = diagnosis_of(stored("fail-oom"))
    reader.explanation = Explanation(found, offers(found.fixes, None))
    return DiagnosisScreen(RunView(reader, Lens(), False))


def confirming() -> ConfirmScreen:
    """The question before a stop."""
    return ConfirmScreen("Stop gsm8k-format-reward?", "The last checkpoint is of step 10.", "y  stop")


async def draw(run: Path, page: str, sizes: list[tuple[int, int]], look: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Draws the page in each size, as Textual's SVG."""
    os.environ.pop("NO_COLOR", None)
    os.environ["TERM"] = "xterm-256color"
    if look == PLAIN:
        os.environ["NO_COLOR"] = "1"  # Textual takes it out again
    theme = "dark" if look in (ANSI, PLAIN, ASCII) else look
    of, road, keys = SCENES.get(page, ("", page, ()))
    about = _run_of(of).path if of else run
    app = PpoTui(ScreenRequest(run=str(about), settings=Settings(theme=theme, ascii=look == ASCII)))
    found = []
    async with app.run_test(size=sizes[0]) as pilot:
        await settled(pilot)
        await walk(pilot, road, looks=200)
        for pressed in ((), keys):
            await pilot.press(*pressed)
            with contextlib.suppress(
                asyncio.TimeoutError, WorkerCancelled
            ):  # some pages watch something for as long as they are open
                await asyncio.wait_for(settled(pilot), LONGEST)
        for size in sizes:
            await pilot.resize_terminal(*size)
            await asyncio.sleep(0.7)
            await pilot.pause()
            found.append((size, app.export_screenshot()))
    return iter(found)


def in_16_colors(svg: str) -> str:
    """The SVG in the 16 colors of a terminal."""

    def nearest(match: re.Match[str]) -> str:
        return Color.parse(match[0]).downgrade(ColorSystem.STANDARD).get_truecolor(DEFAULT_TERMINAL_THEME).hex

    return re.sub(r"#[0-9a-fA-F]{6}\b", nearest, svg)


def main() -> None:
    pages: dict[str, Callable[[], Screen[Any]]] = {"DiagnosisScreen": diagnosed, "ConfirmScreen": confirming}
    ROADS.pop("ConfirmScreen")  # the run has ended
    for dialog in ("AskScreen", "PasteScreen", "ChooseScreen"):  # the scenes have their real questions
        MAKERS.pop(dialog)
    MAKERS.update(pages)
    queue.wake_queue = lambda **_: None  # type: ignore[attr-defined,assignment]  # nothing may start
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("pages", nargs="*", help="such as queue or EditorScreen; all if none is named")
    parser.add_argument("--size", action="append", choices=SIZES)
    parser.add_argument("--look", action="append", help=f"a theme, {ANSI}, {PLAIN} or {ASCII}; {' and '.join(LOOKS)}")
    arguments = parser.parse_intermixed_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = [name.lower().removesuffix("screen") for name in arguments.pages]
    chosen = [
        page for page in (*ROADS, *MAKERS, *SCENES) if not wanted or page.lower().removesuffix("screen") in wanted
    ]
    sizes = [(int(columns), int(rows)) for columns, rows in (size.split("x") for size in arguments.size or SIZES)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PPO_TUI_HOME"] = folder
        run = furnish(Path(folder))
        for page in chosen:
            for look in arguments.look or LOOKS:
                try:
                    drawn = asyncio.run(draw(run, page, sizes, look))
                except AssertionError as error:
                    print(f"{page}: not drawn: {error}")
                    continue
                for (columns, rows), svg in drawn:
                    name = f"{page.removesuffix('Screen').lower()}-{columns}x{rows}-{look}.png"
                    picture = painted(in_16_colors(svg) if look == ANSI else svg, columns, rows)
                    picture.quantize(64).save(arguments.out / name, optimize=True)
                    print(arguments.out / name, flush=True)


if __name__ == "__main__":
    main()
