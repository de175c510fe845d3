"""Rules that the configuration decides: V where veRL exits at the start, P where it fails later.

One small function a rule. The first line of its docstring is the rule's line in docs/preflight.md.
"""

from launcher.check.config import (
    adapter,
    agents,
    algorithm,
    asynchronous,
    batches,
    contents,
    correction,
    cpu,
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
    contents,
    types,
    resources,
    cpu,
)

RULES = tuple(rule for module in MODULES for rule in module.RULES)
