"""What is said of a key that does nothing on the page on top."""

from collections.abc import Container

from tui.kit.keys import KEYS, LETTERS

_PAGES = {  # parts of the table of keys, by the page that a user sees
    "run pages": "dashboard",
    "runs": "list",
    "gpu": "devices",
    "findings": "editor, launch",
    "form": "editor",
    "diff": "sample diff",
}
_OTHERS = {"confirm.yes", "confirm.no", "log.cause"}  # letters with a meaning of their own
_MEANINGS = {letter: meaning for meaning, letter in LETTERS.items()}


def no_use(key: str, moved: Container[str] = ()) -> str:
    """Which pages have a key that this page does not have; empty where none has it.

    `moved` are ids of bindings that the user has put on other keys.
    """
    having = pages(key, moved) if key in _MEANINGS else []
    return f"{key} ({_MEANINGS[key]}) does nothing here; it works in: {', '.join(having)}" if having else ""


def pages(letter: str, moved: Container[str] = ()) -> list[str]:
    """The pages that have a letter, each once. The letter that opens a page also closes it, which does not count."""
    found = [
        _PAGES.get(page, page)
        for page, bindings in KEYS.items()
        for binding in bindings
        if letter in binding.key.split(",")
        and binding.description != "back"
        and binding.id not in _OTHERS
        and str(binding.id) not in moved
    ]
    return list(dict.fromkeys(found))
