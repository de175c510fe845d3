"""A preset as a script: plain bash, a SLURM batch script, a task of SkyPilot, the command of a Ray job."""

import dataclasses
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from launcher import inside
from launcher.core.text import clean
from launcher.machine.ray_jobs import STOP_WAIT, url_of
from launcher.preset.files import LoadedPreset, load
from launcher.preset.schema import FIELDS, value_of
from launcher.preset.translate import Launch, RunFolders, build, command_line
from launcher.verl import env as verl_env
from launcher.verl.defaults import NEWEST
from launcher.verl.versions import ignored

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

count=${{#nodes[@]}}
"""

_ALL_THERE = """\
alive='import ray; ray.init(logging_level="ERROR"); print(sum(node["Alive"] for node in ray.nodes()))'
for ((try = 0; try < 60; try++)); do
  there=$({python} -c "$alive" 2>/dev/null || echo 0)
  if ((there >= count)); then break; fi
  sleep 5
done
if ((there < count)); then
  echo "only $there of $count nodes joined the Ray cluster" >&2
  exit 1
fi

"""

_SKY_SETUP = """\
python3 -m venv ~/verl
~/verl/bin/pip install 'verl[vllm]=={version}' 'ray[default]'{more}
"""

_SKY = """\
set -euo pipefail
source ~/verl/bin/activate
export PYTHONPATH="$HOME/ppo-tui"
head=$(head -n 1 <<< "$SKYPILOT_NODE_IPS")
export RAY_ADDRESS="$head:6379" RAY_AUTH_MODE=token  # SkyPilot has a Ray of its own at another port
start=(ray start --num-gpus={gpus} --disable-usage-stats)
if [ "$SKYPILOT_NODE_RANK" != 0 ]; then
  until (: < "/dev/tcp/$head/6379") 2>/dev/null; do sleep 5; done
  "${{start[@]}}" --address="$RAY_ADDRESS" --block || true  # it ends with the head
  exit 0
fi
"${{start[@]}}" --head --node-ip-address="$head" --port=6379 --include-dashboard=false
trap 'ray stop --force' EXIT
count=$SKYPILOT_NUM_NODES
"""

# GiB of a GPU -> what SkyPilot may take, the cheapest of them
_ACCELERATORS = {
    24: ("L4", "A10G", "RTX4090"),
    40: ("A100",),
    48: ("L40S", "A6000"),
    80: ("A100-80GB", "H100"),
    141: ("H200",),
    180: ("B200",),
}
_GIB = re.compile(r"(\d+) ?Gi?B")


def script(name: str, version: str | None, below: Path) -> str:
    """A preset as a script for veRL `version` (the installed one when None), which writes below a folder.

    Where the version is named, veRL need not be installed here: the script then says `python3`. Raises
    UserError for a preset that veRL cannot run.
    """
    loaded, launch, version = launch_of(name, version, below)
    return (
        f'#!/usr/bin/env bash\n{about(loaded, launch, version)}set -euo pipefail\n\n{command_line(launch)} \\\n  "$@"\n'
    )


def launch_of(
    name: str, version: str | None, below: Path, settings: Sequence[str] = ()
) -> tuple[LoadedPreset, Launch, str]:
    """What a script for veRL `version` runs, as `script`; and the version."""
    loaded, python = load(name, settings), "python3"
    if version is None:
        env = verl_env.of(loaded.preset.python, loaded.preset.own_verl)
        version, python = env.verl or NEWEST, env.python if env.verl else python
    return loaded, build(loaded, version=version, folders=RunFolders.below(below), python=python), version


def about(loaded: LoadedPreset, launch: Launch, version: str) -> str:
    """What a script is, and what of it has no effect: comments."""
    said = " ".join(clean(loaded.preset.description).split())  # a comment ends with its line
    lines = [f"# {loaded.name}, for veRL {version}; written by ppo-tui."] + ([f"# {said}"] if said else [])
    lines += [f"# veRL {version} ignores {key}: {why}." for key, why in ignored(launch.keys, version)]
    return "\n".join(lines) + "\n\n"


def slurm(name: str, version: str | None, below: Path) -> str:
    """A batch script that starts Ray on the nodes of an allocation and runs the preset; as `script`."""
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
    python = shlex.quote(launch.argv[0])
    nodes = '$(scontrol show hostnames "$SLURM_JOB_NODELIST")'
    body = _SLURM.format(nodes_of=nodes, python=python, gpus=trainer.gpus) + _ALL_THERE.format(python=python)
    return (
        "#!/usr/bin/env bash\n"
        + "".join(f"#SBATCH {option}\n" for option in said)
        + about(loaded, launch, version)
        + body
        + f'{command_line(launch)} \\\n  "$@"\n'
    )


def sky(name: str, version: str | None, below: Path) -> str:
    """A SkyPilot task, as YAML: the machines, veRL on each of them, Ray over them, the preset on the first.

    What the preset names here and that exists here is copied to the machines under the same path; `below` is a folder
    of theirs.
    """
    loaded, launch, version = launch_of(name, version, below, ["cluster.address=auto", "cluster.submit=false"])
    trainer, home = loaded.preset.trainer, "~/ppo-tui"
    env = {key: value for key, value in launch.env.items() if key not in _LEFT_OUT}
    words = [word for word in launch.argv[1:] if not any(f".env_vars.{name}=" in word for name in _LEFT_OUT)]
    there = dataclasses.replace(launch, env=env, argv=["python", *words])
    found, missing = _local_files(loaded)
    files = {home: str(inside.FOLDER), **{path: path for path in found}}
    more = " TransferQueue==0.1.11 tensordict==0.10.0" if version.startswith("0.9") else ""
    run = _SKY.format(gpus=trainer.gpus) + _ALL_THERE.format(python="python") + command_line(there)
    gpus = dict.fromkeys(_accelerators(loaded.preset.needs), trainer.gpus)
    lines = [
        f"name: {json.dumps(re.sub(r'[^a-zA-Z0-9-]', '-', loaded.name))}",
        f"num_nodes: {trainer.nodes}",
        *([] if trainer.device == "cpu" else [f"resources:\n  accelerators: {json.dumps(gpus)}"]),
        "# of your choice, such as what `openssl rand -hex 32` prints: sky launch --secret RAY_AUTH_TOKEN FILE",
        "secrets:\n  RAY_AUTH_TOKEN: null",
        "file_mounts:\n" + "\n".join(f"  {json.dumps(to)}: {json.dumps(of)}" for to, of in files.items()),
        *(f"# not here, so it is not copied: {clean(path)}" for path in missing),
        f"# checkpoints lie in {below}: mount a bucket there to keep them, and to resume over several nodes",
        f"setup: |\n{_indented(_SKY_SETUP.format(version=version, more=more))}",
        f"run: |\n{_indented(run)}",
    ]
    return about(loaded, launch, version) + "\n".join(lines) + "\n"


def _local_files(loaded: LoadedPreset) -> tuple[list[str], list[str]]:
    """Files and folders that the preset names: those that are here, and those that are not."""
    values = [value_of(loaded.preset, spec) for spec in FIELDS.values() if spec.kind in ("path", "path or name")]
    named = (str(each) for value in values if value for each in (value if isinstance(value, list) else [value]))
    paths = [path for path in dict.fromkeys(named) if Path(path).is_absolute()]
    return [path for path in paths if Path(path).exists()], [path for path in paths if not Path(path).exists()]


def _accelerators(needs: str) -> tuple[str, ...]:
    """GPUs with at least the memory that a preset says it needs."""
    found = _GIB.search(needs)
    size = next((size for size in _ACCELERATORS if found and size >= int(found[1])), 80)
    return _ACCELERATORS[size]


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())


def ray_job(name: str, version: str | None, below: Path) -> str:
    """The `ray job submit` line of a preset; as `script`."""
    loaded, launch, version = launch_of(name, version, below, ["cluster.submit=true"])
    env = {key: value for key, value in launch.env.items() if key not in _LEFT_OUT}
    env |= {"RAY_OVERRIDE_JOB_RUNTIME_ENV": "1", "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT)}
    runtime = {"env_vars": env, "py_modules": [str(inside.FOLDER / inside.PACKAGE)]}
    words = [f"--address={url_of(launch.submit)}", f"--runtime-env-json={json.dumps(runtime)}", "--", *launch.argv]
    lines = " \\\n  ".join(["ray job submit", *map(shlex.quote, words), '"$@"'])
    return f"#!/usr/bin/env bash\n{about(loaded, launch, version)}set -euo pipefail\n\n{lines}\n"
