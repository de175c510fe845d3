"""Runs that readers judge by their metrics before any rule sees them: usual ones, a third with a fault, and failures.

Each row of judged.toml is the exact command of ppo-tui with its plugin, without a supervisor, so that nothing raises a
flag. What comes home of one, in $KIT/results/judged/NAME: command.json (its argv, which names all veRL keys),
metrics.jsonl, the console, and the answers.
"""

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import tomllib
from host import KIT, PPO_TUI, RESULTS, Lane, left, mark, members

PLACES, LEAST = 8, 16  # runs at once on a GPU; steps without which no run makes room for the next one
MOST_GIB = 130.0  # of the GPU for all runs
GIB = {"@grouped": 6.1, "@critic": 7.4, "@toy": 0.0}  # that a run takes, by its first settings
HOST_GB, SPARE_GB, YOUNG = 14, 8, 200.0  # GB of the host: of a run, left to others; seconds in which it takes them
_HERE = Path(__file__).parent
APART = 2.0  # seconds between two starts
CROWDED = 540.0  # seconds before the end from which a run makes room
LATEST = 320.0  # seconds before the end at which the last one begins
STUCK = 480.0  # seconds without a first step
CONSOLE = 900_000  # bytes of a console that come home


@dataclass(frozen=True)
class Row:
    """One run: what is planted in it ("" if it is healthy), or odd about it, and its steps while others wait."""

    name: str
    preset: str
    settings: tuple[str, ...]
    gib: float
    fault: str = ""
    odd: str = ""
    steps: int = 22
    rules: Sequence[str] = ()  # any of these would name the fault, said before the run
    useless: bool = False  # nothing is harmed, and nothing can be learned
    cause: str = ""  # what a line has to name to name the fault, said before the run; "" if no rival fits
    like: str = ""  # the healthy row that it differs from by its fault
    parent: str = ""  # the run that it is the first fix of


def rows(kind: str, file: str = "judged") -> list[Row]:
    """Those of a file for a `gpu`, or for the `toy`; the settings of judged.toml are known to all files."""
    tables = [
        tomllib.loads(_HERE.joinpath(f"{name}.toml").read_text().replace("{KIT}", str(KIT)))
        for name in ("judged", file)
    ]
    table = tables[-1] | {"settings": tables[0]["settings"] | tables[-1]["settings"]}

    def whole(words: Sequence[str]) -> Iterator[str]:
        for word in words:
            yield from whole(table["settings"][word[1:]]) if word[0] == "@" else (word,)

    found = []
    for row in table["rows"][kind]:
        words = row.pop("settings")
        last = {word.partition("=")[0]: word for word in whole(words)}  # a command refuses a field that is set twice
        own = {"preset": "toy-cpu", "steps": 40} if kind == "toy" else {"preset": "gsm8k-format-reward"}
        found.append(Row(**{**own, **row}, settings=tuple(last.values()), gib=GIB[words[0]]))
    return found


class Run:
    """A row that has begun."""

    def __init__(self, row: Row, lane: Lane) -> None:
        self.row, self.lane, self.began = row, lane, time.time()
        self.folder = RESULTS / ("fixes" if row.parent else "judged") / row.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.scratch = KIT / "judged" / row.name
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.id = f"judged-{row.name}"
        self.metrics = self.folder / "metrics.jsonl"
        self._start(lane)
        mark(f"{self.id}: starts")

    def _start(self, lane: Lane) -> None:
        command = self._command(lane)
        own = {"VERL_FILE_LOGGER_PATH": str(self.metrics), "PPO_TUI_RUN": self.id, "PPO_TUI_ATTEMPT": "1"}
        self._describe(command["argv"], env=command["env"])
        with (self.scratch / "console.log").open("wb") as out:
            self.driver = subprocess.Popen(
                command["argv"],
                env={**lane.env(), **command["env"], **own},
                cwd=self.scratch,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _describe(self, argv: Sequence[str], **more: object) -> None:
        about = {**asdict(self.row), "argv": argv, "began": self.began, **more}
        (self.folder / "command.json").write_text(json.dumps(about, indent=1))

    def _command(self, lane: Lane) -> dict[str, Any]:
        """What ppo-tui would run; it writes below the current folder."""
        words = [PPO_TUI, "preset", "show", "--command", self.row.preset, *self.row.settings, "--json"]
        said = subprocess.run(words, env=lane.env(), cwd=self.scratch, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(said.stdout)
        return found

    @property
    def steps(self) -> int:
        with suppress(OSError):
            return sum(1 for line in self.metrics.open("rb") if b"actor/lr" in line or b"critic/score" in line)
        return 0

    @property
    def age(self) -> float:
        return time.time() - self.began

    def over(self, waits: bool) -> bool:
        """Whether it has ended, has no first step, or makes room."""
        enough = LEAST if left() < CROWDED else self.row.steps
        stuck = self.age > STUCK and not self.steps
        return self.driver.poll() is not None or stuck or (waits and self.steps >= enough)

    def end(self) -> None:
        """Ends all its processes and keeps what comes home."""
        exited = self.driver.poll()
        for pid in members(self.id):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.driver.wait(10)
        console = (self.scratch / "console.log").read_bytes()
        kept = console if len(console) <= CONSOLE else console[: CONSOLE // 2] + b"\n[cut]\n" + console[-CONSOLE // 2 :]
        (self.folder / "console.log").write_bytes(kept)
        self._keep(self.scratch.glob("outputs/*/samples/rollout/*.jsonl"), exited)

    def _keep(self, samples: Iterable[Path], exited: int | None) -> None:
        answers = sorted(samples, key=lambda path: int(path.stem))
        with gzip.open(self.folder / "answers.jsonl.gz", "wb") as file:
            file.writelines(path.read_bytes() for path in answers)
        end = {"steps": self.steps, "exited": exited, "seconds": round(self.age)}
        (self.folder / "end.json").write_text(json.dumps(end))
        mark(f"{self.id}: {end}")

    def then(self) -> list[Row]:
        """Rows that follow from how it ended, before all that wait."""
        return []


def judged(gpus: Sequence[int], rows: Sequence[Row], places: int = PLACES, kind: type[Run] = Run) -> None:
    """Conducts the rows on GPUs (none: the CPU) until the time is up, each as another one makes room."""
    lanes, waiting, going = [Lane((gpu,)) for gpu in gpus] or [Lane()], list(rows), list[Run]()
    try:
        while left() > 0 and (waiting or going):
            for run in [each for each in going if each.over(bool(waiting))]:
                going.remove(run)
                _end(run)
                if not run.steps and not run.row.name.endswith("-again") and left() > LATEST:
                    waiting.append(replace(run.row, name=f"{run.row.name}-again"))
                waiting[:0] = run.then()
            if waiting and left() < LATEST:
                mark(f"judged: no time for {[row.name for row in waiting]}")
                waiting.clear()
            lane = min(lanes, key=lambda each: sum(run.lane == each for run in going))
            if waiting and len(going) < places and _room(waiting[0], going, lane):
                _begin(kind, waiting.pop(0), lane, going)
            time.sleep(APART)
    finally:
        for run in going:
            _end(run)
    mark("judged: done")


def _end(run: Run) -> None:
    """Ends a run; what cannot be kept of it ends nothing else."""
    try:
        run.end()
    except OSError as error:
        mark(f"{run.id}: {error}")


def _begin(kind: type[Run], row: Row, lane: Lane, going: list[Run]) -> None:
    """Begins a run; one that ppo-tui refuses ends nothing else."""
    try:
        going.append(kind(row, lane))
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        mark(f"judged-{row.name}: {error} {getattr(error, 'stderr', '')}")


def _room(row: Row, going: Sequence[Run], lane: Lane) -> bool:
    """Whether the GPU and the host have memory for one run more; those that began just now have not taken theirs."""
    if not lane.gpus:
        return True
    young = HOST_GB * sum(run.age < YOUNG for run in going)
    free = psutil.virtual_memory().available / 1e9
    taken = sum(run.row.gib for run in going if run.lane == lane)
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        taken = max(taken, lane.memory() / 1024)
    return free > HOST_GB + young + SPARE_GB and row.gib + taken <= MOST_GIB
