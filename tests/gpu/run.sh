#!/bin/bash
# run.sh: everything of docs/evidence/gpus.md, unattended, on a host with GPUs and no network. Marks its way with "== ".
#
#   tests/gpu/run.sh [NAME ...]  on the GPU host, when the parts of pack.sh lie in $KIT/parts (KIT: ~/kit)
#   FLASH=1 tests/gpu/run.sh ... the same with flash-attn, its kernels by PyTorch (flash_attn_2_cuda.py)
#   tests/gpu/run.sh second [third | fourth NAME ...]  a campaign, until $KIT/t0 (when the host was there) is 23 minutes ago
#   tests/gpu/run.sh rehearse [second [NAME ...]]  the same flow on this machine's CPU with toy-cpu, in about ten minutes
#
# Results, as they come: $KIT/results/*.json, captures/*.txt and runs.tgz; `python tests/gpu/report.py` makes
# the tables of docs/evidence/gpus.md of them. A queue a GPU, side by side; what does not come off is recorded, tried once
# more at the end, and the rest goes on. Four cold starts side by side take four to five minutes to their first step.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export KIT=${KIT:-$HOME/kit} PYTHONUNBUFFERED=1
mkdir -p "$KIT/results"
if [ "${1:-}" = rehearse ]; then
    export PPO_TUI=${PPO_TUI:-$root/.venv/bin/ppo-tui}
    export PYTHONPATH=$root:$root/tests/support:$root/tests/gpu/hang
    exec "${PYTHON:-$root/.venv/bin/python}" "$root/tests/gpu/suite.py" "$@"
fi
if [ ! -e "$KIT/installed" ]; then
    bash "$root/tests/gpu/warm.sh" &
    echo "== veRL, the model and the data ($(date +%T))"
    [ -e "$KIT/test.parquet" ] || { cat "$KIT"/parts/stack.* | tar -xC "$KIT/parts" && bash "$KIT/parts/boot.sh"; }
    python3 -m compileall -q -j 0 "$KIT/site" > /dev/null & # else each process does it
    compiled=$!
    echo "== models of the presets' sizes with random weights ($(date +%T))"
    python3 "$root/tests/gpu/models.py" "$KIT" tasks
    PYTHONPATH=$KIT/site python3 "$root/tests/gpu/models.py" "$KIT" $([ "${2:-}" = fourth ] && echo qwen-0.5b) > "$KIT/models.log" 2>&1 &
    models=$!
    bash "$root/tests/gpu/app.sh"
    mkdir -p "$KIT/flash/flash_attn-2.8.3.dist-info"
    tar -xzf "$KIT/parts/flash.tgz" -C "$KIT/flash"
    printf 'Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.3\n' > "$KIT/flash/flash_attn-2.8.3.dist-info/METADATA"
    echo flash_attn > "$KIT/flash/flash_attn-2.8.3.dist-info/top_level.txt"
    cp "$root/tests/gpu/flash_attn_2_cuda.py" "$KIT/flash/"
    wait $compiled || true
    [ "${1:-}" = second ] || wait $models # it needs them minutes later
    touch "$KIT/installed"
fi
# veRL lives in another interpreter than ppo-tui, as on many hosts.
export PPO_TUI=$KIT/app/bin/ppo-tui PPO_TUI_PYTHON=${PPO_TUI_PYTHON:-$(command -v python3)} PPO_TUI_HOME=$KIT/home
export PYTHONPATH=${FLASH:+$KIT/flash:}$KIT/site:$root/tests/support:$root/tests/gpu/hang HF_HUB_OFFLINE=1 VLLM_USE_FLASHINFER_SAMPLER=0
unset PYTHONDONTWRITEBYTECODE
if [ "${1:-}" = second ]; then
    ulimit -n 65536 || true
    # Ray's own guard knows little of a host that shows its memory bit by bit; the suite counts it
    export UNTIL=${UNTIL:-$(($(cat "$KIT/t0") + 1380))} RAY_memory_monitor_refresh_ms=0
fi
"$KIT/app/bin/python" "$root/tests/gpu/suite.py" "$@" || echo "== the suite ended with $?"
touch "$KIT/done"
