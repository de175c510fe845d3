"""Presets as files: copied, renamed, deleted, imported; shipped ones stay as they are."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tables import tabled

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.preset import library
from launcher.preset.drafts import open_draft
from launcher.preset.files import changed_from_base, load, shipped, summary, users
from launcher.preset.library import needs_of, recommend
from launcher.scripts import importer
from launcher.scripts.exporter import script
from launcher.scripts.verl_command import Source


@pytest.fixture(autouse=True)
def presets(tmp_path, monkeypatch):
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "presets"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def write(presets):
    def put(name: str, text: str):
        (presets / f"{name}.yaml").write_text(text)
        return presets / f"{name}.yaml"

    return put


@pytest.mark.parametrize("name", shipped())
def test_a_copy_runs_the_same_and_has_its_comments(name, presets):
    path = library.copy(name, "mine")
    assert path == presets / "mine.yaml" and path.read_text() == shipped()[name].read_text()
    assert load("mine").preset == load(name).preset and summary("mine").origin == "user"


def test_relative_paths_keep_their_meaning(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "p.yaml").write_text("model: {path: a/b}\ndata:\n  train: data/train.parquet  # ours\n")
    library.copy(str(folder / "p.yaml"), "mine")
    assert load("mine").preset.data.train == str(folder / "data/train.parquet")
    assert "# ours" in users()["mine"].read_text()


@tabled
def test_copies_that_cannot_be(write, name, new, complaint):
    write("taken", "model: {path: a/b}\n")
    with pytest.raises(UserError, match=complaint):
        library.copy(name, new)


def test_a_new_name_is_known_to_those_that_extend_the_old_one(write, presets):
    write("base", "model: {path: a/b}\n")
    write("child", "# mine\nextends: base  # the one\nactor: {lr: 2e-6}\n")
    write("other", "extends: gsm8k-0.5b-24gb\n")
    assert library.rename("base", "ground") == presets / "ground.yaml"
    assert set(users()) == {"ground", "child", "other"}
    assert load("child").preset.model.path == "a/b"
    assert (presets / "child.yaml").read_text().splitlines()[0] == "# mine"
    with pytest.raises(UserError, match="extended by child"):
        library.delete("ground")
    assert library.delete("child") is None and library.delete("ground") is None
    write("toy-cpu", "extends: toy-cpu\ntrainer: {steps: 3}\n")
    assert summary("toy-cpu").shadows
    library.rename("toy-cpu", "short-toy")  # which uncovers the shipped one
    assert (load("short-toy").preset.trainer.steps, load("toy-cpu").preset.trainer.steps) == (3, 60)
    assert not summary("toy-cpu").shadows
    library.delete("short-toy")
    write("toy-cpu", "extends: toy-cpu\n")
    assert library.delete("toy-cpu") == shipped()["toy-cpu"]
    write("broken", "model: [\n")
    assert library.copy("broken", "still").read_text() == "model: [\n"
    library.rename("still", "again")
    for name in ("again", "broken", "other"):
        library.delete(name)
    assert users() == {}


def test_no_preset_gets_the_name_of_a_shipped_one(write, tmp_path):
    write("mine", "extends: toy-cpu\n")
    source = Source("python -m verl.trainer.main_ppo trainer.nnodes=2", tmp_path)
    file = str(paths.presets_dir() / "toy-cpu.yaml")
    for change in (
        lambda: library.copy("gsm8k-0.5b-24gb", "toy-cpu"),
        lambda: library.copy("toy-cpu", "toy-cpu"),
        lambda: library.rename("mine", "toy-cpu"),
        lambda: importer.add_script(source, "toy-cpu"),
        lambda: importer.add_script(source, file),
    ):
        with pytest.raises(UserError, match=r"'toy-cpu' is the name of a shipped preset; .* such as toy-cpu-copy"):
            change()
    assert set(users()) == {"mine"} and load("toy-cpu").origin == "shipped"


def test_one_that_hides_a_shipped_preset_is_shown_as_such_and_can_be_used(write, ppo_tui):
    path = write("toy-cpu", "extends: toy-cpu\ntrainer: {steps: 3}\n")
    assert load("toy-cpu").hides_shipped and not load("gsm8k-0.5b-24gb").hides_shipped
    done = ppo_tui("preset", "list")
    assert "yours, hides shipped" in done.stdout and "'ppo-tui preset rename toy-cpu NEW'" in done.stderr
    draft = open_draft("toy-cpu")
    draft.set(("trainer", "steps"), 4)
    draft.save()
    assert load("toy-cpu").preset.trainer.steps == 4 and draft.path == path


def test_an_import_warns_of_keys_that_verl_does_not_have(ppo_tui, tmp_path):
    script = tmp_path / "typo.sh"
    script.write_text("python3 -m verl.trainer.main_ppo trainer.totl_epochs=3 data.train_files=x.parquet\n")
    done = ppo_tui("preset", "import", str(script))
    assert done.returncode == 0 and "warning: veRL 0.9.1 has no key trainer.totl_epochs" in done.stderr
    assert "rename trainer.totl_epochs to trainer.epochs" in done.stderr


@pytest.mark.parametrize("name", ["toy-cpu", "gsm8k-0.5b-24gb"])
def test_shipped_presets_stay(name):
    with pytest.raises(UserError, match=f"preset copy {name} x'"):
        library.rename(name, "x")
    with pytest.raises(UserError, match="name a preset of yours"):
        library.delete(name)


def test_a_script_is_added_with_a_new_name_only(presets, tmp_path):
    command = "python -m verl.trainer.main_ppo data.train_batch_size=8 data.train_files=train.parquet"
    path, found = importer.add_script(Source(command, tmp_path), "mine")
    assert path == presets / "mine.yaml"
    assert len(found.notes) == 1  # veRL's own defaults
    assert load("mine").preset.data.train == str(tmp_path / "train.parquet")
    with pytest.raises(UserError, match="already exists"):
        importer.add_script(Source(command, tmp_path), "mine")
    with pytest.raises(UserError, match="no veRL overrides"):
        importer.add_script(Source("echo hello", tmp_path), "other")
    assert set(users()) == {"mine"}


# --- what a machine is recommended


@pytest.mark.slow
@tabled
def test_the_preset_for_a_machine(gpus, name):
    found, why = recommend(gpus)
    assert found == name
    assert str(len(gpus) or "no GPU") in why
    assert ("too small" in why) is (name == "toy-cpu" and gpus != [])


def test_what_needs_say():
    assert needs_of("no GPU, 2 CPU cores, 6 GB memory") is None
    needs = needs_of("8 GPUs, 24 GB each; 64 GB host memory")
    assert (needs.gpus, needs.memory) == (8, 24 * 10**9)
    for name in shipped():
        assert (needs_of(summary(name).needs) is None) == (name == "toy-cpu")


# --- the commands


def test_the_commands(in_process, presets, tmp_path, monkeypatch):
    (tmp_path / "run.sh").write_text("python -m verl.trainer.main_ppo trainer.n_gpus_per_node=1 trainer.nnodes=$N\n")
    refused = in_process("preset", "import", "run.sh")
    assert (
        refused.returncode == 2
        and "pass N=VALUE after the script name" in refused.stderr
        and "--lossy" in refused.stderr
    )
    assert in_process("preset", "import", "run.sh", "--lossy", "--name", "less").returncode == 0
    done = in_process("preset", "import", "run.sh", "N=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{presets / 'run.yaml'}\n"
    assert load("run").preset.trainer.nodes == 2
    lines = ["python -m verl.trainer.main_ppo trainer.n_gpus_per_node=1", "# data.seed=1", "data.seed=2 # 3"]
    (tmp_path / "run.sh").write_text(" \\\n  ".join([*lines, "trainer.nnodes=2\n"]))
    cut = in_process("preset", "import", "run.sh", "--name", "cut")
    assert "never reach veRL: data.seed=2" in cut.stderr and "hint: --join-comments" in cut.stderr
    joined = in_process("preset", "import", "run.sh", "--name", "joined", "--join-comments")
    assert "never reach" not in joined.stderr
    assert (load("cut").preset.data.seed, load("cut").preset.trainer.nodes) == (None, 1)
    assert (load("joined").preset.data.seed, load("joined").preset.trainer.nodes) == (2, 2)
    assert in_process("preset", "copy", "toy-cpu", "mine").stdout == f"{presets / 'mine.yaml'}\n"
    assert in_process("preset", "rename", "mine", "yours").returncode == 0
    assert "trainer.steps" in in_process("preset", "show", "yours").stdout
    assert json.loads(in_process("preset", "show", "yours", "--json").stdout)["trainer"]["steps"] == 60
    assert in_process("preset", "delete", "yours").returncode == 2  # nobody can be asked
    assert in_process("preset", "delete", "yours", "--yes").returncode == 0
    refused = in_process("preset", "delete", "toy-cpu")
    assert refused.returncode == 2 and "cannot be changed" in refused.stderr and "--yes" not in refused.stderr
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert in_process("preset", "import", "-").returncode == 2
    assert "'ppo-tui check run', edit it with 'ppo-tui preset edit run'" in done.stderr
    again = in_process("preset", "import", "run.sh")
    assert (
        again.returncode == 2
        and "preset 'run' already exists\nhint: choose another name: --name run-copy" in again.stderr
    )


def test_an_exported_script_runs_and_takes_more_settings(in_process, tmp_path):
    done = in_process("preset", "export", "gsm8k-0.5b-24gb", "--verl", "0.7.1", "--output", "run.sh")
    assert done.returncode == 0, done.stderr
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text(f"#!{sys.executable}\nimport sys\nprint('\\n'.join(sys.argv[1:]))\n")
    fake.chmod(0o755)
    found = subprocess.run(
        [tmp_path / "run.sh", "trainer.nnodes=2"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{fake.parent}:/usr/bin:/bin"},
    ).stdout.splitlines()
    assert found[:3] == ["-u", "-m", "verl.trainer.main_ppo"]
    assert "critic.model.fsdp_config.param_offload=false" in found
    assert found[-1] == "trainer.nnodes=2"


def test_a_script_names_what_its_verl_ignores(write):
    write("mine", "extends: gsm8k-0.5b-24gb\ndescription: |\n  one\n  exit 3\ndata: {return_raw_chat: true}\n")
    told = {
        version: [line for line in script("mine", version, Path("/out")).splitlines() if line.startswith("# ")]
        for version in ("0.6.1", "0.9.1")
    }
    assert told["0.6.1"] == ["# mine, for veRL 0.6.1; written by ppo-tui.", "# one exit 3"]
    assert told["0.9.1"][2:] == ["# veRL 0.9.1 ignores data.return_raw_chat: messages are always passed on."]


def test_presets_says_which_one_to_start_with(in_process):
    rows = [json.loads(line) for line in in_process("preset", "list", "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == list(shipped())
    assert sum(row["recommended"] for row in rows) == 1
    assert all(row["needs"] and not row["shadows"] for row in rows)
    assert "recommended for this machine: " in in_process("preset", "list").stderr


@pytest.mark.parametrize(("gpus", "first"), [([], "toy-cpu"), ([25 * 10**9], "gsm8k-0.5b-24gb")])
def test_presets_that_fit_the_machine_come_first(gpus, first):
    found = library.suited([summary(name) for name in shipped()], gpus)
    assert found[0].name == first
    fitting = [each.fits for each in found]
    assert fitting == sorted(fitting, reverse=True)
    assert [each.name for each in found if each.fits] == ["toy-cpu"] or gpus


def test_a_preset_of_yours_that_states_no_needs_is_not_said_to_fit(presets):
    (presets / "mine.yaml").write_text("model: {path: /m}\ndata: {train: /t, val: /v}\n")
    (own, *_) = [each for each in library.suited([summary("mine"), summary("toy-cpu")], []) if each.name == "mine"]
    assert own.fits is None


def test_what_a_preset_sets_otherwise_than_its_base(presets):
    (presets / "mine.yaml").write_text("extends: toy-cpu\nactor: {lr: 1e-6}\ncritic: {lr: 1e-3}\n")
    base, edits = changed_from_base("mine")
    assert base == "toy-cpu"
    assert [(edit.key, edit.before, edit.now) for edit in edits] == [("actor.lr", 0.0003, 1e-6)]
    assert changed_from_base("toy-cpu") == ("", [])


def test_a_preset_names_the_place_of_a_value(presets):
    (presets / "mine.yaml").write_text("extends: toy-cpu\nactor: {lr: 1e-6}\n")
    loaded = load("mine", ["critic.lr=2e-3"])
    assert loaded.place_of("actor_rollout_ref.actor.optim.lr") == f"{presets / 'mine.yaml'}, line 2"
    assert "toy-cpu.yaml, line" in str(loaded.place_of("data.train_files"))
    assert loaded.place_of("critic.lr") and loaded.place_of("no.such.key") is None
