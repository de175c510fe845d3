"""From a preset to the command: arguments, environment, the text a person pastes."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.core.secret_forms import is_secret
from launcher.inside import FOLDER
from launcher.preset.files import load
from launcher.preset.translate import Launch, RunFolders, build, command_line

FOLDERS = RunFolders(
    checkpoints=Path("/runs/r1/checkpoints"),
    rollouts=Path("/runs/r1/samples/rollout"),
    validations=Path("/runs/r1/samples/validation"),
    metrics=Path("/runs/r1/attempts/1/metrics.jsonl"),
    hydra=Path("/runs/r1/attempts/1/hydra"),
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def launch(preset="gsm8k-0.5b-24gb", *settings, version="0.9.1", environ=None, **rest) -> Launch:
    return build(load(preset, settings), version=version, folders=FOLDERS, python="/py", environ=environ or {}, **rest)


def names(found: Launch) -> list[str]:
    return [word.split("=", 1)[0].lstrip("+") for word in found.argv[4:]]


@pytest.mark.parametrize("version", ["0.5.0", "0.6.1", "0.7.1", "0.8.0", "0.9.1"])
def test_each_key_stands_once(version):
    found = launch(
        "gsm8k-0.5b-24gb",
        "actor.lr=2e-6",
        "++actor_rollout_ref.actor.optim.lr=3e-6",
        "critic.model.fsdp_config.param_offload=true",
        "reward.path=/r.py",
        version=version,
    )
    assert len(names(found)) == len(set(names(found)))
    assert set(names(found)) == {*found.keys, "hydra.run.dir", "hydra.output_subdir"}
    assert found.keys["actor_rollout_ref.actor.optim.lr"] == 3e-6
    assert found.argv[:4] == ["/py", "-u", "-m", "verl.trainer.main_ppo"]


@tabled
def test_a_launch_passes(settings, version, expected):
    keys = launch("gsm8k-0.5b-24gb", *settings, version=version, experiment="toy-7f3a").keys
    assert {key: keys.get(key) for key in expected} == expected
    assert ("trainer.experiment=mine" in settings) != (keys["trainer.experiment_name"] == "toy-7f3a")


@tabled
def test_a_launch_that_cannot_be(settings, version, message):
    with pytest.raises(UserError, match=message):
        launch("gsm8k-0.5b-24gb", *settings, version=version)


def test_resuming_names_the_folder_and_the_cpu_has_a_slot_per_gpu():
    found = launch("toy-cpu", "trainer.gpus=2", resume_from=Path("/runs/r1/checkpoints/global_step_20"))
    assert found.keys["trainer.resume_mode"] == "resume_path"
    assert found.keys["trainer.resume_from_path"] == "/runs/r1/checkpoints/global_step_20"
    assert "+ray_kwargs.ray_init.num_gpus=2" in found.argv


def test_overrides_are_passed_as_they_are_with_the_home_folder_filled_in():
    found = launch(
        "gsm8k-0.5b-24gb",
        "+data.apply_chat_template_kwargs.enable_thinking=False",
        "trainer.x='1e5'",
        "skip.rollout.dump_dir=~/dump",
    )
    assert "+data.apply_chat_template_kwargs.enable_thinking=false" in found.argv
    assert "trainer.x='1e5'" in found.argv
    assert found.keys["skip.rollout.dump_dir"] == str(Path.home() / "dump")


def test_what_a_preset_has_to_say(tmp_path):
    (tmp_path / "empty.yaml").write_text("model: {path: a/b}\n")
    with pytest.raises(UserError, match=r"preset empty does not set data\.train or data\.val;"):
        launch("empty.yaml")


def test_a_cluster_that_is_there_gets_the_environment_through_ray():
    found = launch("gsm8k-0.5b-24gb", "cluster.address=auto", "cluster.cpus=4", "env.NCCL_DEBUG=INFO")
    assert found.unset == []
    assert "+ray_kwargs.ray_init.address=auto" in found.argv
    env = "ray_kwargs.ray_init.runtime_env.env_vars"
    assert found.keys[f"{env}.NCCL_DEBUG"] == "INFO" and f"{env}.PPO_TUI_RUN" not in found.keys
    assert f"+{env}.PYTHONUNBUFFERED='1'" in found.argv  # text: Ray refuses numbers here
    assert "ray_kwargs.ray_init.num_cpus" not in found.keys  # Ray refuses it, too
    run = launch("gsm8k-0.5b-24gb", "cluster.address=auto", experiment="7f3a-run")
    assert run.keys[f"{env}.PPO_TUI_RUN"] == "7f3a-run"  # by it the supervisor knows the workers on its machine


# --- environment


def test_lists_in_the_environment_are_added_to():
    found = launch(environ={"VERL_USE_EXTERNAL_MODULES": "mine", "PYTHONPATH": "/mine", "HF_TOKEN": "hf_x"})
    assert found.env["VERL_USE_EXTERNAL_MODULES"] == "ppo_tui_inside.plugin,mine"
    assert found.env["PYTHONPATH"].split(os.pathsep) == [str(FOLDER), "/mine"]
    assert "hf_x" not in str(found)
    again = launch(environ=found.env)
    assert again.env["VERL_USE_EXTERNAL_MODULES"] == "ppo_tui_inside.plugin,mine"


def test_names_of_secrets():
    names = "HF_TOKEN WANDB_API_KEY AWS_SECRET_ACCESS_KEY my_password GITHUBTOKEN OPENAI_APIKEY"
    others = "TOKENIZERS_PARALLELISM MAX_TOKENS KEYBOARD NCCL_DEBUG HF_HUB_OFFLINE"
    assert [name for name in f"{names} {others}".split() if is_secret(name)] == names.split()


# --- the command as text


def test_the_pasted_command_says_the_same(tmp_path):
    # A shell reads the words of `env` and argv back exactly, whatever they hold.
    found = launch("toy-cpu", 'trainer.experiment=it\'s a $HOME `x` "y"', "env.A=b c")
    text = command_line(found)
    words = shlex.split(text.replace("\\\n", " "))
    assert words[:3] == ["env", "-u", "RAY_ADDRESS"]
    count = len(found.env)
    assert dict(word.split("=", 1) for word in words[3 : 3 + count]) == found.env
    assert words[3 + count :] == found.argv
    script = tmp_path / "run.sh"
    fake = tmp_path / "py"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$A" "$RAY_ADDRESS" "$@"\n')
    fake.chmod(0o755)
    script.write_text(text.replace("/py ", f"{fake} ", 1))
    done = subprocess.run(["sh", str(script)], env={**os.environ, "RAY_ADDRESS": "x"}, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["b c", "", *found.argv[1:]]


def test_every_attempt_of_a_run_continues_one_run_of_a_tracker():
    def tracked(*settings, environ=None, experiment="toy-7f3a"):
        env = launch("gsm8k-0.5b-24gb", *settings, environ=environ, experiment=experiment).env
        return {name: value for name, value in env.items() if name.startswith(("WANDB", "SWANLAB"))}

    assert tracked() == tracked("trainer.loggers=[wandb]", experiment=None) == {}
    assert tracked("trainer.loggers=[wandb]") == {"WANDB_RUN_ID": "toy-7f3a", "WANDB_RESUME": "allow"}
    swanlab = tracked("trainer.loggers=[swanlab]")
    assert swanlab["SWANLAB_RESUME"] == "allow" and len(swanlab["SWANLAB_RUN_ID"]) == 21
    assert swanlab == tracked("trainer.loggers=[swanlab]")
    own = tracked("trainer.loggers=[wandb]", "env.WANDB_RESUME=never", environ={"WANDB_RUN_ID": "mine"})
    assert own == {"WANDB_RESUME": "never"}
