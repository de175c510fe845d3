"""What people paste: the commands, the log and the versions in it (tests/data/pasted)."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from launcher.check.checks import wrong_keys
from launcher.console.diagnose import diagnose
from launcher.core.errors import UserError
from launcher.preset.effective import of_draft
from launcher.preset.files import LoadedPreset, load_text
from launcher.scripts import pasted
from launcher.scripts.importer import add_script
from launcher.scripts.verl_command import Source
from launcher.verl import hydra, versions

DATA = Path(__file__).parents[1] / "data" / "pasted"
HERE = Path("/data/project")
CASES = [(half, case) for half in ("learn", "measure") for case in YAML(typ="safe").load(DATA / f"{half}.yaml")]


def outcome(case: dict[str, Any]) -> list[str]:
    """What of a case is not as expected."""
    wrong: list[str] = []
    said, text, preset = "", "", None
    try:
        path, found = add_script(Source(case["text"], HERE, args=tuple(case.get("args", ()))), "mine")
        text = path.read_text()
        said = "\n".join([*found.notes, *(f"{each.message} {each.fix}" for each in wrong_keys(str(path)))])
        preset = load_text(path, text)
    except UserError as error:
        said = str(error)
    if "refused" in case:
        wrong += [f"imported: {text}"] if preset else []
        wrong += [f"{case['refused']} not in: {said}"] if case["refused"] not in said else []
    elif preset is None:
        return [said]
    if preset is not None:
        wrong += list(differing(case, preset))
    wrong += [f"not said: {part}" for part in case.get("says", ()) if part not in said]
    read = pasted.read(case["text"])
    result = diagnose([read.log.encode()])
    if "cause" in case and result.cause != case["cause"]:
        wrong.append(f"cause {result.cause}: {result.title}")
    wrong += [
        f"{name} {read.versions.get(name)}, not {version}"
        for name, version in case.get("versions", {}).items()
        if read.versions.get(name) != version
    ]
    shown = f"{said}\n{text}\n{read.log}\n{result}"
    return wrong + [f"shown: {secret}" for secret in case.get("never", ()) if secret in shown]


def differing(case: dict[str, Any], loaded: LoadedPreset) -> Any:
    preset = loaded.preset
    config = of_draft(loaded.values())
    for key, value in case.get("sets", {}).items():
        newest = versions.newest(key)
        held = config.get(newest, preset.overrides.get(newest, preset.overrides.get(f"+{newest}")))
        if held != value and hydra.parse(str(held)) != value and held != [value] and [held] != value:
            yield f"{key} is {held!r}, not {value!r}"
    for key in case.get("absent", ()):
        if config.source(versions.newest(key)) in ("field", "override"):
            yield f"{key} is set"
    for name, value in case.get("env", {}).items():
        if preset.env.get(name) != value:
            yield f"env {name} is {preset.env.get(name)!r}, not {value!r}"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))


@pytest.mark.parametrize("case", [case for half, case in CASES if half == "learn"], ids=lambda case: case["id"])
def test_what_the_rules_were_written_against(case: dict[str, Any]) -> None:
    assert not outcome(case)


@pytest.mark.parametrize("case", [case for half, case in CASES if half == "measure"], ids=lambda case: case["id"])
def test_what_was_held_back(case: dict[str, Any]) -> None:
    assert not outcome(case)
