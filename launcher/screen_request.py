"""What a command asks of the screen. The screen itself lives in `tui`, which nothing here imports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScreenRequest:
    """Which screen to open, and how it may behave.

    `run` is the path of a run directory; None opens the list of runs and presets. `read_only` refuses every
    action that writes to a run. `theme` is `dark`, `light` or a theme of Textual; None chooses the default.
    `ascii` draws with ASCII characters alone, for terminals without braille and box-drawing glyphs.
    """

    run: str | None = None
    read_only: bool = False
    mouse: bool = True
    theme: str | None = None
    ascii: bool = False
