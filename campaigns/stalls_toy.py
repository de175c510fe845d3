"""What hangs inside the veRL toy: a reward function, one that is a coroutine, a data set, the rollout engine.

`VERL_USE_EXTERNAL_MODULES` loads this file after ppo-tui's plugin; `STALLS_TOY=engine` makes the engine hang.
"""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
import time
from typing import Any

AFTER = 4 * 64  # prompts
FOREVER = 3600
calls = 0


def score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    global calls
    calls += 1
    if calls > AFTER:
        ask_judge()
    found = re.search(r"####\s*(\d+)", solution_str)
    return float(found is not None and found[1] == ground_truth)


def ask_judge() -> None:
    time.sleep(FOREVER)


async def score_async(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any
) -> float:
    global calls
    calls += 1
    if calls > AFTER:
        await ask_judge_async()
    return float(ground_truth in solution_str)


async def ask_judge_async() -> None:
    await asyncio.sleep(FOREVER)


if "verl.utils.dataset.rl_dataset" in sys.modules or os.environ.get("STALLS_TOY") == "data":
    from verl.utils.dataset.rl_dataset import RLHFDataset

    class Rows(RLHFDataset):
        """The toy's rows, of which one does not come."""

        read = 0

        def __getitem__(self, item: int) -> Any:
            self.read += 1
            if self.read > AFTER:
                self.wait()
            return super().__getitem__(item)

        def wait(self) -> None:
            time.sleep(FOREVER)

    class FifoRows(Rows):
        """The same in a worker, which opens a FIFO that nobody writes."""

        def wait(self) -> None:
            path = f"{tempfile.gettempdir()}/stalls-{os.getpid()}.fifo"
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path)
            with open(path) as file:  # noqa: PTH123
                file.read()


def _hang_engine() -> None:
    from ppo_tui_inside.plugin.late import after_import

    def change(module: Any) -> None:
        sample, count = module.HFServer._sample, 0

        def stuck(self: Any, prompts: Any, sampling: Any) -> Any:
            nonlocal count
            count += len(prompts)
            if count > AFTER:
                time.sleep(FOREVER)
            return sample(self, prompts, sampling)

        module.HFServer._sample = stuck

    after_import("ppo_tui_inside.plugin.rollout", change)


if os.environ.get("STALLS_TOY") == "engine":
    _hang_engine()
