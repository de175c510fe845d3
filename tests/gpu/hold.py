"""hold.py GPU LEAVE [--on]: takes the memory of a GPU but for LEAVE MiB, by plain allocations, until it is killed.

Prints `held` when it has it. `--on` goes on and takes what others give back.
"""

import os
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]

import torch

MIB = 2**20
kept = []


def take(leave: int) -> None:
    """In blocks that become smaller, as the last ones have to fit."""
    for block in (4096, 512, 64, 8):
        while torch.cuda.mem_get_info()[0] // MIB - leave >= block:
            try:
                kept.append(torch.empty(block * MIB, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                break


take(int(sys.argv[2]))
print("held", torch.cuda.mem_get_info(), flush=True)
while True:
    time.sleep(0.1)
    if "--on" in sys.argv:
        take(int(sys.argv[2]))
