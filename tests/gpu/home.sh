#!/bin/bash
# home.sh [SECONDS]: waits so long at most for the end of the suite, then copies what there is into $OUT: the results,
# the report of the show run, and the run directories of all homes without checkpoints and samples (but those of the
# show run), in pieces that come back.
export KIT=${KIT:-$HOME/kit}
for _ in $(seq $((${1:-0} / 5))); do
    [ -e "$KIT/done" ] && break
    sleep 5
done
PPO_TUI_HOME=$KIT/home timeout 40 "$KIT/app/bin/ppo-tui" report list-numbers --to "$KIT/results/so-far.html" 2> /dev/null
cp "$KIT/log" "$OUT/log.txt"
cd "$KIT" && tar -cz --exclude=runs.tgz results early.log 2> /dev/null | split -b 15000000 - "$OUT/results.tgz."
find home*/runs home*/queue home*/presets -type f -size -8M \( -not -path '*/samples/*' -o -path '*list-numbers*' \) \
    -not -path '*/checkpoints/*' -not -path '*/protected/*' -not -path '*/best/*' -not -path '*/hydra/*' -print0 |
    tar -cz --null -T - 2> /dev/null | split -b 15000000 - "$OUT/runs.tgz."
ls -la "$OUT"
grep '^==' "$KIT/log" | tail -70
uptime
nvidia-smi --query-gpu=memory.used,utilization.gpu --format=csv,noheader
awk '/MemTotal|MemAvailable/' /proc/meminfo
df -h "$KIT" | tail -1
