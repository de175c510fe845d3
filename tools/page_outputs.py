"""What the commands of the pages print: `make docs-record` writes it below them, and a test compares it.

A block of `sh` in README.md or docs/ is run, in a folder of the page; the `output` block after it has what it printed.
Comments before the two say more:

    <!-- needs: a GPU; no record -->    is not run, and why nothing is shown
    <!-- prints: ppo-tui status 6c84 --> is not run; what this command prints is shown, on recorded runs
    <!-- toy -->                        trains the toy: minutes; the numbers differ from machine to machine
    <!-- numbers -->                    the numbers are those of the machine
    <!-- before: COMMAND -->            is run first, unseen
    <!-- show: 3 | MEMORY 5 | -1 -->    the first three lines, five from the first with `MEMORY`, the last
    <!-- logs: learning -->             recorded logs for the whole page, which also has the blocks that it calls `FILE`

⋮ stands for lines that are left out, and for the rest of a line of more than 100 columns; a fix is wrapped.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from caches import share
from console_logs import stored
from doc_pages import DOCS, PAGES, README, ROOT, Block, blocks

RUN_IN = ("index.md", "start", "howto", "tutorials")
CUT, WIDE = "⋮", 100
PROGRESS = "checking: "  # lines of a preflight that are out of date when it has ended
ARCHIVES = ("gpu/runs", "gpu/list-numbers", "gpu/sums", "stalls/reward-run")
RECORDED = [ROOT / "tests/data" / f"{name}.tar.xz" for name in ARCHIVES]
_CHANGES = [  # what differs from run to run
    (r"\b[0-9a-f]{6}\b|(?<=· )[0-9a-f]{4}\b", "ID"),
    (r"\d{4}-\d\d-\d\d", "DATE"),
    (r"\b\d\d:\d\d(:\d\d)?\b", "TIME"),
    (r"\b(\d+h )?(\d+m )?\d+(\.\d+)? ?(ms|s|min|m|h)\b", "DURATION"),
    (r"\bpid \d+", "pid N"),
    (r" ETA .*", ""),
]
_BUSY = " waits in the queue "  # of a line that only a busy machine prints
_NUMBERS = (r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", "N")


@dataclass(frozen=True)
class Shown:
    """A block of commands with the displayed part of its output."""

    block: Block
    output: Block | None

    @property
    def shown(self) -> list[str]:
        """The lines on the page."""
        return self.output.text.splitlines() if self.output else []

    @property
    def on_toy(self) -> bool:
        return "toy" in self.block.marks

    @property
    def runs(self) -> str | None:
        """The commands to run, or None if not possible."""
        if "needs" in self.block.marks:
            return None
        return self.block.marks.get("prints", self.block.text)

    def cut(self, printed: list[str]) -> list[str]:
        """The lines on the page, out of the printed ones."""
        return [piece for line in self._kept(printed) for piece in fitted(line)]

    def _kept(self, printed: list[str]) -> list[str]:
        if "show" not in self.block.marks:
            return printed
        kept, end = [], 0
        for part in self.block.marks["show"].split("|"):
            start, count = part.strip().rpartition(" ")[::2]
            places = range(end, len(printed)) if int(count) > 0 else [len(printed) + int(count)]
            first = next((n for n in places if start in printed[n]), None)
            assert first is not None, f"{start!r} is not printed:\n" + "\n".join(printed)
            kept += [CUT] if first > end else []
            end = first + abs(int(count))
            kept += printed[first:end]
        return kept + [CUT] * (end < len(printed))

    def normal(self, lines: list[str]) -> list[str]:
        """Lines without differences between runs."""
        return normal(lines, numbers=bool({"toy", "numbers"} & set(self.block.marks)))


def fitted(line: str) -> list[str]:
    """The line as wide as a page: a fix on several lines, of another one its beginning."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    if line.lstrip().startswith("fix:"):
        return textwrap.wrap(line, WIDE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line if len(line) <= WIDE else f"{line[: WIDE - 1]}{CUT}"]


def normal(lines: list[str], *, numbers: bool) -> list[str]:
    """Lines without ids, dates, times, waits and, with `numbers`, other numbers; of a cut line its beginning."""
    found = [" ".join(line.split()) for line in lines if _BUSY not in line]
    for pattern, word in [*_CHANGES, *[_NUMBERS] * numbers]:
        found = [re.sub(pattern, word, line) for line in found]
    return [line[: WIDE // 2] if line.endswith(CUT) else line for line in found]


def shown(page: Path) -> Iterator[Shown]:
    """The command blocks of a page, in order."""
    for block, after in pairwise([*blocks(page), None]):
        if block and block.language == "sh" and not block.saved_as:
            yield Shown(block, after if after and after.language == "output" else None)


def with_commands() -> list[Path]:
    """The pages with executed blocks."""
    found = [README, *(page for page in PAGES if page.relative_to(DOCS).parts[0] in RUN_IN)]
    return [page for page in found if any(each.runs for each in shown(page))]


def follow(page: Path, folder: Path, toy: Path | None = None) -> Iterator[tuple[Shown, list[str]]]:
    """Runs a page's blocks like a reader, those on the toy if its cache is given; yields the output to show."""
    for log in re.findall(r"<!-- logs: (.*) -->", page.read_text("utf-8")):
        for each in log.split():
            (folder / f"{each}.log").write_bytes(stored(each))
    save(page, folder)
    home, records = folder / "home", folder / "recorded"
    if toy is not None:
        shutil.copytree(toy, home / "cache", symlinks=True)
    else:
        share(home, Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))
    for each in shown(page):
        if each.runs and (toy or not each.on_toy):
            if "before" in each.block.marks:
                printed(each.block.marks["before"], folder, home)
            if "prints" in each.block.marks and not records.exists():
                for archive in RECORDED:
                    with tarfile.open(archive) as tar:
                        tar.extractall(records, filter="data")
            yield each, each.cut(printed(each.runs, folder, records if "prints" in each.block.marks else home))


def save(page: Path, folder: Path) -> None:
    """Writes the files that the reader should save."""
    for block in blocks(page):
        if block.saved_as:
            (folder / block.saved_as).write_text(block.text + "\n", "utf-8")


def printed(commands: str, folder: Path, home: Path, columns: int = 100) -> list[str]:
    """Their output in a terminal of this width."""
    environment = {**os.environ, "PPO_TUI_HOME": str(home), "HOME": str(folder), "COLUMNS": str(columns)}
    environment.pop("PYTHONPATH", None)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(["bash", "-c", commands], cwd=folder, env=environment, check=False, **streams)
    text = done.stdout.decode("utf-8", "replace")
    assert "Traceback" not in text, text
    for path, name in ((home, "~/.local/share/ppo-tui"), (folder, "~"), (ROOT, "~/ppo-tui")):
        text = text.replace(str(path), name)
    return [line.rstrip() for line in text.splitlines() if not line.startswith(PROGRESS)]


def recorded(page: Path, folder: Path, toy: Path | None) -> str:
    """The page with its commands' current output."""
    text = page.read_text("utf-8")
    for each, lines in reversed(list(follow(page, folder, toy))):
        if each.normal(each.shown) == each.normal(lines):
            continue
        indent, end = each.block.indent, each.block.end
        body = "".join(f"{indent}{line}".rstrip() + "\n" for line in ("```output", *lines, "```"))
        text = text[:end] + (f"\n\n{body}".rstrip() if lines else "") + text[each.output.end if each.output else end :]
    return text


def record(names: list[str], toy: Path | None) -> None:
    """Writes the outputs into pages whose names contain one of these parts, or into all."""
    for page in with_commands():
        name = str(page.relative_to(ROOT))
        if names and not any(each in name for each in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            text = recorded(page, Path(folder), toy)
        if text != page.read_text("utf-8"):
            page.write_text(text, "utf-8")
            print(name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="parts of the names of pages, such as howto/fix; all if none is named")
    parser.add_argument("--toy", action="store_true", help="also those that train the toy")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if arguments.toy:
            command = [sys.executable, "-m", "launcher.cli.main", "data", "toy"]
            subprocess.run(command, env={**os.environ, "PPO_TUI_HOME": home}, check=True)
        record(arguments.names, Path(home, "cache") if arguments.toy else None)


if __name__ == "__main__":
    main()
