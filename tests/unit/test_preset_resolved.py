"""Presets of runs made elsewhere: what they resolve to is what the log says the run resolved to."""

from pathlib import Path
from typing import Any

import pytest
from console_logs import DATA, events_of, only, stored

from launcher.console.reader import ConfigDump
from launcher.preset.drafts import draft_of_run
from launcher.preset.effective import EffectiveConfig, of_draft
from launcher.preset.files import load_text
from launcher.preset.resolved import from_config, version_of
from launcher.preset.schema import BY_KEY
from launcher.preset.translate import OURS, RunFolders, build
from launcher.record.info import RunInfo
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs
from launcher.verl import defaults, versions

LOGS = sorted(path.name.removesuffix(".log.gz") for path in (DATA / "logs").glob("*.log.gz"))
FAILURES = ["real-dyn-mismatch", "real-legacy-raise", "real-reward-name"]
NOT_SAID = {"trainer.logger", "trainer.experiment_name", *OURS}  # ppo-tui's own for each run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    return tmp_path


def config_of(name: str) -> dict[str, Any]:
    return only(ConfigDump, events_of(stored(name)))[0].keys


def read_by(version: str, config: dict[str, Any]) -> dict[str, Any]:
    """The keys with a field, by their newest names, of those that this veRL reads."""
    critic = config["algorithm.adv_estimator"] == "gae"
    return {
        newest: value
        for key, value in config.items()
        if (newest := versions.newest(key)) in BY_KEY
        and newest not in NOT_SAID
        and (newest, value) != ("ray_kwargs.ray_init.address", "local")
        and versions.at(newest, version) == key
        and (critic or not key.startswith("critic."))
    }


@pytest.mark.nightly("launcher/preset/", "launcher/verl/", "launcher/console/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("name", [*LOGS, *FAILURES])
def test_the_preset_of_a_log_resolves_to_its_configuration(name: str, home: Path) -> None:
    (run,) = import_logs([str(DATA / ("failures" if name in FAILURES else "logs") / f"{name}.log.gz")])
    draft = draft_of_run(run.read_info())
    loaded = load_text(draft.path, draft.text)
    config = config_of(name)
    version = version_of(config)
    seen = of_draft(loaded.layer, version)
    differing = {key for key, value in read_by(version, config).items() if seen.get(key) != value}
    assert version == "0.9.1"
    assert differing == {key for key in differing if f"left out: {key}: " in draft.text}
    assert len(differing) == (2 if name == "nan" else 0)  # learning rates of 50, which no preset takes
    launch = build(loaded, version=version, folders=RunFolders.below(home), python="python", environ={})
    assert {key: launch.keys[key] for key in launch.keys if key in config and key not in NOT_SAID} == {
        key: config[key] for key in launch.keys if key in config and key not in NOT_SAID
    }


def test_the_preset_holds_what_differs_from_the_defaults_and_says_where_it_is_from(home: Path) -> None:
    (run,) = import_logs([str(DATA / "logs" / "grpo.log.gz")])
    text = draft_of_run(run.read_info()).text
    assert text.startswith(
        f"# Settings of run {run.id}, read from its log: only values that differ from the defaults.\n"
    )
    settings = [line for line in text.splitlines() if line.startswith("  ")]
    assert "  n: 4" in settings and len(settings) < 30
    assert "overrides" not in text and "experiment" not in text and "\ncritic" not in text


def resolved(version: str) -> dict[str, Any]:
    """veRL's configuration without a setting, as a run of it would print it."""
    config, tree = EffectiveConfig(version=version), defaults.bundled(version)
    found = {key: config.get(key, defaults.leaf(tree, key)[1]) for key in defaults.leaves(tree)}
    return found | {key: "???" for key in found if key.endswith("teacher_model.inference.name")}  # follows a "???"


@pytest.mark.slow
@pytest.mark.parametrize("version", defaults.published())
def test_of_any_verl_only_what_ppo_tui_would_do_otherwise_is_said(version: str) -> None:
    config = resolved(version)
    found = from_config(config, Path("/"))
    assert defaults.bundled(version_of(config)) == defaults.bundled(version)
    assert "overrides" not in found.preset and not found.notes
    assert found.preset["rollout"]["tensor_model_parallel_size"] == 2  # veRL's, not ours
    assert set(found.preset["data"]) == {"train", "val"}  # veRL has some, a preset has to name them


def test_keys_that_no_veRL_has_are_added(home: Path) -> None:
    found = from_config({**config_of("grpo"), "trainer.my_own": [1, "a,b"], "actor_rollout_ref.new.block": 2}, home)
    assert found.preset["overrides"] == {"++trainer.my_own": [1, "a,b"], "++actor_rollout_ref.new.block": 2}


def test_a_log_without_a_configuration_leaves_a_run_without_a_preset(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "short.log"
    log.write_text("step:1 - actor/entropy:0.5\n")
    (run,) = import_logs([str(log)])
    assert run.read_info().preset is None
    assert from_config({"a.b": 1}, home).preset is None


def test_run_yaml_keeps_preset_and_notes(tmp_path: Path) -> None:
    info = RunInfo("1", "x", preset={"actor": {"lr": 0.1}}, preset_notes=("left out: a",), imported_from=("x.log",))
    info.write(RunDir(tmp_path).run_yaml)
    assert RunDir(tmp_path).read_info() == info
    assert info.from_log
