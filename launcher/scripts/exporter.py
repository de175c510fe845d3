"""A preset as a script: plain bash, a SLURM batch script, a SkyPilot task, a Ray job command."""

import dataclasses
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from launcher import inside
from launcher.core.tables import tables_of
from launcher.core.text import clean
from launcher.machine.ray_jobs import STOP_WAIT, url_of
from launcher.preset.files import LoadedPreset, load
from launcher.preset.schema import FIELDS, value_of
from launcher.preset.translate import Launch, RunFolders, build, command_line
from launcher.verl import env as verl_env
from launcher.verl.defaults import NEWEST
from launcher.verl.versions import ignored

_LEFT_OUT = ("PYTHONPATH",)  # a path of this machine; the package is uploaded instead

_TABLES = tables_of(__file__)
_GIB = re.compile(r"(\d+) ?Gi?B")


def script(name: str, version: str | None, below: Path) -> str:
    """A preset as a script for veRL `version` (None: the installed one), which writes below a folder.

    A given version need not be installed: the script then uses `python3`. Raises UserError for a preset that veRL
    cannot run.
    """
    loaded, launch, version = launch_of(name, version, below)
    return (
        f'#!/usr/bin/env bash\n{about(loaded, launch, version)}set -euo pipefail\n\n{command_line(launch)} \\\n  "$@"\n'
    )


def launch_of(
    name: str, version: str | None, below: Path, settings: Sequence[str] = ()
) -> tuple[LoadedPreset, Launch, str]:
    """The preset, the launch of a script for veRL `version` (see `script`), and the version."""
    loaded, python = load(name, settings), "python3"
    if version is None:
        env = verl_env.of(loaded.preset.python, loaded.preset.own_verl)
        version, python = env.verl or NEWEST, env.python if env.verl else python
    return loaded, build(loaded, version=version, folders=RunFolders.below(below), python=python), version


def about(loaded: LoadedPreset, launch: Launch, version: str) -> str:
    """Comments: the command of the script, and its settings without effect."""
    said = " ".join(clean(loaded.preset.description).split())  # a comment ends with its line
    lines = [f"# {loaded.name}, for veRL {version}; written by ppo-tui."] + ([f"# {said}"] if said else [])
    lines += [f"# veRL {version} ignores {key}: {why}." for key, why in ignored(launch.keys, version)]
    return "\n".join(lines) + "\n\n"


def slurm(name: str, version: str | None, below: Path) -> str:
    """A batch script that starts Ray on the nodes of an allocation and runs the preset; see `script`."""
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
    body = _part("slurm", nodes_of=nodes, python=python, gpus=trainer.gpus) + _part("all_there", python=python)
    return (
        "#!/usr/bin/env bash\n"
        + "".join(f"#SBATCH {option}\n" for option in said)
        + about(loaded, launch, version)
        + body
        + f'{command_line(launch)} \\\n  "$@"\n'
    )


def sky(name: str, version: str | None, below: Path) -> str:
    """A SkyPilot task in YAML: the machines, veRL and Ray on them, the preset on the first.

    Existing files named in the preset are copied to the machines under the same path; `below` is a folder there.
    """
    loaded, launch, version = launch_of(name, version, below, ["cluster.address=auto", "cluster.submit=false"])
    trainer, home = loaded.preset.trainer, "~/ppo-tui"
    env = {key: value for key, value in launch.env.items() if key not in _LEFT_OUT}
    words = [word for word in launch.argv[1:] if not any(f".env_vars.{name}=" in word for name in _LEFT_OUT)]
    there = dataclasses.replace(launch, env=env, argv=["python", *words])
    found, missing = _local_files(loaded)
    files = {home: str(inside.FOLDER), **{path: path for path in found}}
    more = " TransferQueue==0.1.11 tensordict==0.10.0" if version.startswith("0.9") else ""
    run = _part("sky", gpus=trainer.gpus) + _part("all_there", python="python") + command_line(there)
    setup = _part("sky_setup", version=version, more=more)
    needed = _GIB.search(loaded.preset.needs)  # GPUs with at least the memory that the preset says it needs
    known: dict[str, list[str]] = _TABLES["accelerators"]
    size = next((size for size in known if needed and int(size) >= int(needed[1])), "80")
    gpus = dict.fromkeys(known[size], trainer.gpus)
    lines = [
        f"name: {json.dumps(re.sub(r'[^a-zA-Z0-9-]', '-', loaded.name))}",
        f"num_nodes: {trainer.nodes}",
        *([] if trainer.device == "cpu" else [f"resources:\n  accelerators: {json.dumps(gpus)}"]),
        "# of your choice, such as what `openssl rand -hex 32` prints: sky launch --secret RAY_AUTH_TOKEN FILE",
        "secrets:\n  RAY_AUTH_TOKEN: null",
        "file_mounts:\n" + "\n".join(f"  {json.dumps(to)}: {json.dumps(of)}" for to, of in files.items()),
        *(f"# not here, so it is not copied: {clean(path)}" for path in missing),
        f"# checkpoints are in {below}: mount a bucket there to keep them, and to resume over several nodes",
        f"setup: |\n{_indented(setup)}",
        f"run: |\n{_indented(run)}",
    ]
    return about(loaded, launch, version) + "\n".join(lines) + "\n"


def _local_files(loaded: LoadedPreset) -> tuple[list[str], list[str]]:
    """Files and folders named in the preset: existing and missing ones."""
    values = [value_of(loaded.preset, spec) for spec in FIELDS.values() if spec.kind in ("path", "path or name")]
    named = (str(each) for value in values if value for each in (value if isinstance(value, list) else [value]))
    paths = [path for path in dict.fromkeys(named) if Path(path).is_absolute()]
    return [path for path in paths if Path(path).exists()], [path for path in paths if not Path(path).exists()]


def _part(name: str, **values: object) -> str:
    return str(_TABLES[name]).format(**values)


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())


def ray_job(name: str, version: str | None, below: Path) -> str:
    """The `ray job submit` line of a preset; see `script`."""
    loaded, launch, version = launch_of(name, version, below, ["cluster.submit=true"])
    env = {key: value for key, value in launch.env.items() if key not in _LEFT_OUT}
    env |= {"RAY_OVERRIDE_JOB_RUNTIME_ENV": "1", "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT)}
    runtime = {"env_vars": env, "py_modules": [str(inside.FOLDER / inside.PACKAGE)]}
    words = [f"--address={url_of(launch.submit)}", f"--runtime-env-json={json.dumps(runtime)}", "--", *launch.argv]
    lines = " \\\n  ".join(["ray job submit", *map(shlex.quote, words), '"$@"'])
    return f"#!/usr/bin/env bash\n{about(loaded, launch, version)}set -euo pipefail\n\n{lines}\n"
