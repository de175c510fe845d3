"""The settings of tests/data/preflight/held_out.yaml before the preflight and before veRL: precision and recall.

    .venv/bin/python tests/support/held_out.py [WORD ...]

Asks both about each setting whose name has all words, in the order of a hash of their names, and prints a line for
each and the totals so far. One process imports veRL and its copies are asked, since an import takes ten seconds: the
preflight's scripts run in them too. An entry says what veRL does where the probe cannot know it (`verl`, and `by`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import runpy
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import held_out_probe
import verl_probe
from corpus import Case
from held_out_files import make

from launcher import paths
from launcher.data import toy
from launcher.errors import UserError
from launcher.preflight import worker
from launcher.preflight.checks import report

FILE = Path(__file__).parents[1] / "data" / "preflight" / "held_out.yaml"
DEEP = ("names", "lengths", "batches", "parallel", "checkpoints")  # these reach the models, the others end before
LIMIT = 900.0  # seconds, on a machine that has other work
Answer = dict[str, Any]


@dataclass(frozen=True)
class HeldOut:
    """`right`: meant as unusual and legitimate. `verl`: `runs` or `fails`, where the probe does not know."""

    what: str
    set: list[str]
    on: str = "toy-cpu"
    machine: str = ""
    right: bool = False
    verl: str = ""
    by: str = ""
    first: str = ""
    """found, missed, false or passed, before any rule was changed for these settings."""

    def settings(self, folder: Path) -> list[str]:
        return [word.replace("HELD", str(folder)) for word in self.set]

    @property
    def name(self) -> str:
        return " ".join([self.on, *self.set])


def cases() -> list[HeldOut]:
    from ruamel.yaml import YAML

    found: list[dict[str, Any]] = YAML(typ="safe").load(FILE.read_text("utf-8"))
    return sorted((HeldOut(**entry) for entry in found), key=lambda case: hashlib.sha256(case.name.encode()).digest())


def errors(case: HeldOut, folder: Path) -> list[str]:
    """Rule and message of each error of `ppo-tui check` that the preset alone does not have on this machine."""
    own = _errors(case.on, (), case.machine)
    return [said for said in _errors(case.on, tuple(case.settings(folder)), case.machine) if said not in own]


@functools.cache
def _errors(preset: str, settings: tuple[str, ...], machine: str) -> list[str]:
    try:
        found = report(preset, settings, assume=machine or None).findings
    except UserError as refused:
        return [f"PRESET {refused}"]
    return [f"{finding.id} {finding.message}" for finding in found if finding.level == "error"]


def verl(case: HeldOut, folder: Path, model: Path) -> Answer:
    """Where veRL stops, and with which words; None twice when it does not."""
    overrides = Case(on=case.on, set=case.settings(folder)).overrides()

    def work(out: TextIO) -> None:
        os.environ["MASTER_PORT"] = str(verl_probe._free_port())
        held_out_probe.install(deep=case.what in DEEP)
        json.dump(verl_probe.stages(overrides, model), out)

    return in_a_copy(work) or {"stage": "ended", "error": "the process ended or hung"}


def ask(
    _: str, script: str, request: Mapping[str, Any], *, timeout: float, env: Mapping[str, str] | None = None
) -> Answer:
    """As `worker.ask`, in a copy of this process."""

    def work(out: TextIO) -> None:
        os.environ.update(env or {})
        with tempfile.TemporaryFile("w+") as given:
            json.dump(request, given)
            given.seek(0)
            os.dup2(given.fileno(), 0)
            os.dup2(out.fileno(), 1)
            sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
            path = str(Path(worker.__file__).with_name(script))
            sys.argv = [path]
            runpy.run_path(path, run_name="__main__")
            sys.stdout.flush()

    return in_a_copy(work) or {"failed": "it ended or hung"}


def in_a_copy(work: Callable[[TextIO], None]) -> Answer | None:
    with tempfile.TemporaryFile("w+") as out:
        pid = os.fork()
        if not pid:
            code = 1
            with contextlib.suppress(BaseException):
                os.chdir("/")
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 2)
                os.dup2(null, 1)
                work(out)
                out.flush()
                code = 0
            os._exit(code)
        end = time.monotonic() + LIMIT
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        out.seek(0)
        with contextlib.suppress(ValueError):
            found: Answer = json.load(out)
            return found
    return None


def main() -> None:
    from hydra import initialize_config_dir

    wanted = [case for case in cases() if all(word in case.name for word in sys.argv[1:])]
    toy.ensure(progress=print)
    worker.ask = ask
    held_out_probe.warm()
    counts = dict.fromkeys(("found", "missed", "false", "passed"), 0)
    with tempfile.TemporaryDirectory() as held, tempfile.TemporaryDirectory() as tree:
        folder, model = Path(held), Path(tree)
        make(folder, paths.cache_dir() / "toy" / "data" / "train.parquet")
        verl_probe.model_folder(model)
        verl_probe.whole_tree(tree)
        with initialize_config_dir(tree, version_base=None):
            for case in wanted:
                said, answer = errors(case, folder), verl(case, folder, model)
                fails = case.verl == "fails" if case.verl else answer["stage"] is not None
                kind = ("found" if said else "missed") if fails else ("false" if said else "passed")
                counts[kind] += 1
                why = case.by or f"{answer['stage']}: {' '.join((answer['error'] or '').split())[:300]}"
                print(f"{kind:7} {case.name}\n        ppo-tui: {said or '–'}\n        veRL: {why}", flush=True)
                total = counts["found"] + counts["false"], counts["found"] + counts["missed"]
                shares = [f"{counts['found'] / of:.2f}" if of else "–" for of in total]
                print(f"        {counts}: precision {shares[0]}, recall {shares[1]}", flush=True)


if __name__ == "__main__":
    main()
