#!/bin/bash
# pack.sh GPU_KIT_SCRIPTS: fills .c0 ... .c9 and .cw in the root of the checkout for a GPU host without a network: veRL's
# stack (by the pack.sh of that folder, `../shared/gpu` in our workplace) and, in .cw, the wheel of this checkout
# with what it needs. A part travels with the checkout, and both together must be below 64 MiB: the first ten are of
# one size. `pack.sh wheel` makes .cw alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$1" = wheel ] || { bash "$1/pack.sh" "$PWD" && mv .c7/*gz .c0/ && mkdir -p .c9 && python3 tests/gpu/even.py .c[0-9]; }
pip="${PYTHON:-.venv/bin/python} -m pip --disable-pip-version-check -q"
platforms=$(printf -- '--platform manylinux%s_x86_64 ' _2_35 _2_28 _2_27 _2_17 _2_12 2014 1)
rm -rf .cw
$pip wheel --no-deps -w .cw . antlr4-python3-runtime==4.9.3 # hydra's parser: the one without a wheel
rm -rf build
# shellcheck disable=SC2086
$pip download --only-binary=:all: --python-version 3.12 --implementation cp $platforms --platform any \
    --find-links .cw -d .cw .cw/ppo_tui-*.whl pyte py-spy
# flash-attn's Python part; flash_attn_2_cuda.py stands in for its compiled one
sources=https://files.pythonhosted.org/packages/3b/b2/8d76c41ad7974ee264754709c22963447f7f8134613fd9ce80984ed0dab7
curl -sf "$sources/flash_attn-2.8.3.tar.gz" |
    tar -xz --strip-components=1 -C .cw --exclude '*/cute' --exclude '*_amd' flash_attn-2.8.3/flash_attn
tar -C .cw -czf .cw/flash.tgz flash_attn && rm -r .cw/flash_attn
du -sm .c[0-9w]
for part in .c[0-9w]; do
    size=$({ git ls-files -z --cached --others --exclude-standard && find "$part" -type f -print0; } | tar -c --null -T - | wc -c)
    [ "$size" -lt $((62 << 20)) ] || { echo "$part and the checkout are $((size >> 20)) MiB, 62 are allowed" >&2; exit 1; }
done
