"""The failure catalogue: one entry a cause, grouped by what they concern. Edit a cause in its file.

Order matters only between two entries of the same level that match the same line: the first one wins.
"""

from launcher.console.causes import (
    batch,
    checkpoint,
    cluster,
    config,
    data,
    engine,
    logger,
    memory,
    model,
    numeric,
    process,
    reward,
)
from launcher.console.causes.entry import Cause, Level

_FILES = (memory, engine, model, data, reward, batch, checkpoint, logger, cluster, process, numeric, config)
CATALOGUE: tuple[Cause, ...] = tuple(cause for file in _FILES for cause in file.CAUSES)

__all__ = ["CATALOGUE", "Cause", "Level"]
