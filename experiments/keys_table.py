"""The letters in docs/screen.md from the table of keys: `make pages` writes them."""

from pathlib import Path

from tui.kit.keymap import pages
from tui.kit.keys import LETTERS

FILE = Path(__file__).parents[1] / "docs" / "screen.md"
BEGIN, END = "<!-- letters -->\n", "<!-- end of letters -->\n"


def table() -> str:
    """A row a letter; the letter that opens a page also closes it, which is not repeated."""
    rows = sorted((letter.lower(), letter.isupper(), letter, meaning) for meaning, letter in LETTERS.items())
    lines = [f"| `{letter}` | {meaning} | {', '.join(pages(letter))} |" for _, _, letter, meaning in rows]
    return "\n".join(["| letter | meaning | pages |", "| --- | --- | --- |", *lines]) + "\n"


def text(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    FILE.write_text(text(FILE.read_text("utf-8")), encoding="utf-8")
