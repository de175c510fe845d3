"""The command of a run as a person would type it."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from launcher.core.text import clean
from launcher.preset.files import LoadedPreset, load
from launcher.preset.translate import Launch, RunFolders, build
from launcher.verl import env as verl_env
from launcher.verl.defaults import NEWEST
from launcher.verl.versions import ignored


def command_line(launch: Launch) -> str:
    """The shell command that does what `launch` does: environment first, one setting a line."""
    unset = [part for name in launch.unset for part in ("-u", name)]
    env = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    start = next(index for index, word in enumerate(launch.argv) if word == "-m" or word.endswith(".py"))
    start += 2 if launch.argv[start] == "-m" else 1
    first = " ".join(shlex.quote(word) for word in launch.argv[:start])
    lines = [*([" ".join(["env", *unset])] if unset else []), *env, first, *map(shlex.quote, launch.argv[start:])]
    command = " \\\n  ".join(lines)
    return f"cd {shlex.quote(launch.cwd)} && {command}" if launch.cwd else command


def script(name: str, version: str | None, below: Path) -> str:
    """A preset as a script for veRL `version` (the installed one when None), which writes below a folder.

    Where the version is named, veRL need not be installed here: the script then says `python3`. Raises
    UserError for a preset that veRL cannot run.
    """
    loaded, launch, version = launch_of(name, version, below)
    return (
        f'#!/usr/bin/env bash\n{about(loaded, launch, version)}set -euo pipefail\n\n{command_line(launch)} \\\n  "$@"\n'
    )


def launch_of(
    name: str, version: str | None, below: Path, settings: Sequence[str] = ()
) -> tuple[LoadedPreset, Launch, str]:
    """What a script for veRL `version` runs, as `script`; and the version."""
    loaded, python = load(name, settings), "python3"
    if version is None:
        env = verl_env.of(loaded.preset.python, loaded.preset.own_verl)
        version, python = env.verl or NEWEST, env.python if env.verl else python
    return loaded, build(loaded, version=version, folders=RunFolders.below(below), python=python), version


def about(loaded: LoadedPreset, launch: Launch, version: str) -> str:
    """What a script is, and what of it has no effect: comments."""
    said = " ".join(clean(loaded.preset.description).split())  # a comment ends with its line
    lines = [f"# {loaded.name}, for veRL {version}; written by ppo-tui."] + ([f"# {said}"] if said else [])
    lines += [f"# veRL {version} ignores {key}: {why}." for key, why in ignored(launch.keys, version)]
    return "\n".join(lines) + "\n\n"
