#!/bin/bash
# pack.sh GPU_KIT_SCRIPTS: fills .c0 ... .c9, .ca, .cb and .cw in the root of the checkout for a GPU host without a
# network: veRL's stack (by the pack.sh of that folder, `../shared/gpu` in our workplace) in twelve pieces of one size
# and, in .cw, the wheel of this checkout with what it needs. A part travels with the checkout, and both together must
# be below 64 MiB. `pack.sh wheel` makes .cw alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$1" != wheel ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    UV_LINK_MODE=copy bash "$1/pack.sh" "$work" # tar refuses files whose hard links others count up meanwhile
    mkdir "$work/all" && mv "$work"/.c[0-9]/* "$work/all/"
    tar -C "$work/all" -cf "$work/stack" .
    split -n 12 -x -a 1 "$work/stack" "$work/stack."
    rm -rf .c[0-9ab]
    for piece in "$work"/stack.?; do
        mkdir ".c${piece##*.}" && mv "$piece" ".c${piece##*.}/"
    done
fi
pip="${PYTHON:-.venv/bin/python} -m pip --disable-pip-version-check -q"
platforms=$(printf -- '--platform manylinux%s_x86_64 ' _2_35 _2_28 _2_27 _2_17 _2_12 2014 1)
rm -rf .cw
$pip wheel --no-deps -w .cw . antlr4-python3-runtime==4.9.3 # hydra's parser: the one without a wheel
rm -rf build
# shellcheck disable=SC2086
$pip download --only-binary=:all: --python-version 3.12 --implementation cp $platforms --platform any \
    --find-links .cw -d .cw .cw/ppo_tui-*.whl
du -sm .c[0-9abw]
for part in .c[0-9abw]; do
    size=$({ git ls-files -z --cached --others --exclude-standard && find "$part" -type f -print0; } | tar -c --null -T - | wc -c)
    [ "$size" -lt $((62 << 20)) ] || { echo "$part and the checkout are $((size >> 20)) MiB, 62 are allowed" >&2; exit 1; }
done
