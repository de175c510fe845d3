"""Changes to veRL's own processes.

Loaded with `VERL_USE_EXTERNAL_MODULES=ppo_tui_inside.plugin`: veRL imports these modules at the end of `import verl`,
in the driver and in every Ray worker. `verl` is then only half imported, so the modules here import its submodules, and
from its top level only `__version__`.

* attention.py: models load with PyTorch's own attention if flash-attn is not usable.
* checkpoints.py: a run saves a checkpoint on request, and continues from one with its own settings.
* defects.py: fixes for LoRA with a critic, and for the trainer separate_async.
* polling.py: finished rollouts are detected within 0.2 s instead of 2 s.
* side_by_side.py: separates weights, prompts and ports of runs on one host or one Ray cluster.
* spans.py: each process's work over time, as lines in the run's folder.
* cpu.py, rollout.py, weights.py (only with `VERL_PLATFORM=cpu`): veRL on a machine without a GPU.
"""

import os

from verl import __version__ as INSTALLED

from .. import SUPPORTED, stacks
from . import attention, checkpoints, defects, polling, side_by_side, spans


class UnsupportedVerl(RuntimeError):
    """The CPU platform relies on names inside veRL that another version may lack."""


if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
    if INSTALLED != SUPPORTED:  # checked in the driver, before importing parts that only the supported version has
        raise UnsupportedVerl(
            f"ppo-tui's CPU platform (VERL_PLATFORM=cpu) works with veRL {SUPPORTED} only, but veRL "
            f"{INSTALLED} is installed; install verl=={SUPPORTED} or choose a preset for GPUs"
        )
    from . import cpu

    cpu.install()

for part in (attention, checkpoints, defects, polling, side_by_side, spans, stacks):
    part.install()
