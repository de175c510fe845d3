"""A run with names of people and machines and with secrets in every file behind texts for strangers."""

from pathlib import Path

import orjson
from whole_run import whole_run

from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.record.ray_session import RaySession

TOKEN = "hf_abcdefghijklmnopqrstuvwxyzABCDEF"
PLANTED = (
    "margaux",
    "gpu-box-17",
    "10.31.4.7",
    "fe80::1c2d:3eff:fe4f:5a6b",
    TOKEN,
    "margaux@example.org",
    "hunter2hunter2",
)


def planted_run(home: Path) -> RunDir:
    """A failed run with names and secrets in every file that a bundle reads."""
    run = whole_run(home / "home")
    attempt = run.attempt(1)
    line = (
        "(TaskRunner pid=7, ip=10.31.4.7) /mnt/home/margaux/verl/x.py: HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEF "
        "on gpu-box-17.cluster.example.org by margaux@example.org in /scratch/margaux_run [fe80::1c2d:3eff:fe4f:5a6b] "
        "postgres://margaux:hunter2hunter2@gpu-box-17/db raylet died"
    )
    attempt.console.write_text(
        f"{line}\n{attempt.console.read_text()}{line}\nFatal Python error: Aborted\n\nThread 0x7f\n"
    )
    attempt.stall.write_text(f"## Stacks\n{line}\n")
    (attempt.hydra / "config").mkdir(parents=True)
    (attempt.hydra / "config" / "config.yaml").write_text(f"data:\n  files: /Users/margaux/a.parquet # {line}\n")
    logs = home / "ray" / "session_1" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text(line)
    status = logs.parent.stat()
    RaySession(str(logs.parent), status.st_dev, status.st_ino).write(attempt.ray)
    told = run.read_info().to_json()
    told |= {"host": {"name": "gpu-box-17.cluster.example.org", "system": "Linux"}, "env": {"HOME": "/nfs/margaux"}}
    told["argv"] = ["/home/margaux/.venv/bin/python", "-m", "verl.trainer.main_ppo", "data.train_files=/nfs/margaux/a"]
    RunInfo.from_json(told).write(run.run_yaml)
    gpu = {"index": 0, "name": "H200", "holders": [{"pid": 7, "whose": "others", "user": "margaux", "name": "python"}]}
    run.machine.write_bytes(orjson.dumps({"t": 1.0, "gpus": [gpu], "nodes": [{"name": "gpu-box-17"}]}) + b"\n")
    return run
