"""The measured programs, each on the same metrics, and the ways to a terminal."""

import compileall
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from meter import Meter

from launcher.core.paths import cache_dir
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import create
from launcher.record.state import current
from launcher.runs.supervise.spawn import spawn_supervisor, write_launch

FEEDS = Path(__file__).parent / "feeds"
ROOT = Path(__file__).parents[2]
Size = tuple[int, int]
_CACHE = cache_dir() / "bench"  # before the runs of the bench move elsewhere


@dataclass(frozen=True)
class Subject:
    """A program: its command, and a text that shows a painted metric."""

    name: str
    command: list[str]
    mark: str


@contextlib.contextmanager
def ours(go: Path, scratch: Path) -> Iterator[Subject]:
    """ppo-tui on a run with its real supervisor, whose driver prints the metrics."""
    from launcher.runs.act.stop import stop

    for package in ("launcher", "tui"):  # as an installation does, and PYTHONDONTWRITEBYTECODE does not
        compileall.compile_dir(ROOT / package, quiet=1)
    os.environ["PPO_TUI_HOME"] = str(scratch)
    run = create("bench")
    attempt = run.add_attempt()
    now = time.time()
    driver = [sys.executable, "-u", str(FEEDS / "driver.py"), str(go)]
    keys = {"trainer.total_training_steps": 1400, "trainer.device": "cuda"}
    launch = Launch(argv=driver, env={"VERL_FILE_LOGGER_PATH": str(attempt.metrics)}, unset=[], keys=keys)
    RunInfo(run.id, "bench", now, argv=tuple(driver)).write(run.run_yaml)
    write_launch(run, attempt, launch, created=now, run_created=now)
    spawn_supervisor(run)
    try:
        while (current(run).step or 0) < 1000:
            time.sleep(0.2)
        command = [str(Path(sys.executable).with_name("ppo-tui")), "attach", run.id]
        yield Subject("ppo-tui", command, "step 1")
    finally:
        stop(run, wait=True)


@contextlib.contextmanager
def leet(go: Path, scratch: Path) -> Iterator[Subject]:
    """W&B leet on the file that wandb writes at the same time."""
    python = _environment("wandb")
    feed = subprocess.Popen(
        [python, FEEDS / "wandb_feed.py", go, scratch],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert feed.stdout is not None
        run = feed.stdout.readline().strip()
        if not run:
            raise RuntimeError("wandb did not write the metrics")
        name = f"W&B leet {_version(python, 'wandb')}"
        yield Subject(name, [str(python.with_name("wandb")), "leet", "run", run], "actor/")
    finally:
        os.killpg(feed.pid, 15)
        feed.wait()


@contextlib.contextmanager
def textual_plot(go: Path, scratch: Path) -> Iterator[Subject]:
    """Four charts with textual-plot, which generates its metrics while it runs."""
    python = _environment("textual-plot")
    name = f"textual-plot {_version(python, 'textual-plot')}"
    yield Subject(name, [str(python), str(FEEDS / "plot_app.py"), str(go)], "1200")


def _environment(package: str) -> Path:
    """The Python of a peer's own environment; made once, kept in the cache."""
    python = _CACHE / package / "bin" / "python"
    done = python.parent / ".installed"
    if not done.exists():
        print(f"installing {package} into an environment of its own", file=sys.stderr)
        folder = python.parent.parent
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", package]
        subprocess.run(pip, check=True, stdout=sys.stderr, timeout=180)
        done.touch()
    return python


def _version(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A user's environment with a good terminal and default settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL_", "TMUX", "SSH_"))}
    return kept | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **(more or {})}


@contextlib.contextmanager
def plain(command: list[str], size: Size) -> Iterator[Meter]:
    """The program directly on the terminal, as through ssh."""
    meter = Meter(command, environment(), size)
    try:
        yield meter
    finally:
        meter.close()


@contextlib.contextmanager
def tmux(command: list[str], size: Size) -> Iterator[Meter]:
    """The program inside tmux: the bytes that tmux sends."""
    server = ["tmux", "-L", f"bench{os.getpid()}", "-f", "/dev/null"]
    columns, rows = map(str, size)
    inside = [*server, "new-session", "-x", columns, "-y", rows, *command, ";", "set", "-g", "status", "off"]
    meter = Meter(inside, environment(), size)
    try:
        meter.seen += meter.read(0.5)
        yield meter
    finally:
        subprocess.run([*server, "kill-server"], capture_output=True, check=False)
        meter.close()


@contextlib.contextmanager
def mosh(command: list[str], size: Size) -> Iterator[Meter]:
    """The program behind mosh, with both ends local: the bytes that its client writes to the terminal."""
    told = subprocess.run(
        ["mosh-server", "new", "-i", "127.0.0.1", "-c", "256", "-l", "LANG=C.UTF-8", "--", *command],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    words = told.stdout + told.stderr
    port, key = re.findall(r"MOSH CONNECT (\d+) (\S+)", words)[0]
    server = int(re.findall(r"pid = (\d+)", words)[0])
    meter = Meter(["mosh-client", "127.0.0.1", port], environment({"MOSH_KEY": key}), size)
    try:
        yield meter
    finally:
        meter.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, 15)
