"""What a run loads by its name is loaded before."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from corpus import machine

from launcher.check import loading, reward, row_rules, worker
from launcher.check.checks import report
from launcher.check.subject import subject
from launcher.preset.files import load

pytestmark = pytest.mark.slow
nightly = pytest.mark.nightly("launcher/check/", "launcher/data/", "launcher/inside/ppo_tui_inside/probes/")


def ask(*items: dict[str, Any]) -> list[str | None]:
    request = {"items": items, "path": []}
    reply = worker.ask(sys.executable, "load_names", request, timeout=300, env={"HF_HUB_OFFLINE": "1"})
    return [found["error"] for found in reply["loaded"]]


def changed(model: Path, to: Path, **config: Any) -> dict[str, Any]:
    shutil.copytree(model, to)
    file = to / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **config}))
    return {"model": str(to), "trust": False, "override": {}}


@nightly
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs veRL's packages")
def test_models_that_cannot_load_are_told_from_those_that_can(toy_build: Any, tmp_path: Path):
    model = toy_build.cache / "toy" / "model"
    half = tmp_path / "half"
    shutil.copytree(model, half)
    (half / "tokenizer.json").write_text((model / "tokenizer.json").read_text()[:2000])
    good, unknown, wide, deep, cut = ask(
        changed(model, tmp_path / "good"),
        changed(model, tmp_path / "unknown", model_type="qwen99"),
        changed(model, tmp_path / "wide", hidden_size=128),
        changed(model, tmp_path / "deep", num_hidden_layers=9),
        {"tokenizer": str(half), "trust": False},
    )
    assert good is None
    assert "qwen99" in str(unknown) and "shape" in str(wide) and "num_hidden_layers" in str(deep) and "JSON" in str(cut)


@nightly
def test_a_class_that_is_misspelled_and_a_module_that_is_missing_are_found(tmp_path: Path):
    (tmp_path / "rows.py").write_text("class Rows:\n    def __init__(self, files): ...\n")
    bare = "class Bare:\n    def __init__(self, config, tokenizer, **more): ...\n"
    (tmp_path / "score.py").write_text(f"{bare}class Mine(Bare):\n    async def run_single(self, data): ...\n")
    manager = "reward.reward_manager"
    right = [f"{manager}.source=importlib", f"{manager}.module.path={tmp_path / 'score.py'}", f"{manager}.name=Mine"]
    assert not list(loading.checks(subject(load("toy-cpu", right), on=machine("1x24"))))
    (lacks,) = loading.checks(subject(load("toy-cpu", [*right, f"{manager}.name=Bare"]), on=machine("1x24")))
    assert lacks.id == "LOAD-1" and "its method run_single" in lacks.message
    settings = [
        "actor_rollout_ref.model.external_lib=nosuch_module",
        f"trainer.v1.sampler.custom_sampler.path={tmp_path / 'rows.py'}",
        "trainer.v1.sampler.custom_sampler.name=Rowz",
        "actor.optimizer_impl=torch.optm",
    ]
    found = list(loading.checks(subject(load("toy-cpu", settings), on=machine("1x24"))))
    assert [each.id for each in found] == ["LOAD-1"] * 3
    assert "nosuch_module" in found[0].message and "did you mean 'Rows'" in found[1].message
    assert "torch.optm.AdamW" in found[2].message
    named = {"file": str(tmp_path / "rows.py"), "name": "Rows", "base": "builtins.object"}
    none, given = ask({**named, "given": ["files"]}, {**named, "given": ["data_files", "config"]})
    assert none is None and "data_files" in str(given)


@nightly
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL's own function loads the tools")
def test_classes_behind_names_of_callbacks_agent_loops_and_tools_are_loaded(tmp_path: Path):
    loop = "verl.experimental.agent_loop.single_turn_agent_loop"
    (tmp_path / "loops.yaml").write_text(
        f"- {{name: good, _target_: {loop}.SingleTurnAgentLoop}}\n- {{name: bad, _target_: {loop}.Nosuch}}\n"
    )
    (tmp_path / "tools.yaml").write_text("tools: [{class_name: nosuch.Tool, config: {type: native}}]\n")
    (tmp_path / "tools.py").write_text("from verl.tools.function_tool import function_tool\n")
    loops = f"rollout.agent_loop_config_path={tmp_path / 'loops.yaml'}"

    def found(*settings: str) -> list[str]:
        return [each.message for each in loading.checks(subject(load("toy-cpu", settings), on=machine("1x24")))]

    assert found(loops, "rollout.agent_loop=good", f"rollout.function_tool_path={tmp_path / 'tools.py'}") == []
    (takes,) = found("trainer.checkpoint_callback_class=json.JSONDecoder")
    assert "veRL passes it config" in takes
    bad = "trainer.checkpoint_callback_class=json.Nosuch"
    callback, of_loop, tools = found(
        loops, "rollout.agent_loop=bad", bad, f"rollout.tool_config_path={tmp_path / 'tools.yaml'}"
    )
    assert "json.Nosuch cannot be loaded" in callback and "Nosuch" in of_loop and "nosuch" in tools
    (tmp_path / "router.yaml").write_text("router_class: json.Nosuch\n")
    backend = "actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module=nosuch_module"
    module, router = found(f"actor_rollout_ref.rollout.router_config_path={tmp_path / 'router.yaml'}", backend)
    assert "nosuch_module cannot be imported" in module and "json.Nosuch cannot be loaded" in router


@nightly
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="derives from veRL's data set")
def test_rows_of_a_data_set_of_the_users_own_have_a_prompt(toy_build: Any, tmp_path: Path):
    (tmp_path / "rows.py").write_text(
        "from verl.utils.dataset.rl_dataset import RLHFDataset\n\n\n"
        "class Good(RLHFDataset):\n    pass\n\n\n"
        "class Bare(RLHFDataset):\n"
        "    def __getitem__(self, item):\n"
        "        return {k: v for k, v in super().__getitem__(item).items() if k != 'raw_prompt'}\n"
    )
    toy = toy_build.cache / "toy"
    files = [f"data.train={toy / 'data' / 'train.parquet'}", f"model.path={toy / 'model'}"]
    for name, said in (("Good", []), ("Bare", ["LOAD-1"])):
        settings = [*files, f"data.custom_cls_path={tmp_path / 'rows.py'}", f"data.custom_cls_name={name}"]
        found = list(loading.checks(subject(load("toy-cpu", settings), on=machine("1x24"))))
        assert [each.id for each in found] == said and all("raw_prompt" in each.message for each in found)


@nightly
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL's own classes are made")
def test_values_that_an_optimizer_or_a_class_of_veRL_refuses_are_told(tmp_path: Path):
    block = "actor_rollout_ref.actor.optim.override_optimizer_config"
    settings = [
        f"{block}={{eps: -1.0}}",
        "actor_rollout_ref.actor.profiler.tool_config.torch.contents=[gpu]",
        "global_profiler.global_tool_config.torch_memory.stack_depth=0",
    ]
    found = list(loading.checks(subject(load("toy-cpu", settings), on=machine("1x24"))))
    assert [each.id for each in found][:2] == ["LOAD-2", "LOAD-4"] and {each.id for each in found[1:]} == {"LOAD-4"}
    said = " ".join(each.message for each in found)
    assert "Invalid epsilon" in said and "gets gpu" in said and "stack_depth must be positive" in said
    right = [f"{block}={{eps: 1.0e-5}}", "actor_rollout_ref.actor.profiler.tool_config.torch.contents=[cpu]"]
    assert not list(loading.checks(subject(load("toy-cpu", right), on=machine("1x24"))))


@nightly
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL's own agent loop takes them")
def test_an_agent_loop_takes_what_veRL_passes(tmp_path: Path):
    file = tmp_path / "loops.yaml"
    for target, wrong in (
        ("json.JSONDecoder", True),
        ("verl.experimental.agent_loop.single_turn_agent_loop.SingleTurnAgentLoop", False),
    ):
        file.write_text(f"- {{name: mine, _target_: {target}}}\n")
        settings = ["rollout.agent_loop=mine", f"rollout.agent_loop_config_path={file}"]
        assert bool(list(loading.checks(subject(load("toy-cpu", settings), on=machine("1x24"))))) == wrong


def test_arguments_of_a_reward_function_are_tried_key_by_key(tmp_path: Path):
    (tmp_path / "score.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None, weight=1.0):\n"
        "    return weight * (ground_truth in solution_str)\n"
    )
    key = "+reward.custom_reward_function.reward_kwargs"
    for name, wrong in (("weight", False), ("wieght", True), ("extra_info", False)):
        settings = [f"reward.path={tmp_path / 'score.py'}", f"{key}.{name}=0.5"]
        what = subject(load("toy-cpu", settings), on=machine("1x24"))
        assert any("wieght" in each.message for each in reward.checks(what)) == wrong
    assert (
        "argument" in reward.try_out(sys.executable, "pkg://shutil", "which", reward.MADE_UP).findings[0].message
    )  # a module by its name


def test_files_whose_columns_differ_in_type_are_not_joined():
    one = row_rules.Rows("a.parquet", types={"reward_model.ground_truth": "string", "extra_info.index": "int64"})
    two = row_rules.Rows("b.parquet", types={"reward_model.ground_truth": "int64"})
    more = row_rules.Rows("c.parquet", types={"extra_info.split": "string"})
    assert [each.id for each in row_rules.alike("data.train_files", [one, more, two])] == ["DATA-4"]
    assert not list(row_rules.alike("data.train_files", [one, more]))


@pytest.mark.parametrize(
    ("setting", "never"),
    [("actor.lr=-1", "to 0,"), ("data.train_batch_size=0", "to 1,"), ("trainer.resume_mode=auto", "set it")],
)
def test_no_value_is_offered_that_a_rule_refuses(setting: str, never: str):
    (finding,) = report("toy-cpu", [setting]).findings
    assert never not in finding.fix
