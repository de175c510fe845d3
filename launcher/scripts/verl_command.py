"""The veRL command in a shell script or a pasted text: which words reach veRL, and what is not certain of them."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.core.errors import UserError
from launcher.preset.schema import MAIN
from launcher.scripts.bash import marks, reader, recording
from launcher.scripts.bash.builtins import unwrapped
from launcher.scripts.bash.state import Started

_SHEBANG = re.compile(r"\A#!\S+(?:[ \t]+(?:ba|z)?sh\b)?")  # a page may have put the whole script on one line
_PROMPT = re.compile(r"^(\s*)\$ (?=\S)", re.MULTILINE)
_PYTHON = re.compile(r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)")
_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w-]*(?:[./@][\w-]+)+=")
_OF_PPO = re.compile(r"[+~]{0,2}(?:actor_rollout_ref|algorithm|critic)\.")
_EDITORS = ("sed", "awk", "grep", "perl")  # whose expressions look like settings: s/weight=1/weight=2/
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_ENVIRONMENT = ("HOME", "USER", "LOGNAME", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LANG", "TMPDIR")


@dataclass(frozen=True)
class Source:
    """A script: its text, the file it is, the folder in which it would be run, and its arguments.

    Of the arguments `NAME=value` sets a variable, as before a command, and answers for it where the script sets it to
    what only a run can tell. `execute` runs it with recording programs
    instead of reading it.
    """

    text: str
    folder: Path
    path: Path | None = None
    args: tuple[str, ...] = ()
    execute: bool = False


@dataclass
class Script:
    """What a script hands to veRL: the entry point with the words after it, the environment, the folder.

    `losses` are what is not certain and changes the training, `notes` the rest.
    """

    entry: str = MAIN
    overrides: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    notes: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def parse(source: Source) -> Script:
    """The last veRL command of a script, or of a pasted command line.

    Where there is none, lines that begin with an override are taken, so that a part of a command will do. Raises
    UserError for a script that does not end, or gives up before it starts veRL.
    """
    text = _PROMPT.sub(r"\1", _SHEBANG.sub("", source.text))
    environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    answers = dict(arg.split("=", 1) for arg in source.args if _VARIABLE.match(arg))
    args = [arg for arg in source.args if not _VARIABLE.match(arg)]
    folder, ended, notes = str(source.folder), "", []
    if source.execute:
        path = str(source.path.absolute()) if source.path else None
        started = recording.record(text, folder, path, args, environ | answers)
    else:
        path = str(source.path) if source.path else f"{folder}/script.sh"
        found = reader.read(text, folder, path, args, environ, answers)
        started, ended, notes = found.started, found.ended, found.notes
    return _choose(started, notes, ended)


def _choose(started: Sequence[Started], notes: list[str], ended: str) -> Script:
    script = Script(notes=list(dict.fromkeys(notes)))
    commands: list[tuple[Started, int]] = []
    loose: list[str] = []
    for each in started:
        at = _driver(each.argv)
        if at is not None:
            commands.append((each, at))
        elif each.argv and _OVERRIDE.match(each.argv[0]):
            loose += each.argv
        else:
            _tell(each, script)
    if not commands:
        if ended and not loose:
            raise UserError(
                f"the script exits before it starts veRL: {ended}", "pass its arguments after the script name"
            )
        script.overrides = [word.strip() for word in loose]
        return script
    _take(*commands[-1], script)
    words = {(each.argv[at - 1], *each.argv[at:]) for each, at in commands}
    if len(words) > 1:
        script.losses.append(f"{len(words)} different veRL commands, of which the last one is used")
    for why in dict.fromkeys(why for each, _ in commands for why in each.because):
        script.losses.append(f"veRL is started differently if: {why}")
    return script


def _take(each: Started, at: int, script: Script) -> None:
    """The driver's command into `script`; its words begin at `at`."""
    script.entry = marks.plain(each.argv[at - 1])
    script.overrides = [word.strip() for word in each.argv[at:]]
    before = each.argv[: at - 1]
    script.env = {**each.env, **_prefix(before, script)}
    script.folder = "" if marks.is_marked(each.folder) else each.folder
    if marks.is_unknown(each.folder):
        script.losses.append(f"the folder is not known: {', '.join(marks.reasons(each.folder))}")


def _driver(words: Sequence[str]) -> int | None:
    """The place of the first word after veRL's module or file; None for another command."""
    python = next((place for place, word in enumerate(words) if _PYTHON.fullmatch(marks.plain(word))), None)
    if python is None:
        return None
    for place in range(python + 1, len(words)):
        word = marks.plain(words[place])
        if words[place - 1] == "-m" or (word.endswith(".py") and not word.startswith("-")):
            name = word.removesuffix(".py").replace("/", ".").rpartition(".")[2]
            ours = any(_OF_PPO.match(each) for each in words[place + 1 :])
            return place + 1 if name.startswith("main_ppo") or ours else None
        if words[place - 1] == "-c" or ("=" in word and not word.startswith("-")):
            return None
    return None


def _prefix(words: Sequence[str], script: Script) -> dict[str, str]:
    """The environment that `env A=1 python -m` and `ray job submit ... --` give a command."""
    if list(words[:3]) == ["ray", "job", "submit"]:
        script.notes.append(f"submitted with {_short(words)}; see cluster.address")
        return _runtime_env(words, script)
    if words and words[0].rpartition("/")[2] == "torchrun":
        script.losses.append(f"torchrun starts several processes: {_short(words)}")
    return {name: value for word in words if _VARIABLE.match(word) for name, _, value in [word.partition("=")]}


def _runtime_env(words: Sequence[str], script: Script) -> dict[str, str]:
    """The variables in `--runtime-env-json={"env_vars": {...}}`."""
    for place, word in enumerate(words):
        name, equals, text = word.partition("=")
        text = text if equals else "".join(words[place + 1 : place + 2])
        if name == "--runtime-env":
            script.notes.append(f"not imported: --runtime-env {text}")
        elif name == "--runtime-env-json":
            try:
                variables = json.loads(text)["env_vars"]
                return {str(name): str(value) for name, value in variables.items()}
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                script.notes.append("not imported: --runtime-env-json without env_vars")
    return {}


def _tell(each: Started, script: Script) -> None:
    words = [marks.plain(word) for word in each.argv]
    keys = [word.lstrip("+~").partition("=")[0] for word in words if _OVERRIDE.match(word)]
    text = f"not imported: {_short(words)}"
    if keys and "-m" not in words and not _PYTHON.fullmatch(words[0]) and words[0] not in _EDITORS:
        script.losses.append(f"{text}, which sets {', '.join(keys)}")
    elif unwrapped(words)[:1] not in (["cat"], ["rm"], ["ls"]):
        script.notes.append(text)


def _short(words: Sequence[str]) -> str:
    text = " ".join(word if len(word) <= 40 else f"{word[:39]}…" for word in " ".join(words).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
