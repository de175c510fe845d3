"""Recipes, and what veRL gets of these and of shipped presets, whose command lines are in golden.json.xz.

veRL is never imported (that takes half a minute): its configuration tree is found without it.
"""

import functools
import importlib.util
import operator
import sys
from importlib import metadata
from pathlib import Path

import pytest
from corpus import Case
from tables import parts
from verl_wheels import compose

from launcher.core.errors import UserError
from launcher.preset.draft import Draft
from launcher.preset.files import load, recipe_about, recipe_layer, recipes, shipped, summary
from launcher.preset.library import copy
from launcher.preset.translate import RunFolders, build

BASES = {
    "toy-cpu": "1x24",
    "gsm8k-0.5b-24gb": "1x24",
    "gsm8k-0.5b-8gpu": "8x24",
    "math-0.5b-24gb": "1x24",
    "math-7b-8gpu": "8x80",
}
NAMES = sorted(recipes())
PUBLISHED = parts("preset_recipes")["published"][1]


FOLDERS = RunFolders.below(Path("/runs/it's (1)"))
VERL = importlib.util.find_spec("verl")
needs_verl = pytest.mark.skipif(VERL is None, reason="veRL is not installed")


def launch(base, *settings):
    loaded = load(base, settings)
    return build(loaded, version=metadata.version("verl"), folders=FOLDERS, python=sys.executable, environ={})


def composed(launches):
    """The configurations that veRL would see, as functions from a key to its value."""
    folder = Path(VERL.submodule_search_locations[0]) / "trainer" / "config"
    configs = compose(folder, [each.argv[4:] for each in launches])
    return [lambda key, config=config: functools.reduce(operator.getitem, key.split("."), config) for config in configs]


@pytest.mark.slow
@needs_verl
def test_verl_sees_every_value_that_the_launch_of_a_shipped_preset_names() -> None:
    launches = [launch(name) for name in shipped()]
    for name, each, at in zip(shipped(), launches, composed(launches), strict=True):
        assert {key: at(key) for key in each.keys} == each.keys
        found = summary(name)
        assert found.error is None and found.description and found.needs


@pytest.mark.nightly("launcher/preset/", "launcher/verl/algorithms.py", "presets/")
@pytest.mark.slow
@needs_verl
def test_verl_gets_the_published_settings_on_every_base() -> None:
    """Each recipe on one base of a GPU and on the CPU; the one that sets most on all."""
    cases = [(base, name) for base in BASES for name in (NAMES if base in ("toy-cpu", "math-7b-8gpu") else ["dapo"])]
    launches = [launch(base, f"recipe={name}") for base, name in cases]
    wrong = {
        (base, name, key): found
        for (base, name), at in zip(cases, composed(launches), strict=True)
        for recipe, key, value in PUBLISHED
        if recipe == name and (found := at(key)) != value
        # of 256 tokens, which the other bases do not have; a fifth of these
        if not ((base != "gsm8k-0.5b-24gb" and "resp_len" in key) or key.endswith(".len"))
    }
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_no_rule_about_the_configuration_finds_an_error(base: str) -> None:
    for name in NAMES:
        found = Case(base, [f"recipe={name}"], BASES[base]).findings()
        assert [each for each in found if each.level == "error"] == [], name


def test_each_sets_the_whole_objective() -> None:
    """So that nothing of another algorithm remains, whatever the preset or an earlier recipe set."""
    whole = set(recipe_layer("ppo", ""))
    assert {name: set(recipe_layer(name, "")) ^ whole for name in NAMES if set(recipe_layer(name, "")) ^ whole} == {
        "remax": {("trainer", "use_v1")}
    }
    assert {row[0] for row in PUBLISHED} == set(NAMES) and all(map(recipe_about, NAMES))


def test_values_of_the_file_and_later_settings_win(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: toy-cpu\nrecipe: dapo\nrollout: {n: 4}\n")
    preset = load(str(path)).preset
    assert (preset.algorithm, preset.rollout.n, preset.actor.clip_ratio_high) == ("grpo", 4, 0.28)
    preset = load(str(path), ["recipe=rloo", "kl.coef=0.01"]).preset
    assert (preset.algorithm, preset.rollout.n, preset.actor.clip_ratio_high) == ("rloo", 5, None)
    assert (preset.kl.coef, preset.recipe) == (0.01, "rloo")
    assert load("toy-cpu", ["rollout.n=3", "recipe=rloo"]).preset.rollout.n == 5  # the later one


def test_an_unknown_one_is_named_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: toy-cpu\nrecipe: dap\n")
    with pytest.raises(UserError, match=r"mine.yaml, line 2: no recipe named 'dap'; did you mean 'dapo'"):
        load(str(path))
    with pytest.raises(UserError, match="setting recipe: no recipe named 'x'"):
        load("toy-cpu", ["recipe=x"])
    draft = Draft(path, path.read_text(), on_disk=path.read_text())
    assert "no recipe named" in draft.reading.errors["recipe",]
    assert draft.value(("actor", "lr")) == 3e-4  # the rest can be read


def test_one_of_the_users_own_shadows_the_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path))
    path = tmp_path / "presets" / "recipes" / "grpo.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("algorithm: grpo\nrollout: {n: 64}\n")
    assert load("toy-cpu", ["recipe=grpo"]).preset.rollout.n == 64
    assert copy("toy-cpu", "mine").is_file()  # recipes are no presets


def test_switching_in_a_draft_drops_values_that_would_win(tmp_path: Path) -> None:
    text = "extends: toy-cpu\nalgorithm: grpo      # mine\nactor:\n  lr: 1e-4\n  clip_ratio: 0.1\nrollout:\n  n: 8\n"
    draft = Draft(tmp_path / "mine.yaml", text, on_disk=text)
    draft.set(("recipe",), "gspo")
    assert draft.text == "extends: toy-cpu\nrecipe: gspo\nactor:\n  lr: 1e-4\n"
    assert draft.value(("actor", "clip_ratio_low")) == 3e-4 and draft.value(("rollout", "n")) == 16
    then, name = draft.against()
    assert (name, then["actor", "lr"], ("actor", "clip_ratio_low") in then) == ("toy-cpu", 3e-4, False)
    draft.set(("recipe",), "rloo")
    assert draft.value(("actor", "clip_ratio_low")) is None
    assert draft.undo() and draft.undo() and draft.text == text
    draft.set(("recipe",), "rloo")
    draft.unset(("recipe",))
    assert draft.value(("rollout", "n")) is None  # the toy's again
