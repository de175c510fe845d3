"""Five runs of the toy that fail, each shrunk to the fewest settings: the table of `docs/evidence/bundle.md`.

    PPO_TUI_HOME=$(mktemp -d) .venv/bin/python campaigns/minimal_toy.py [KEY=VALUE ...]

Takes about ten minutes on two cores and 3 GB.
"""

import sys
import time

from launcher.record.state import ALIVE, current
from launcher.report.minimal import minimal
from launcher.runs.act.start import start

OTHERS = (
    *("actor.lr=2e-4", "trainer.steps=20", "kl.loss_coef=0.002", "trainer.validate_first=false"),
    *("rollout.temperature=0.9", "trainer.validate_every=5"),
)
BROKEN = (
    "data.train=/nonexistent/train.parquet",
    "actor_rollout_ref.actor.optim.lrr=1",
    "actor.ppo_micro_batch_size_per_gpu=24",
    "env.VERL_USE_EXTERNAL_MODULES=nope_module",
    "env.TQ_NUM_THREADS=many",
)


def narrate(text: str) -> None:
    print(f"    {time.strftime('%T')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    for broken in sys.argv[1:] or BROKEN:
        run = start("toy-cpu", [*OTHERS[:3], broken, *OTHERS[3:]], narrate, force=True)
        while (state := current(run)).state in ALIVE:
            time.sleep(1)
        begin = time.monotonic()
        found = minimal(run, narrate)
        seconds = time.monotonic() - begin
        cells = (broken, state.cause, found.failure, found.before, " ".join(found.settings), found.probes, found.method)
        print(f"| {' | '.join(map(str, cells))} | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
