"""A preset for clusters that others run: a SLURM batch script, and the command that submits a Ray job."""

import json
import re
import shlex
from pathlib import Path

import launcher
from launcher.jobs import STOP_WAIT, url_of
from launcher.preset.shell import about, command_line, launch_of

_LEFT_OUT = ("PYTHONPATH",)  # a path of this machine; the package is uploaded instead

_SLURM = """\
set -euo pipefail

nodes=({nodes_of})
head=${{nodes[0]}}
ip=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{{print $1}}')
port=$((20000 + SLURM_JOB_ID % 10000))
export RAY_ADDRESS="$ip:$port"
# without a token anybody who reaches these machines could run code on them
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \\n')
export RAY_AUTH_TOKEN

ray=({python} -m ray.scripts.scripts)
start=(start --block --num-gpus={gpus} --disable-usage-stats)
# Ray runs until this script ends, and SLURM ends what the script has started
srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" \\
  "${{ray[@]}}" "${{start[@]}}" --head --node-ip-address="$ip" --port="$port" --include-dashboard=false &
if ((${{#nodes[@]}} > 1)); then
  sleep 10
  others=$((${{#nodes[@]}} - 1))
  srun --overlap --nodes="$others" --ntasks="$others" --ntasks-per-node=1 --exclude="$head" \\
    "${{ray[@]}}" "${{start[@]}}" --address="$RAY_ADDRESS" &
fi

alive='import ray; ray.init(logging_level="ERROR"); print(sum(node["Alive"] for node in ray.nodes()))'
for ((try = 0; try < 60; try++)); do
  there=$({python} -c "$alive" 2>/dev/null || echo 0)
  if ((there >= ${{#nodes[@]}})); then break; fi
  sleep 5
done
if ((there < ${{#nodes[@]}})); then
  echo "only $there of ${{#nodes[@]}} nodes joined the Ray cluster" >&2
  exit 1
fi

"""


def slurm(name: str, version: str | None, below: Path) -> str:
    """A batch script that starts Ray on the nodes of an allocation and runs the preset; as `shell.script`."""
    loaded, launch, version = launch_of(name, version, below, ["cluster.address=auto", "cluster.submit=false"])
    trainer = loaded.preset.trainer
    options = {
        "job-name": re.sub(r"[^\w.-]", "-", loaded.name),
        "nodes": trainer.nodes,
        "ntasks-per-node": 1,
        "gpus-per-node": None if trainer.device == "cpu" else trainer.gpus,
        "exclusive": "",
        "output": "%x-%j.log",
    }
    said = [f"--{key}={value}" if value != "" else f"--{key}" for key, value in options.items() if value is not None]
    body = _SLURM.format(
        nodes_of='$(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        python=shlex.quote(launch.argv[0]),
        gpus=trainer.gpus,
    )
    return (
        "#!/usr/bin/env bash\n"
        + "".join(f"#SBATCH {option}\n" for option in said)
        + about(loaded, launch, version)
        + body
        + f'{command_line(launch)} \\\n  "$@"\n'
    )


def ray_job(name: str, version: str | None, below: Path) -> str:
    """The `ray job submit` line of a preset; as `shell.script`."""
    loaded, launch, version = launch_of(name, version, below, ["cluster.submit=true"])
    env = {key: value for key, value in launch.env.items() if key not in _LEFT_OUT}
    env |= {"RAY_OVERRIDE_JOB_RUNTIME_ENV": "1", "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT)}
    runtime = {"env_vars": env, "py_modules": [launcher.__path__[0]]}
    words = [f"--address={url_of(launch.submit)}", f"--runtime-env-json={json.dumps(runtime)}", "--", *launch.argv]
    lines = " \\\n  ".join(["ray job submit", *map(shlex.quote, words), '"$@"'])
    return f"#!/usr/bin/env bash\n{about(loaded, launch, version)}set -euo pipefail\n\n{lines}\n"
