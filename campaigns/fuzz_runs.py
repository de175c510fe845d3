"""Random damage to the files of a run: no command may raise, and the list keeps every run.

    PYTHONPATH=tests/support python campaigns/fuzz_runs.py --edits 1000 --seed 0

Each edit damages one file of a whole run; then every command that reads runs is called on it and on a sound run.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from commands import OF_RUNS, OTHER, RUN, call
from damage import damage
from whole_run import files, whole_run


def main() -> None:
    """Prints how many commands raised, and the first traceback of each place."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    raised, slowest = Counter[str](), (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["PPO_TUI_HOME"] = folder
        os.chdir(folder)
        run, _ = whole_run(home), whole_run(home, "0ld111", "older")
        sound = home / "sound"
        shutil.copytree(run.path, sound)
        names = [path.relative_to(run.path) for path in files(run)]
        begun, bad_edits, unseen = time.monotonic(), 0, 0
        for number in range(asked.edits):
            if number and number % 50 == 0:
                print(f"{number} edits, {bad_edits} with a traceback, {time.monotonic() - begun:.0f} s", flush=True)
            random_ = random.Random(asked.seed * 1_000_003 + number)
            shutil.rmtree(run.path)
            shutil.copytree(sound, run.path)
            name = random_.choice(names)
            said = damage(run.path / name, random_)
            bad = False
            for words in OF_RUNS:
                at = time.monotonic()
                try:
                    out = call(words)[0].decode()
                    if words == ["list"] and not (RUN in out and OTHER in out):
                        unseen += 1
                        print(f"edit {number}: {name}: {said}: hidden from the list\n{out}", flush=True)
                except Exception as error:
                    bad = True
                    frame = traceback.extract_tb(error.__traceback__)[-1]
                    place = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
                    raised[f"{' '.join(words[:1])}: {place}"] += 1
                    if raised[f"{' '.join(words[:1])}: {place}"] == 1:
                        shown = f"edit {number}: {name}: {said}: {' '.join(words)}"
                        print(f"{shown}\n{traceback.format_exc(-4)}", flush=True)
                slowest = max(slowest, (time.monotonic() - at, f"edit {number}: {name}: {said}: {words[0]}"))
            bad_edits += bad
    for place, count in raised.most_common():
        print(f"{count:>6}  {place}")
    seconds = time.monotonic() - begun
    print(f"{asked.edits} edits, seed {asked.seed}: {bad_edits} with a traceback, {unseen} hid a run; {seconds:.0f} s")
    print(f"slowest command: {slowest[0]:.1f} s, {slowest[1]}")
    sys.exit(bool(bad_edits or unseen))


if __name__ == "__main__":
    main()
