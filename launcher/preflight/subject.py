"""What is judged: a preset as veRL will see it, and the machine it is meant for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher import verl_env
from launcher.errors import UserError
from launcher.preflight import facts, machine
from launcher.preflight.machine import Gpu, Machine
from launcher.preset import defaults, versions
from launcher.preset.files import LoadedPreset
from launcher.preset.translate import RunFolders, build

__all__ = ["Gpu", "Machine", "Subject", "subject"]

_BELOW = Path("/nonexistent/run")  # the run directory, which there is not yet


@dataclass(frozen=True)
class Subject:
    """A preset for one version of veRL on one machine.

    `keys` are the veRL keys that the launch passes, as `version` calls them, with their values. `verl` is
    veRL's folder, None when it is not installed; `python` the interpreter that has it.
    """

    loaded: LoadedPreset
    version: str
    keys: Mapping[str, Any]
    python: str
    machine: Machine
    verl: Path | None = None

    def value(self, key: str, default: Any = None) -> Any:
        """What veRL will see under `key` (as the newest version calls it): what was set, else its default.

        `default` where this version has no such key. Never raises.
        """
        try:
            name = versions.at(key, self.version)
        except UserError:
            return default
        return self._look_up(name, default)

    def is_set(self, key: str) -> bool:
        """Whether the launch passes `key` (as the newest version calls it)."""
        with contextlib.suppress(UserError):
            return versions.at(key, self.version) in self.keys
        return False

    def at_least(self, version: str) -> bool:
        """Whether this veRL is that version or newer."""
        return defaults.number(self.version) >= defaults.number(version)

    @property
    def env(self) -> dict[str, str]:
        """The environment of the run: this process's, with the preset's laid over."""
        return {**os.environ, **self.loaded.preset.env}

    @property
    def defaults(self) -> defaults.Tree:
        """veRL's configuration without any setting, references unresolved."""
        return defaults.tree(self.version, self.verl)

    @property
    def facts(self) -> facts.Facts:
        """What this veRL's source says."""
        return facts.read(self.version, self.verl)

    @property
    def cpu(self) -> bool:
        """Whether the run uses the CPU platform, where rules about GPUs do not apply."""
        return bool(self.value("trainer.device") == "cpu")

    @property
    def gpus(self) -> int:
        """GPUs of all machines together: N in verl.md. At least 1."""
        per_node, nodes = self.value("trainer.n_gpus_per_node", 8), self.value("trainer.nnodes", 1)
        return max(1, per_node * nodes) if isinstance(per_node, int) and isinstance(nodes, int) else 1

    def _look_up(self, name: str, default: Any) -> Any:
        if name in self.keys:
            return self.keys[name]
        parent, _, last = name.rpartition(".")
        if isinstance(self.keys.get(parent), Mapping):  # a whole block was given
            return self.keys[parent].get(last, default)
        found, value = defaults.leaf(self.defaults, name)
        if not found or value == "???":
            return default
        return defaults.resolve(value, name, self._look_up)


def subject(loaded: LoadedPreset, *, assume: str | None = None, on: Machine | None = None) -> Subject:
    """The preset as the installed veRL will see it, on the machine `on` (this one when None).

    `assume` is a machine in the words of `--assume`. Raises UserError for a preset that cannot be launched
    at all, and for a machine that is none.
    """
    env = verl_env.probe(verl_env.interpreter(loaded.preset.python))
    version = env.verl or defaults.NEWEST
    folders = RunFolders(*(_BELOW / name for name in ("checkpoints", "rollout", "val", "metrics", "hydra")))
    launch = build(loaded, version=version, python=env.python, folders=folders)
    where = machine.assumed(assume) if assume else on or machine.here()
    return Subject(loaded, version, launch.keys, env.python, where, env.verl_path)
