"""Presets for SLURM, SkyPilot and as Ray jobs: bash reads them, and veRL joins the Ray that is there.

A task of SkyPilot was also read by SkyPilot 0.14.1 itself (`sky.Task.from_yaml`), which is not installed here.
"""

import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from waiting import wait_until

from launcher.scripts.exporter import ray_job, sky, slurm


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gsm8k-0.5b-24gb", "toy-cpu"])
def test_bash_reads_them_and_ray_is_not_started_by_verl(name: str) -> None:
    for export in (slurm, ray_job):
        text = export(name, None, Path("/x"))
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert "num_cpus" not in text and "address=local" not in text


def test_a_batch_script_starts_ray_on_all_nodes_and_then_trains(tmp_path: Path) -> None:
    """With programs in place of those of SLURM and Python, which note how they are called."""
    programs = {
        "scontrol": 'printf "a\\nb\\n"',
        "srun": 'case "$*" in *hostname*) echo 10.0.0.1;; *) echo "srun $*" >> "$CALLS";; esac',
        "sleep": "true",
        "python3": 'case $2 in *ray*) echo 2;; *) echo "python3 $RAY_ADDRESS ${#RAY_AUTH_TOKEN} $*" >> "$CALLS";; esac',
    }
    for program, text in programs.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    calls = tmp_path / "calls"
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b", "CALLS": str(calls)}
    text = slurm("gsm8k-0.5b-24gb", "0.9.1", Path("/x"))
    subprocess.run(["bash", "-c", text, "sbatch", "trainer.nnodes=2"], env=env, check=True)
    wait_until(lambda: len(calls.read_text().splitlines()) == 3, calls.read_text)  # two of them in the background
    *started, trained = sorted(calls.read_text().splitlines(), reverse=True)
    assert sum("--head" in line for line in started) == 1
    others = "--nodes=1 --ntasks=1 --ntasks-per-node=1 --exclude=a"
    assert any(others in line and "--address=10.0.0.1:20007" in line for line in started)
    assert trained.startswith("python3 10.0.0.1:20007 64 -u -m verl.trainer.main_ppo ") and trained.endswith("=2")


def test_a_sky_task_starts_ray_on_all_nodes_and_trains_on_the_first(tmp_path: Path) -> None:
    data = tmp_path / "train.parquet"
    data.touch()
    programs = {
        "ray": 'echo "ray $*" >> "$CALLS"',
        "sleep": "true",
        "python": 'case $2 in *ray*) echo 2;; *) echo "python $RAY_ADDRESS $PYTHONPATH $*" >> "$CALLS";; esac',
    }
    verl = tmp_path / "verl" / "bin"
    verl.mkdir(parents=True)
    (verl / "activate").write_text(f"PATH={verl}:$PATH\n")
    for program, text in programs.items():
        (verl / program).write_text(f"#!/bin/sh\n{text}\n")
        (verl / program).chmod(0o755)
    preset = tmp_path / "mine.yaml"
    preset.write_text(f"extends: math-7b-8gpu\ndata:\n  train: {data}\n  val: /nowhere/x\ntrainer:\n  nodes: 2\n")
    text = sky(str(preset), "0.9.1", Path("/tmp/out"))
    task = YAML(typ="safe").load(text)
    assert (task["num_nodes"], task["resources"]["accelerators"]) == (2, {"A100-80GB": 8, "H100": 8})
    assert task["file_mounts"][str(data)] == str(data) and "not copied: /nowhere/x" in text
    subprocess.run(["bash", "-n"], input=task["setup"], text=True, check=True)
    assert "env_vars.PYTHONPATH" not in text
    calls = tmp_path / "calls"
    for rank in "10":
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CALLS": str(calls), "SKYPILOT_NODE_RANK": rank}
        env |= {"SKYPILOT_NODE_IPS": "127.0.0.1\n10.0.0.2", "SKYPILOT_NUM_NODES": "2"}
        script = task["run"].replace("until (: < ", "until true || (: < ")  # nothing listens there
        subprocess.run(["bash", "-c", script], env=env, check=True)
    follows, head, trained, stopped = calls.read_text().splitlines()
    assert "--address=127.0.0.1:6379 --block" in follows and "--head --node-ip-address=127.0.0.1" in head
    assert trained.startswith(f"python 127.0.0.1:6379 {tmp_path}/ppo-tui -u -m verl.trainer.main_ppo ")
    assert stopped == "ray stop --force"
