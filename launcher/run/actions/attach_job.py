"""Following a job of a Ray cluster that was submitted elsewhere: its run directory is made again from its log."""

import re
import time

import orjson

from launcher.errors import UserError
from launcher.jobs import Cluster, Job
from launcher.preset.translate import Launch
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, appearing
from launcher.run.supervisor.job import METADATA
from launcher.run.supervisor.spawn import kept, spawn_supervisor, write_launch
from launcher.text import did_you_mean

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def attach_job(address: str, id: str) -> RunDir:
    """The run of a job, which is followed from its first byte; on the machine that submitted it the run itself.

    Raises UserError where the cluster does not answer, or has no such job.
    """
    for run in all_runs():
        attempt = run.last_attempt()
        ref = attempt.read_launch().job if attempt is not None else None
        if ref is not None and ref.id == id:
            kept(run)
            return run
    cluster = Cluster(address)
    job = cluster.job(id)
    if job is None:
        known = [each.id for each in cluster.jobs()]
        raise UserError(f"no job '{id}' at {cluster.url}{did_you_mean(id, known)}")
    try:
        return _follow(cluster, job)
    except FileExistsError:  # another command was faster
        return attach_job(address, id)


def _follow(cluster: Cluster, job: Job) -> RunDir:
    told = described(job)
    name = str(told.get("name") or job.id)
    preset, keys, versions = (told.get(part) for part in ("preset", "keys", "versions"))
    settings = dict(keys) if isinstance(keys, dict) else {}
    settings["trainer.logger"] = ["console"]  # its other files lie on the cluster
    now, started = time.time(), job.started
    with appearing(name, id=_UNSAFE.sub("-", job.id).strip(".-")[:80] or "job") as (run, hidden):
        info = RunInfo(
            id=run.id,
            name=name,
            created=started or now,
            preset=preset if isinstance(preset, dict) else None,
            versions=versions if isinstance(versions, dict) else {},
            host={"name": cluster.url},
        )
        info.write(hidden.run_yaml)
        launch = Launch([], {}, [], settings, submit=cluster.url)
        write_launch(
            hidden,
            hidden.add_attempt(),
            launch,
            created=started or now,
            run_created=started or now,
            cwd=run.path,
            job=job.id,
        )
    spawn_supervisor(run)
    return run


def described(job: Job) -> dict[str, object]:
    """What ppo-tui said of the run when it submitted it; empty for a job of somebody else."""
    try:
        found = orjson.loads((job.metadata or {}).get(METADATA, ""))
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
