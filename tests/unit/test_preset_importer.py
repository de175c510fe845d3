"""Scripts and pasted commands into presets; what a shell would do with the same text is the measure."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.errors import UserError
from launcher.preset.files import load, load_text, shipped
from launcher.preset.importer import from_script
from launcher.preset.script import parse
from launcher.preset.shell import command_line
from launcher.preset.translate import RunFolders, build

HERE = Path("/data/project")
SCRIPT = r"""#!/bin/bash
# one GPU, a small model
set -xeuo pipefail
MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
CRITIC=${CRITIC:-$MODEL}   # from the same weights
BATCH=${BATCH:-128}
LONGEST=$((512 + 256))
TRAIN=${TRAIN:-$HOME/data/gsm8k/train.parquet}
export NCCL_DEBUG=WARN HF_TOKEN=hf_secret
export WANDB_MODE="offline"

DATA=(
  data.train_files="['$TRAIN']"
  data.val_files=$HOME/data/gsm8k/test.parquet   # one file
  data.train_batch_size=${BATCH}
)
ACTOR=(
  actor_rollout_ref.model.path="$MODEL"
  actor_rollout_ref.actor.optim.lr=1e-6
  actor_rollout_ref.actor.ppo_mini_batch_size=64
  actor_rollout_ref.actor.use_dynamic_bsz=True
  actor_rollout_ref.actor.ppo_max_token_len_per_gpu=${LONGEST}
)
ACTOR+=(actor_rollout_ref.actor.clip_ratio=0.2)
OLD="critic.model.fsdp_config.param_offload=True custom_reward_function.path=rewards/mine.py"

mkdir -p logs
CUDA_VISIBLE_DEVICES=0 python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=gae \
  "${DATA[@]}" \
  "${ACTOR[@]}" $OLD \
  critic.model.path="$CRITIC" \
  trainer.logger='["console","wandb"]' \
  trainer.experiment_name=ppo_$(date +%Y) \
  trainer.n_gpus_per_node=1 actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  trainer.default_local_dir=/ckpt trainer.total_epochs=abc no.such.key=1 \
  +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_log_requests=True \
  "$@" 2>&1 | tee logs/train.log
"""


def imported(text: str, name: str = "mine"):
    found = from_script(text, name, HERE)
    return load_text(HERE / f"{name}.yaml", found.text).preset, found.notes


def test_a_script_in_the_style_of_tutorials():
    preset, notes = imported(SCRIPT)
    home = str(Path.home())
    assert preset.algorithm == "ppo"
    assert preset.model.path == "Qwen/Qwen2.5-0.5B-Instruct"
    assert preset.data.train == f"{home}/data/gsm8k/train.parquet"
    assert preset.data.val == f"{home}/data/gsm8k/test.parquet"
    assert preset.data.train_batch_size == 128
    assert preset.actor.lr == 1e-6
    assert preset.actor.ppo_max_token_len_per_gpu == 768
    assert preset.actor.clip_ratio == 0.2
    assert preset.critic.path is None  # it follows the model
    assert preset.critic.param_offload is True
    assert preset.reward.path == "/data/project/rewards/mine.py"
    assert preset.trainer.loggers == ["wandb"]
    assert preset.env == {"NCCL_DEBUG": "WARN", "WANDB_MODE": "offline", "CUDA_VISIBLE_DEVICES": "0"}
    assert preset.overrides == {"+actor_rollout_ref.rollout.engine_kwargs.vllm.disable_log_requests": True}
    said = "\n".join(notes)
    for part in (
        "$(date +%Y) is left out",
        "HF_TOKEN looks like a secret",
        "trainer.epochs is 'abc'",
        "unknown key 'no.such.key'",
        "ppo-tui sets these for each run: trainer.default_local_dir",
    ):
        assert part in said
    assert "hf_secret" not in said + from_script(SCRIPT, "mine", HERE).text
    assert "mkdir" not in said


def test_the_text_says_where_it_comes_from_and_keeps_home_short():
    text = from_script(SCRIPT, "mine", HERE).text
    assert text.startswith("# Imported as mine.\n# Note: ")
    assert "train: ~/data/gsm8k/train.parquet" in text
    assert "lr: 1e-6" in text


@pytest.mark.parametrize(
    "command",
    [
        "python -m verl.trainer.main_ppo data.train_batch_size=8",
        "  $ python3 -u -m verl.trainer.main_ppo \\\n data.train_batch_size=8 \\\n",
        "PYTHONUNBUFFERED=1 nohup python -m verl.trainer.main_ppo data.train_batch_size=8 > log 2>&1 &",
        "env -u RAY_ADDRESS A=1 python -m verl.trainer.main_ppo 'data.train_batch_size=8'",
        "python verl/trainer/main_ppo.py data.train_batch_size=8 --config-name=ppo_trainer",
        "cd verl && python -m verl.trainer.main_ppo data.train_batch_size=8 | tee log",
        "ray job submit --address=$A -- python3 -m verl.trainer.main_ppo \\ data.train_batch_size=8 \\ ",
        "data.train_batch_size=8 \\\n",
        'if [ -n "$X" ]; then python -m verl.trainer.main_ppo data.train_batch_size=8; fi',
        "cat <<EOF\npython -m verl.trainer.main_ppo data.train_batch_size=9\nEOF\n"
        "python -m verl.trainer.main_ppo data.train_batch_size=8",
        "python -m verl.trainer.main_ppo data.train_batch_size=9\r\n"
        "python -m verl.trainer.main_ppo data.train_batch_size=8\r\n",
    ],
)
def test_commands_as_they_are_pasted(command):
    preset, _ = imported(command)
    assert preset.data.train_batch_size == 8


def test_the_environment_of_a_ray_job():
    preset, notes = imported(
        """E='{"env_vars": {"NCCL_DEBUG": "INFO", "MY_TOKEN": "x"}}'\n"""
        'ray job submit --runtime-env-json="$E" -- python -m verl.trainer.main_ppo trainer.nnodes=2'
    )
    assert preset.env == {"NCCL_DEBUG": "INFO"}
    assert any(note.endswith("see cluster.address") for note in notes)  # nothing submits a job yet
    assert any("MY_TOKEN looks like a secret" in note for note in notes)


def test_what_a_script_leaves_to_verl_is_verls_default():
    preset, notes = imported("python -m verl.trainer.main_ppo data.train_batch_size=8")
    assert (preset.trainer.gpus, preset.rollout.tensor_model_parallel_size) == (8, 2)
    assert sum("veRL's default" in note for note in notes) == 2


@pytest.mark.parametrize("text", ["", "# only a comment", "pip install verl", "python -m verl.trainer.main_ppo"])
def test_nothing_to_import(text):
    with pytest.raises(UserError, match="no veRL overrides"):
        imported(text)


def test_where_a_script_stands_is_known():
    command = "python -m verl.trainer.main_ppo data.train_files=$PWD/a.parquet data.val_files=$(pwd)/b.parquet"
    preset, _ = imported(command)
    assert (preset.data.train, preset.data.val) == ("/data/project/a.parquet", "/data/project/b.parquet")


def test_the_folder_of_a_script_is_known():
    """As scripts ask for it, and not by running anything."""
    _, notes = imported(
        'HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'
        "python -m verl.trainer.main_ppo data.train_batch_size=8 data.train_files=$HERE/a.parquet "
        "data.val_files=$(dirname $0)/b.parquet trainer.experiment_name=x-$(touch /tmp/never)"
    )
    preset, _ = imported("python -m verl.trainer.main_ppo data.val_files=$(dirname $0)/b.parquet")
    assert preset.data.val == "/data/project/b.parquet"
    assert [note for note in notes if "left out" in note] == [
        "$(touch /tmp/never) is left out; the script is read, not run"
    ]


def test_the_commands_of_other_trainers_are_not_taken_for_ppo():
    with pytest.raises(UserError, match="no veRL overrides"):
        imported("torchrun -m verl.trainer.fsdp_sft_trainer data.train_batch_size=8 trainer.nnodes=1")


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
    found = from_script(command_line(launch(first)), name, HERE)
    again = load_text(HERE / f"{name}.yaml", found.text)
    assert launch(again).env == launch(first).env
    assert launch(again).keys == launch(first).keys
    ours = [note for note in found.notes if "ppo-tui sets these" in note]
    assert list(found.notes) == ours


def shell_words(script: str) -> list[str]:
    """What bash would hand to the command `show`."""
    show = f"show() {{ {sys.executable} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"; }}\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", show + script],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": "~", "PATH": "/usr/bin:/bin"},
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "words",
    [
        "a.b=1 'c.d=x y' \"e.f=$HOME\" g.h=\\$X",
        'a.b="it\'s" c.d=\'say "x"\' e.f="back\\\\slash \\" \\n"',
        'a.b=${NONE:-d e} c.d="${NONE:-d e}" e.f=${NONE:-${HOME}}',
        'a.b=${NONE:-"x"} c.d="${NONE:-"x y"}" e.f=${NONE:-\'x\'} g.h="${NONE:-\'x\'}"',
        "a.b=pre'mid'\"post\" '' \"\" c#d=1 # comment",
        '"${EMPTY[@]}" "$@" "$NONE" a.b=1',
        "a.b=$((2 * (3 + 4))) c.d=$((7 / 2))",
        "a.b=1 \\\n  c.d=2",
        'a=${P##*/} b=${P%/*} c="${P%%.*}" d=${P#*/} e=${P%.zip} f=${P%"-7B.tar.gz"}',
        'a=${P//./_} b=${P/./_} c="${P//[0-9]/}" d=${P//\\//-} e=${P/wen*/}',
        'a=${P^^} b=${P,,} c=${P^} d="${V#one}"',
        'a=$(basename $P) b=$(basename "$P" .gz) c="$(dirname "$P")" d=`dirname $P`',
        'a=$(cd "$(dirname "$P")/.." && pwd) b=$(basename "$(dirname $P)")',
    ],
)
def test_words_are_those_of_the_shell(words):
    before = "EMPTY=()\nARR=('x y' z)\nV='one two'\nP=/usr/lib/Qwen2.5-7B.tar.gz\n"
    ours = parse(f'{before}python -m verl.trainer.main_ppo {words} "${{ARR[@]}}" $V').overrides
    assert ours == shell_words(f'{before}show {words} "${{ARR[@]}}" $V')[: len(ours)]
    assert ours


_ITEM = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12)


@settings(max_examples=60)
@given(st.lists(_ITEM, min_size=1, max_size=4))
def test_any_quoted_words_come_back_as_they_were(items):
    import shlex

    text = "python -m verl.trainer.main_ppo " + " ".join(map(shlex.quote, items))
    assert parse(text).overrides == [item.strip() for item in items]


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [
                "python -m verl.trainer.main_ppo ",
                "a.b=",
                "X=",
                "X=(",
                ")",
                "'",
                '"',
                "$",
                "${",
                "}",
                "$((",
                "`",
                "\\",
                "\\x",
                "#",
                ";",
                "<<E",
                ">",
                "|",
                "&&",
                "trainer.nnodes=2",
                "export ",
                "${X[@]}",
            ]
        )
        | st.text(max_size=5),
        max_size=25,
    ).map("".join)
)
def test_any_text_is_a_preset_or_a_user_error(text):
    try:
        found = from_script(text, "mine", HERE)
    except UserError:
        return
    load_text(HERE / "mine.yaml", found.text)


@pytest.mark.parametrize("torn", ["\\ ", "\\\t", "\\ \u00a0", "\\  # pow, or max_min"])
def test_a_line_goes_on_though_something_stands_behind_its_backslash(torn):
    """As pages hand it out; a shell would leave the rest out, and so would nobody who reads the page."""
    preset, notes = imported(
        f"python -m verl.trainer.main_ppo data.train_batch_size=8 {torn}\n"
        f"  data.max_prompt_length=64 {torn}\n \u00a0 data.max_response_length=32"
    )
    assert (preset.data.train_batch_size, preset.data.max_prompt_length) == (8, 64)
    assert preset.data.max_response_length == 32
    assert [note for note in notes if "a backslash is followed by" in note]


def test_another_trainer_and_another_configuration_are_named():
    with pytest.raises(UserError, match=r"not imported: python3 -m recipe\.dapo\.main_dapo"):
        imported("pip install x\npython3 -m recipe.dapo.main_dapo data.train_batch_size=8")
    command = "python -m verl.trainer.main_ppo data.train_batch_size=8 --config-name="
    assert not [note for note in imported(command + "ppo_trainer")[1] if "a different configuration" in note]
    assert [note for note in imported(command + "ppo_megatron_trainer")[1] if "a different configuration" in note]


def test_the_settings_given_to_a_function_are_told():
    """Who calls it with what is not followed, so each key is named."""
    _, notes = imported(
        'launch() { python -m verl.trainer.main_ppo data.train_batch_size=8 "$@"; }\n'
        "launch trainer.total_epochs=3 actor_rollout_ref.actor.ppo_mini_batch_size=8 data.seed=1"
    )
    keys = "trainer.total_epochs, actor_rollout_ref.actor.ppo_mini_batch_size, data.seed"
    assert [note for note in notes if note.endswith(f"which sets {keys}")]


def test_what_is_left_out_is_called_as_in_the_script():
    _, notes = imported(
        "python -m verl.trainer.main_ppo data.train_batch_size=8 critic.ppo_epochs=0 algorithm.adv_estimator=rloo "
        "actor_rollout_ref.model.lora_alpha=0"
    )
    left = [note for note in notes if note.startswith("left out")]
    assert left[0].startswith("left out: critic.ppo_epochs is 0")
    assert left[1].startswith("left out: actor_rollout_ref.model.lora_alpha: model.lora_alpha is 0")
