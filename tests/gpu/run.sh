#!/bin/bash
# run.sh: the runs of judged.toml, unattended, on a host with GPUs and no network. Marks its way with "== ".
#
#   tests/gpu/run.sh            on the GPU host, when the parts of pack.sh lie in $KIT/parts (KIT: ~/kit), until
#                               $KIT/t0 (when the host was there) is 23 minutes ago
#   tests/gpu/run.sh proof      those of proof.toml instead, each faulty one with its first fix
#   tests/gpu/run.sh rehearse [proof [NAME ...]]   the same flow on this machine's CPU with toy-cpu
#
# Results, as they come: $KIT/results/*.json, judged/*.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export KIT=${KIT:-$HOME/kit} PYTHONUNBUFFERED=1
mkdir -p "$KIT/results"
if [ "${1:-}" = rehearse ]; then
    export PPO_TUI=${PPO_TUI:-$root/.venv/bin/ppo-tui}
    export PYTHONPATH=$root PPO_TUI_HOME=${PPO_TUI_HOME:-$KIT/home}
    "$PPO_TUI" data toy
    "${PYTHON:-$root/.venv/bin/python}" "$root/tests/gpu/models.py" "$KIT" "$PPO_TUI_HOME/cache/toy/data"
    exec "${PYTHON:-$root/.venv/bin/python}" "$root/tests/gpu/suite.py" "$@"
fi
if [ ! -e "$KIT/installed" ]; then
    bash "$root/tests/gpu/warm.sh" &
    echo "== veRL, the model and the data ($(date +%T))"
    [ -e "$KIT/test.parquet" ] || { cat "$KIT"/parts/stack.* | tar -xC "$KIT/parts" && bash "$KIT/parts/boot.sh"; }
    python3 -m compileall -q -j 0 "$KIT/site" > /dev/null & # else each process does it
    compiled=$!
    python3 "$root/tests/gpu/models.py" "$KIT"
    echo "== ppo-tui ($(date +%T))" # from its own wheel, in a virtual environment of its own
    python3 -m venv "$KIT/app"
    "$KIT/app/bin/pip" -q install --no-index --find-links "$KIT/parts" ppo-tui
    wait $compiled || true
    touch "$KIT/installed"
fi
# veRL lives in another interpreter than ppo-tui, as on many hosts.
export PPO_TUI=$KIT/app/bin/ppo-tui PPO_TUI_PYTHON=${PPO_TUI_PYTHON:-$(command -v python3)} PPO_TUI_HOME=$KIT/home
export PYTHONPATH=$KIT/site HF_HUB_OFFLINE=1 VLLM_USE_FLASHINFER_SAMPLER=0
unset PYTHONDONTWRITEBYTECODE
ulimit -n 65536 || true
# Ray's own guard knows little of a host that shows its memory bit by bit; the suite counts it
export UNTIL=${UNTIL:-$(($(cat "$KIT/t0") + 1380))} RAY_memory_monitor_refresh_ms=0
"$KIT/app/bin/python" "$root/tests/gpu/suite.py" "$@" || echo "== the suite ended with $?"
touch "$KIT/done"
