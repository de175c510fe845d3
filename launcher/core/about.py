"""What ppo-tui is (`tagline`), where it is (`repository`, may be empty), and where its documentation is."""

from pathlib import Path

from launcher.core.tables import read_tables

ABOUT: dict[str, str] = read_tables(Path(__file__).parents[1] / "about.toml")


def documentation(page: str) -> str:
    """The address of a page of docs/; while there is none, the command that prints the page in short."""
    return f"{ABOUT['repository']}/blob/main/docs/{page}.md" if ABOUT["repository"] else f"ppo-tui help {page}"
