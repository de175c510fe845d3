"""Measures how faithful `preset import` is: compares what bash passes to veRL with the preset's command.

.venv/bin/python campaigns/import_faithful.py FOLDER [FOLDER ...]

Each `.sh` file below a folder is run by bash with recording programs, as from that folder, and imported. The two
configurations are compared key by key. Prints each script that is not faithful, and a table.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.core.errors import UserError
from launcher.preset.effective import EffectiveConfig
from launcher.preset.files import load_text
from launcher.preset.schema import BY_KEY
from launcher.preset.translate import OURS, Launch, RunFolders, build
from launcher.scripts.bash import marks
from launcher.scripts.bash.recording import record
from launcher.scripts.bash.state import Started
from launcher.scripts.importer import Lossy, from_script
from launcher.scripts.verl_command import Source
from launcher.verl import hydra, versions
from launcher.verl.config import ENGINE
from launcher.verl.defaults import published

_FOLDERS = RunFolders.below(Path("/runs/measured"))
_TOLD = ("a backslash is followed by", "does not exist here", "read as a Slurm job")
_UNSET = "the script does not set "
_NAMES = ("trainer.experiment_name", "trainer.project_name")
_IGNORED = {*OURS, "trainer.logger", "ray_kwargs.ray_init.address"}
_ADDED = {"transfer_queue.backend.SimpleStorage.num_data_storage_units"}  # ours, and nothing of the training
_WITHOUT_CRITIC = {"grpo", "rloo", "remax", "opo", "gpg", "gdpo", "reinforce_plus_plus", "grpo_passk"}
_WITHOUT_CRITIC |= {"reinforce_plus_plus_baseline", "optimal_token_baseline", "grpo_vectorized", "rloo_vectorized"}


@dataclass(frozen=True)
class Outcome:
    """`kind`: faithful, asked (after an answer to its question), fixed (with a value for what is random or measured,
    such as a port), exec (by bash), told (bash does something else in this folder, and a note reports it), refused,
    silent (it differs, without a note); `why` lists differences or the refusal.
    """

    kind: str
    why: tuple[str, ...] = ()


def truth(path: Path, folder: Path, args: tuple[str, ...] = ()) -> Started | None:
    """The last PPO command that bash starts; None if it starts none."""
    given = {"HOME": str(Path.home()), **dict(arg.split("=", 1) for arg in args if "=" in arg)}
    positional = [arg for arg in args if "=" not in arg]
    text = path.read_text("utf-8", errors="replace")
    started = record(text, str(folder), str(path), positional, given)
    found = [each for each in started if _words(each.argv)]
    return found[-1] if found else None


def _words(argv: tuple[str, ...]) -> list[str]:
    """The overrides of a PPO command; none of another one."""
    for place, word in enumerate(argv):
        if re.fullmatch(r"(?:\S*/)?python[\d.]*", word):
            rest = list(argv[place + 1 :])
            ppo = any(re.match(r"[+~]{0,2}(?:actor_rollout_ref|algorithm)\.", each) for each in rest)
            return rest if ppo else []
    return []


def measured(path: Path, folder: Path) -> Outcome | None:
    """The outcome of one script that is run in `folder`; None if it starts no PPO training."""
    wanted = truth(path, folder)
    if wanted is None:
        return None
    text = path.read_text("utf-8", errors="replace")
    try:
        return _compared(wanted, Source(text, folder, path))
    except Lossy as refused:
        losses, answers = refused.losses, _answers(refused)
    except UserError as error:
        return Outcome("refused", (str(error),))
    if found := _fixed(path, folder, losses, answers):
        return found
    if answers and all(loss.startswith(_UNSET) for loss in losses):
        wanted = truth(path, folder, answers)
        try:
            found = _compared(wanted, Source(text, folder, path, answers)) if wanted else Outcome("refused", ("?",))
            return Outcome("asked") if found.kind == "faithful" else found
        except UserError as error:
            return Outcome("refused", (str(error),))
    try:
        found = _compared(wanted, Source(text, folder, path, execute=True))
        return Outcome("exec", losses) if found.kind == "faithful" else found
    except UserError as error:
        return Outcome("refused", (*losses, str(error)))


def _fixed(path: Path, folder: Path, losses: tuple[str, ...], answers: tuple[str, ...]) -> Outcome | None:
    """Measures a script again with given values for its random or measured parts: a port, an address, a date."""
    keys = {loss.partition(" ")[0].lstrip("+") for loss in losses if "is known only when the script runs" in loss}
    text = path.read_text("utf-8", errors="replace")
    names = dict.fromkeys(re.findall(r"^\s*(?:export\s+)?(\w+)=\S*(?:\$\(|`)", text, re.MULTILINE))
    given = (*answers, *(f"{name}=4" for name in names))
    wanted = truth(path, folder, given) if keys and names else None
    if wanted is None:
        return None
    try:
        found = _compared(wanted, Source(text, folder, path, given))
    except UserError:
        return None
    told = (*(f"changed: {key}:" for key in keys), *(f"environment: {name}=" for name in names))
    left = [why for why in found.why if not why.startswith(told)]
    return None if left else Outcome("fixed", losses)


def _answers(refused: Lossy) -> tuple[str, ...]:
    found = [
        name.strip()
        for loss in refused.losses
        if loss.startswith(_UNSET)
        for name in loss.removeprefix(_UNSET).partition(";")[0].split(",")
    ]
    given = [f"{name}=4" for name in found if not name.isdigit()]
    return (*given, *["4"] * max((int(name) for name in found if name.isdigit()), default=0))


def _compared(wanted: Started, source: Source) -> Outcome:
    found = from_script(source, "measured")
    loaded = load_text(Path("/measured/measured.yaml"), found.text)
    launch = None
    errors: list[str] = []
    for version in reversed(published()):
        try:
            launch = build(loaded, version=version, folders=_FOLDERS, python="python3", environ={})
            break
        except UserError as error:
            errors.append(str(error))
    if launch is None:
        return Outcome("refused", (errors[0],))
    theirs, options = _configuration(_words(wanted.argv), Path(wanted.folder))
    ours, given = _configuration(launch.argv[1:], Path(launch.cwd or source.folder))
    differences = [*_differences(theirs, ours), *_options(options, given, launch), *_env(wanted, launch, found.notes)]
    # bash ends the command at such a backslash, and stays where it is if the folder does not exist
    torn = any(part in note for part in _TOLD for note in found.notes)
    kind = "faithful" if not differences else "told" if torn else "silent"
    return Outcome(kind, tuple(differences))


def _configuration(words: list[str], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Value by key as the newest veRL names it, and the words that are not settings."""
    settings: dict[str, Any] = {}
    options = []
    for word in filter(None, (each.strip() for each in words)):
        if word.startswith("~") and "=" not in word:
            settings[word] = None
        elif word.startswith("-") or "=" not in word:
            options.append(word)
        else:
            key, _, value = word.partition("=")
            bare = key.lstrip("+~")
            newest = versions.newest(bare)
            spec = BY_KEY.get(newest)
            settings[newest] = _normal(hydra.parse(value.strip()), folder if spec and spec.kind else None)
    return settings, options


def _normal(value: Any, folder: Path | None) -> Any:
    """A value in comparable form: paths absolute, a list of one file that file, `1.0` and 1 the same."""
    if isinstance(value, list):
        items = [_normal(item, folder) for item in value]
        return items[0] if folder and len(items) == 1 else items
    if folder and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if folder and isinstance(value, str) and value and "://" not in value:
        return str((folder / Path(value).expanduser()).resolve())
    return value


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    defaults = EffectiveConfig()
    estimator = theirs.get("algorithm.adv_estimator", "gae")
    for key in {**theirs, **ours}:
        if (
            key in _IGNORED
            or key.startswith("hydra.run")
            or (key.startswith("critic.") and estimator in _WITHOUT_CRITIC)
        ):
            continue
        if key in _NAMES:
            continue
        if key not in ours:
            if theirs[key] is not None or defaults.get(key) is not None:
                yield f"lost: {key}={theirs[key]}"
        elif key not in theirs:
            usual = key == ENGINE and ours[key] == "vllm"  # veRL's default up to 0.6, and none since
            if not usual and key not in _ADDED and not _same(ours[key], defaults.get(key)) and "env_vars" not in key:
                yield f"added: {key}={ours[key]}"
        elif not _same(ours[key], theirs[key]):
            yield f"changed: {key}: {theirs[key]!r} to {ours[key]!r}"
    loggers = [set(each.get("trainer.logger") or ()) - {"console", "file"} for each in (theirs, ours)]
    if "trainer.logger" in theirs and isinstance(theirs["trainer.logger"], list) and loggers[0] != loggers[1]:
        yield f"changed: trainer.logger: {loggers}"


def _same(one: Any, other: Any) -> bool:
    texts = [re.sub(r"\d{8}[_-]\d{4,6}", "", str(each)).replace("~", str(Path.home())) for each in (one, other)]
    return bool(one == other) or texts[0] == texts[1]


def _options(theirs: list[str], ours: list[str], launch: Launch) -> Iterator[str]:
    """Entry point and Hydra's options."""
    texts = [" ".join(word for word in words if word not in ("-u", "-m")) for words in (theirs, ours)]
    texts = [re.sub(r"(--config-\w+)[ =]+['\"]?([^\s'\"]*)['\"]?", r"\1=\2", text) for text in texts]
    texts = [re.sub(r"\s*--config-name=ppo_trainer(?:\.yaml)?(?=\s|\Z)", "", text) for text in texts]
    texts = [re.sub(r"\S*verl/trainer/main_ppo\.py", "verl.trainer.main_ppo", text) for text in texts]
    one, other = (sorted(Path(word).name for word in text.split()) for text in texts)
    if one != other:
        yield f"command: {texts[0]!r} to {texts[1]!r}"


def _env(wanted: Started, launch: Launch, notes: tuple[str, ...]) -> Iterator[str]:
    for name, value in wanted.env.items():
        told = any(name in note for note in notes)
        silent = name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONUNBUFFERED", "VERL_FILE_LOGGER_PATH")
        silent |= value in str(launch.env.get(name))
        if not told and not silent and not _same(value, launch.env.get(name)) and not marks.is_marked(value):
            yield f"environment: {name}={value} to {launch.env.get(name)}"


def main() -> None:
    """Measures all scripts below the folders."""
    kinds = ("faithful", "asked", "fixed", "exec", "told", "refused", "silent")
    table: dict[str, Counter[str]] = {}
    for place in map(Path, sys.argv[1:]):
        counts = table.setdefault(place.name, Counter())
        seen: set[str] = set()
        for path in sorted(place.rglob("*.sh")):
            text = path.read_text("utf-8", errors="replace")
            if "actor_rollout_ref" not in text or text in seen:
                continue
            seen.add(text)
            try:
                found = measured(path, place)
            except UserError as error:
                print(f"{path}: cannot be run: {error}")
                continue
            if found is None:
                continue
            counts[found.kind] += 1
            if found.kind != "faithful":
                print(f"{found.kind}: {path.relative_to(place)}")
                for why in found.why[:4]:
                    print(f"    {why[:240]}")
    print("| scripts of | " + " | ".join(kinds) + " | all |")
    for name, counts in table.items():
        print(f"| {name} | " + " | ".join(str(counts[kind]) for kind in kinds) + f" | {counts.total()} |")


if __name__ == "__main__":
    main()
