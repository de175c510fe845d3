"""Kills, freezes and stops at random instants, and checks what must hold afterwards; `make torture`.

Each part prints its seed and one row of the table in docs/evidence/reliability.md. A failure prints the folder of its
run, which is kept. The driver of most runs is a script that prints steps as veRL does; `--real N` adds runs of toy-cpu.
"""

import argparse
import contextlib
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from launcher.preset.translate import Launch
from launcher.record.attempt import Exit
from launcher.record.events import LevelChange, read_events
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, create
from launcher.record.levels import Level
from launcher.record.process import run_processes
from launcher.record.state import RunState, current
from launcher.runs.act.stop import stop
from launcher.runs.supervise.spawn import kept, spawn_supervisor, write_launch
from launcher.runs.watch.steps import steps

LOG = Path(__file__).parents[1] / "tests" / "data" / "logs" / "cpu-toy.log.gz"
PPO_TUI = [sys.executable, "-m", "ppo_tui"]
STEPS = 30
AT_ONCE = 4  # runs
until = time.monotonic() + 840  # no new try begins then
LIMIT = 120.0  # seconds in which a run must have come to its end
# A child of its own session that ignores SIGTERM; steps; then the end: finished, an exception, or none.
DRIVER = """
import os, signal, subprocess, sys, time
pause, end = float(sys.argv[1]), sys.argv[2]
ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(900)"
subprocess.Popen([sys.executable, "-S", "-c", ignore], start_new_session=True)
if end == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("Total training steps: 30", flush=True)
with open(os.environ["VERL_FILE_LOGGER_PATH"], "ab", buffering=0) as file:
    for step in range(1, 31):
        time.sleep(pause)
        loss = "nan" if step == 7 else "0.1"
        print(f"step:{step} - critic/score/mean:0.5 - actor/pg_loss:{loss} - training/global_step:{step}", flush=True)
        metrics = '"critic/score/mean": 0.51234, "actor/pg_loss": %s' % ("null" if step == 7 else "0.11111")
        file.write(('{"step": %d, "data": {%s}}\\n' % (step, metrics)).encode())
if end == "raise":
    raise ValueError("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
while end in ("stubborn", "waits"):
    time.sleep(1)
"""


def start(end: str, pause: float) -> RunDir:
    """Starts a run with a supervisor of its own."""
    run, now = create(end), time.time()
    RunInfo(run.id, end, now).write(run.run_yaml)
    attempt = run.add_attempt()
    launch = Launch(
        argv=[sys.executable, "-S", "-c", DRIVER, str(pause), end],
        env={"VERL_FILE_LOGGER_PATH": str(attempt.metrics)},
        unset=[],
        keys={"trainer.logger": ["console", "file"]},
    )
    write_launch(run, attempt, launch, created=now, run_created=now)
    spawn_supervisor(run)
    return run


def wait(run: RunDir, good: Callable[[RunState], bool]) -> RunState:
    deadline = time.monotonic() + LIMIT
    while not good(state := kept(run)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return state


def ended(state: RunState) -> bool:
    return not state.live and state.driver_alive is None


def wrong(run: RunDir, expected: str) -> list[str]:
    """The violated conditions of an ended run."""
    state, found = current(run), [record for _, record in steps(run)]
    changes = [e.what for e in read_events(run.events) if isinstance(e.what, LevelChange) and e.what.rule == "NUM-1"]
    flags = Counter(change.after for change in changes)
    checks = {
        f"state {state.state}": state.state == expected,
        f"steps {[record.step for record in found]}": [record.step for record in found] == [*range(1, STEPS + 1)],
        "metrics": all(record.data.get("critic/score/mean") == 0.51234 for record in found),
        "times": [record.t for record in found] == sorted(record.t for record in found),
        f"flags of NUM-1 {flags}": flags[Level.CRITICAL] == 1,
        f"processes {run_processes(run.id)}": not run_processes(run.id),
        "exit.json": Exit.read(run.attempt(1).exit) is not None,
    }
    return [name for name, holds in checks.items() if not holds]


def kills(chance: random.Random, many: int) -> tuple[int, list[str]]:
    """SIGKILL of supervisors, up to four per run, while screens and commands look at it, which are also killed."""
    return _side_by_side(_killed_run, chance, many, 3)


def _side_by_side(
    part: Callable[[random.Random], tuple[int, list[str]]], chance: random.Random, many: int, each: int
) -> tuple[int, list[str]]:
    """Runs several parts in parallel until the tries or the time are used up; `each` makes about so many tries."""
    done, failures = 0, list[str]()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while done < many and time.monotonic() < until:
            batch = [random.Random(chance.random()) for _ in range(min(AT_ONCE, -(-(many - done) // each)))]
            for tries, found in pool.map(part, batch):
                done += tries
                failures += found
    return done, failures


def _killed_run(chance: random.Random) -> tuple[int, list[str]]:
    end, expected = chance.choice((("finish", "finished"), ("raise", "failed")))
    run, done = start(end, chance.uniform(0.05, 0.3)), 0
    for _ in range(chance.randint(2, 5)):
        time.sleep(chance.uniform(0.0, 2.0))
        now = current(run, checks=False)
        if not now.live or now.supervisor is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(now.supervisor.pid, signal.SIGKILL)
            done += 1
        if chance.random() < 0.3:
            time.sleep(chance.uniform(0.0, 3.0))  # the driver may end meanwhile
        if chance.random() < 0.3:
            killed_screen(chance, run)
            done += 1
        elif chance.random() < 0.3:
            subprocess.run([*PPO_TUI, "runs"], check=True, capture_output=True)
        else:
            kept(run)
    wait(run, ended)
    found = wrong(run, expected)
    return done, [f"{run.path}: {'; '.join(found)}"] if found else []


def killed_screen(chance: random.Random, run: RunDir) -> None:
    master, slave = pty.openpty()
    screen = subprocess.Popen(
        [*PPO_TUI, "attach", run.id],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(slave)
    threading.Thread(target=_swallow, args=(master,), daemon=True).start()
    time.sleep(chance.uniform(0.5, 4.0))
    screen.kill()
    screen.wait()


def _swallow(master: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(master, 1 << 16):
            pass
    os.close(master)


def stops(chance: random.Random, many: int) -> tuple[int, list[str]]:
    """Stops of drivers that ignore SIGTERM or not, whose supervisor lives, was killed, or is frozen."""
    return _side_by_side(_stopped_run, chance, many, 1)


def _stopped_run(chance: random.Random) -> tuple[int, list[str]]:
    run = start(chance.choice(("stubborn", "waits")), 0.01)
    state = wait(run, lambda state: state.driver is not None)
    time.sleep(chance.uniform(0.0, 1.0))
    what = chance.choice((signal.SIGKILL, signal.SIGSTOP, 0))
    if state.supervisor is not None:
        os.kill(state.supervisor.pid, what)
    stop(run, by="torture", wait=True)
    state, left = wait(run, ended), run_processes(run.id)
    return 1, [f"{run.path}: {state.state} after {what!r}, left: {left}"] if state.state != "stopped" or left else []


def starts(chance: random.Random, many: int) -> tuple[int, list[str]]:
    """Starts that are killed at any instant: afterwards the run is listed and ends, or does not exist."""
    for _ in range(many):
        begun = subprocess.Popen(
            [*PPO_TUI, "replay", str(LOG), "--speed", "1000", "--detach"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(0.3, 2.5))
        begun.kill()
        begun.wait()
    runs = Path(os.environ["PPO_TUI_HOME"]) / "runs"
    for path in runs.glob(".new-*"):
        os.utime(path, (1e9, 1e9))  # the next start removes what is old
    create("sweeps")
    shown = {run.path for run in all_runs()}
    hidden = [path for path in runs.iterdir() if path not in shown]
    failures = [f"{path}: not listed" for path in hidden if not path.name.endswith("-sweeps")]
    time.sleep(31)  # a queued run may lack a supervisor for so long
    for run in all_runs():
        if "replay" in run.id and not ended(wait(run, ended)):
            failures.append(f"{run.path}: no end")
    return many, failures


def full_disk(chance: random.Random, many: int) -> tuple[int, list[str]]:
    """A disk that is full for some seconds in the middle of a run."""
    failures = []
    for _ in range(many):
        if time.monotonic() > until:
            return _, failures
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False).returncode:
                return 0, []  # not allowed here
            home, os.environ["PPO_TUI_HOME"] = os.environ["PPO_TUI_HOME"], folder
            try:
                run = start("finish", 0.2)
                wait(run, lambda state: state.step is not None)
                fill = Path(folder) / "fill"
                with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
                    while file.write(b"x" * 512):
                        pass
                time.sleep(chance.uniform(1.0, 3.0))
                fill.unlink()
                wait(run, ended)
                found = [record.step for _, record in steps(run)]
                if current(run).state not in ("finished", "failed") or found != sorted(set(found)):
                    failures.append(f"full disk: {current(run).state}, steps {found}")
                os.sync()
            finally:
                os.environ["PPO_TUI_HOME"] = home
                time.sleep(1.0)
                subprocess.run(["umount", "-l", folder], check=False)
    return many, failures


def real(chance: random.Random, many: int) -> tuple[int, list[str]]:
    """Real runs of toy-cpu, whose supervisor is killed every few seconds."""
    failures, done = [], 0
    for _ in range(many):
        begun = subprocess.run(
            [*PPO_TUI, "run", "toy-cpu", "trainer.steps=20", "--detach"], check=True, capture_output=True, text=True
        )
        run = RunDir(Path(os.environ["PPO_TUI_HOME"]) / "runs" / begun.stdout.strip())
        deadline = time.monotonic() + 900
        while (state := kept(run, checks=False)).live and time.monotonic() < deadline:
            time.sleep(chance.uniform(2.0, 30.0))
            if state.supervisor is not None and state.supervisor.alive():
                os.kill(state.supervisor.pid, signal.SIGKILL)
                done += 1
        state = wait(run, ended)
        found = [record.step for _, record in steps(run)]
        if (state.state, found) != ("finished", [*range(found[0], (state.total or 0) + 1)]) or run_processes(run.id):
            failures.append(f"{run.path}: {state.state}, steps {found}")
    return done, failures


PARTS = {
    "kills": (kills, "SIGKILL of supervisors, and of screens that look at them: every step once, flags, end", 200),
    "stops": (stops, "`stop` with setsid grandchildren and ignorers of SIGTERM; supervisor alive, killed, frozen", 30),
    "starts": (starts, "starts killed at any instant: listed and brought to an end, or gone", 30),
    "full": (full_disk, "a tmpfs that is full for seconds in the middle of a run", 5),
    "real": (real, "SIGKILL of the supervisor of a real run of toy-cpu", 1),
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=[*PARTS], choices=[*PARTS, []])
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of tries")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    os.environ["PPO_TUI_HOME"] = str(folder)
    failed = 0
    print("| what | tries | failed | seconds | seed |\n| --- | --- | --- | --- | --- |", flush=True)
    for name in asked.parts:
        part, words, many = PARTS[name]
        begun = time.monotonic()
        tries, failures = part(random.Random(asked.seed), max(1, round(many * asked.share)))
        seconds = time.monotonic() - begun
        print(f"| {words} | {tries} | {len(failures)} | {seconds:.0f} | {name} {asked.seed} |", flush=True)
        for failure in failures:
            print(f"failed: {failure}", file=sys.stderr, flush=True)
        failed += len(failures)
    if not failed:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
