"""Recipes: published settings that any preset can take."""

import importlib.util
import sys
from importlib import metadata
from pathlib import Path

import pytest
from corpus import Case
from verl_wheels import compose

from launcher.core.errors import UserError
from launcher.preset.draft import Draft
from launcher.preset.files import load, recipe_about, recipe_layer, recipes
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
ACTOR = "actor_rollout_ref.actor"
KNOWN = {  # what the sources that each file names pass to veRL
    "ppo": {"algorithm.adv_estimator": "gae", "algorithm.use_kl_in_reward": True, f"{ACTOR}.use_kl_loss": False},
    "grpo": {
        "algorithm.adv_estimator": "grpo",
        "algorithm.use_kl_in_reward": False,
        f"{ACTOR}.use_kl_loss": True,
        f"{ACTOR}.kl_loss_coef": 0.001,
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        "actor_rollout_ref.rollout.n": 5,
    },
    "dr-grpo": {
        "algorithm.norm_adv_by_std_in_grpo": False,
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum-norm",
        f"{ACTOR}.use_kl_loss": False,
    },
    "dapo": {
        "algorithm.filter_groups.enable": True,
        "algorithm.filter_groups.metric": "acc",
        f"{ACTOR}.clip_ratio_low": 0.2,
        f"{ACTOR}.clip_ratio_high": 0.28,
        f"{ACTOR}.clip_ratio_c": 10,
        f"{ACTOR}.loss_agg_mode": "token-mean",
        f"{ACTOR}.use_kl_loss": False,
        "reward.reward_manager.name": "dapo",
        "reward.reward_kwargs.overlong_buffer_cfg.enable": True,
        "reward.reward_kwargs.overlong_buffer_cfg.len": 51,  # a fifth of 256
        "reward.reward_kwargs.max_resp_len": 256,
        "actor_rollout_ref.rollout.n": 16,
    },
    "gspo": {
        f"{ACTOR}.policy_loss.loss_mode": "gspo",
        f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean",
        f"{ACTOR}.clip_ratio_low": 3e-4,
        f"{ACTOR}.clip_ratio_high": 4e-4,
        f"{ACTOR}.use_kl_loss": False,
    },
    "cispo": {
        f"{ACTOR}.policy_loss.loss_mode": "cispo",
        f"{ACTOR}.clip_ratio_low": 10,
        f"{ACTOR}.clip_ratio_high": 0.2,
    },
    "rloo": {"algorithm.adv_estimator": "rloo", "algorithm.use_kl_in_reward": True, "actor_rollout_ref.rollout.n": 5},
    "reinforce-pp": {"algorithm.adv_estimator": "reinforce_plus_plus", "algorithm.use_kl_in_reward": True},
    "reinforce-pp-baseline": {"algorithm.adv_estimator": "reinforce_plus_plus_baseline"},
    "remax": {"algorithm.adv_estimator": "remax", "trainer.use_v1": False, "actor_rollout_ref.rollout.n": 4},
    "scalerl": {
        "algorithm.adv_estimator": "reinforce_plus_plus_baseline",
        f"{ACTOR}.policy_loss.loss_mode": "cispo",
        "algorithm.filter_groups.enable": True,
    },
}


def argv(base: str, recipe: str) -> list[str]:
    loaded = load(base, [f"recipe={recipe}"])
    folders = RunFolders.below(Path("/runs/1"))
    version = metadata.version("verl")
    return build(loaded, version=version, folders=folders, python=sys.executable, environ={}).argv[4:]


@pytest.mark.nightly("launcher/preset/", "launcher/verl/algorithms.py", "presets/")
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL is not installed")
def test_verl_gets_the_published_settings_on_every_base() -> None:
    """Each recipe on one base of a GPU and on the CPU; the one that sets most on all."""
    root = Path(importlib.util.find_spec("verl").submodule_search_locations[0]) / "trainer" / "config"
    cases = [(base, name) for base in BASES for name in (NAMES if base in ("toy-cpu", "math-7b-8gpu") else ["dapo"])]
    composed = dict(zip(cases, compose(root, [argv(*case) for case in cases]), strict=True))
    wrong = {}
    for (base, name), config in composed.items():
        for key, value in KNOWN[name].items():
            node = config
            for part in key.split("."):
                node = node[part]
            if node != value and not ((base != "gsm8k-0.5b-24gb" and "resp_len" in key) or key.endswith(".len")):
                wrong[base, name, key] = node
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
    assert set(KNOWN) == set(NAMES) and all(map(recipe_about, NAMES))


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
