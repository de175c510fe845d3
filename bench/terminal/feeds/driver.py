"""Replaces veRL below a real supervisor: writes to console and file logger what veRL would write."""

import json
import os
import sys
from pathlib import Path

from figures import TOTAL, paced

TASK = "\x1b[36m(TaskRunnerV1 pid=3018)\x1b[0m"

with Path(os.environ["VERL_FILE_LOGGER_PATH"]).open("w", buffering=1) as file:
    for number, data in paced(Path(sys.argv[1])):
        file.write(json.dumps({"step": number, "data": data}) + "\n")
        values = " - ".join(f"{key}:{value!r}" for key, value in data.items())
        print(f"{TASK} step:{number} - {values}", flush=True)
        share = number / TOTAL
        print(f"{TASK} Training Progress: {share:4.0%}|{'█' * int(10 * share):<10}| {number}/{TOTAL}", flush=True)
