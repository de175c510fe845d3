"""Lists what another veRL has that the tables of ppo-tui lack: keys, metrics, registered names, programs, phrases.

    make watch VERL=PATH         a wheel, a checkout, or a folder `verl`

Nothing of that veRL is imported or run: Hydra composes its configuration, the rest is read from its source.
"""

import ast
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from verl_metrics import keys, sources
from verl_wheels import compose, leaves

from launcher.console import marks
from launcher.core.tables import read_tables
from launcher.metrics.glossary import UNKNOWN, describe
from launcher.verl import defaults
from launcher.verl.algorithms import estimators, losses

CONFIGURATIONS = {"ppo_trainer": "dp", "ppo_megatron_trainer": "megatron"}
REGISTERS = {"register_adv_est": estimators, "register_policy_loss": losses}
MARKS = Path(marks.__file__).with_suffix(".toml")
# What fits any part of a step says little: a part that veRL names has words of its own.
GENERAL = {UNKNOWN, describe("timing_s/anything").meaning}


def unknown(verl: Path, installed: Path, version: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Per kind, the names in a folder `verl` that no table has, each with its value or its file.

    Keys are compared with those of the newest bundled version up to `version`, texts with the installed veRL.
    """
    for name, engine in CONFIGURATIONS.items():
        theirs = leaves(compose(verl / "trainer" / "config", [[]], resolve=False, name=name)[0])
        ours = leaves(defaults.bundled(version, engine))
        yield f"keys of {name} that are new", {key: repr(theirs[key]) for key in theirs.keys() - ours.keys()}
        yield f"keys of {name} that are gone", {key: repr(ours[key]) for key in ours.keys() - theirs.keys()}
        both = theirs.keys() & ours.keys()
        changed = {key: f"{ours[key]!r} -> {theirs[key]!r}" for key in both if ours[key] != theirs[key]}
        yield f"defaults of {name} that changed", changed
    yield "metrics and timers", {key: at for key, at in keys(verl).items() if describe(key).meaning in GENERAL}
    texts, before = _texts(verl), _texts(installed)
    for register, known in REGISTERS.items():
        named = re.compile(rf"@{register}\((?:\w+\.)?[\"']?(\w+)")
        found = {name.lower(): file for file, code in _code(verl) for name in named.findall(code)}
        yield f"names of {register}", {name: file for name, file in found.items() if name not in known()}
    programs = {str(path.relative_to(verl)): "" for path in verl.rglob("main_*.py")}
    yield "programs", {path: "" for path in programs if not (installed / path).exists()}
    phrases = [phrase for row in read_tables(MARKS)["start"] for phrase in row["phrases"]]
    gone = {each: "" for each in phrases if _printed(each, before) and not _printed(each, texts)}
    yield "phrases of the console that are gone", gone


def _code(verl: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(verl.rglob("*.py")):
        yield str(path.relative_to(verl)), path.read_text("utf-8")


def _texts(verl: Path) -> set[str]:
    """All texts of the code, with a digit for the values of an f-string."""
    found = set()
    for _, code in _code(verl):
        for node in ast.walk(ast.parse(code)):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            found.add("".join(str(each.value) if isinstance(each, ast.Constant) else "7" for each in parts))
    return found


def _printed(phrase: str, texts: set[str]) -> bool:
    return any(re.search(phrase, text) for text in texts)


def _unpacked(path: Path, spare: Path) -> Path:
    """The folder `verl` of a wheel or checkout, or itself."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(spare)
        return spare / "verl"
    return path / "verl" if (path / "verl").is_dir() else path


def main(path: str) -> None:
    installed = sources()
    assert installed, "veRL is not installed here: make setup"
    with tempfile.TemporaryDirectory() as spare:
        verl = _unpacked(Path(path), Path(spare))
        version = (verl / "version" / "version").read_text().strip()
        print(f"veRL {version} against the tables of ppo-tui, which end at {defaults.NEWEST}")
        for kind, names in unknown(verl, installed, version):
            print(f"\n{kind}: {len(names)}")
            for name in sorted(names):
                print(f"  {name}  {names[name]}".rstrip())


if __name__ == "__main__":
    main(sys.argv[1])
