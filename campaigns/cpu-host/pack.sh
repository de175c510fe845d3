#!/bin/bash
# pack.sh OUT: fills OUT/.h0 to OUT/.h2 with what a host without a network needs for toy runs on its CPUs: the pins of
# launcher/verl/requirements-cpu.txt as a folder for PYTHONPATH, in three parts, and this checkout with the toy's
# model and data.
# The host has Python 3.12, torch, and the packages in `there`, whatever their versions. `pack.sh OUT code` packs the
# checkout alone, after a change. Two minutes, 1 GB of disk; the toy must have been built (`ppo-tui data toy`).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd) out=$(cd "$1" && pwd) work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
there="torch numpy pandas pyarrow pillow sympy networkx mpmath grpcio tensorboard tensorboard-data-server absl-py
    accelerate peft regex hf-xet wandb mypy ruff hypothesis pytest pytest-asyncio pytest-xdist pytest-textual-snapshot
    syrupy execnet psutil PyYAML safetensors yarl aiohttp multidict frozenlist xxhash"
PYTHON=${PYTHON:-$root/.venv/bin/python}
cache=$("$PYTHON" -c 'from launcher.core.paths import cache_dir; print(cache_dir())')
if [ "${2:-}" != code ]; then
    grep -E '^[A-Za-z0-9]' "$root/launcher/verl/requirements-cpu.txt" | grep -viE "^($(echo $there | tr ' ' '|'))==" > "$work/pins"
    "$PYTHON" -m venv "$work/uv" && "$work/uv/bin/pip" -q install uv
    "$work/uv/bin/uv" pip install -q --python-version 3.12 --python-platform x86_64-manylinux_2_35 --no-deps \
        --target "$work/site" -r "$work/pins"
    find "$work/site" \( -name '*.pyi' -o -name '*.h' -o -name '*.js.map' \) -delete
    rm -rf "$work/site/bin" "$work/site/ray/jars" "$work/site/ray/dashboard/client"
    rm -rf "$out"/.h[0-9]
    tar -C "$work/site" -czf - . | split -n 3 -d -a 1 - "$work/part." # each with the checkout below 64 MiB
    for n in 0 1 2; do
        mkdir "$out/.h$n" && mv "$work/part.$n" "$out/.h$n/"
    done
fi
tar -C "$root" --exclude=.git --exclude='__pycache__' --exclude='.*_cache' --exclude=tests/data --exclude=docs \
    --exclude='.h[0-9]' --exclude=.venv -czf "$out/.h2/code.tgz" .
tar -C "$cache" -czf "$out/.h2/toy.tgz" toy
cp "$root/campaigns/cpu-host/run.sh" "$out/.h2/"
du -sm "$out"/.h[0-9]
