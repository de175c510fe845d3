"""The page about errors of ppo-tui: first answers on sets that it was not tuned on, and the worst ones."""

from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from evidence import interval
from page_words import cell, table

from launcher.core.tables import read_tables

MEASURED = Path(__file__).parents[1] / "tests" / "data" / "first_measured.toml"


def shares() -> str:
    """The shares of right and wrong answers: a table per part."""
    tables = []
    for part, rows in groupby(measured()["share"], itemgetter("part")):
        cells = (
            (row["question"], cell(row["on"]), _share(row), f"[{row['date']}](../evidence/{row['page']}.md)")
            for row in rows
        )
        tables += [
            f"## {part.capitalize()}\n",
            table(("counted", "set", "first result (95 % interval)", "measured"), cells),
        ]
    return "\n".join(tables)


def trust() -> str:
    """The README's table: each answer, and how often it was right, inconclusive, or wrong."""
    cells: dict[str, dict[str, list[str]]] = {}
    for row in measured()["share"]:
        if "trust" in row:
            says, side, words = row["trust"]
            counts = {"hits": row["hits"], "of": row["of"], "missed": row["of"] - row["hits"]}
            cells.setdefault(says, {}).setdefault(side, []).append(words.format_map(counts))
    sides = ("right", "open", "wrong")
    return table(
        ("it says", *sides), ((says, *(", ".join(at.get(side, ["–"])) for side in sides)) for says, at in cells.items())
    )


def worst() -> str:
    """The worst answers, with the truth and the current state."""
    rows = [(row["part"], cell(row["said"]), cell(row["right"]), cell(row["now"])) for row in measured()["worst"]]
    return table(("part", "it said", "the truth", "now"), rows)


def measured() -> dict[str, Any]:
    """The recorded first answers: `share` and `worst`."""
    return read_tables(MEASURED)


def _share(row: dict[str, Any]) -> str:
    hits, of = row["hits"], row["of"]
    low, high = interval(hits, of)
    return f"{hits} of {of:,}: {_percent(hits / of)} ({_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share > 0.02 else 1}f} %"
