"""Rules about the configuration alone: V if veRL exits at the start, P if it fails later.

One small function per rule; findings.toml describes each finding.
"""

from launcher.check.config import (
    adapter,
    agents,
    algorithm,
    asynchronous,
    batches,
    contents,
    correction,
    effects,
    keys,
    optimizer,
    plausible,
    resources,
    reward,
    rollout,
    tokens,
    trainer,
    types,
    updates,
)

MODULES = (
    batches,
    updates,
    tokens,
    algorithm,
    optimizer,
    plausible,
    rollout,
    agents,
    correction,
    adapter,
    trainer,
    asynchronous,
    reward,
    keys,
    effects,
    contents,
    types,
    resources,
)

RULES = tuple(rule for module in MODULES for rule in module.RULES)
