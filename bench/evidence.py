"""Markdown tables, rates with intervals, and their pages of evidence."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def interval(count: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (Wilson 1927)."""
    middle, spread = count + z * z / 2, z * math.sqrt(count * (of - count) / of + z * z / 4)
    return max(0.0, (middle - spread) / (of + z * z)), min(1.0, (middle + spread) / (of + z * z))


def per_thousand(count: int, steps: int) -> str:
    """The count, and the rate per 1,000 steps with its interval."""
    low, high = interval(count, steps)
    return f"{count}: {1000 * count / steps:.1f} ({1000 * low:.1f} to {1000 * high:.1f})"


def write(page: str, part: str, text: str) -> None:
    """Writes a text into a page of evidence, between `<!-- PART -->` and `<!-- end of PART -->`."""
    document, marks = EVIDENCE / f"{page}.md", (f"<!-- {part} -->", f"<!-- end of {part} -->")
    before, _, rest = document.read_text().partition(marks[0])
    document.write_text(f"{before}{marks[0]}\n\n{text}\n{marks[1]}{rest.partition(marks[1])[2]}")
