"""Sums up the work of a run's processes per stage of its start."""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from launcher.record.attempt import LaunchRecord
from launcher.record.standstill import StageWork, StartupWork
from launcher.runs.supervise.stalls.activity import Used
from launcher.runs.supervise.stalls.looking import mount_of

_MODEL = "actor_rollout_ref.model.path"
_UNFINISHED = (".incomplete", ".part")  # files of a download


class Work:
    """The sums of one start, written to `path` as `StartupWork`."""

    def __init__(self, path: Path, launch: LaunchRecord) -> None:
        self._path, self._launch = path, launch
        self._stages: dict[str, StageWork] = {}
        self._sizes: dict[str, int] = {}

    def add(self, stage: str, used: Used, *, quiet: bool) -> None:
        """Adds the activity since the last call to `stage`."""
        known = self._stages.get(stage) or StageWork(stage, disk=self._disk())
        self._stages[stage] = replace(
            known,
            seconds=round(known.seconds + used.seconds, 1),
            cpu=round(known.cpu + used.cpu, 1),
            compiled=round(known.compiled + used.compiled, 1),
            starved=round(known.starved + used.starved, 1),
            quiet=round(known.quiet + used.seconds * quiet, 1),
            fetched=known.fetched + used.fetched,
            downloaded=known.downloaded + self._downloaded(used.pids),
        )
        with contextlib.suppress(OSError):
            StartupWork(tuple(self._stages.values())).write(self._path)

    def _downloaded(self, pids: Iterable[int]) -> int:
        """Bytes by which unfinished files of these processes grew."""
        grown = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                for link in os.scandir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        file = os.readlink(link.path)  # noqa: PTH115 (a hundred of them, every two seconds)
                        if file.endswith(_UNFINISHED):
                            size = os.stat(file).st_size  # noqa: PTH116
                            grown += max(0, size - self._sizes.get(file, 0))
                            self._sizes[file] = size
        return grown

    def _disk(self) -> str:
        """The disk of the weights: `/mnt/models nfs4`."""
        path = Path(str(self._launch.keys.get(_MODEL) or "")).expanduser()
        home = self._launch.env.get("HF_HOME") or os.environ.get("HF_HOME") or "~/.cache/huggingface"
        return " ".join(mount_of(str(path if path.is_absolute() else Path(home).expanduser())))
