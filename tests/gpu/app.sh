#!/bin/bash
# app.sh [fixed]: ppo-tui from its own wheel, in a virtual environment of its own, once. With `fixed` then what its spans
# cost, beside the uploads: that needs neither veRL nor a model.
set -euo pipefail
export KIT=${KIT:-$HOME/kit}
root=$(cd "$(dirname "$0")/../.." && pwd)
exec 9> "$KIT/app.lock"
flock 9
if [ ! -e "$KIT/app/ready" ]; then
    echo "== ppo-tui ($(date +%T))"
    python3 -m venv "$KIT/app"
    "$KIT/app/bin/pip" -q install --no-index --find-links "$KIT/parts" ppo-tui pyte py-spy
    touch "$KIT/app/ready"
fi
exec 9>&-
[ "${1:-}" = fixed ] || exit 0
export PPO_TUI=$KIT/app/bin/ppo-tui PPO_TUI_PYTHON=$(command -v python3) PPO_TUI_HOME=$KIT/home-fixed
PYTHONPATH=$root/tests/support "$KIT/app/bin/python" "$root/tests/gpu/suite.py" fixed-spans
