"""Finding, reading and layering presets, and what a person is told when one is wrong."""

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import tabled

from launcher.core.errors import UserError
from launcher.preset.files import available, load, restore, shipped, summary
from launcher.preset.schema import BY_KEY, FIELDS, value_of


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A ppo-tui of our own, and a working directory that is not the repository."""
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home" / "presets").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


BASE = """\
model: {path: Qwen/Qwen2.5-0.5B-Instruct}
data: {train: /d/train.parquet, val: /d/test.parquet, train_batch_size: 64}
actor:
  lr: 1e-6
"""


def refused(name, *settings):
    with pytest.raises(UserError) as error:
        load(name, settings)
    text = str(error.value)
    assert "\n" not in text
    return text


# --- where presets are found


def test_shipped_presets_are_found_by_name():
    assert {"toy-cpu", "gsm8k-0.5b-24gb", "gsm8k-0.5b-h800"} <= set(shipped())
    loaded = load("toy-cpu")
    assert (loaded.name, loaded.origin, loaded.preset.trainer.device) == ("toy-cpu", "shipped", "cpu")


def test_a_users_preset_shadows_the_shipped_one_of_that_name(home):
    (home / "presets" / "toy-cpu.yaml").write_text(BASE + "description: mine\n")
    assert (load("toy-cpu").origin, load("toy-cpu").preset.description) == ("user", "mine")
    assert summary("toy-cpu").origin == "user"
    assert available()["toy-cpu"] == home / "presets" / "toy-cpu.yaml"


def test_a_users_preset_can_extend_the_shipped_one_it_shadows(home):
    (home / "presets" / "toy-cpu.yaml").write_text("extends: toy-cpu\nactor: {lr: 5e-4}\n")
    preset = load("toy-cpu").preset
    assert (preset.actor.lr, preset.critic.lr) == (5e-4, 1e-3)


def test_a_file_is_named_with_its_path(write, tmp_path):
    write(BASE, "here.yaml")
    assert load("here.yaml").origin == "file"
    assert load("./here.yaml").path == tmp_path / "here.yaml"


def test_a_summary_lists_what_cannot_be_read_with_its_error(home):
    (home / "presets" / "broken.yaml").write_text("actor: [1\n")
    found = summary("broken")
    assert found.error and "broken.yaml, line" in found.error
    assert summary("toy-cpu").needs == load("toy-cpu").preset.needs != ""


# --- layers


def test_extends_takes_names_and_relative_paths_and_the_nearer_file_wins(write):
    write(BASE + "critic: {lr: 1e-5}\nhealth: {a: {b: 1, c: 2}}\nenv: {A: 1}\n", "base/deep.yaml")
    write("extends: deep.yaml\ncritic: {lr: 2e-5, weight_decay: 0.1}\nhealth: {a: {b: 3}}\n", "base/mid.yaml")
    top = write("extends: base/mid.yaml\ncritic: {weight_decay: null}\nenv: {B: true}\n")
    loaded = load(top)
    preset = loaded.preset
    assert (preset.actor.lr, preset.critic.lr, preset.critic.weight_decay) == (1e-6, 2e-5, None)
    assert preset.health == {"a": {"b": 3, "c": 2}}
    assert preset.env == {"A": "1", "B": "true"}
    assert load(write("extends: toy-cpu\n")).preset.trainer.steps == 60


@tabled
def test_a_preset_has_these_values(text, settings, expected, write):
    preset = load(write(BASE + text), settings).preset
    assert {name: value_of(preset, FIELDS[name]) for name in expected} == expected


def test_an_override_in_a_file_is_mapped_to_the_field_and_a_later_file_wins(write):
    write(BASE + "overrides: {actor_rollout_ref.actor.optim.lr: 2e-6}\n", "base.yaml")
    assert load("base.yaml").preset.actor.lr == 2e-6
    assert load(write("extends: base.yaml\nactor: {lr: 3e-6}\n")).preset.actor.lr == 3e-6


def test_paths_are_absolute_from_the_file_or_the_working_directory(write, tmp_path, monkeypatch):
    monkeypatch.setenv("DATA", "/big")
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "qwen").mkdir()
    path = write(
        "model: {path: qwen}\nreward: {path: reward.py}\npython: python3\n"
        "data: {train: [~/a.parquet, $DATA/b.parquet], val: '${DATA}/c.parquet', train_batch_size: 1}\n",
        "presets/p.yaml",
    )
    preset = load(path, ["critic.path=./there", "model.lora_adapter_path=hdfs://x/y"]).preset
    assert preset.model.path == str(tmp_path / "presets" / "qwen")  # a folder of that name is there
    assert preset.reward.path == str(tmp_path / "presets" / "reward.py")
    assert preset.data.train == [str(Path.home() / "a.parquet"), "/big/b.parquet"]
    assert preset.data.val == "/big/c.parquet"
    assert preset.critic.path == str(tmp_path / "there")
    assert preset.model.lora_adapter_path == "hdfs://x/y"
    assert preset.python == "python3"


def test_the_toy_lies_in_the_cache(home):
    assert load("toy-cpu").preset.model.path == str(home / "cache" / "toy" / "model")


def test_a_snapshot_comes_back_the_same_and_takes_further_settings(write):
    loaded = load("toy-cpu", ["actor.lr=5e-4", "health.a.b=1"])
    again = restore("toy-cpu", loaded.snapshot())
    assert again.preset == loaded.preset
    assert restore("toy-cpu", loaded.snapshot(), ["actor.lr=1e-4"]).preset.actor.lr == 1e-4


def test_every_value_knows_where_it_comes_from(write):
    write(BASE, "base.yaml")
    loaded = load(write("extends: base.yaml\ncritic:\n  lr: 2e-5\n"), ["kl.coef=0.1"])
    assert loaded.layer["actor", "lr"].source.endswith("base.yaml, line 4")
    assert loaded.layer["critic", "lr"].source.endswith("mine.yaml, line 3")
    assert loaded.layer["kl", "coef"].source == "setting kl.coef"
    assert ("actor", "clip_ratio") not in loaded.layer


# --- what is said when a preset is wrong


@tabled
def test_what_is_said_about_a_file(write, text, said):
    answer = refused(write(text))
    assert [part for part in said if part not in answer] == [], answer


@tabled
def test_what_is_said_about_a_setting(write, setting, said):
    answer = refused(write(BASE), setting)
    assert [part for part in said if part not in answer] == [], answer


def test_a_refused_secret_is_not_repeated(write):
    assert "hf_abc" not in refused(write(BASE), "env.HF_TOKEN=hf_abc")


def test_a_circle_of_several_files_is_named(write):
    write("extends: ../a/one.yaml\n", "b/two.yaml")
    assert "one.yaml extends two.yaml extends one.yaml" in refused(write("extends: ../b/two.yaml\n", "a/one.yaml"))


def test_an_unknown_preset_names_the_nearest_and_where_all_are(home):
    answer = refused("gsm8k-0.5b-24g")
    assert "did you mean 'gsm8k-0.5b-24gb'" in answer
    assert "'ppo-tui preset list'" in answer and "toy-cpu" not in answer


def test_a_file_that_is_no_text(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\xff")
    assert "x.yaml: not UTF-8 text; save" in refused("x.yaml")


KEYS = st.sampled_from([*FIELDS, *BY_KEY, "env.A", "health.x", "trainer.val_only", "actor", "x"])
EXAMPLES = ["1", "1e-6", "true", "[a,b]", "{a:1}", "~", "/x", "$A", "\0"]
VALUES = st.text() | st.text(string.printable) | st.sampled_from(EXAMPLES)
GROUP = st.sampled_from(["actor", "env", "overrides", "health", "x"])
FILES = st.text(string.printable) | st.builds(
    "{}:\n  {}: {}".format, GROUP, st.text(string.ascii_letters), st.text(string.printable)
)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.builds("{}{}={}".format, st.sampled_from(["", "+", "++", "~"]), KEYS, VALUES) | st.text())
def test_any_setting_is_taken_or_refused_in_one_sentence(setting):
    try:
        load("toy-cpu", [setting])
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.slow
@settings(max_examples=100)
@given(FILES)
def test_any_file_is_taken_or_refused(tmp_path, text):
    (tmp_path / "any.yaml").write_text(text, encoding="utf-8")
    try:
        load("any.yaml")
    except UserError as error:
        assert "any.yaml" in str(error)
