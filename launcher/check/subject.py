"""The subject of a check: a preset's effective configuration, and its machine."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher import inside
from launcher.check import facts
from launcher.estimate.sizing import PlacedConfig
from launcher.machine import capacity
from launcher.machine.capacity import Machine
from launcher.preset import environment
from launcher.preset.effective import of_usual
from launcher.preset.files import LoadedPreset
from launcher.preset.schema import MAIN
from launcher.preset.translate import RunFolders, settings
from launcher.verl import defaults
from launcher.verl import env as verl_env
from launcher.verl.config import CRITIC, MODEL, RAY

_RUN = Path("/nonexistent/run")  # the run directory, which there is not yet
_EXTERNAL = "VERL_USE_EXTERNAL_MODULES"
_LIBRARIES = (f"{MODEL}.external_lib", f"{CRITIC}.model.external_lib")


@dataclass(frozen=True, kw_only=True)
class Subject(PlacedConfig):
    """A preset for one version of veRL on one machine, and additional input of checks.

    `static`: checks run no program, import no file and open no address from the preset.
    """

    static: bool = False

    @property
    def joins_cluster(self) -> bool:
        """Whether the run goes to a Ray cluster, whose CPUs and GPUs are not this machine's."""
        return self.loaded.preset.cluster.submit or self.loaded.preset.cluster.address is not None

    def below(self, key: str) -> dict[str, object]:
        """The settings of a free-form block of veRL's configuration, given as one mapping or key by key."""
        whole, inside = self.get(key), f"{key}."
        named = {str(name): value for name, value in whole.items()} if isinstance(whole, Mapping) else {}
        below = {key: each.value for key, each in self.settings.items() if key.startswith(inside)}
        return named | {key.removeprefix(inside): self.get(key, value) for key, value in below.items()}

    def names_below(self, key: str) -> list[str]:
        """The names set in a free-form block of veRL's configuration."""
        return list(dict.fromkeys(name.partition(".")[0] for name in self.below(key)))

    @property
    def program(self) -> str:
        """The program or configuration that may break the rules' assumptions about veRL's programs; "" for veRL's own,
        and for its programs with a known configuration.
        """
        program = self.loaded.preset.program
        lost = ", whose configuration was not found" if self.config is None else ""
        return f"{program.own or f'{MAIN} with {program.options}'}{lost}" if program.own or lost else ""

    @property
    def registering(self) -> str:
        """The user's code that may register names with veRL: its program, and the modules imported first."""
        given = ",".join(
            str(each or "") for each in (self.env.get(_EXTERNAL), self.get(f"{RAY}.runtime_env.env_vars.{_EXTERNAL}"))
        )
        libraries = [str(self.get(key) or "") for key in _LIBRARIES]
        modules = [each for each in (*given.split(","), *libraries) if each not in ("", inside.PLUGIN)]
        return ", ".join(dict.fromkeys([*([self.program] if self.program else []), *modules]))

    @property
    def facts(self) -> facts.SourceFacts:
        """Facts read from the source of this veRL."""
        return facts.read(self.version, self.verl)

    @property
    def server_options(self) -> dict[str, list[str]]:
        """The options of SGLang's server, as in `facts.server_options`; empty without SGLang."""
        folder = verl_env.probe(self.python).sglang_path
        return facts.server_options(folder) if folder else {}


def subject(
    loaded: LoadedPreset, *, assume: str | None = None, on: Machine | None = None, static: bool = False
) -> Subject:
    """The preset as the installed veRL will see it, on the machine `on` (None: this one).

    `assume`: a machine in the form of `--assume`. Raises UserError for a preset that cannot be launched, and for an
    invalid machine. With `static`, the interpreter is not the preset's, and its own veRL is read as text: Hydra imports
    packages that its files name (`pkg://`).
    """
    own = loaded.preset.own_verl
    verl = verl_env.of(None if static else loaded.preset.python, own)
    unread = static and own is not None
    version, folders = verl.verl or defaults.NEWEST, RunFolders.below(_RUN)
    env = environment.variables(loaded.preset, folders.metrics, os.environ)
    passed = settings(loaded, version, folders, env)
    program, folder = loaded.preset.program, None if unread else verl.verl_path
    found = None if unread or program.config else loaded.preset.configuration(verl.python, folder)
    known = found and defaults.composed(version, folder, (), found)
    return Subject(
        version=version,
        verl=folder,
        config=None if unread else program.config or (found if known else None),
        settings=passed,
        usual=of_usual(loaded.layer),
        loaded=loaded,
        python=verl.python,
        static=static,
        machine=capacity.assumed(assume) if assume else on or capacity.here({**os.environ, **loaded.preset.env}),
    )
