"""What is checked: a preset's effective configuration, and the machine that it is for."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.check import facts, machine
from launcher.check.machine import Machine
from launcher.preset import environment
from launcher.preset.effective import EffectiveConfig, of_usual
from launcher.preset.files import LoadedPreset
from launcher.preset.translate import RunFolders, settings
from launcher.verl import defaults
from launcher.verl import env as verl_env

_RUN = Path("/nonexistent/run")  # the run directory, which there is not yet


@dataclass(frozen=True, kw_only=True)
class Subject(EffectiveConfig):
    """A preset for one version of veRL on one machine; `python` is the interpreter that has this veRL.

    `static`: checks run no program, import no file and open no address that the preset names.
    """

    loaded: LoadedPreset
    python: str
    machine: Machine
    static: bool = False

    @property
    def joins_cluster(self) -> bool:
        """Whether the run goes to a Ray cluster, which has other CPUs and GPUs than this machine."""
        return self.loaded.preset.cluster.submit or self.loaded.preset.cluster.address is not None

    @property
    def env(self) -> dict[str, str]:
        """The environment of the run: this process's, with the preset's laid over."""
        return {**os.environ, **self.loaded.preset.env}

    def below(self, key: str) -> dict[str, Any]:
        """What is set in a block that veRL leaves open: by one mapping, or key by key."""
        whole, inside = self.get(key), f"{key}."
        named = {str(name): value for name, value in whole.items()} if isinstance(whole, Mapping) else {}
        below = {key: each.value for key, each in self.settings.items() if key.startswith(inside)}
        return named | {key.removeprefix(inside): self.get(key, value) for key, value in below.items()}

    def names_below(self, key: str) -> list[str]:
        """The names that are set in a block that veRL leaves open."""
        return list(dict.fromkeys(name.partition(".")[0] for name in self.below(key)))

    @property
    def facts(self) -> facts.Facts:
        """What this veRL's source says."""
        return facts.read(self.version, self.verl)

    @property
    def server_options(self) -> dict[str, list[str]]:
        """The options of SGLang's server, as `facts.server_options` reads them; none where SGLang is not installed."""
        folder = verl_env.probe(self.python).sglang_path
        return facts.server_options(folder) if folder else {}


def subject(
    loaded: LoadedPreset, *, assume: str | None = None, on: Machine | None = None, static: bool = False
) -> Subject:
    """The preset as the installed veRL will see it, on the machine `on` (this one when None).

    `assume` is a machine in the words of `--assume`. Raises UserError for a preset that cannot be launched
    at all, and for a machine that is none. With `static`, the interpreter is not the preset's, and a veRL of its own is
    read as text: Hydra imports packages that its files name (`pkg://`).
    """
    own = loaded.preset.own_verl
    verl = verl_env.of(None if static else loaded.preset.python, own)
    unread = static and own is not None
    version, folders = verl.verl or defaults.NEWEST, RunFolders.below(_RUN)
    env = environment.variables(loaded.preset, folders.metrics, os.environ)
    return Subject(
        version=version,
        verl=None if unread else verl.verl_path,
        config=None if unread else loaded.preset.program.config,
        settings=settings(loaded, version, folders, env),
        usual=of_usual(loaded.values()),
        loaded=loaded,
        python=verl.python,
        static=static,
        machine=machine.assumed(assume) if assume else on or machine.here({**os.environ, **loaded.preset.env}),
    )
