"""Scripts and pasted commands into presets; what a shell would do with the same text is the measure."""

import json
import sys
from pathlib import Path

import pytest
from own_script import SCRIPT
from tables import parts, tabled

from launcher.core.errors import UserError
from launcher.preset.files import load, load_text, restore, shipped
from launcher.preset.schema import FIELDS, value_of
from launcher.preset.translate import RunFolders, build, command_line
from launcher.scripts.importer import Lossy, from_script
from launcher.scripts.verl_command import Source

HERE = Path("/data/project")


def imported(text: str, name: str = "mine"):
    found = from_script(Source(text, HERE), name, lossy=True)
    return load_text(HERE / f"{name}.yaml", found.text).preset, found.notes


def test_a_script_in_the_style_of_tutorials():
    preset, notes = imported(SCRIPT)
    expected = dict(parts("preset_importer")["of_the_tutorial"][1])
    found = {name: value_of(preset, FIELDS[name]) for name in expected}
    assert json.loads(json.dumps(found).replace(str(Path.home()), "~")) == expected
    said = "\n".join(notes)
    for part in (
        "trainer.experiment_name: a part that is known only when the script runs was left out",
        "HF_TOKEN looks like a secret",
        "ppo-tui sets these for each run: trainer.default_local_dir",
    ):
        assert part in said
    assert "hf_secret" not in said + from_script(Source(SCRIPT, HERE), "mine", lossy=True).text
    assert "mkdir" not in said


def test_the_text_says_where_it_comes_from_and_keeps_home_short():
    text = from_script(Source(SCRIPT, HERE), "mine", lossy=True).text
    assert text.startswith("# Imported as mine.\n# Note: ")
    assert "train: ~/data/gsm8k/train.parquet" in text
    assert "lr: 1e-6" in text


@tabled
def test_a_script_becomes(script, expected, notes, count):
    preset, found = imported(script)
    assert {name: value_of(preset, FIELDS[name]) for name in expected} == expected
    assert [note for note in notes if sum(note in each for each in found) != 1] == []
    assert count in (None, len(found))


@pytest.mark.parametrize("text", ["# only a comment", "pip install verl", "python -m verl.trainer.main_ppo"])
def test_nothing_to_import(text):
    with pytest.raises(UserError, match="no veRL overrides"):
        imported(text)


def test_the_commands_of_other_trainers_are_not_taken_for_ppo():
    with pytest.raises(UserError, match="veRL's SFT trainer"):
        imported("torchrun -m verl.trainer.fsdp_sft_trainer data.train_batch_size=8 trainer.nnodes=1")


@pytest.mark.nightly("launcher/preset/", "launcher/scripts/", "launcher/verl/", "presets/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.5.0", "0.7.1", "0.9.1"])
@pytest.mark.parametrize("name", shipped())
def test_an_exported_preset_comes_back(name, version):
    if name == "toy-cpu" and version != "0.9.1":
        pytest.skip("the CPU platform is for veRL 0.9.1")
    folders = RunFolders(*(Path(f"/runs/it's (1)/{part}") for part in "abcde"))

    def launch(preset):
        return build(preset, version=version, folders=folders, python=sys.executable, environ={})

    first = load(name)
    found = from_script(Source(command_line(launch(first)), HERE), name)
    again = load_text(HERE / f"{name}.yaml", found.text)
    assert launch(again).env == launch(first).env
    assert launch(again).keys == launch(first).keys
    ours = [note for note in found.notes if "ppo-tui sets these" in note]
    assert list(found.notes) == ours


def test_another_trainer_and_another_configuration_are_kept_and_run():
    preset, _ = imported(
        "cd fork && python3 -m recipe.dapo.main_dapo --config-name=dapo actor_rollout_ref.rollout.n=4 "
        "algorithm.adv_estimator=gigpo env.env_name=alfworld model_engine=megatron critic.ppo_epochs=0"
    )
    program = preset.program
    assert (program.entry_point, program.folder) == ("recipe.dapo.main_dapo", "/data/project/fork")
    launch = build(restored(preset), version="0.9.1", folders=RunFolders.below(HERE), python="python3", environ={})
    assert launch.argv[:5] == ["python3", "-u", "-m", "recipe.dapo.main_dapo", "--config-name=dapo"]
    assert launch.argv[5] == "model_engine=megatron"  # before the keys of its files
    assert launch.cwd == "/data/project/fork"
    passed = set(launch.argv)
    assert {"algorithm.adv_estimator=gigpo", "env.env_name=alfworld", "++critic.ppo_epochs=0"} <= passed
    assert not {
        word for word in passed if word.startswith(("trainer.max_", "critic.model"))
    }  # its defaults are its own


def test_a_value_that_only_a_run_can_tell_is_taken_from_an_argument():
    """A port at random, to which a server of the script listens; what is known stays as the script has it."""
    text = """
        port=$(shuf -i 30000-31000 -n 1); lr=1e-6
        sed -i 's/weight=1/weight=2/' server.py
        python -m tools.serve --port $port &
        python -m verl.trainer.main_ppo data.train_batch_size=8 actor_rollout_ref.actor.optim.lr=$lr \\
            +actor_rollout_ref.agent.url=http://localhost:$port
    """
    with pytest.raises(Lossy) as refused:
        from_script(Source(text, HERE), "mine")
    assert [loss.partition(" is ")[0] for loss in refused.value.losses] == ["+actor_rollout_ref.agent.url"]
    found = from_script(Source(text, HERE, args=("port=30500", "lr=1")), "mine")
    preset = load_text(HERE / "mine.yaml", found.text).preset
    assert preset.overrides["+actor_rollout_ref.agent.url"] == "http://localhost:30500"
    assert preset.actor.lr == 1e-6
    assert [note for note in found.notes if "tools.serve --port 30500" in note]


def restored(preset):
    changed = [spec for spec in FIELDS.values() if value_of(preset, spec) != spec.default]
    names = {spec.path[0]: {} for spec in changed if len(spec.path) > 1}
    for spec in changed:
        (names[spec.path[0]] if len(spec.path) > 1 else names)[spec.path[-1]] = value_of(preset, spec)
    return restore("mine", names)


@tabled
def test_what_would_train_differently_is_refused(script, loss):
    source = Source(script.replace("RUN", "python3 -m verl.trainer.main_ppo trainer.nnodes=1"), HERE)
    with pytest.raises(Lossy) as refused:
        from_script(source, "mine")
    assert any(loss in each for each in refused.value.losses)
    assert any(loss in note for note in from_script(source, "mine", lossy=True).notes)


def test_arguments_and_variables_behind_the_script_answer():
    text = "python -m verl.trainer.main_ppo actor_rollout_ref.model.path=$MODEL data.seed=$1"
    found = from_script(Source(text, HERE, args=("MODEL=org/model", "7")), "mine")
    preset = load_text(HERE / "mine.yaml", found.text).preset
    assert (preset.model.path, preset.data.seed) == ("org/model", 7)
