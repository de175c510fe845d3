"""The letters in docs/screen.md from the table of keys: `make pages` writes them."""

from pathlib import Path

from tui.keys import KEYS, LETTERS

FILE = Path(__file__).parents[1] / "docs" / "screen.md"
BEGIN, END = "<!-- letters -->\n", "<!-- end of letters -->\n"
PAGES = {  # parts of the table of keys, by the page that a user sees
    "run pages": "dashboard",
    "runs": "list",
    "gpu": "devices",
    "findings": "editor, launch",
    "form": "editor",
    "diff": "sample diff",
}
OTHERS = {"confirm.yes", "confirm.no", "log.cause"}  # letters with a meaning of their own, named in the text


def table() -> str:
    """A row a letter; the letter that opens a page also closes it, which is not repeated."""
    rows = sorted((letter.lower(), letter.isupper(), letter, meaning) for meaning, letter in LETTERS.items())
    lines = [f"| `{letter}` | {meaning} | {', '.join(pages(letter))} |" for _, _, letter, meaning in rows]
    return "\n".join(["| letter | meaning | pages |", "| --- | --- | --- |", *lines]) + "\n"


def pages(letter: str) -> list[str]:
    """The pages that have it, each once."""
    found = [
        PAGES.get(page, page)
        for page, bindings in KEYS.items()
        for binding in bindings
        if letter in binding.key.split(",") and binding.description != "back" and binding.id not in OTHERS
    ]
    return list(dict.fromkeys(found))


def text(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    FILE.write_text(text(FILE.read_text("utf-8")), encoding="utf-8")
