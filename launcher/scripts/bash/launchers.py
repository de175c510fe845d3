"""Programs that run a command in another way or elsewhere, as in a container or a job."""

import re
from collections.abc import Sequence

SHELLS = ("bash", "sh", "zsh", "dash")

CONTAINERS = ("docker", "docker-compose", "podman", "nerdctl", "kubectl", "ssh", "enroot")
"""Launchers whose command has other variables and files than the script."""

_JOBS = ("srun", "sbatch", "ray", "singularity", "apptainer", "conda", "mamba", "micromamba", "uv", "poetry", "pixi")
_MORE = ("mpirun", "mpiexec", "torchrun", "accelerate", "runai", "pdsh", "unshare", "flock", "systemd-run")
_LINES = ("ssh", "tmux", "screen", "su", "script", "bsub", "qsub", "watch", "runuser", "pdsh")
"""Launchers that take a whole command line as one word."""
_LAUNCHERS = frozenset((*CONTAINERS, *_JOBS, *_MORE, *_LINES))
_VALUED = re.compile(r"[-+][a-z]*[oO]|--(?:rcfile|init-file)")

WRAPPERS = ("nohup", "exec", "command", "time", "sudo", "builtin", "setsid", "stdbuf", "timeout", "numactl", "nice")
"""Programs that start another one."""


def name_of(words: Sequence[str]) -> str:
    """The program without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def inner(words: Sequence[str]) -> list[str]:
    """The shell command that a launcher runs: `bash -c TEXT`, `bash FILE`; None for another program."""
    name = name_of(words)
    if name not in _LAUNCHERS:
        return []
    for at, word in enumerate(words):
        option, _, value = word.partition("=")
        if option == "--wrap":
            return ["bash", "-c", value or "".join(words[at + 1 : at + 2])]
        if option == "--entrypoint" and (value or "".join(words[at + 1 : at + 2])).rpartition("/")[2] in SHELLS:
            place = next((i for i in range(at, len(words)) if re.fullmatch(r"-[a-z]*c", words[i])), len(words))
            return ["bash", *words[place:]]
    for at in range(1, len(words)):
        if words[at].rpartition("/")[2] in SHELLS:
            return list(words[at:])
    if name in _LINES and " " in words[-1]:
        return ["bash", "-c", words[-1]]
    at = next((i for i in range(1, len(words)) if words[i].endswith(".sh") and words[i][0] != "-"), len(words))
    return ["bash", *words[at:]] if at < len(words) else []


def operand(words: Sequence[str]) -> tuple[int, bool]:
    """The index of a shell's script among its words, and whether it is the text (`-c`)."""
    at = 1
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] != "-":
        if re.fullmatch(r"-[a-zA-Z]*c", words[at]):
            return at + 1, True
        at += 2 if _VALUED.fullmatch(words[at]) else 1
    return at, False


def unwrapped(words: list[str]) -> list[str]:
    """The command after `nohup`, `timeout 10`, `env A=1` and similar words."""
    while words and words[0].rpartition("/")[2] in (*WRAPPERS, "env"):
        name, words = words[0].rpartition("/")[2], words[1:]
        while words and (words[0].startswith("-") or (name == "env" and "=" in words[0])):
            takes = name == "env" and words[0] == "-u"
            words = words[2 if takes else 1 :]
        if name == "timeout":
            words = words[1:]
    return words
