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

CATALOGUE: tuple[Cause, ...] = (
    *memory.CAUSES,
    *engine.CAUSES,
    *model.CAUSES,
    *data.CAUSES,
    *reward.CAUSES,
    *batch.CAUSES,
    *checkpoint.CAUSES,
    *logger.CAUSES,
    *cluster.CAUSES,
    *process.CAUSES,
    *numeric.CAUSES,
    *config.CAUSES,
)

__all__ = ["CATALOGUE", "Cause", "Level"]
