"""A picture of every page: make pictures ARGS="queue --size 80x24 --theme dark"

The pages show runs from tests/data: three recorded runs, a failure, two runs of an H100, a run with every file, and a
queue. Names after the options select pages.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from every_screen import MAKERS, ROADS, settled, walk
from whole_run import whole_run

from bench.screenshot import painted
from launcher.cli.screen import ScreenRequest
from launcher.data.toy import RECIPE
from launcher.record.layout import RunDir
from launcher.settings import Settings
from tui.app import PpoTui

DATA = Path(__file__).parent.parent / "tests" / "data"
LOGS = ("cpu-toy", "grpo", "learning", "kl-blowup")
GPU_RUNS = ("7d6e4c-gsm8k-format-reward", "06aff8-gsm8k-format-reward")
SIZES = ("80x24", "120x36", "160x48")


def furnish(home: Path) -> Path:
    """Fills an empty PPO_TUI_HOME; returns the run whose pages are drawn."""
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
    shutil.copytree(DATA / "samples" / "rollout", run.rollouts)
    shutil.copytree(DATA / "samples" / "validation", run.validations)
    return run.path


async def draw(run: Path, page: str, size: tuple[int, int], theme: str) -> str:
    """The page as Textual's SVG."""
    app = PpoTui(ScreenRequest(run=str(run), read_only=False, settings=Settings(theme=theme)))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await walk(pilot, page, looks=200)
        await asyncio.sleep(1.5)  # some pages watch something for as long as they are open
        await pilot.pause()
        return app.export_screenshot()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("pages", nargs="*", help="such as queue or EditorScreen; all if none is named")
    parser.add_argument("--size", action="append", choices=SIZES)
    parser.add_argument("--theme", action="append")
    arguments = parser.parse_intermixed_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    wanted = [name.lower().removesuffix("screen") for name in arguments.pages]
    pages = [page for page in (*ROADS, *MAKERS) if not wanted or page.lower().removesuffix("screen") in wanted]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PPO_TUI_HOME"] = folder
        run = furnish(Path(folder))
        for page in pages:
            for size in arguments.size or SIZES:
                for theme in arguments.theme or ("dark", "light"):
                    columns, rows = map(int, size.split("x"))
                    out = arguments.out / f"{page.removesuffix('Screen').lower()}-{size}-{theme}.png"
                    try:
                        svg = asyncio.run(draw(run, page, (columns, rows), theme))
                    except AssertionError as error:
                        print(f"{out.name}: not drawn: {error}")
                        continue
                    painted(svg, columns, rows).save(out, optimize=True)
                    print(out)


if __name__ == "__main__":
    main()
