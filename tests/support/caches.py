"""Caches of the installed veRL: composed once for all tests, not once per home."""

from pathlib import Path

NAMES = ("verl-config", "verl-facts")


def share(home: Path, shared: Path) -> None:
    """Lets the new PPO_TUI_HOME `home` use this session's cache, `shared`."""
    (home / "cache").mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        folder = shared / "ppo-tui" / name
        folder.mkdir(parents=True, exist_ok=True)
        (home / "cache" / name).symlink_to(folder)
