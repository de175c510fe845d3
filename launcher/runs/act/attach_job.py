"""Follows a Ray cluster's job submitted elsewhere: rebuilds its run directory from its log."""

import re
import time

import orjson

from launcher.core.errors import UserError
from launcher.core.text import near_hint
from launcher.machine.hosts import HostRuns
from launcher.machine.ray_jobs import Cluster, Job, url_of
from launcher.preset.translate import Launch
from launcher.record.attempt import LaunchRecord
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir, all_runs, appearing
from launcher.runs.supervise.job import METADATA
from launcher.runs.supervise.spawn import kept, spawn_supervisor, write_launch

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def attach_job(address: str, id: str) -> RunDir:
    """The run of a job, followed from its first byte. Raises UserError for an unreachable cluster or unknown job."""
    cluster = Cluster(address)
    if (run := _known(cluster, id)) is not None:
        return run
    job = cluster.job(id)
    if job is None:
        known = [each.id for each in cluster.jobs()]
        listed = f"'ppo-tui attach {address}' lists the jobs"
        raise UserError(f"no job '{id}' at {cluster.url}", near_hint(id, known, listed))
    try:
        return _follow(cluster, job, _folder(id))
    except FileExistsError:  # another command was faster, or another cluster has a job of this name
        return _known(cluster, id) or _follow(cluster, job, None)


def jobs_of(address: str) -> HostRuns:
    """The jobs of a cluster without a run directory on this machine, in the form of runs."""
    try:
        jobs, here = Cluster(address).jobs(), {run.id for run in all_runs()}
    except UserError as error:
        return HostRuns(address, away=str(error))
    return HostRuns(address, [_as_run(job) for job in jobs if not {job.id, _folder(job.id)} & here])


def _as_run(job: Job) -> dict[str, object]:
    state = {"pending": "queued", "succeeded": "finished"}.get(job.status.lower(), job.status.lower())
    return {"run": job.id, "name": described(job).get("name") or job.id, "state": state, "created": job.started}


def _known(cluster: Cluster, id: str) -> RunDir | None:
    """The existing run of a job on this machine, with a live supervisor."""
    for run in all_runs():
        attempt = run.last_attempt()
        launch = attempt.read_launch() if attempt is not None else LaunchRecord()
        # what was submitted here is the only one of its id, by whatever address it is reached now
        if (
            launch.job is not None
            and launch.job.id == id
            and (launch.argv or url_of(launch.job.address) == cluster.url)
        ):
            kept(run)
            return run
    return None


def _folder(id: str) -> str | None:
    """The run id for a job that was submitted elsewhere."""
    return _UNSAFE.sub("-", id).strip(".-")[:80] or None


def _follow(cluster: Cluster, job: Job, id: str | None) -> RunDir:
    metadata = described(job)
    name = str(metadata.get("name") or job.id)
    preset, keys, versions = (metadata.get(part) for part in ("preset", "keys", "versions"))
    settings = dict(keys) if isinstance(keys, dict) else {}
    settings["trainer.logger"] = ["console"]  # its other files are on the cluster
    now, started = time.time(), job.started
    with appearing(name, id) as (run, hidden):
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
        write_launch(hidden, hidden.add_attempt(), launch, created=info.created or now, cwd=run.path, job=job.id)
    spawn_supervisor(run)
    return run


def described(job: Job) -> dict[str, object]:
    """The metadata that ppo-tui attached when it submitted the run; empty for other jobs."""
    try:
        metadata = orjson.loads((job.metadata or {}).get(METADATA, ""))
    except orjson.JSONDecodeError:
        return {}
    return metadata if isinstance(metadata, dict) else {}
