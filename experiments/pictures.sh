#!/usr/bin/env bash
# The pictures of README and docs/evidence/gpus.md, from the recorded runs of the tests: make pictures
set -euo pipefail
cd "$(dirname "$0")/.."
logs=tests/data/logs
toy=$(.venv/bin/ppo-tui import $logs/cpu-toy.log.gz $logs/cpu-toy.jsonl.gz)
flagged=$(.venv/bin/ppo-tui import $logs/kl-blowup.log.gz $logs/kl-blowup.jsonl.gz)
for theme in dark light; do
  .venv/bin/python experiments/screenshot.py "$PPO_TUI_HOME/runs/$toy" docs/pictures/dashboard-$theme.png --theme $theme
done
.venv/bin/python experiments/screenshot.py "$PPO_TUI_HOME/runs/$flagged" docs/pictures/dashboard-flagged.png
tar -xJf tests/data/gpu/runs.tar.xz -C "$PPO_TUI_HOME" runs/7d6e4c-gsm8k-format-reward
for _ in seen again; do # the first time, the screen has a list of what rose while nobody looked
  .venv/bin/python experiments/screenshot.py "$PPO_TUI_HOME/runs/7d6e4c-gsm8k-format-reward" docs/pictures/dashboard-h100.png --size 100x24
done
