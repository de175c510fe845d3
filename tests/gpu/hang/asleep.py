"""What hangs or ends in a run on purpose. run.sh puts this folder into PYTHONPATH, and a run names this module in
`env.VERL_USE_EXTERNAL_MODULES`.

While the attempt has a file `asleep-reward`, the reward function does not return; with `asleep-rank`, the last rank
does not come to its next pass; with `asleep-engine`, vLLM's worker does not run its next batch.
"""

import os
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any


def _wait_while(what: str) -> None:
    metrics = os.environ.get("VERL_FILE_LOGGER_PATH")  # not in a check
    while metrics and Path(metrics).with_name(f"asleep-{what}").exists():
        time.sleep(0.5)


def score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any
) -> dict[str, float]:
    """1 for the right number after ####, half for any number there."""
    ask_judge()
    found = re.findall(r"####\s*(-?\d+)", solution_str)
    right = float(bool(found) and found[-1] == ground_truth)
    return {"score": max(right, 0.5 * bool(found)), "acc": right}


def ask_judge() -> None:
    _wait_while("reward")


def load_shard() -> None:
    _wait_while("rank")


def run_batch() -> None:
    _wait_while("engine")


def _with_a_late_worker(module: ModuleType) -> None:
    own = module.Worker.execute_model

    def execute_model(self: Any, *args: Any, **kwargs: Any) -> Any:
        run_batch()
        return own(self, *args, **kwargs)

    module.Worker.execute_model = execute_model


def _with_a_late_rank(module: ModuleType) -> None:
    own = module.FSDPEngine.forward_backward_batch

    def forward_backward_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rank == int(os.environ.get("WORLD_SIZE", "1")) - 1:
            load_shard()
        return own(self, *args, **kwargs)

    module.FSDPEngine.forward_backward_batch = forward_backward_batch


if __name__ == "asleep" and "ppo_tui_inside.plugin" in sys.modules:
    from ppo_tui_inside.plugin.late import after_import

    after_import("verl.workers.engine.fsdp.transformer_impl", _with_a_late_rank)
    after_import("vllm.v1.worker.gpu_worker", _with_a_late_worker)
