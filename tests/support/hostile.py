"""Text that controls a terminal, in every string of every file that ppo-tui reads."""

import io
import re
from pathlib import Path
from typing import Any

import orjson

from launcher.record.layout import RunDir

MARK = "66;6"
PAYLOAD = f"\x1b]0;{MARK}\x07\x1b[{MARK}m\x9b{MARK}m\x85\u202e\u200b\ufeff\u2066\U000e0041\xad[b]"
ACTS = re.compile(
    r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\U000e0000-\U000e0fff]|\x1b\[" + MARK + r"|\x1b\]0;" + MARK
)
_WORDS = {"state", "kind", "level", "from", "to", "was", "side", "verdict", "boot", "outcome"}  # of ours: to be kept


def poison(run: RunDir, *, everything: bool = False) -> None:
    """Appends the payload to every string of a run's files; `everything`: also to our own words."""
    for path in sorted(run.path.rglob("*")):
        if path.suffix == ".json":
            path.write_bytes(orjson.dumps(_poisoned(orjson.loads(path.read_bytes()), everything)))
        elif path.suffix == ".jsonl":
            lines = path.read_bytes().splitlines()
            path.write_bytes(
                b"\n".join(orjson.dumps(_poisoned(orjson.loads(line), everything)) for line in lines) + b"\n"
            )
        elif path.suffix == ".yaml":
            _poison_yaml(path, everything)
        elif path.suffix == ".log":
            lines = path.read_text().splitlines()
            path.write_text("\n".join(f"{line}{PAYLOAD}" for line in [*lines, "a line"]) + "\n")


def _poison_yaml(path: Path, everything: bool) -> None:
    from ruamel.yaml import YAML

    value, text = YAML(typ="safe").load(path.read_text()), io.StringIO()
    YAML().dump(_poisoned(value, everything), text)
    path.write_text(text.getvalue())


def _poisoned(value: Any, everything: bool) -> Any:
    if isinstance(value, dict):
        free = {f"x{PAYLOAD}": PAYLOAD} if everything else {}
        return {k: v if k in _WORDS and not everything else _poisoned(v, everything) for k, v in value.items()} | free
    if isinstance(value, list):
        return [_poisoned(each, everything) for each in value]
    return value + PAYLOAD if isinstance(value, str) else value
