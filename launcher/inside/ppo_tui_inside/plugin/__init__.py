"""What ppo-tui adds to veRL's own processes.

Loaded with `VERL_USE_EXTERNAL_MODULES=ppo_tui_inside.plugin`: veRL imports the modules named there at the end of
`import verl`, in the driver and in every Ray worker. `verl` is only half imported at that moment, so the modules here
import submodules of it, and no name from its top level except `__version__`.

* attention.py: models load with PyTorch's own attention where flash-attn cannot be used.
* checkpoints.py: a run saves a checkpoint on request, and continues from one with its own settings.
* defects.py: LoRA with a critic, and the trainer separate_async.
* polling.py: finished rollouts are noticed within 0.2 s instead of 2 s.
* side_by_side.py: runs on one host or one Ray cluster do not take each other's weights, prompts and ports.
* spans.py: what each process does when, as lines in the run's folder.
* cpu.py, rollout.py, weights.py (only with `VERL_PLATFORM=cpu`): veRL on a machine without a GPU.
"""

import os

from verl import __version__ as INSTALLED

from .. import SUPPORTED, stacks
from . import attention, checkpoints, defects, polling, side_by_side, spans


class UnsupportedVerl(RuntimeError):
    """The CPU platform relies on names inside veRL that another version may have moved."""


if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
    if INSTALLED != SUPPORTED:  # in the driver, before anything is imported that only the supported version has
        raise UnsupportedVerl(
            f"ppo-tui's CPU platform (VERL_PLATFORM=cpu) works with veRL {SUPPORTED} only, but veRL "
            f"{INSTALLED} is installed; install verl=={SUPPORTED} or choose a preset for GPUs"
        )
    from . import cpu

    cpu.install()

for part in (attention, checkpoints, defects, polling, side_by_side, spans, stacks):
    part.install()
