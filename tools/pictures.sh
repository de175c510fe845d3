#!/usr/bin/env bash
# The pictures of README and docs/start/dashboard.md, from the recorded runs of the tests: make pictures
set -euo pipefail
cd "$(dirname "$0")/.."
tar -xJf tests/data/gpu/list-numbers.tar.xz -C "$PPO_TUI_HOME"
shown=$PPO_TUI_HOME/runs/6c844c-list-numbers
.venv/bin/python tools/screenshot.py "$shown" docs/pictures/dashboard-dark.png # shows a list of what rose while nobody looked
for theme in dark light; do
  .venv/bin/python tools/screenshot.py "$shown" docs/pictures/dashboard-$theme.png --theme $theme
done
logs=tests/data/logs
flagged=$(.venv/bin/ppo-tui import $logs/kl-blowup.log.gz $logs/kl-blowup.jsonl.gz)
.venv/bin/python tools/screenshot.py "$PPO_TUI_HOME/runs/$flagged" docs/pictures/dashboard-flagged.png
