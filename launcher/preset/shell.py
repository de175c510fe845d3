"""The command of a run as a person would type it."""

from __future__ import annotations

import shlex

from launcher.preset.translate import Launch


def command_line(launch: Launch) -> str:
    """The shell command that does what `launch` does: environment first, one setting a line."""
    unset = [part for name in launch.unset for part in ("-u", name)]
    env = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    start = next(index for index, word in enumerate(launch.argv) if word == "-m") + 2
    first = " ".join(shlex.quote(word) for word in launch.argv[:start])
    lines = [
        *([" ".join(["env", *unset])] if unset else []),
        *env,
        first,
        *map(shlex.quote, launch.argv[start:]),
    ]
    return " \\\n  ".join(lines)
