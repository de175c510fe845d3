#!/bin/bash
# home.sh [SECONDS]: waits so long at most for the end of the suite, then copies what there is into $OUT: the results
# and the run directories of all homes without checkpoints, in pieces that come back.
export KIT=${KIT:-$HOME/kit}
for _ in $(seq $((${1:-0} / 5))); do
    [ -e "$KIT/done" ] && break
    sleep 5
done
cp "$KIT/log" "$OUT/log.txt"
cd "$KIT" && tar -cz results | split -b 15000000 - "$OUT/results.tgz."
find home*/runs home*/queue home*/presets -type f -size -8M \
    -not -path '*/checkpoints/*' -not -path '*/protected/*' -not -path '*/best/*' -not -path '*/hydra/*' -print0 |
    tar -cz --null -T - 2> /dev/null | split -b 15000000 - "$OUT/runs.tgz."
ls -la "$OUT"
grep '^==' "$KIT/log" | tail -70
uptime
nvidia-smi --query-gpu=memory.used,utilization.gpu --format=csv,noheader
awk '/MemTotal|MemAvailable/' /proc/meminfo
df -h "$KIT" | tail -1
