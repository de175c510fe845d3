"""Reading a shell script of Hydra overrides without running it: which words would reach veRL, and what not.

Understood are quotes, comments, continued lines, assignments, arrays, `export`, `$VAR`, `${VAR:-default}`,
`${VAR%/*}` and its kin, `"${ARRAY[@]}"`, sums, and `$(dirname "$0")`. What a shell would have to run
(`$(date)`, loops, conditions) is listed in notes.
"""

import json
import re
from dataclasses import dataclass, field

from launcher.preset.shell_words import Expander, read

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_SHEBANG = re.compile(r"\A#!\S+(?:[ \t]+(?:ba|z)?sh\b)?")  # a page may have put the whole script on one line
_DRIVER = re.compile(r"(?:verl\.trainer\.main_ppo\w*|(?:\S*/)?main_ppo\w*\.py)")
_OVERRIDE = re.compile(r"[+~]{0,2}[a-z_]+(?:\.[\w-]+)+=")
_BRANCHES = {"if", "elif", "else", "for", "while", "until", "case", "select", "function"}
_FILLERS = {"then", "do", "{", "!", "time", "exec", "nohup", "command", "sudo", "else"}
_QUIET = {
    "set",
    "cd",
    "echo",
    "printf",
    "mkdir",
    "fi",
    "done",
    "esac",
    "}",
    "true",
    ":",
    "[",
    "[[",
    "ulimit",
    "exit",
    "shift",
    "return",
    "break",
    "continue",
    "wait",
    "trap",
    "tee",
    "date",
    "sleep",
    "cat",
}


@dataclass
class Script:
    """What a script hands to veRL: the words after the module, the environment, and what is left open."""

    overrides: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def parse(text: str, folder: str = ".") -> Script:
    """The last veRL command of a script that would be run in `folder`, or of a pasted command line.

    Where there is none, lines that begin with an override are taken, so that a part of a command will do.
    """
    found, shell = Script(), Expander(folder)
    loose: list[str] = []
    commands = 0
    for words in read(_SHEBANG.sub("", text), shell):
        words = _without_fillers(words, found)
        rest, env = _assignments(words, shell)
        if not rest:
            continue
        if rest[0] in ("export", "declare", "readonly", "local", "typeset"):
            more, exported = _assignments([word for word in rest[1:] if not word.startswith("-")], shell)
            exported |= {name: shell.variables[name] for name in more if name in shell.variables}
            if rest[0] == "export" or "-x" in rest:
                found.env.update(exported)
        elif (start := _driver(rest)) is not None:
            commands += 1
            found.overrides = [word.strip() for word in rest[start:]]
            found.env.update(env | _prefix(rest[: start - 1], found))
        elif rest[0] == "unset":
            for name in rest[1:]:
                found.env.pop(name, None)
        elif _OVERRIDE.match(rest[0]):
            loose += rest
        elif rest[0] not in _QUIET:
            keys = [word.partition("=")[0] for word in rest if _OVERRIDE.match(word)]
            sets = f", which sets {', '.join(keys)}" if keys and "-m" not in rest else ""
            found.notes.append(f"not imported: {_short(rest)}{sets}")
    if not commands:
        found.overrides = loose
    elif commands > 1:
        found.notes.append(f"{commands} veRL commands found; the last one is used")
    found.notes = list(dict.fromkeys([*shell.notes, *found.notes]))
    return found


def _without_fillers(words: list[str], found: Script) -> list[str]:
    while words and (words[0] in _FILLERS or words[0] in _BRANCHES):
        if words[0] in _BRANCHES:
            found.notes.append("the script has conditions or loops; their contents are imported as if run once")
            if words[0] in ("for", "case", "select", "function"):
                return []
        words = words[1:]
    return words


def _assignments(words: list[str], shell: Expander) -> tuple[list[str], dict[str, str]]:
    """Takes the `NAME=value` off the front; the words after them, and what was assigned."""
    env: dict[str, str] = {}
    for place, word in enumerate(words):
        match = _ASSIGNMENT.match(word)
        if match is None:
            return words[place:], env
        name, value = match[1], word[match.end() :]
        env[name] = shell.variables.get(name, "") + value if match[2] else value
        shell.variables[name] = env[name]
    return [], env


def _driver(words: list[str]) -> int | None:
    """The place of the first word after veRL's module; None for another command."""
    for place, word in enumerate(words):
        if _DRIVER.fullmatch(word) and place and (words[place - 1] == "-m" or word.endswith(".py")):
            return place + 1
    return None


def _prefix(words: list[str], found: Script) -> dict[str, str]:
    """The environment that `env A=1 python -m` and `ray job submit ... --` give a command."""
    if words[:3] == ["ray", "job", "submit"]:
        found.notes.append(f"submitted with {_short(words)}; see cluster.address")
        return _runtime_env(words)
    if not words or words[0].rpartition("/")[2] != "env":
        return {}
    return {match[1]: word[match.end() :] for word in words if (match := _ASSIGNMENT.match(word))}


def _runtime_env(words: list[str]) -> dict[str, str]:
    """The variables in `--runtime-env-json={"env_vars": {...}}`."""
    _, _, text = next((word for word in words if "--runtime-env-json=" in word), "").partition("=")
    try:
        variables = json.loads(text)["env_vars"]
        return {str(name): str(value) for name, value in variables.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _short(words: list[str]) -> str:
    text = " ".join(word if len(word) <= 40 else f"{word[:39]}…" for word in words)
    return text if len(text) <= 80 else f"{text[:79]}…"
