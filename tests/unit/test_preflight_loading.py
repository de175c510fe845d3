"""What a run loads by its name is loaded before."""

import importlib.util
import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from corpus import machine
from tables import tabled

from launcher.check import loading, reward, row_rules, worker
from launcher.check.checks import report
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.preset.files import load

pytestmark = pytest.mark.slow
nightly = pytest.mark.nightly("launcher/check/", "launcher/data/", "launcher/inside/ppo_tui_inside/probes/")


def ask(*items: dict[str, Any]) -> list[str | None]:
    request = {"items": items, "path": []}
    reply = worker.ask(sys.executable, "load_names", request, timeout=300, env={"HF_HUB_OFFLINE": "1"})
    return [found["error"] for found in reply["loaded"]]


def found(*settings: str) -> list[Finding]:
    return list(loading.checks(subject(load("toy-cpu", settings), on=machine("1x24"))))


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
    (tmp_path / "rows.py").write_text("class Rows:\n    def __init__(self, files): ...\n")
    rows = {"file": str(tmp_path / "rows.py"), "name": "Rows", "base": "builtins.object"}
    good, unknown, wide, deep, cut, takes, refuses = ask(
        changed(model, tmp_path / "good"),
        changed(model, tmp_path / "unknown", model_type="qwen99"),
        changed(model, tmp_path / "wide", hidden_size=128),
        changed(model, tmp_path / "deep", num_hidden_layers=9),
        {"tokenizer": str(half), "trust": False},
        {**rows, "given": ["files"]},
        {**rows, "given": ["data_files", "config"]},
    )
    assert good is None and takes is None and "data_files" in str(refuses)
    assert "qwen99" in str(unknown) and "shape" in str(wide) and "num_hidden_layers" in str(deep) and "JSON" in str(cut)


@nightly
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL's own function loads the tools")
def test_classes_and_modules_behind_names_are_loaded(tmp_path: Path):
    bare = "class Bare:\n    def __init__(self, config, tokenizer, **more): ...\n"
    (tmp_path / "score.py").write_text(f"{bare}class Mine(Bare):\n    async def run_single(self, data): ...\n")
    loop = "verl.experimental.agent_loop.single_turn_agent_loop"
    (tmp_path / "loops.yaml").write_text(
        f"- {{name: good, _target_: {loop}.SingleTurnAgentLoop}}\n- {{name: bad, _target_: {loop}.Nosuch}}\n"
    )
    (tmp_path / "tools.yaml").write_text("tools: [{class_name: nosuch.Tool, config: {type: native}}]\n")
    (tmp_path / "tools.py").write_text("from verl.tools.function_tool import function_tool\n")
    (tmp_path / "router.yaml").write_text("router_class: json.Nosuch\n")
    (tmp_path / "rows.py").write_text("class Rows:\n    def __init__(self, files): ...\n")
    manager = "reward.reward_manager"
    both = (
        *(f"{manager}.source=importlib", f"{manager}.module.path={tmp_path / 'score.py'}"),
        f"rollout.agent_loop_config_path={tmp_path / 'loops.yaml'}",
    )
    right = [f"{manager}.name=Mine", "rollout.agent_loop=good", f"rollout.function_tool_path={tmp_path / 'tools.py'}"]
    wrong = {
        "actor_rollout_ref.model.external_lib=nosuch_module": "nosuch_module",
        f"trainer.v1.sampler.custom_sampler.path={tmp_path / 'rows.py'}": "did you mean 'Rows'",
        "actor.optimizer_impl=torch.optm": "torch.optm.AdamW",
        "trainer.checkpoint_callback_class=json.JSONDecoder": "veRL passes it config",
        "actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module=no_engine": "no_engine cannot be imported",
        f"actor_rollout_ref.rollout.router_config_path={tmp_path / 'router.yaml'}": "json.Nosuch cannot be loaded",
    }
    _assert_told(found(*both, *right, *wrong, "trainer.v1.sampler.custom_sampler.name=Rowz"), *wrong.values())
    wrong = {
        f"{manager}.name=Bare": "its method run_single",
        "rollout.agent_loop=bad": "single_turn_agent_loop.Nosuch cannot be loaded",
        "trainer.checkpoint_callback_class=json.Nosuch": "json.Nosuch cannot be loaded",
        f"rollout.tool_config_path={tmp_path / 'tools.yaml'}": "nosuch",
    }
    _assert_told(found(*both, *wrong), *wrong.values())


def _assert_told(found: list[Finding], *texts: str) -> None:
    """Each text is in a finding of its own."""
    assert len(found) == len(texts) and {each.id for each in found} == {"LOAD-1"}
    assert all(any(text in each.message for each in found) for text in texts)


@nightly
@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="veRL's own classes are made")
def test_what_an_optimizer_a_class_of_veRL_or_an_agent_loop_refuses_is_an_error(toy_build, tmp_path):
    (tmp_path / "loops.yaml").write_text("- {name: mine, _target_: json.JSONDecoder}\n")
    (tmp_path / "rows.py").write_text(
        "from verl.utils.dataset.rl_dataset import RLHFDataset\n\n\n"
        "class Good(RLHFDataset):\n    pass\n\n\n"
        "class Bare(RLHFDataset):\n"
        "    def __getitem__(self, item):\n"
        "        return {k: v for k, v in super().__getitem__(item).items() if k != 'raw_prompt'}\n"
    )
    toy, block = toy_build.cache / "toy", "actor_rollout_ref.actor.optim.override_optimizer_config"
    both = [
        *(f"data.train={toy / 'data' / 'train.parquet'}", f"model.path={toy / 'model'}"),
        f"data.custom_cls_path={tmp_path / 'rows.py'}",
    ]
    wrong = found(
        *both,
        "data.custom_cls_name=Bare",
        *("rollout.agent_loop=mine", f"rollout.agent_loop_config_path={tmp_path / 'loops.yaml'}"),
        f"{block}={{eps: -1.0}}",
        "actor_rollout_ref.actor.profiler.tool_config.torch.contents=[gpu]",
        "global_profiler.global_tool_config.torch_memory.stack_depth=0",
    )
    assert Counter(each.id for each in wrong) == {"LOAD-1": 2, "LOAD-2": 1, "LOAD-4": 2}
    said = " ".join(each.message for each in wrong)
    for text in ("raw_prompt", "json.JSONDecoder", "Invalid epsilon", "gets gpu", "stack_depth must be positive"):
        assert text in said
    right = [f"{block}={{eps: 1.0e-5}}", "actor_rollout_ref.actor.profiler.tool_config.torch.contents=[cpu]"]
    assert not found(*both, "data.custom_cls_name=Good", *right)


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


@tabled
def test_no_value_is_offered_that_a_rule_refuses(setting: str, never: str):
    (finding,) = report("toy-cpu", [setting]).findings
    assert never not in finding.fix
