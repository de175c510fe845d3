"""The rules for older versions, for whole configurations of real runs, and what the engine promises."""

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corpus import machine, older
from tables import tabled

from launcher.check import checks, facts
from launcher.check.config import RULES
from launcher.check.facts import known_names
from launcher.check.finding import Finding, in_order
from launcher.check.subject import Subject, subject
from launcher.console.reader import ConfigDump, ConsoleReader
from launcher.core.errors import UserError
from launcher.machine.capacity import assumed
from launcher.preset.effective import Setting
from launcher.preset.files import load
from launcher.preset.translate import RunFolders, build
from launcher.scripts.importer import from_script
from launcher.scripts.verl_command import Source
from launcher.verl import env as verl_env
from launcher.verl.defaults import NEWEST

LOGS = Path(__file__).parents[1] / "data" / "logs"


def errors(what: Subject) -> list[Finding]:
    return [finding for rule in RULES for finding in rule(what) if finding.level == "error"]


def test_files_of_adapters_and_tools_are_looked_into(tmp_path: Path):
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "tools.yaml").write_text("tools: [{class_name: a.B, config: {type: mcp}}]\n")
    settings = [
        "model.lora_rank=8",
        f"model.lora_adapter_path={tmp_path}",
        f"rollout.tool_config_path={tmp_path / 'tools.yaml'}",
    ]
    found = {each.id: each.message for each in errors(subject(load("toy-cpu", settings), on=machine("1x24")))}
    assert {*found} == {"LORA-4", "AGENT-3"}
    assert "no adapter_model.safetensors" in found["LORA-4"] and "'mcp'" in found["AGENT-3"]
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    (tmp_path / "tools.yaml").write_text("tools: [{class_name: a.B, config: {type: native}}]\n")
    assert not errors(subject(load("toy-cpu", settings), on=machine("1x24")))


@tabled
def test_what_an_older_version_refuses(version, preset, settings, rules, on):
    found = errors(older(version, preset, *settings, on=on))
    assert [finding.id for finding in found] == rules, [finding.message for finding in found]


@pytest.mark.slow
@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log.gz")), ids=lambda path: path.name)
def test_the_configuration_of_a_real_run_is_not_refused(log: Path):
    """None of these died of its configuration, so nothing may be said against one."""
    events = ConsoleReader().feed(gzip.decompress(log.read_bytes()))
    (dump,) = [event for event in events if isinstance(event, ConfigDump)]
    settings = {key: Setting(value, "override", "++") for key, value in dump.keys.items()}
    loaded = load("gsm8k-0.5b-24gb")
    what = Subject(settings=settings, loaded=loaded, python=sys.executable, machine=machine("4x80"))
    forced = ["CPU-3"] if log.name == "sglang.log.gz" else []  # SGLang without its kernels, in a start by --force
    assert [finding.id for finding in errors(what)] == forced


@pytest.mark.slow
def test_keys_of_another_engine_are_not_judged(tmp_path: Path):
    preset = tmp_path / "mine.yaml"
    text = "extends: gsm8k-0.5b-24gb\noverrides:\n  actor_rollout_ref.actor.megatron.seed: 1\n"
    preset.write_text(text)
    assert [each.id for each in errors(subject(load(str(preset)), on=machine("1x24")))] == ["KEY-1"]
    preset.write_text(text + "  model_engine: megatron\n")
    found = errors(subject(load(str(preset)), on=machine("1x24")))
    assert {each.id for each in found} == {"KEY-6"}  # the offloading of FSDP, which Megatron has elsewhere
    change = [f"{name}=null" for each in found for name in each.change or {}]
    assert "actor_rollout_ref.actor.megatron.param_offload under overrides" in found[0].fix
    preset.write_text(f"{text}  model_engine: megatron\n  actor_rollout_ref.actor.megatron.sede: 1\n")
    left = errors(subject(load(str(preset), change), on=machine("1x24")))
    assert [(each.id, each.keys) for each in left] == [("KEY-1", ("actor_rollout_ref.actor.megatron.sede",))]


MEGATRON = "verl.trainer.main_ppo --config-path=config --config-name=ppo_megatron_trainer.yaml"
ONE_STEP = "verl.experimental.one_step_off_policy.main_ppo"
KEYS = "actor_rollout_ref.model.path=m data.train_files=t data.val_files=v"


@pytest.mark.slow
def test_a_configuration_that_verl_ships_is_composed(tmp_path: Path):
    """Its keys are known, ppo-tui's own defaults are not passed, and what only FSDP calls so keeps its name."""

    def found(command: str):
        preset = tmp_path / "mine.yaml"
        preset.write_text(from_script(Source(f"python3 -m {command} {KEYS}", tmp_path), "mine").text)
        what = subject(load(str(preset)), on=machine("1x24"))
        return what, [(each.id, each.keys) for each in errors(what) if each.id.startswith("KEY")]

    parallel = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size"
    megatron, wrong = found(f"{MEGATRON} {parallel}=2 actor_rollout_ref.actor.use_torch_compile=False")
    if megatron.verl is None:
        pytest.skip("needs veRL")
    assert wrong == [] and not megatron.is_fsdp and megatron.get(parallel) == 2
    assert megatron.get("actor_rollout_ref.actor.strategy") == "megatron"
    assert megatron.settings["actor_rollout_ref.actor.use_torch_compile"].value is False
    assert "actor_rollout_ref.model.use_remove_padding" not in megatron.settings
    assert found(f"{MEGATRON} {parallel[:-1]}=2")[1] == [("KEY-1", (parallel[:-1],))]
    gone = "actor_rollout_ref.actor.megatron.grad_offload"  # in 0.9.1
    removed = [each for each in errors(found(f"{MEGATRON} {gone}=True")[0]) if each.id == "KEY-1"]
    assert [each.fix for each in removed] == [f"remove {gone}"]
    assert found(MEGATRON.replace("trainer.yaml", "trainr"))[1] == [("KEY-5", ("program.config_name",))]
    assert found(f"{ONE_STEP} rollout.n_gpus_per_node=2 rollout.nnodes=1")[1] == []
    assert found(f"{ONE_STEP} rollout.gpus=2")[1] == [("KEY-1", ("rollout.gpus",))]


@pytest.mark.slow
def test_a_verl_beside_the_script_is_the_one_whose_keys_count(tmp_path: Path):
    """As in a clone, from whose root its scripts are run; nothing is refused, whatever its age and its keys."""
    config = tmp_path / "verl" / "trainer" / "config"
    config.mkdir(parents=True)
    (tmp_path / "verl" / "__init__.py").touch()
    (tmp_path / "verl" / "version").mkdir()
    (tmp_path / "verl" / "version" / "version").write_text("0.3.1.dev\n")
    (config / "ppo_trainer.yaml").write_text("env: {name: null}\nalgorithm: {adv_estimator: gae}\n")
    (tmp_path / "examples").mkdir()
    script = tmp_path / "examples" / "run.sh"
    more = "env.name=alfworld env.nmae=x algorithm.adv_estimator=gigpo"
    script.write_text(f"python3 -m verl.trainer.main_ppo {KEYS} {more}")
    got = from_script(Source(script.read_text(), tmp_path, script), "mine")
    assert f"using the veRL in {tmp_path}/verl, which shadows the installed one" in got.notes
    preset = tmp_path / "mine.yaml"
    preset.write_text(got.text)
    loaded = load(str(preset))
    what = subject(loaded, on=machine("1x24"))
    assert (what.version, what.verl) == ("0.3.1.dev", tmp_path / "verl")
    keys = [each for each in checks.quick(what) if each.id == "KEY-1"]
    assert {each.level for each in keys} == {"warning"}
    assert "env.nmae" in [each.keys[0] for each in keys] and "env.name" not in [each.keys[0] for each in keys]
    launch = build(loaded, version=what.version, folders=RunFolders.below(tmp_path), python="python3", environ={})
    assert launch.cwd == str(tmp_path) and {"env.name=alfworld", "env.nmae=x"} <= set(launch.argv)
    elsewhere = from_script(Source(script.read_text(), Path("/data"), script), "mine")
    assert [
        note for note in elsewhere.notes if "import the script from there" in note
    ] and "folder:" not in elsewhere.text


def test_the_bundled_names_are_those_of_verl():
    env = verl_env.probe(sys.executable)
    if env.verl != NEWEST:
        pytest.skip(f"needs veRL {NEWEST}")
    read = facts.read(NEWEST, env.verl_path)
    assert read.names == known_names().verl == facts.read(NEWEST, None).names
    assert {"lr", "betas", "clip_grad"} <= read.classes["FSDPOptimizerConfig"].keys()


def test_names_are_judged_where_no_verl_is_installed(monkeypatch: pytest.MonkeyPatch):
    nothing = verl_env.VerlEnv("python", "3.12.0", {}, None)
    monkeypatch.setattr(verl_env, "probe", lambda _: nothing)
    what = subject(load("gsm8k-0.5b-24gb", ["actor.loss_mode=vanila"]), assume="1x24")
    assert what.version == NEWEST and [each.id for each in errors(what)] == ["P19"]


@pytest.mark.parametrize("text", ["3", "x24", "0x24", "1x0", "-1x24", "1 x 24 GB"])
def test_a_machine_that_is_none(text: str):
    with pytest.raises(UserError, match="1x24"):
        assumed(text)


def test_a_check_that_fails_says_so_and_stops_nothing(monkeypatch: pytest.MonkeyPatch):
    def broken(_: Subject) -> list[Finding]:
        raise KeyError("x")

    monkeypatch.setattr(checks, "QUICK", (broken, *RULES))
    (found,) = [each for each in checks.quick(subject(load("toy-cpu"))) if each.level == "warning"]
    assert found.id == "CHECK" and "broken" in found.message


def test_errors_come_first():
    def one(level: Any, group: Any) -> Finding:
        return Finding(level + group, group, level, (), "m")

    mixed = [one("info", "config"), one("error", "software"), one("warning", "data"), one("error", "config")]
    assert [each.id for each in in_order(mixed)] == ["errorconfig", "errorsoftware", "warningdata", "infoconfig"]


@pytest.mark.slow
def test_quick_checks_import_neither_torch_nor_verl():
    code = (
        "import sys; from launcher.preset.files import load; from launcher.check import checks;"
        "from launcher.check.subject import subject; checks.quick(subject(load('toy-cpu')));"
        "print({'torch', 'verl', 'ray', 'transformers', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
