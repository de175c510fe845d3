"""Continuing a failed run by itself, where its cause may be gone the next time: `health.retry` of the preset."""

import subprocess
from pathlib import Path

from launcher.core.paths import own_command
from launcher.record.events import Action, read_events
from launcher.record.layout import RunDir
from launcher.runs.watch.attempts import last_settings
from launcher.runs.watch.checkpoints import latest_checkpoint

_PASSING = frozenset({"nccl", "worker-died", "engine-failed", "engine-sleep", "ray-start"})
_MEMORY = frozenset({"host-oom-ray", "host-oom-killed"})
"""What another program may have caused; at the same step again it was the run itself."""
_FIRST = 30.0  # seconds before the first retry; each later one waits twice as long


def wait_before_retry(run: RunDir, limit: int, cause: str | None, step: int | None) -> float | None:
    """Seconds to wait before the run is continued, None where it must not be.

    `limit` is how often it may be; `step` the last one of the attempt that failed. A run without a checkpoint has
    nothing to continue from.
    """
    before = [e.what for e in read_events(run.events) if isinstance(e.what, Action) and e.what.verb == "retry"]
    if cause not in _PASSING | _MEMORY or len(before) >= limit or latest_checkpoint(run) is None:
        return None
    if cause in _MEMORY and before and before[-1].step == step:
        return None
    return _FIRST * float(2 ** len(before))


def retry(run: RunDir, folder: Path) -> None:
    """Starts `ppo-tui resume` with the settings of the newest resume; its supervisor waits until we have gone."""
    with run.supervisor_log.open("ab") as log:
        subprocess.Popen(
            own_command("launcher.cli.main", "resume", str(folder.name), *last_settings(run)[1], "--detach"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
