"""Logs these metrics into a `.wandb` file, in wandb's own environment; prints the run's folder."""

import sys
from pathlib import Path

import wandb
from figures import HISTORY, paced

settings = wandb.Settings(mode="offline", console="off", x_disable_stats=True, silent=True)
run = wandb.init(project="bench", dir=sys.argv[2], settings=settings)
for number, data in paced(Path(sys.argv[1])):
    run.log(data, step=number)
    if number == HISTORY:
        print(Path(run.dir).parent, flush=True)
