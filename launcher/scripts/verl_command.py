"""The veRL command in a shell script or pasted text: the words that reach veRL, and the uncertain ones."""

import dataclasses
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.core.errors import UserError
from launcher.preset.schema import MAIN
from launcher.scripts.bash import marks, reader
from launcher.scripts.bash.launchers import CONTAINERS, name_of, unwrapped
from launcher.scripts.bash.state import Started
from launcher.scripts.pasted.commands import STARTS

_SHEBANG = re.compile(r"\A#!\S+(?:[ \t]+(?:ba|z)?sh\b)?")  # a page may have put the whole script on one line
_PROMPT = re.compile(r"^(\s*)\$ (?=\S)", re.MULTILINE)
_PYTHON = re.compile(r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)")
_RUNNERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")  # many processes
_WATCHERS = ("debugpy", "pdb", "cProfile", "viztracer", "coverage", "scalene", "memray", "trace")
_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w-]*(?:[./@][\w-]+)+=")
_OF_PPO = re.compile(r"[+~]{0,2}(?:actor_rollout_ref|algorithm|critic)\.")
_ENV_OPTIONS = ("-e", "--env", "--export")
_EDITORS = ("sed", "awk", "grep", "perl")  # their expressions look like settings: s/weight=1/weight=2/
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
_SBATCH = re.compile(r"^#SBATCH[ \t]+(--?[\w-]+)(?:[= \t]+|(?<=-\w))(\S+)", re.MULTILINE)
_SLURM = {  # option of sbatch -> the variables that the job gets
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "--gres": ("SLURM_GPUS_ON_NODE",),
    "--gpus": ("SLURM_GPUS",),
    "--cpus-per-task": ("SLURM_CPUS_PER_TASK",),
    "--job-name": ("SLURM_JOB_NAME",),
    "--partition": ("SLURM_JOB_PARTITION",),
}
_SHORT = {"-N": "--nodes", "-n": "--ntasks", "-G": "--gpus", "-c": "--cpus-per-task", "-J": "--job-name"}
_ENVIRONMENT = ("HOME", "USER", "LOGNAME", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LANG", "TMPDIR")


_ENDS = re.compile(r"[ \t]#[^'\"\n]*\\(\r?\n?)\Z")
"""A comment after settings that contains the backslash at the end of its line."""


@dataclass(frozen=True)
class Source:
    """A script: its text, file, working folder and arguments.

    An argument `NAME=value` sets a variable, as before a command, and replaces a value known only at run time.
    `is_joined`: comments inside commands were removed.
    """

    text: str
    folder: Path
    path: Path | None = None
    args: tuple[str, ...] = ()
    is_joined: bool = False

    def joined(self) -> "Source":
        """The script without comments that end a continued command; itself without any."""
        lines: list[str] = []
        for line in self.text.splitlines(keepends=True):
            continued = bool(lines) and lines[-1].rstrip("\r\n").endswith("\\")
            if continued and line.lstrip().startswith("#"):
                continue
            lines.append(_ENDS.sub(r" \\\1", line) if continued else line)
        text = "".join(lines)
        return self if text == self.text else dataclasses.replace(self, text=text, is_joined=True)


@dataclass
class Script:
    """The veRL command in a script: the entry point with its words, the environment, the folder.

    `losses`: uncertain parts that change the training. `cut`: settings that a shell would not pass although they look
    intended. `notes`: other remarks.
    """

    entry: str = MAIN
    overrides: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    notes: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)


def parse(source: Source) -> Script:
    """The last veRL command of a script, or of a pasted command line.

    Without one, lines that begin with an override count, so that a part of a command is enough. Raises UserError for a
    script that does not end, or exits before it starts veRL.
    """
    text = _PROMPT.sub(r"\1", _SHEBANG.sub("", source.text))
    environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    slurm = _slurm(text, str(source.folder))
    environ |= slurm
    answers = dict(arg.split("=", 1) for arg in source.args if _VARIABLE.match(arg))
    args = [arg for arg in source.args if not _VARIABLE.match(arg)]
    folder = str(source.folder)
    path = str(source.path) if source.path else f"{folder}/script.sh"
    found = reader.read(text, folder, path, args, environ, answers)
    if used := [f"{name}={slurm[name]}" for name in slurm if re.search(rf"\$\{{?{name}\b", text)]:
        found.notes.append(f"read as a Slurm job with its #SBATCH lines: {', '.join(used)}")
    ended = found.ended if found.ended or STARTS.search(text) else None  # a script without veRL may end so
    return choose(found.started, found.notes, ended, path, found.lacking)


def asked_for(names: Iterable[str]) -> str:
    """The missing variables and arguments of a script: `MODEL_PATH=VALUE VALUE`."""
    return " ".join("VALUE" if name.isdigit() else f"{name}=VALUE" for name in names)


def _slurm(text: str, folder: str) -> dict[str, str]:
    """The variables of a job, from the `#SBATCH` lines of its script."""
    found: dict[str, str] = {}
    for option, value in _SBATCH.findall(text):
        names = _SLURM.get(_SHORT.get(option, option), ())
        count = re.search(r"(?:\A|gpu:(?:\w+:)?|:)(\d+)", value) if "NAME" not in str(names) else None
        value = count[1] if count else value
        found |= dict.fromkeys(names, value) if count or "NAME" in str(names) or "PARTITION" in str(names) else {}
    return found | {"SLURM_SUBMIT_DIR": folder} if "#SBATCH" in text else {}


def choose(
    started: Sequence[Started], notes: list[str], ended: str | None, path: str, lacking: Sequence[str] = ()
) -> Script:
    """The last veRL command among a script's programs; `lacking`: names without values. Raises as `parse`."""
    script = Script(notes=list(dict.fromkeys(notes)))
    commands: list[tuple[Started, int]] = []
    loose: list[str] = []
    for each in started:
        at = _driver(each.argv)
        if at is not None:
            commands.append((each, at))
        elif each.argv and _OVERRIDE.match(each.argv[0]):
            loose += each.argv
            if commands:
                script.cut.append(_cut(each))
        else:
            _tell(each, script)
    if not commands:
        if ended is not None and not loose:
            given = re.findall(r"[A-Za-z_]\w*", ended)  # other variables without a value need none
            asked = asked_for(name for name in lacking if name in given) or "its arguments"
            said = ended and f": {ended}"
            raise UserError(f"the script exits before it starts veRL{said}", f"pass {asked} after the script name")
        script.overrides = [word.strip() for word in loose]
        if loose:
            script.notes.append(f"no program precedes the settings: {MAIN} is assumed")
        return script
    _take(*commands[-1], script)
    if (other := commands[-1][0].script) not in ("", path) and Path(other).is_file():
        script.notes.append(f"the command is in {other}, which this script runs")
    words = {(each.argv[at - 1], *each.argv[at:]) for each, at in commands}
    if len(words) > 1:
        script.losses.append(f"{len(words)} different veRL commands, of which the last one is used")
    for why in dict.fromkeys(why for each, _ in commands for why in each.because):
        script.losses.append(f"veRL is started differently if: {why}")
    return script


def _cut(each: Started) -> str:
    """Explains a shell's treatment of settings after the end of a command."""
    above = each.above.strip()
    if not above:
        end = "a blank line"
    elif above.startswith("#"):
        end = f"a comment ({_short([above])})"
    else:
        end = f"a line without a backslash at its end ({_short([above])})"
    settings = ", ".join(marks.plain(word) for word in each.argv if _OVERRIDE.match(word))
    return f"the shell ends the command at {end}; these settings below it never reach veRL: {settings}"


def _take(each: Started, at: int, script: Script) -> None:
    """Puts the driver's command into `script`; its words begin at `at`."""
    script.entry = marks.plain(each.argv[at - 1])
    script.overrides = [word.strip() for word in each.argv[at:]]
    before = each.argv[: at - 1]
    script.env = dict(each.env)
    for words in (*each.within, before):
        script.env |= _prefix(words, script)
    script.folder = "" if marks.is_marked(each.folder) else each.folder
    if marks.is_unknown(each.folder):
        script.losses.append(f"the folder is not known: {', '.join(marks.reasons(each.folder))}")


def _driver(words: Sequence[str]) -> int | None:
    """The index of the first word after veRL's module or file; None for other commands."""
    given = [marks.plain(word) for word in words]
    python = next((place for place, word in enumerate(given) if _PYTHON.fullmatch(word)), None)
    if python is None:  # `uv run -m`, or `$PYTHON -m`
        python = next((place - 1 for place, word in enumerate(given) if word == "-m"), len(given))
    for place in range(python + 1, len(given)):
        word, before = given[place], given[place - 1]
        if before in ("-m", "--module") or (word.endswith(".py") and not word.startswith("-")):
            if word in (*_RUNNERS, *_WATCHERS):
                continue
            name = word.removesuffix(".py").replace("/", ".").rpartition(".")[2]
            ours = any(_OF_PPO.match(each) for each in given[place + 1 :])
            return place + 1 if name.startswith("main_ppo") or ours else None
        if before == "-c" or ("=" in word and not word.startswith("-")):
            return None
    return None


def _prefix(words: Sequence[str], script: Script) -> dict[str, str]:
    """The environment that `env A=1 python -m`, `docker run -e A=1` and `ray job submit ... --` give a command."""
    bare = unwrapped(list(words))
    name = name_of(bare)
    if bare[:3] == ["ray", "job", "submit"]:
        script.notes.append(f"submitted with {_short(bare)}; see cluster.address")
        return _runtime_env(words, script)
    starter = next((each for each in words if each in _RUNNERS), name)
    if starter in (*_RUNNERS, "torchrun", "accelerate", "deepspeed"):
        script.notes.append(f"{starter} is left out: veRL starts its own processes and needs only one driver")
    if name in CONTAINERS:
        script.notes.append(f"run by {_short(words)}; its paths and variables are those of that container or host")
    found: dict[str, str] = {}
    for before, word in zip(("", *words), words, strict=False):
        option, equals, value = word.partition("=")
        if option in _ENV_OPTIONS and equals:
            found |= _pairs(value)
        elif before in _ENV_OPTIONS or (name not in CONTAINERS and _VARIABLE.match(word)):
            found |= _pairs(word) if before in _ENV_OPTIONS else {option: value}
    return found


def _pairs(text: str) -> dict[str, str]:
    """`A=1`, or `ALL,A=1,B=2`."""
    parts = re.split(r",(?=[A-Za-z_]\w*=)", text)
    return {name: value for part in parts if _VARIABLE.match(part) for name, _, value in [part.partition("=")]}


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
