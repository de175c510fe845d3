"""Measures rehearsals on the held-out settings (held_out.py): the failures that no rule found, and false positives.

PYTHONPATH=tests/support python campaigns/rehearsals.py RESULTS [-j RUNS] [--passed COUNT] [WORD ...]

Rehearses every setting whose first answer was `missed`, and COUNT of the correct ones that passed, in the order of a
hash of their names; only those whose name has all words. Appends a line of JSON for each to RESULTS; settings in
RESULTS are skipped. A rehearsal takes two minutes on two cores; campaigns/cpu-host has more cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from held_out_files import make

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.data import toy
from launcher.preset.files import load
from launcher.runs.act.rehearse import rehearse
from launcher.verl import env as verl_env

if TYPE_CHECKING:
    from held_out import HeldOut


def wanted(passed: int) -> list[HeldOut]:
    """The settings to rehearse."""
    ours = dict(os.environ)
    import held_out

    os.environ.clear()
    os.environ.update(ours)  # its probe is a worker of veRL, and a rehearsal is not
    cases = [case for file in sorted(held_out.LISTS.glob("held_out*.yaml")) for case in held_out.cases(file)]
    cases.sort(key=lambda case: hashlib.sha256(case.name.encode()).digest())
    missed, right = ([case for case in cases if case.first == first] for first in ("missed", "passed"))
    return missed + right[:passed]


def asked(case: HeldOut, folder: Path) -> dict[str, Any]:
    """Rehearses a setting. Presets for a GPU get the toy's model and data."""
    own = paths.cache_dir() / "toy"
    base = [f"model.path={own}/model", f"data.train={own}/data/train.parquet", f"data.val={own}/data/test.parquet"]
    settings = [*(base if case.on != "toy-cpu" else ()), *case.settings(folder)]
    begin = time.monotonic()
    try:
        finding = rehearse(load(case.on, settings), lambda _: None)
        level, said = (finding.level, finding.message) if finding else ("", "")
    except UserError as refused:  # by the preset itself
        level, said = "refused", str(refused)
    row = {"name": case.name, "first": case.first, "level": level, "said": said[:400]}
    return row | {"seconds": round(time.monotonic() - begin)}


def main() -> None:
    usage = argparse.ArgumentParser()
    usage.add_argument("results", type=Path)
    usage.add_argument("-j", type=int, default=1)
    usage.add_argument("--passed", type=int, default=0)
    usage.add_argument("words", nargs="*")
    given = usage.parse_args()
    there = given.results.read_text().splitlines() if given.results.exists() else []
    known = {json.loads(line)["name"] for line in there}
    cases = [case for case in wanted(given.passed) if case.name not in known]
    cases = [case for case in cases if all(word in case.name for word in given.words)]
    toy.ensure(python=verl_env.require(None).python, progress=print)
    folder = paths.cache_dir() / "held-out"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder, paths.cache_dir() / "toy")
    with ThreadPoolExecutor(given.j) as pool, given.results.open("a") as out:
        for row in pool.map(lambda case: asked(case, folder), cases):
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row["level"], row["seconds"], row["name"], "|", row["said"][:160], flush=True)


if __name__ == "__main__":
    main()
