"""Ray jobs over HTTP: a client of the dashboard on a cluster's head that does not need Ray.

Paths and replies of Ray 2.60 (`ray/dashboard/modules/job/job_head.py: JobHead`, `state/state_head.py: get_logs`). The
log comes from the state API, as bytes: the Jobs API returns one JSON text, or a websocket.
"""

import contextlib
import functools
import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from launcher import inside
from launcher.core.errors import UserError

if TYPE_CHECKING:
    import httpx

PORT = 8265  # the dashboard's port
STOP_WAIT = 12  # seconds between SIGTERM and SIGKILL; veRL needs 4 to 5.5, Ray's default is 3
_PATIENCE = 15.0  # seconds for an answer
_QUIET = 300.0  # seconds without a line after which a log's connection may be dead
_WHOLE = 600  # seconds that a whole log may take
_ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_ADDRESS = re.compile(r"(?:(https?)://)?([\w.-]+|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?/?")


class Unreachable(UserError):
    """The cluster does not answer at present."""

    exit_code = 1


class Trouble(Enum):
    """Errors that Ray reports only as text, without a code or type (as of 2.60). Only this class matches the text."""

    NO_AGENT = ("No available agent", "TimeoutError")  # errors for a while after the start of a cluster
    EXISTS = ("already exists",)
    TOKEN = ("InvalidAuthToken", "no authentication token")
    VERSION = ("Version mismatch", "No module named")

    def is_in(self, text: str) -> bool:
        """Whether Ray's output contains this error."""
        return any(words in text for words in self.value)


@dataclass(frozen=True)
class Job:
    """A submitted job. `code`: exit code of its command, if Ray recorded one; times in unix seconds."""

    id: str
    status: str
    message: str = ""
    error: str | None = None
    code: int | None = None
    started: float | None = None
    entrypoint: str = ""
    metadata: Mapping[str, str] | None = None
    ray_id: str | None = None  # Ray's id, used by its actors
    node: str | None = None  # node of its command and log; None until it is placed

    @property
    def ended(self) -> bool:
        return self.status in _ENDED

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Job":
        """Reads `JobDetails.dict()`."""
        started = value.get("start_time")
        return cls(
            str(value.get("submission_id")),
            str(value.get("status")),
            str(value.get("message") or ""),
            value.get("error_type"),
            value.get("driver_exit_code"),
            started / 1000 if isinstance(started, (int, float)) else None,
            str(value.get("entrypoint") or ""),
            value.get("metadata") or {},
            value.get("job_id"),
            value.get("driver_node_id"),
        )


def url_of(address: str | None) -> str:
    """The dashboard's URL for `host`, `host:port`, `http(s)://...`, or `auto`: on this machine. Raises UserError."""
    if address is None or address == "auto":
        return f"http://127.0.0.1:{PORT}"
    if address.startswith("ray://"):
        raise UserError(
            f"'{address}' is a Ray Client address, which veRL does not support",
            f"use the head's dashboard, host:{PORT}",
        )
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise UserError(
            f"'{address}' is not the address of a Ray dashboard", f"use auto, host:{PORT}, or http(s)://host:port"
        )
    scheme, host, port = match.groups()
    return f"{scheme or 'http'}://{host}" + (f":{port}" if port else "" if scheme else f":{PORT}")


def token() -> str | None:
    """The user's token as found by Ray; None without one. It is neither stored nor displayed."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "disabled":
        return None
    if value := os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return value
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token"
    with contextlib.suppress(OSError, UnicodeDecodeError, RuntimeError):  # RuntimeError: there is no home
        return Path(path).expanduser().read_text().strip() or None
    return None


def authentication() -> dict[str, str]:
    """Makes Ray use the token for an address; by default, Ray does so only for a cluster that it finds."""
    return {"RAY_AUTH_MODE": "token"} if token() and not os.environ.get("RAY_AUTH_MODE") else {}


class Cluster:
    """The head of a Ray cluster. Every method raises `Unreachable`, or UserError for a lasting error."""

    def __init__(self, address: str | None, own_token: str | None = None) -> None:
        """`own_token`: the token of a run's own Ray, instead of the user's."""
        self.url, self._token = url_of(address), own_token

    @functools.cached_property
    def _http(self) -> "httpx.Client":
        import httpx

        head = {"Authorization": f"Bearer {bearer}"} if (bearer := self._token or token()) else {}
        return httpx.Client(base_url=self.url, headers=head, timeout=_PATIENCE, trust_env=False)

    def version(self) -> str:
        """The cluster's version of Ray."""
        return str(self._ask("GET", "/api/version").json().get("ray_version"))

    def session(self) -> str:
        """The name of its session, which is also the name of the folder of its logs and sockets."""
        return Path(str(self._ask("GET", "/api/version").json().get("session_name") or "")).name

    def resources(self) -> dict[str, tuple[float, float]]:
        """Used and total amount per resource, such as `GPU`; empty if the autoscaler does not report them."""
        found: Any = self._ask("GET", "/api/cluster_status").json()
        for name in ("data", "clusterStatus", "loadMetricsReport", "usage"):
            found = found.get(name) if isinstance(found, dict) else None
        return {name: (float(used), float(total)) for name, (used, total) in (found or {}).items()}

    def nodes(self) -> list[Any]:
        """The nodes' newest measurements, for `MachineSample.of_cluster`."""
        answer: Any = self._ask("GET", "/nodes?view=summary").json()
        summary = answer.get("data", {}).get("summary") if isinstance(answer, dict) else None
        return summary if isinstance(summary, list) else []

    def actors(self, name: str) -> list[str]:
        """Ids of the live actors of a class."""
        actors = self.listed("actors", "class_name", name)
        return [actor["actor_id"] for actor in actors if actor.get("state") == "ALIVE"]

    def submit(self, id: str, entrypoint: str, env: Mapping[str, str], metadata: Mapping[str, str]) -> None:
        """Submits a job unless the cluster has one with this id."""
        package, content = plugin()
        if self._ask("GET", f"/api/packages/gcs/{package}", allowed=(404,)).status_code == 404:
            self._ask("PUT", f"/api/packages/gcs/{package}", content=content)
        runtime = {"env_vars": dict(env), "py_modules": [f"gcs://{package}"]}
        body = {"entrypoint": entrypoint, "submission_id": id, "runtime_env": runtime, "metadata": dict(metadata)}
        answer = self._ask("POST", "/api/jobs/", json=body, allowed=(400, 500))
        if answer.status_code == 200 or Trouble.EXISTS.is_in(answer.text):
            return
        reason = answer.text.strip().rpartition("\n")[2]
        # an agent is missing for a while after the start of a cluster
        kind = Unreachable if Trouble.NO_AGENT.is_in(reason) else UserError
        raise kind(f"{self.url} refused the job: {reason}")

    def job(self, id: str) -> Job | None:
        """A job; None if the cluster has none with this id."""
        answer = self._ask("GET", f"/api/jobs/{quote(id, safe='')}", allowed=(404,))
        return None if answer.status_code == 404 else Job.of(answer.json())

    def jobs(self) -> list[Job]:
        """All submitted jobs, newest first."""
        listed = self._ask("GET", "/api/jobs/").json()
        jobs = [Job.of(job) for job in listed if job.get("type") == "SUBMISSION"]
        return sorted(jobs, key=lambda job: job.started or 0.0, reverse=True)

    def stop(self, id: str) -> None:
        """Requests the stop of a job; does nothing for an ended job."""
        self._ask("POST", f"/api/jobs/{quote(id, safe='')}/stop", allowed=(404,))

    def delete(self, id: str) -> None:
        """Removes an ended job from the list."""
        self._ask("DELETE", f"/api/jobs/{quote(id, safe='')}", allowed=(400, 404, 500))

    def holders(self) -> dict[str, float]:
        """Reserved GPUs by holder: the submission id of a job, or the command of a driver without one."""
        held: dict[str, float] = {}
        for group in self.listed("placement_groups", "state", "CREATED"):
            for bundle in group.get("bundles") or ():
                _add(held, group.get("creator_job_id"), bundle.get("unit_resources"))
        for actor in self.listed("actors", "state", "ALIVE"):
            if not actor.get("placement_group_id"):
                _add(held, actor.get("job_id"), actor.get("required_resources"))
        names = {
            job.get("job_id"): str(job.get("submission_id") or job.get("entrypoint") or job.get("job_id"))
            for job in self._ask("GET", "/api/jobs/").json()
        }
        return {names.get(id, f"job {id}"): gpus for id, gpus in held.items()}

    def left(self, job: Job) -> list[str]:
        """Names of the live actors and placement groups of a job."""
        names = []
        if job.ray_id:
            for kind, owner, name in (("actors", "job_id", "class_name"), ("placement_groups", "creator_job_id", "")):
                for row in self.listed(kind, owner, job.ray_id):
                    if row.get("state") not in ("DEAD", "REMOVED"):
                        names.append(str(row.get(name) or "a placement group"))
        return names

    def log(self, job: Job, *, follow: bool) -> Iterator[bytes]:
        """A job's console from its first byte; with `follow` until the connection breaks, which is common."""
        import httpx

        if job.node is None:
            return  # its command has not started
        # `submission_id` alone is refused: "node_id or node_ip must be provided"
        file = f"job-driver-{job.id}.log"
        query: dict[str, str | int] = {"node_id": job.node, "filename": file, "lines": -1, "timeout": _WHOLE}
        wait = httpx.Timeout(_PATIENCE, read=_QUIET if follow else _PATIENCE)
        try:
            kind = "stream" if follow else "file"
            with self._http.stream("GET", f"/api/v0/logs/{kind}", params=query, timeout=wait) as answer:
                if answer.status_code != 200:
                    answer.read()
                    self._refuse(answer)
                yield from answer.iter_raw()
        except httpx.HTTPError as error:
            raise self._away(error) from None

    def listed(self, kind: str, key: str, value: str) -> list[Mapping[str, Any]]:
        """Actors or placement groups with this value, at most 1,000 (Ray: `dashboard/modules/state/state_head.py`)."""
        asked = {"filter_keys": key, "filter_predicates": "=", "filter_values": value, "limit": 1000, "detail": 1}
        answer = self._ask("GET", f"/api/v0/{kind}", params=asked).json()
        rows: list[Mapping[str, Any]] = answer["data"]["result"]["result"]
        return rows

    def _ask(self, method: str, path: str, allowed: tuple[int, ...] = (), **more: Any) -> "httpx.Response":
        import httpx

        try:
            answer = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise self._away(error) from None
        if answer.status_code != 200 and answer.status_code not in allowed:
            self._refuse(answer)
        return answer

    def _away(self, error: Exception) -> Unreachable:
        reason = error or type(error).__name__
        return Unreachable(
            f"the Ray dashboard at {self.url} does not answer ({reason})", "check the address and the port"
        )

    def _refuse(self, answer: "httpx.Response") -> None:
        match answer.status_code:
            case 401:
                raise UserError(
                    f"{self.url} requires a token",
                    "set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH, or write it to ~/.ray/auth_token",
                )
            case 403:
                raise UserError(f"{self.url} does not accept this token", "correct RAY_AUTH_TOKEN or ~/.ray/auth_token")
            case status:
                reason = answer.text.strip().rpartition("\n")[2][:300]
                raise Unreachable(f"the Ray dashboard at {self.url} answered {status}: {reason}")


def _add(held: dict[str, float], owner: Any, resources: Any) -> None:
    gpus = float((resources or {}).get("GPU", 0.0))
    if gpus:
        held[str(owner)] = held.get(str(owner), 0.0) + gpus


@functools.cache
def plugin() -> tuple[str, bytes]:
    """Name (with a hash of the content) and content of the package that veRL loads on nodes without ppo-tui."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((inside.FOLDER / inside.PACKAGE).rglob("*.py")):
            # a fixed date, or the same content would have another name
            archive.writestr(zipfile.ZipInfo(str(file.relative_to(inside.FOLDER))), file.read_bytes())
    data = content.getvalue()
    return f"_ray_pkg_{hashlib.sha1(data).hexdigest()}.zip", data
