"""Programs with a configuration of their own: found as text, and judged by what is known of them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from corpus import Case, cases, machine
from tables import tabled

from launcher.check.checks import quick
from launcher.check.config import RULES
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.preset.files import load, load_text
from launcher.scripts.importer import from_script
from launcher.scripts.verl_command import Source
from launcher.verl.programs import Found

pytestmark = pytest.mark.slow

YAML = """hydra:
  searchpath: [{search}]
defaults:
  - ppo_trainer
  - kind: plain
  - _self_
actor_rollout_ref:
  rollout: {{name: harbor, limits: {{1: 5}}, agent: {{default_agent_loop: harbor_agent}}}}
trainer: {{logger: [console, harbor], harbor_steps: 3}}
"""
MAIN = 'import hydra\nraise SystemExit("imported")\n\n@hydra.main(config_path="{path}", config_name="{name}")\n{rest}'
REST = "def main(config):\n    pass\n"
NAMES = ("rollout.engine=harbor", "trainer.loggers=[harbor]", "reward.manager=harbor", "rollout.agent_loop=harbor_loop")
ASKING = {"V2", "V6", "V7", "V8", "V14", "V16", "V17", "P21", "P30", "AGENT-1", "AGENT-4", "KEY-1", "KEY-5", "LORA-3"}
SUMS = {"V1", "V3", "V9", "P2", "P8", "P9", "P10", "P11", "P16", "BATCH-1", "ENGINE-1"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a project: a package with a program and its configuration, and a folder with examples."""
    files = {
        "harbor/config/harbor_trainer.yaml": YAML.format(search="pkg://verl.trainer.config"),
        "harbor/config/kind/plain.yaml": "deep: 1\n",
        "harbor/config/kind/rich.yaml": "deep: 2\nmore: 3\n",
        "harbor/__init__.py": "raise SystemExit('imported')\n",
        "harbor/train.py": MAIN.format(path="config", name="harbor_trainer", rest=REST),
        "examples/math/train.py": MAIN.format(path="pkg://harbor.config", name="harbor_trainer", rest=REST),
        "examples/math/run.py": "import runpy\nrunpy.run_module('harbor.train', run_name='__main__')\n",
        "examples/math/call.py": "from harbor.train import main\nmain()\n",
        "examples/lost.py": "import sys\nprint(sys.argv)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def judged(folder: Path, entry: str, *settings: str) -> Subject:
    program = [f"program.entry_point={entry}", f"program.folder={folder}"]
    return subject(load("toy-cpu", [*program, *settings]), on=machine("0x0"))


def levels(found: list[Finding]) -> set[tuple[str, str]]:
    return {(each.id, each.level) for each in found}


@tabled
def test_the_configuration_of_a_program_is_found_without_importing_it(clone: Path, folder: str, entry: str):
    found = judged(clone / folder, entry)
    assert isinstance(found.config, Found)
    assert found.config.folder == clone / "harbor/config" and str(found.config) == "harbor_trainer"
    assert found.get("trainer.harbor_steps") == 3 and found.get("kind.deep") == 1 and found.knows_keys
    assert found.get("data.train_batch_size")  # veRL's own, which it starts from


def test_a_search_path_starts_where_the_program_runs(clone: Path):
    (clone / "shared/kind").mkdir(parents=True)
    (clone / "shared/kind/plain.yaml").write_text("deep: 7\n")
    (clone / "harbor/config/kind/plain.yaml").unlink()
    (clone / "harbor/config/harbor_trainer.yaml").write_text(YAML.format(search="file://shared"))
    assert judged(clone, "harbor.train").get("kind.deep") == 7
    assert judged(clone / "examples", "harbor.train").config is None  # there is no such module there


def test_keys_and_choices_are_judged_by_the_configuration_that_was_found(clone: Path):
    given = ["trainer.harbor_steps=5", "kind@kind=rich"]
    assert not {"KEY-1", "KEY-5"} & {each.id for each in quick(judged(clone, "harbor.train", *given))}
    choice = next(each for each in quick(judged(clone, "harbor.train", "kind@kind=ritch")) if each.id == "KEY-5")
    assert choice.level == "error" and choice.fix == "set kind@kind to one of plain, rich"
    wrong = quick(judged(clone, "harbor.train", "trainer.harbor_stps=5"))
    only = next(each for each in wrong if each.id == "KEY-1")
    assert only.level == "error" and only.rename == ("trainer.harbor_stps", "trainer.harbor_steps")
    assert f"the configuration {clone}/harbor/config/harbor_trainer.yaml has no key" in only.message


def test_a_key_of_hydra_itself_is_not_judged(clone: Path):
    script = clone / "run.sh"
    script.write_text(f"python3 -m harbor.train 'hydra.searchpath=[pkg://verl.trainer.config]' {WORDS}\n")
    found = subject(load_text(clone / "p.yaml", imported(script, clone)[0]), on=machine("0x0"))
    assert isinstance(found.config, Found) and "KEY-1" not in {each.id for each in quick(found)}


def test_a_change_of_the_configuration_is_seen(clone: Path):
    file = clone / "harbor/config/harbor_trainer.yaml"
    assert judged(clone, "harbor.train").get("trainer.harbor_steps") == 3
    file.write_text(file.read_text().replace("harbor_steps: 3", "harbor_steps: 4"))
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))
    assert judged(clone, "harbor.train").get("trainer.harbor_steps") == 4


def test_names_that_the_program_itself_chooses_are_not_mentioned(clone: Path):
    """Its configuration names an engine, an agent loop and a tracker of its own."""
    found = quick(subject(load("toy-cpu", [f"program.folder={clone}", "program.entry_point=harbor.train"])))
    assert not {"V17", "AGENT-1"} & {each.id for each in found if "harbor" in each.message}


@pytest.mark.parametrize("entry", ["harbor.train", "examples/lost.py"])
def test_names_that_a_program_may_register_are_warnings(clone: Path, entry: str):
    found = [each for each in quick(judged(clone, entry, *NAMES)) if "harbor" in each.message.partition(";")[0]]
    assert levels(found) == {(each, "warning") for each in ("V17", "P21", "P30", "AGENT-1")}
    for each in found:
        assert f"may not hold for {entry.rpartition('/')[2]}" in each.message and not each.change
        assert ("was not found" in each.message) == (entry == "examples/lost.py")


def test_names_that_a_module_may_register_are_warnings_and_keys_stay_errors():
    given = [*NAMES, "actor_rollout_ref.actor.lrr=1", "env.VERL_USE_EXTERNAL_MODULES=harbor.register"]
    found = quick(subject(load("toy-cpu", given), on=machine("0x0")))
    assert {("V17", "warning"), ("P21", "warning"), ("AGENT-1", "warning"), ("KEY-1", "error")} <= levels(found)
    assert all("harbor.register" in each.message for each in found if each.id in ("V17", "P21", "AGENT-1"))
    assert {("V17", "error"), ("P21", "error")} <= levels(quick(subject(load("toy-cpu", NAMES), on=machine("0x0"))))


def test_a_folder_of_configurations_that_is_not_here_is_not_judged():
    given = ["program.config_path=/nowhere/config", "program.config_name=mine", "trainer.my_key=1"]
    found = [each for each in quick(subject(load("toy-cpu", given))) if each.level != "info"]
    assert not {each.id for each in found if each.level == "error"} & ASKING
    assert any(each.id == "KEY-1" and "mine" in each.message and "was not found" in each.message for each in found)


@pytest.mark.nightly("launcher/check/", "launcher/verl/", "tests/data/preflight/", every=16)
@pytest.mark.parametrize("case", [case for case in cases() if "PRESET" not in case.finds], ids=lambda case: case.name)
def test_where_no_configuration_is_found_only_names_and_keys_become_warnings(case: Case, clone: Path):
    """All broken presets, started by a program of which nothing is known."""
    own = [f"program.folder={clone}", "program.entry_point=examples/lost.py"]
    before = subject(load(case.on, case.set), on=machine(case.machine))
    given = replace(before, loaded=load(case.on, [*case.set, *own]), config=None)  # with the same values
    for rule in (each for each in RULES if each.__name__ not in ("parallel_engine", "loop_file")):  # sums, a file
        errors = {each.id for each in rule(before) if each.level == "error"}
        after = {each.id for each in rule(given) if each.level == "error"}
        assert not after & ASKING and errors & SUMS == after & SUMS


def imported(script: Path, folder: Path) -> tuple[str, tuple[str, ...]]:
    found = from_script(Source(script.read_text(), folder, script), "p")
    return found.text, found.notes


WORDS = "algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4 data.train_batch_size=8"


def test_a_wrapper_names_the_script_and_the_program_that_it_runs(clone: Path):
    inner, outer = clone / "examples/math/run.sh", clone / "examples/run_all.sh"
    inner.write_text(f'HERE=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)\npython3 "$HERE/run.py" {WORDS}\n')
    outer.write_text(f'cd {clone}\nbash "{inner}" "$@"\n')
    text, notes = imported(outer, clone)
    assert f"entry_point: {clone}/examples/math/run.py" in text
    assert f"the command is in {inner}, which this script runs" in notes
    start = f"run.py runs {clone}/harbor/train.py, which starts from {clone}/harbor/config/harbor_trainer.yaml"
    assert start in notes
    text, notes = imported(inner, clone)
    assert start in notes and not any(note.startswith("the command is in") for note in notes)


def test_an_import_tells_where_the_configuration_is_or_that_it_was_not_found(clone: Path):
    script = clone / "run.sh"
    script.write_text(f"python3 -m harbor.train {WORDS}\n")
    assert f"harbor.train starts from {clone}/harbor/config/harbor_trainer.yaml" in imported(script, clone)[1]
    script.write_text(f"python3 examples/lost.py {WORDS}\n")
    assert any("the configuration of lost.py was not found here" in note for note in imported(script, clone)[1])


LIST = "Error executing job with overrides: ['actor_rollout_ref.rollout.n=4', 'data.train_batch_size=8']\n"
TRACE = 'Traceback (most recent call last):\n  File "{}", line 9, in main\n    run(config)\n'


@tabled
def test_a_pasted_traceback_names_the_program(file: str, entry: str, tmp_path: Path):
    text = from_script(Source(LIST + TRACE.format(file), tmp_path), "p").text
    assert (f"entry_point: {entry}" in text) if entry else ("entry_point" not in text)


def test_a_program_that_is_not_named_is_never_assumed_silently(tmp_path: Path):
    text = "python3 run.py \\\n  # the settings\n  algorithm.adv_estimator=grpo data.train_batch_size=8\n"
    notes = from_script(Source(text, tmp_path), "p").notes
    assert "no program precedes the settings: verl.trainer.main_ppo is assumed" in notes
