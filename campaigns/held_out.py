"""Asks the preflight and veRL about the settings of tests/data/preflight/held_out*.yaml: precision and recall.

PYTHONPATH=tests/support:launcher/inside .venv/bin/python campaigns/held_out.py [--list held_out_2] [--again] [WORD ...]

Asks both about each setting that has no `first` answer yet, or with `--again` the preflight about all, whose name has
all words, in the order of a hash of their names. Prints a line for each and the totals so far, and writes first answers
into the file. One process imports veRL and its copies are asked, since an import takes ten seconds: the preflight's
scripts run in them too. An entry says what veRL does where the probe cannot know it (`verl`, and `by`).
"""

from __future__ import annotations

import argparse
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

from launcher.check import worker
from launcher.check.checks import report
from launcher.core import paths
from launcher.core.errors import UserError
from launcher.data import toy
from launcher.preset.files import load
from launcher.preset.schema import FIELDS

LISTS = Path(__file__).parents[1] / "tests" / "data" / "preflight"
DEEP = ("names", "lengths", "batches", "parallel", "checkpoints", "algorithm")  # these reach the models
LIMIT = 900.0  # seconds, on a machine that has other work
Answer = dict[str, Any]
UNASKED: Answer = {"stage": None, "error": None}


@dataclass(frozen=True)
class HeldOut:
    """`right`: unusual and meant to be correct. `verl`: `runs` or `fails`, if the probe cannot find out."""

    what: str
    set: list[str]
    on: str = "toy-cpu"
    machine: str = ""
    right: bool = False
    verl: str = ""
    by: str = ""
    first: str = ""
    """found, missed, alarm (a false one) or passed, before any rule was changed for these settings."""

    @property
    def fails(self) -> bool | None:
        """Whether veRL fails, from its source or its first answer."""
        if self.verl:
            return self.verl == "fails"
        return self.first in ("found", "missed") if self.first else None

    def settings(self, folder: Path) -> list[str]:
        return [word.replace("HELD", str(folder)) for word in self.set]

    @property
    def name(self) -> str:
        return " ".join([self.on, *self.set])


def cases(file: Path) -> list[HeldOut]:
    from ruamel.yaml import YAML

    found: list[dict[str, Any]] = YAML(typ="safe").load(file.read_text("utf-8"))
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
    """Where veRL stops, and its message; twice None if it does not stop."""
    given = case.settings(folder)
    try:
        load(case.on, given)
    except UserError:  # a preset refuses it: veRL is asked nevertheless
        given = [as_key(word) for word in given]
    overrides = Case(on=case.on, set=given).overrides()

    def work(out: TextIO) -> None:
        os.environ["MASTER_PORT"] = str(verl_probe._free_port())
        held_out_probe.install(deep=case.what in DEEP)
        json.dump(verl_probe.stages(overrides, model), out)

    return in_a_copy(work) or {"stage": "ended", "error": "the process ended or hung"}


def as_key(word: str) -> str:
    """A setting under veRL's key instead of the preset's name for it."""
    name, equals, value = word.partition("=")
    spec = FIELDS.get(name)
    return f"{spec.plus}{spec.key}{equals}{value}" if spec and spec.key else word


def ask(
    _: str, probe: str, request: Mapping[str, Any], *, timeout: float, env: Mapping[str, str] | None = None
) -> Answer:
    """Like `worker.ask`, in a copy of this process."""

    def work(out: TextIO) -> None:
        os.environ.update(env or {})
        with tempfile.TemporaryFile("w+") as given:
            json.dump(request, given)
            given.seek(0)
            os.dup2(given.fileno(), 0)
            os.dup2(out.fileno(), 1)
            sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
            runpy.run_module(f"ppo_tui_inside.probes.{probe}", run_name="__main__")
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


def keep(file: Path, case: HeldOut, kind: str) -> None:
    """Writes the first answer at the end of the entry's line, at once: so that later changes do not affect it."""
    from ruamel.yaml import YAML

    lines = file.read_text("utf-8").splitlines()
    for i, line in enumerate(lines):
        if line.startswith("- ") and HeldOut(**YAML(typ="safe").load(line)[0]) == case:
            lines[i] = line.removesuffix("}") + f", first: {kind}}}"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    from hydra import initialize_config_dir

    usage = argparse.ArgumentParser()
    usage.add_argument("--list", default="held_out", choices=[each.stem for each in LISTS.glob("held_out*.yaml")])
    usage.add_argument("--again", action="store_true")
    usage.add_argument("words", nargs="*")
    asked = usage.parse_args()
    file = LISTS / f"{asked.list}.yaml"
    wanted = [case for case in cases(file) if all(word in case.name for word in asked.words)]
    wanted = [case for case in wanted if asked.again or not case.first]
    toy.ensure(progress=print)
    worker.ask = ask
    held_out_probe.warm()
    counts = dict.fromkeys(("found", "missed", "alarm", "passed"), 0)
    with tempfile.TemporaryDirectory() as held, tempfile.TemporaryDirectory() as tree:
        folder, model = Path(held), Path(tree)
        make(folder, paths.cache_dir() / "toy")
        verl_probe.model_folder(model)
        verl_probe.whole_tree(tree)
        with initialize_config_dir(tree, version_base=None):
            for case in wanted:
                said, answer = errors(case, folder), UNASKED
                if not case.verl and not case.first:
                    answer = verl(case, folder, model)
                fails = case.fails if case.fails is not None else answer["stage"] is not None
                kind = ("found" if said else "missed") if fails else ("alarm" if said else "passed")
                counts[kind] += 1
                if not case.first:
                    keep(file, case, kind)
                told = f"{answer['stage']}: {' '.join((answer['error'] or '').split())[:300]}"
                why = case.by or (f"before, {case.first}" if case.first else told)
                print(f"{kind:7} {case.name}\n        ppo-tui: {said or '–'}\n        veRL: {why}", flush=True)
                total = counts["found"] + counts["alarm"], counts["found"] + counts["missed"]
                shares = [f"{counts['found'] / of:.2f}" if of else "–" for of in total]
                print(f"        {counts}: precision {shares[0]}, recall {shares[1]}", flush=True)


if __name__ == "__main__":
    main()
