"""What ppo-tui adds to veRL's own processes.

Loaded with `VERL_USE_EXTERNAL_MODULES=ppo_tui_inside.plugin`: veRL imports the modules named there at the end
of `import verl`, in the driver and in every Ray worker. `verl` is only half imported at that moment, so what
is here imports submodules of it, and no name from its top level except `__version__`.

* attention.py: models load with PyTorch's own attention where flash-attn cannot be used.
* sockets.py: a run does not take the weights of another run on the same host.
* queue.py: a run does not share the TransferQueue of another run on the same Ray cluster.
* lora.py: with LoRA, the critic judges with all of its weights.
* restored.py: a run that continues from a checkpoint takes the learning rate of its own settings.
* saving.py: a checkpoint is saved when the supervisor asks for one.
* separate.py: the trainer separate_async keeps its updates with offloaded weights, and runs without a hybrid engine.
* platform.py, patches.py, rollout.py, weights.py (only with `VERL_PLATFORM=cpu`): veRL on a machine without a GPU.
* fork_server.py, setup_worker.py (only there, too): workers are forks of one process, so a run starts sooner.

Needs the standard library and what veRL itself needs, because it may run in an interpreter without ppo-tui.
"""

import os

from . import attention, lora, queue, restored, saving, separate, sockets
from .version import check_cpu_platform

if os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu":
    check_cpu_platform()  # before anything that only veRL 0.9.1 has is imported
    from . import platform

    platform.install()

attention.install()
lora.install()
queue.install()
restored.install()
saving.install()
separate.install()
sockets.install()
