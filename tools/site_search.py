"""Sorts guides first in the built site's search, generated reference last (`make docs`)."""

import json
import sys
from pathlib import Path
from typing import Any

from launcher.core.tables import read_tables
from launcher.topics import GUIDES

WORKER = Path(__file__).with_suffix(".js")
_ORDER = ("start", "tutorials", "howto", "explanation", "", "reference")
"""Folders of docs/, in the order of equally good results."""


def improve(site: Path) -> None:
    """Adds common questions to a built site's index, and our worker before the theme's engine."""
    path, guides = site / "search.json", read_tables(GUIDES)
    index = json.loads(path.read_text("utf-8"))
    for item in index["items"]:
        if guide := guides["guide"].get(item["location"].rstrip("/")):
            item["asked"] = [guide["title"], *guide["asked"]]
    index["items"].sort(key=_place)
    index["config"]["fillers"] = guides["fillers"]
    path.write_text(json.dumps(index), "utf-8")
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    worker.rename(worker.with_name("engine.js"))
    worker.write_text(WORKER.read_text("utf-8"), "utf-8")


def _place(item: dict[str, Any]) -> int:
    folder = item["location"].partition("/")[0] if "/" in item["location"] else ""
    return _ORDER.index(folder if folder in _ORDER else "")


if __name__ == "__main__":
    improve(Path(sys.argv[1]))
