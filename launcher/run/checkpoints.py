"""veRL's checkpoints: `global_step_<k>` folders and a tracker file that is written last."""

import contextlib
from pathlib import Path

TRACKER = "latest_checkpointed_iteration.txt"


def latest_checkpoint(folder: Path) -> tuple[int, Path] | None:
    """Step and folder of the newest complete checkpoint.

    The tracker names it. A `global_step_<k>` beyond the tracker was cut off while it was being saved.
    """
    with contextlib.suppress(OSError, ValueError):
        step = int((folder / TRACKER).read_text().strip())
        path = folder / f"global_step_{step}"
        if (path / "actor").is_dir():
            return step, path
    return None
