#!/bin/bash
# run.sh: on the host, with the parts of pack.sh in $KIT/parts (KIT: ~/kit). Installs them once, then:
#
#   run.sh matrix [ARGS]        campaigns/matrix.py; results in $KIT/results/matrix.json
#   run.sh ppo-tui ARGS         any command of ppo-tui
set -euo pipefail
export KIT=${KIT:-$HOME/kit} PYTHONUNBUFFERED=1
export PPO_TUI_HOME=${PPO_TUI_HOME:-$KIT/home} PPO_TUI=$KIT/ppo-tui MATRIX=$KIT/results/matrix.json
export PYTHONPATH=$KIT/code:$KIT/code/tools:$KIT/site HF_HUB_OFFLINE=1 RAY_USAGE_STATS_ENABLED=0
# Ray must find as many numbers here as a run has workers, and torch no GPU: these numbers do not exist
export CUDA_VISIBLE_DEVICES=90,91,92,93
# some hosts show little memory until it was used once, and Ray ends workers when that little is full
export RAY_memory_monitor_refresh_ms=0
# twenty runs have more threads than some hosts have numbers for
sysctl -qw kernel.pid_max=4194304 kernel.threads-max=1000000 || true
cd "$KIT" # where this was called may be another checkout, whose modules Python would find first
mkdir -p results
if [ ! -e installed ]; then
    echo "== install ($(date +%T))"
    # a fresh host reads torch from a cold disk: minutes of every start, unless it is read ahead
    find "$(python3 -c 'import torch; print(torch.__path__[0])')" \( -name '*.so*' -o -name '*.py*' \) -print0 |
        xargs -0 -P 16 -n 64 cat > /dev/null 2>&1 &
    python3 -c 'b"x" * (64 << 30)' &
    mkdir -p site "$PPO_TUI_HOME/cache"
    cat parts/part.* | tar -xz -C site
    tar -xzf parts/toy.tgz -C "$PPO_TUI_HOME/cache"
    wait
    python3 -m compileall -q -j 0 site > /dev/null || true # else each of the first runs does it
    touch installed
fi
if [ parts/code.tgz -nt code ]; then # a newer one: not while runs use the old one
    rm -rf code
    mkdir -p code/ppo_tui-0.dist-info
    tar -xzf parts/code.tgz -C code
    printf 'Metadata-Version: 2.1\nName: ppo-tui\nVersion: 0\n' > code/ppo_tui-0.dist-info/METADATA
    printf '#!/bin/sh\nexec python3 -m ppo_tui "$@"\n' > ppo-tui
    chmod +x ppo-tui
    touch code
fi
echo "== $* ($(date +%T)), $(nproc) CPUs"
what=$1
shift
case $what in
matrix) python3 code/campaigns/matrix.py "$@" ;;
ppo-tui) ./ppo-tui "$@" ;;
esac
echo "== done ($(date +%T))"
