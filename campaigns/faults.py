"""Fails every change of the disk that an operation makes, one by one, and kills the process there; `make faults`.

`fault_calls.py` traces the system calls, so a call that is new in the code is a point by itself. At each point the call
fails with ENOSPC or EIO, or the process dies before it, or in the middle of a write. Then the stores must open, hold
the old or the new state, have nothing else lost, and the operation, repeated, must end in the new state.
`faults_operations.py` has the operations.
"""

import argparse
import errno
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from fault_calls import calls, listen, release

FAULTS = ("ENOSPC", "EIO", "SIGKILL", "half")  # half: SIGKILL after the first half of a write
_CRASH = 70  # exit code of an exception that nobody caught


@dataclass(frozen=True)
class Operation:
    """`prepare` makes the old state, `act` is traced; `view` is all content of the stores, as JSON.

    `between`: whether a third state is right, for operations on many files. `after`: whether one is right after
    reported success, or a repetition. `verl`: requires veRL.
    """

    name: str
    prepare: Callable[[], object]
    act: Callable[[], object]
    between: Callable[[Any, Any, Any], bool] = lambda old, new, now: False
    after: Callable[[Any, Any, Any], bool] = lambda old, new, now: bool(now == new)
    verl: bool = False


class Ended(NamedTuple):
    """A traced process: its changes (`openat presets/x.yaml`), exit code and output."""

    changes: list[str]
    code: int
    output: str


@dataclass
class Campaign:
    """The points of operations in a folder; `lost` has a line per point with a loss."""

    folder: Path
    view: Callable[[], Any]
    tried: int = 0
    lost: list[str] = field(default_factory=list)
    prepared: dict[Callable[[], object], tuple[Path, Any]] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def go(self, operation: Operation, chance: random.Random, share: float) -> None:
        """Tries this share of the points of an operation, at least one."""
        old = self._old(operation.prepare)
        whole = self.run(operation.act, trace=True)
        assert whole.code == 0 and whole.changes, whole.output
        new = self.look(), files(self.root)
        assert old != new, f"{operation.name} changes nothing"
        points = [
            (number, fault)
            for number, change in enumerate(whole.changes, 1)
            for fault in FAULTS[: 4 if change.startswith("write ") else 3]
        ]
        for number, fault in sorted(chance.sample(points, max(1, round(share * len(points))))):
            self._old(operation.prepare)
            self.tried += 1
            words = f"{operation.name}, {fault} at {number} of {len(whole.changes)} ({whole.changes[number - 1]})"
            self.lost += [f"{words}: {wrong}" for wrong in self._point(operation, number, fault, old, new)]

    def _old(self, prepare: Callable[[], object]) -> Any:
        """Makes the old state; returns the stores' content, and the files."""
        shutil.rmtree(self.root, ignore_errors=True)
        if prepare not in self.prepared:
            (self.root / "tmp").mkdir(parents=True)
            done = self.run(prepare)
            assert done.code == 0, done.output
            copy = self.folder / f"before-{len(self.prepared)}"
            self.prepared[prepare] = copy, (self.look(), files(self.root))
            shutil.copytree(self.root, copy, symlinks=True)
        else:
            shutil.copytree(self.prepared[prepare][0], self.root, symlinks=True)
        return self.prepared[prepare][1]

    def _point(self, operation: Operation, number: int, fault: str, old: Any, new: Any) -> Iterator[str]:
        done = self.run(operation.act, trace=True, number=number, fault=fault)
        if len(done.changes) < number:  # threads: a supervisor writes more often on a slow machine
            self.tried -= 1
            return
        if fault in ("ENOSPC", "EIO"):
            said = any(words in done.output for words in ("error: ", os.strerror(getattr(errno, fault))))
            if done.code and (done.code == _CRASH or not said):
                yield f"exit {done.code} without an error for the user: {done.output[-600:]}"
        elif done.code != -signal.SIGKILL:
            yield f"exit {done.code}"
        now = self.look()
        if now not in (old[0], new[0]) and not operation.between(old[0], new[0], now):
            yield f"neither old nor new: {difference(old[0], now)}"
        elif done.code == 0 and not operation.after(old[0], new[0], now):
            yield f"said to be done, but {difference(new[0], now)}"
        yield from _gone(old[1], new[1], files(self.root))
        if now != new[0]:
            again = self.run(operation.act)
            if not operation.after(old[0], new[0], now := self.look()):
                yield f"repeated, exit {again.code}: {difference(new[0], now)} {again.output[-600:]}"

    def look(self) -> Any:
        """The stores' content, read by a new process."""
        done = self.run(lambda: print(json.dumps(self.view(), default=str)))
        return json.loads(done.output) if done.code == 0 else f"does not open: {done.output[-1500:]}"

    def run(self, act: Callable[[], object], *, trace: bool = False, number: int = 0, fault: str = "") -> Ended:
        """Runs a function in a separate process. With `trace`, change `number` gets the fault."""
        ours, theirs = socket.socketpair()
        output, modules = self.folder / "output", self.folder / "modules"
        if modules.exists():  # the next process need not import what the last one did
            for name in json.loads(modules.read_text()):
                with suppress(Exception):
                    import_module(name)
        if (child := os.fork()) == 0:
            self._child(act, output, theirs if trace else None)
        theirs.close()
        changes: list[str] = []
        listener = socket.recv_fds(ours, 1, 1)[1][0] if trace else None
        ours.close()
        for call in calls(listener, child, self.root) if listener is not None else ():
            changes.append(f"{call.name} {call.path.relative_to(self.root)}")
            call.answer(fault if len(changes) == number else "")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if listener is not None:
            release(listener)
        return Ended(changes, code, output.read_text(errors="replace"))

    def _child(self, act: Callable[[], object], output: Path, traced: socket.socket | None) -> None:
        code, known = 0, set(sys.modules)
        try:
            file = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), file, file)):
                os.dup2(descriptor, number)
            os.chdir(self.root)
            os.environ |= {"PPO_TUI_HOME": str(self.root / "home"), "HOME": str(self.root)}
            tempfile.tempdir = str(self.root / "tmp")
            if traced is not None:
                socket.send_fds(traced, [b"1"], [listen()])
            act()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
            code = _CRASH
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            (self.folder / "modules").write_text(json.dumps([*sys.modules.keys() - known]))
        os._exit(code)


def files(root: Path) -> dict[str, bytes]:
    """The content of every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _gone(old: dict[str, bytes], new: dict[str, bytes], now: dict[str, bytes]) -> Iterator[str]:
    """Yields the files outside of the operation that changed, and visible unfinished ones."""
    for name, content in old.items():
        if new.get(name) == content and now.get(name) != content:
            yield f"{name} is {'changed' if name in now else 'gone'}"
    for name in now.keys() - old.keys() - new.keys():
        if not any(part.startswith(".") for part in Path(name).parts) and not name.startswith("tmp/"):
            yield f"{name} is left"


def both(old: Any, new: Any, now: Any) -> bool:
    """Whether an intermediate state is complete: everything old, and a part of the new."""
    if now in (old, new):
        return True
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(now, dict):
        known = old.keys() <= now.keys() <= old.keys() | new.keys()
        return known and all(both(old.get(key), new.get(key), now[key]) for key in now)
    every = isinstance(old, list) and isinstance(new, list) and isinstance(now, list)
    return every and all(item in now for item in old) and all(item in [*old, *new] for item in now)


def difference(one: Any, other: Any, place: str = "") -> str:
    """The first place where two JSON values differ."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = dict(enumerate(one)), dict(enumerate(other))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *other]:
            if one.get(key) != other.get(key):
                return difference(one.get(key), other.get(key), f"{place}.{key}")
    return f"{place} {json.dumps(one)[:100]} -> {json.dumps(other)[:1000]}"


def main() -> int:
    from faults_operations import OPERATIONS, view

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="operations (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the points")
    parser.add_argument("--part", default="0/1", help="every second operation, from the first one: 0/2")
    asked = parser.parse_args()
    chance, failed = random.Random(asked.seed), 0
    print("| operation | points | lost | seconds |\n| --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        campaign = Campaign(Path(folder).resolve(), view)
        first, every = map(int, asked.part.split("/"))
        for operation in OPERATIONS[first::every]:
            if (operation.verl and find_spec("verl") is None) or (asked.names and operation.name not in asked.names):
                continue
            campaign.tried, campaign.lost, begun = 0, [], time.monotonic()
            campaign.go(operation, chance, asked.share)
            seconds = time.monotonic() - begun
            print(f"| {operation.name} | {campaign.tried} | {len(campaign.lost)} | {seconds:.0f} |", flush=True)
            print(*(f"lost: {line}\n" for line in campaign.lost), end="", file=sys.stderr, flush=True)
            failed += len(campaign.lost)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
