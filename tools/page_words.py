"""Tables and cells for the generated pages."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)) + "\n"


def cell(text: object) -> str:
    """A text as one cell: in one line, without a bar that ends the cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text: object) -> str:
    """A text as code in a cell; empty for an empty text."""
    return f"`{cell(text)}`" if text not in (None, "") else ""


def sentence(text: str) -> str:
    """A text that begins with a capital letter and ends with a period; a name or code keeps its first letter."""
    text = " ".join(text.split())
    if text.partition(" ")[0].strip(",:;").isalpha() and text.partition(" ")[0].islower():
        text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith((".", "?", "!")) else f"{text}."
