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
    kernels,
    logger,
    memory,
    model,
    network,
    numeric,
    process,
    reward,
    scheduler,
    versions,
)
from launcher.console.causes.entry import Cause, Level

_FILES = (
    *(memory, versions, engine, model, kernels, data, reward, batch, checkpoint, logger, network, cluster, scheduler),
    *(process, numeric, config),
)
CATALOGUE: tuple[Cause, ...] = tuple(cause for file in _FILES for cause in file.CAUSES)

__all__ = ["CATALOGUE", "Cause", "Level"]
