"""Writes `tests/data/verl_examples.json.gz`, the settings of veRL's example scripts, from a clone of veRL.

    .venv/bin/python tools/verl_examples.py CLONE TAG

Each script of `examples/` is read as `preset import` reads it. Kept are its path and the keys that change the training
or its engine; names, paths, loggers and intervals are left out, and so are scripts without main_ppo.
"""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

from launcher.core.errors import UserError
from launcher.scripts.bash import marks
from launcher.scripts.verl_command import Source, parse
from launcher.verl import hydra

_PERSONAL = re.compile(
    r"\.path$|_path$|_files$|_dir$|logger$|_name$|_freq$|^trainer\.(?!device)|^ray_kwargs|prompt_key"
)


def settings(text: str) -> dict[str, object]:
    """A script's settings by key; empty if it does not start veRL's trainer."""
    found = parse(Source(text, Path("/nonexistent"), args=("DEVICE=gpu", "HOME=/home/user")))
    kept = {}
    for word in found.overrides if found.entry.endswith("main_ppo") else ():
        key, equals, value = word.partition("=")
        bare = key.lstrip("+~")
        if equals and "." in bare and not _PERSONAL.search(bare) and not marks.is_marked(word):
            value = hydra.parse(value)
            if isinstance(value, (bool, int, float, str, type(None))) and "/" not in str(value):
                kept[bare] = value
    return kept


def main(clone: str, tag: str) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", clone, *words], check=True, capture_output=True, text=True).stdout

    rows = {}
    for path in git("ls-tree", "-r", tag, "--name-only", "examples").split():
        if path.endswith(".sh") and "ascend" not in path and "npu" not in path:
            try:
                if found := settings(git("show", f"{tag}:{path}")):
                    rows[path] = found
            except UserError as error:
                print(f"left out: {path}: {error}", file=sys.stderr)
    commit = git("rev-parse", f"{tag}^{{commit}}").strip()
    text = json.dumps({"tag": tag, "commit": commit, "examples": rows}, sort_keys=True)
    target = Path(__file__).parents[1] / "tests/data/verl_examples.json.gz"
    target.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(rows)} examples")


if __name__ == "__main__":
    main(*sys.argv[1:])
