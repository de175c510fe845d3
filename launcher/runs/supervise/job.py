"""Follows a job of a Ray cluster as the driver of a run.

Its console is copied to `attempts/N/console.log` byte for byte, as that of a local run. Ray sends the log only from its
first byte, and the connection may break at any time, so the existing part is skipped by its length.
"""

import contextlib
import os
import shlex
import threading
import time
from collections.abc import Callable, Mapping

import orjson

from launcher.core.errors import UserError
from launcher.machine.ray_jobs import STOP_WAIT, Cluster, Job, Unreachable
from launcher.record.info import RunInfo
from launcher.record.layout import AttemptDir
from launcher.runs.supervise.driver import exit_status

METADATA = "ppo-tui"
"""Job metadata: the facts for `RunInfo` as JSON, so that any machine can follow the job as a run."""

_LOOK = 2.0  # seconds between two looks at the job
_SLOWEST = 5.0  # seconds between two attempts to reach a cluster
_TOLD = 30.0  # seconds without an answer before a report
_GIVEN_UP = 20.0  # seconds that a stop waits for a cluster that does not answer
_GONE = 3  # consecutive answers without such a job
_REST = 60.0  # seconds for the remaining log of an ended job
_LEFT = 15.0  # seconds in which the actors of an ended job are gone


class JobDriver:
    """Submits a job, unless it exists, and follows it. `tell` gets messages for the user. If this process ends, the
    next supervisor follows the same job.
    """

    id = None  # not a local process

    def __init__(self, attempt: AttemptDir, info: RunInfo, run: str, tell: Callable[[str], None]) -> None:
        self._attempt, self._launch, self._tell = attempt, attempt.read_launch(), tell
        assert self._launch.job is not None
        self._ref, self._cluster = self._launch.job, Cluster(self._launch.job.address)
        self._metadata = metadata(info, run, self._launch.keys)
        self._job: Job | None = None
        self._writing = threading.Lock()
        self._console = attempt.console.open("ab", buffering=0)  # an adopted run already has a part
        self._size = os.fstat(self._console.fileno()).st_size
        self._begun = self._size > 0
        self._over, self._wake = threading.Event(), threading.Event()
        self._wanted: float | None = None  # time of the stop request
        self._forsaken = False
        self.trouble: str | None = None
        self.away: str | None = None  # why the job's state is unknown
        self._start_fetching()
        threading.Thread(target=self._watch, name="job", daemon=True).start()

    def running(self) -> bool:
        """Whether the job runs, or its log is incomplete."""
        return not self._over.is_set()

    def terminate(self) -> None:
        """Requests the end of the job from Ray."""
        self._wanted = self._wanted or time.monotonic()
        self._wake.set()

    def kill(self) -> None:
        """Does nothing: Ray kills the job after the time limit set at its submission."""

    def stop_orphan(self) -> None:
        """Does nothing after the run's folder was removed: others may follow the job."""
        self._forsaken = True
        self._over.set()

    @property
    def stopped_by(self) -> str | None:
        """Who ended the job, if not the supervisor."""
        return "Ray's Jobs API" if self._job is not None and self._job.status == "STOPPED" else None

    def status(self) -> tuple[int | None, str | None]:
        """Exit code and signal, as `exit_status`, if Ray reports them."""
        match self._job.status if self._job is not None else None:
            case "SUCCEEDED":
                return 0, None
            case "FAILED":
                assert self._job is not None
                return exit_status(1 if self._job.code is None else self._job.code)
        return None, None

    def clear(self) -> list[str]:
        """Actors and placement groups that outlived the job; reported, never killed."""
        job, deadline = self._job, time.monotonic() + _LEFT
        left: list[str] = []
        if job is not None and job.ended and not self._forsaken:
            with contextlib.suppress(UserError):
                while (left := self._cluster.left(job)) and time.monotonic() < deadline:
                    time.sleep(0.5)
        self._console.close()
        return [f"{name} (on the cluster)" for name in left]

    def _start_fetching(self) -> None:
        self._fetcher = threading.Thread(target=self._fetch, name="console of the job", daemon=True)
        self._fetcher.start()

    def _watch(self) -> None:
        """Submits the job and follows it to the end of its log."""
        away: float | None = None
        reported, missing, pause = False, 0, 0.2
        while not self._over.is_set():
            try:
                job = self._cluster.job(self._ref.id)
                if job is None and self._launch.argv and not self._begun and self._wanted is None:
                    self._submit()
                elif job is not None:
                    self._job, self._begun, missing = job, True, 0
                    if job.ended:
                        self._rest(job)
                        break
                    if self._wanted is not None:
                        self._cluster.stop(self._ref.id)
                else:
                    missing += 1
                    if missing >= _GONE or self._wanted is not None:
                        self._tell(f"the cluster has no job {self._ref.id}: it was restarted, or the job was deleted")
                        break
                if reported:
                    self._tell(f"the Ray dashboard at {self._cluster.url} answers again")
                if away is not None:  # the connection of the log may hang silently
                    self._start_fetching()
                away, reported, pause, self.away = None, False, _LOOK, None
            except Unreachable as error:
                now = time.monotonic()
                away = away or now
                if now - away > _TOLD and not reported:
                    reported = True
                    self.away = f"{error}; the job may still run, and is followed once the dashboard answers"
                    self._tell(self.away)
                if self._wanted is not None and now - max(self._wanted, away) > _GIVEN_UP:
                    self.trouble = f"{error}; job {self._ref.id} could not be stopped and may still run"
                    self._tell(self.trouble)
                    self.away = None
                    break
                pause = min(_SLOWEST, pause * 2)
            except Exception as error:  # including replies of unknown form
                self._say(str(error) if isinstance(error, UserError) else repr(error))
                self._job = self._job or Job(self._ref.id, "FAILED")
                break
            self._wake.wait(pause)
            self._wake.clear()
        self._over.set()

    def _submit(self) -> None:
        # veRL sets some variables of its workers itself, which Ray refuses as a conflict with the job's
        env = {
            "RAY_OVERRIDE_JOB_RUNTIME_ENV": "1",
            "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_WAIT),
            "RAY_DEDUP_LOGS": "1",
            **self._launch.env,
        }
        # `exec`: no shell stands between Ray's signal and veRL; the folder may not be shared with the cluster
        command = f"cd {shlex.quote(self._launch.cwd)} 2>/dev/null; exec {shlex.join(self._launch.argv)}"
        self._cluster.submit(self._ref.id, command, env, self._metadata)

    def _fetch(self) -> None:
        pause = 0.2
        while not self._over.is_set():
            before = self._size
            with contextlib.suppress(UserError, OSError):  # OSError: a full disk
                self._read(follow=True)
            if self._fetcher is not threading.current_thread():
                return  # another one has taken over
            pause = 0.2 if self._size > before else min(_SLOWEST, pause * 2)
            self._over.wait(pause)

    def _read(self, *, follow: bool) -> None:
        at = 0
        for chunk in self._cluster.log(self._job, follow=follow) if self._job is not None else ():
            # appends the new bytes of a part of the log that begins at byte `at`
            with self._writing:
                fresh = chunk[max(0, self._size - at) :]
                while fresh and not self._console.closed:
                    written = self._console.write(fresh)
                    self._size, fresh = self._size + written, fresh[written:]
            at += len(chunk)

    def _rest(self, job: Job) -> None:
        """Completes the log of an ended job."""
        deadline = time.monotonic() + _REST
        while True:
            try:
                self._read(follow=False)
                break
            except (UserError, OSError) as error:
                if time.monotonic() > deadline:
                    self._tell(f"the end of the log is missing: {error}")
                    break
                time.sleep(1.0)
        # of a command that failed, the message repeats the end of the log
        if job.status == "FAILED" and job.error != "JOB_ENTRYPOINT_COMMAND_ERROR" and job.message:
            self._say(f"Ray could not run the job: {job.message}")

    def _say(self, text: str) -> None:
        """Appends to the log why the job was not submitted or could not run."""
        self.trouble = text.partition("\n")[0]
        with self._writing, contextlib.suppress(OSError):
            self._console.write(f"ppo-tui: {text}\n".encode())


def metadata(info: RunInfo, run: str, keys: Mapping[str, object]) -> dict[str, str]:
    """The metadata of a job: its run, for machines that follow it."""
    kept = {"run": run, "name": info.name, "preset": info.preset, "versions": info.versions, "keys": dict(keys)}
    return {METADATA: orjson.dumps(kept, default=str).decode()}
