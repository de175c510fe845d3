"""The output of commands and pages for recorded runs, logs and presets, and the files written by starts.

Stored in tests/data/golden.json.xz.

The clock is fixed, home and host have fixed names, ids are counted. Machine-dependent output is omitted: `doctor`,
`check`, lists of presets, the machine's page. `make golden` prints the differences from the file, and writes it.
"""

import asyncio
import contextlib
import difflib
import fnmatch
import itertools
import json
import lzma
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import console_rows
import rule_runs
from commands import call
from every_screen import ROADS, back, settled, walk
from golden_verbs import of_verbs
from pilots import picture

from launcher.cli.screen import ScreenRequest
from launcher.core import clock
from launcher.record.layout import all_runs
from tui.app import PpoTui

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
STORED = DATA / "golden.json.xz"
HOME = "/tmp/ppo-golden-12345678"  # as long as the path of the home: tables fit it
NOW = 1_800_000_000.0  # later than all recordings
SIZES = ((160, 48), (80, 24))
PAGES = sorted(
    ROADS.keys() - {"CaseScreen", "MachineScreen", "DeviceScreen", "TrialsScreen", "ConfirmScreen", "RunsScreen"}
)
PAGED = ("kl-blowup", "learning", "fail-oom")  # the runs whose pages are stored
OF_RUN = (
    ["status"],
    ["status", "--json"],
    ["health", "--all"],
    ["health", "--json"],
    ["diagnose"],
    ["diagnose", "--json"],
    ["metrics"],
    ["time"],
    ["time", "--json"],
    ["logs", "--errors"],
)
OF_FAILURE = (["diagnose"], ["diagnose", "--json"])
OF_LOG = (*OF_FAILURE, ["health", "--json"])
OF_PRESET = (["preset", "show", "--json"], ["preset", "export"])
OF_NOTHING = (["list"], ["list", "--json"], ["queue"], ["config"], ["preset", "show", "toy-cpu"])


def stored() -> dict[str, dict[str, str]]:
    """The stored output, by part and then by command or page."""
    return dict(json.loads(lzma.decompress(STORED.read_bytes())))


@contextlib.contextmanager
def _fixed() -> Iterator[Path]:
    """A temporary home, in a process with fixed clock, host and ids."""
    home = Path(tempfile.mkdtemp(prefix="ppo-golden-", dir="/tmp"))
    ids = itertools.count(1)
    variables = {"HOME": str(home), "PPO_TUI_HOME": str(home / "ppo-tui"), "COLUMNS": "100", "LINES": "40", "TZ": "UTC"}
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    before = Path.cwd()
    try:
        with (
            patch.dict(os.environ, {**kept, **variables}, clear=True),
            patch.object(time, "time", lambda: NOW),
            patch.object(clock, "now", lambda: NOW),
            patch("socket.gethostname", lambda: "golden"),
            patch("secrets.token_hex", lambda size: f"{next(ids):0{2 * size}x}"),
        ):
            time.tzset()
            os.chdir(home)
            yield home
    finally:
        os.chdir(before)
        time.tzset()
        shutil.rmtree(home, ignore_errors=True)


def _logs(home: Path, *folders: str) -> list[Path]:
    """Copies of recorded logs, with paths of a fixed length."""
    for folder in folders:
        shutil.copytree(
            DATA / folder, home / folder, ignore=lambda path, names: {*names} - {*fnmatch.filter(names, "*.gz")}
        )
    return [path for folder in folders for path in sorted((home / folder).glob("*.gz"))]


def _shown(words: list[str], home: Path) -> str:
    out, err, code = call(words)
    text = re.sub('(?<="beat":)[0-9.]+', "0", f"{out.decode()}{err.decode()}exit code {code or 0}\n")
    return _anywhere(text, home)


def _anywhere(text: str, home: Path) -> str:
    return text.replace(str(home), HOME).replace(str(ROOT), "ROOT")


def of_runs() -> dict[str, str]:
    """Output for the runs of 0.1 and for imported recorded logs, the list and presets."""
    with _fixed() as home:
        with tarfile.open(DATA / "runs-0.1.tar.xz") as archive:
            archive.extractall(home / "ppo-tui/runs", filter="data")
        logs = [log for log in _logs(home, "logs") if log.name.endswith(".log.gz")]
        asked = [["import", str(log)] for log in logs]
        found = {f"import {Path(words[1]).name}": _shown(words, home) for words in asked}
        words = [[*words, run.id] for run in all_runs() for words in OF_RUN]
        presets = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml"))
        words += [[*words, name] for name in presets for words in OF_PRESET]
        return found | {" ".join(each): _shown(list(each), home) for each in (*OF_NOTHING, *words)}


def of_logs(*folders: str, commands: tuple[list[str], ...]) -> dict[str, str]:
    """Output for unchanged logs."""
    with _fixed() as home:
        words = [[*words, str(log)] for log in _logs(home, *folders) for words in commands]
        return {_anywhere(" ".join(each), home): _shown(each, home) for each in words}


def of_pages(name: str) -> dict[str, str]:
    """The pages of an imported run as text, by page and size."""
    with _fixed() as home:
        call(["import", str(DATA / "logs" / f"{name}.log.gz")])
        return {key: _anywhere(text, home) for key, text in asyncio.run(_pages()).items()}


def of_starts() -> dict[str, str]:
    """Output of the verbs that start runs, and their files."""
    with _fixed() as home:
        return {key: _anywhere(text, home) for key, text in of_verbs(home, _shown).items()}


PARTS: dict[str, Callable[[], dict[str, str]]] = {
    "runs": of_runs,
    "logs": partial(of_logs, "logs", "frameworks", commands=OF_LOG),
    "failures": partial(of_logs, "failures", commands=OF_FAILURE),
    "verbs": of_starts,
    "consoles": console_rows.diagnoses,
    "bank": rule_runs.bank,
    **{f"pages of {name}": partial(of_pages, name) for name in PAGED},
}
# Compared by a test of its own, which has it at hand.
ELSEWHERE: dict[str, Callable[[], dict[str, str]]] = {"rules": rule_runs.messages}


async def _pages() -> dict[str, str]:
    """Each page, large and small; none if the run has no data for it."""
    app, texts = PpoTui(ScreenRequest(str(all_runs()[0].path))), dict[str, str]()
    async with app.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        dashboard = app.screen
        for page in PAGES:
            with contextlib.suppress(AssertionError):
                await walk(pilot, page, looks=100)
                for size in SIZES:
                    await pilot.resize_terminal(*size)
                    await settled(pilot)
                    texts[f"{page} at {size[0]}x{size[1]}"] = "\n".join(line.rstrip() for line in picture(app))
            await back(pilot, dashboard)
            app.said = None
            app._show_message()
            await pilot.resize_terminal(*SIZES[0])
            await settled(pilot)
    return texts


def main() -> None:
    """Prints the differences from the file, and writes all parts or those given as arguments."""
    before = stored() if STORED.exists() else {}
    now = {part: (PARTS | ELSEWHERE)[part]() for part in sys.argv[1:] or PARTS | ELSEWHERE}
    for part, texts in now.items():
        old = before.get(part, {})
        for key in sorted(old.keys() | texts.keys()):
            lines = old.get(key, "").splitlines(), texts.get(key, "").splitlines()
            for line in difflib.unified_diff(*lines, key, key, lineterm="", n=1):
                print(line)
    STORED.write_bytes(lzma.compress(json.dumps(before | now, indent=0).encode(), preset=9))


if __name__ == "__main__":
    main()
