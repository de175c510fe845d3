#!/bin/bash
# warm.sh: reads a fresh host's disk and touches its memory, as both are slow the first time. As early as possible, once.
export KIT=${KIT:-$HOME/kit}
mkdir "$KIT/warm" 2> /dev/null || exit 0
date +%s > "$KIT/t0"
# the image has no bytecode and says PYTHONDONTWRITEBYTECODE: every process compiled torch anew, which doubles an import
python3 -m compileall -q -j 0 "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" > /dev/null 2>&1
# seventeen runs have more threads than such a host has numbers for: the 18th vLLM could not start a process
sysctl -w kernel.pid_max=4194304 kernel.threads-max=1000000
ulimit -u
# torch and CUDA from a cold disk: minutes of every start, unless they are read ahead
find "$(python3 -c 'import torch; print(torch.__path__[0])')/.." \( -name '*.so*' -o -name '*.py*' \) -print0 |
    xargs -0 -P 16 -n 64 cat > /dev/null 2>&1 &
# some hosts show little memory until it was used once, and Ray ends workers when that little is full
for _ in $(seq $((2 * $(nvidia-smi -L | wc -l)))); do python3 -c 'b"x" * (48 << 30)' & done
wait
