"""YAML that would keep ppo-tui busy or fill its memory: one sentence, and the rest goes on."""

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from commands import call
from whole_run import whole_run

from launcher.check import checks
from launcher.core import text as texts
from launcher.core.errors import UserError
from launcher.core.yaml_bounds import refusal
from launcher.preset.drafts import open_draft
from launcher.preset.files import load, shipped
from launcher.record.state import current

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join([f'*{chr(97 + at)}'] * 9)}]\n" for at in range(12)
)
HOSTILE = {
    "alias bomb": (f"overrides: {{}}\nhealth:\n{BOMB}", "expands to more than 20,000 values"),
    "merge bomb": (BOMB.replace("[", "{k: [").replace("]", "]}"), "expands to more than 20,000 values"),
    "flow": ("health: " + "[" * 50_000, "nested more than 40 deep"),
    "block": ("health:\n" + "".join(" " * at + "a:\n" for at in range(1, 400)), "nested more than 40 deep"),
    "dashes": ("health: \n  " + "- " * 50_000, "nested more than 40 deep"),
    "itself": ("health: &a {b: *a}\n", r"\*a contains itself"),
    "long": ("# " + "x" * (1 << 20), "1.05M characters"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_preset_is_one_sentence(tmp_path: Path, text: tuple[str, str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text[0])
    with pytest.raises(UserError, match=text[1]) as refused:
        load(str(path))
    assert str(refused.value).startswith(str(path)) and "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_run_yaml_is_a_damaged_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: tuple[str, str]
) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    run = whole_run(tmp_path)
    run.run_yaml.write_text(f"name: x\n{text[0]}")
    assert "run.yaml: not YAML" in current(run).damaged
    assert call(["status", run.id])[2] in (0, None)


def test_what_presets_hold_is_within_the_bounds() -> None:
    assert not [path for path in shipped().values() if refusal(path.read_text())]
    assert refusal("a: &a [1, 2]\nb: *a\nc: [*a, *a]\n" + "d: " + "[" * 30 + "]" * 30) is None


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "x.yaml", "a/b", "..", ""])
def test_a_preset_is_copied_among_presets_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    out, err, code = call(["preset", "copy", "toy-cpu", name])
    assert code == 2 and b"is not a valid preset name" in err and not out
    assert not list(tmp_path.rglob("*.yaml"))


MANY = 200
UNKNOWN = {"": ("k{}: 1", 1), "actor:": ("  k{}: 1", 1), "usual:": ("  k{}: [0, 1]", 1), "health:": ("  K{}: off", 1)}
"""A group and the lines of unknown names in it, and how often a check looks for the name that was meant."""


@pytest.mark.parametrize("group", UNKNOWN)
def test_only_names_that_are_printed_are_compared_with_the_known_ones(
    group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = texts.nearest
    compared = Mock(side_effect=real)
    for name in [name for name in sys.modules if name.startswith("launcher.")]:  # a look into others may import more
        if vars(sys.modules[name]).get("nearest") is real:
            monkeypatch.setattr(sys.modules[name], "nearest", compared)
    line, most = UNKNOWN[group]
    lines = ["extends: toy-cpu", *filter(None, [group]), *(line.format(number) for number in range(MANY))]
    (path := tmp_path / "many.yaml").write_text("\n".join(lines))
    assert checks.report(str(path), static=True).findings[0].message
    assert 1 <= compared.call_count <= most
    compared.reset_mock()
    assert open_draft(str(path)).reading and not compared.called
