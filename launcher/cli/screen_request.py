"""What a command asks of the screen. The screen itself lives in `tui`, which nothing here imports."""

import dataclasses
from dataclasses import dataclass

from launcher.settings import Settings


@dataclass(frozen=True, slots=True)
class ScreenRequest:
    """Which screen to open, and how it may behave.

    `run` is the path of a run directory; None opens the list of runs and presets. `read_only` refuses every
    action that writes to a run. `compare` are the paths of runs to put side by side. `preset` (a name or a
    path) is to be edited, from `field` on.
    """

    run: str | None = None
    read_only: bool = False
    compare: tuple[str, ...] = ()
    preset: str | None = None
    field: str | None = None
    settings: Settings = dataclasses.field(default_factory=Settings)
