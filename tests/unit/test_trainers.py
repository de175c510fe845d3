"""Trainers beside the synchronous one, and model engines: what reaches veRL, and what a preset then comes to."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import machine
from data_files import judged, rows
from tables import parts

from launcher.check import reward, software
from launcher.check.config import RULES
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.core.errors import UserError
from launcher.data import schema
from launcher.estimate import memory
from launcher.preset.files import load
from launcher.preset.flow import flow
from launcher.preset.translate import RunFolders, build
from launcher.verl import defaults
from tui.pages.editor.plan_rows import flow_rows

FOLDERS = RunFolders.below(Path("/runs/r1"))
SEPARATE = ("trainer.mode=separate_async", "trainer.parameter_sync_step=2", "rollout.nodes=1", "rollout.gpus=1")


def what(name: str, *settings: str, on: str = "2x24") -> Subject:
    return subject(load(name, settings), on=machine(on))


def errors(of: Subject) -> list[Finding]:
    return [finding for rule in RULES for finding in rule(of) if finding.level == "error"]


def argv(name: str, *settings: str, version: str = "0.9.1") -> list[str]:
    return build(load(name, settings), version=version, folders=FOLDERS, python="/py", environ={}).argv[4:]


def test_separate_async_reaches_veRL_with_all_that_it_needs() -> None:
    given = {name: words for name, (_, words) in parts("trainers").items()}
    assert {*given["passed"]} <= {*argv("toy-cpu", *SEPARATE, *given["separate"])}
    assert "+ray_kwargs.ray_init.num_gpus=1" in argv("toy-cpu")


def test_a_veRL_without_the_mode_says_since_when_it_is_there() -> None:
    with pytest.raises(UserError, match=r"veRL 0\.8\.0 has no 'trainer\.v1\.trainer_mode'; it was added in 0\.9\.0"):
        argv("gsm8k-0.5b-24gb", "trainer.mode=separate_async", version="0.8.0")


def test_the_way_of_a_batch_with_engines_of_their_own() -> None:
    apart = flow(what("gsm8k-0.5b-24gb", *SEPARATE, "trainer.warmup_batches=2"))
    assert (apart.prompts, apart.portion, apart.ahead, apart.oldest, apart.engine_gpus) == (128, 64, 2.0, 8, 1)
    together = flow(what("gsm8k-0.5b-24gb"))
    assert (together.portion, together.ahead, together.engine_gpus) == (128, 0.0, 0)
    assert apart.log_probs.per_gpu == together.log_probs.per_gpu / 2  # a mini-batch at a time
    assert apart.actor.steps == together.actor.steps
    said = "\n".join("".join(text for text, _ in row) for row in flow_rows(apart, 100))
    assert "on 1 GPU of the engine, 2 batches ahead, at most 8 weight versions old" in said
    assert "64 prompts at a time" in said
    assert "ahead" not in str(flow_rows(together, 100))


def test_the_memory_of_an_engine_alone_is_a_phase_of_its_own() -> None:
    assumed = [*SEPARATE, "rollout.weight_transfer=nccl"]
    found = memory.estimate(what("gsm8k-0.5b-24gb", *assumed))
    alone = found.phases[-1]
    assert alone.name == "GPUs of the engine" and "actor" not in str(alone.parts)
    assert any(part.label == "old weights of the actor" for part in found.host_parts)
    without = memory.estimate(what("gsm8k-0.5b-24gb", *assumed, "correction.bypass_mode=true"))
    assert without is not None and "old weights" not in str(without.host_parts)
    sync = memory.estimate(what("gsm8k-0.5b-24gb"))
    assert sync is not None and "GPUs of the engine" not in [phase.name for phase in sync.phases]


@pytest.mark.slow
def test_megatron_is_composed_for_the_checks_and_first_on_the_command_line(tmp_path: Path) -> None:
    if not what("gsm8k-0.5b-24gb").verl:
        pytest.skip("needs veRL")
    offload = ("actor.param_offload", "actor.optimizer_offload", "critic.param_offload", "critic.optimizer_offload")
    settings = (
        "model_engine=megatron",
        *(f"{name}=null" for name in (*offload, "ref.param_offload")),
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=1",
        "+actor_rollout_ref.actor.megatron.override_transformer_config.moe_grouped_gemm=true",
    )
    megatron = what("gsm8k-0.5b-24gb", *settings)
    assert errors(megatron) == [] and not megatron.is_fsdp
    assert megatron.get("actor_rollout_ref.actor.strategy") == "megatron"
    assert defaults.leaf(megatron.defaults, "actor_rollout_ref.actor.fsdp_config") == (False, None)
    assert argv("gsm8k-0.5b-24gb", *settings)[0] == "model_engine=megatron"
    group = argv("gsm8k-0.5b-24gb", "actor@actor_rollout_ref.actor=mlite_actor")
    assert group[0] == "actor@actor_rollout_ref.actor=mlite_actor"


def test_a_package_that_sends_weights_is_asked_for() -> None:
    here = subject(load("gsm8k-0.5b-24gb", ["rollout.weight_transfer=nccl"]))
    found = [each for each in software.checks(here) if each.id == "SW-11"]
    assert [each.message.partition(" ")[0] for each in found] == (["cupy"] if here.verl else [])
    assert not [each for each in software.checks(subject(load("gsm8k-0.5b-24gb"))) if each.id == "SW-11"]


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "fails"), [("reward", False), ("passed", False), ("seq_reward", True)])
def test_groups_are_filtered_by_what_the_function_returns(tmp_path: Path, metric: str, fails: bool) -> None:
    file = tmp_path / "score.py"
    file.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    right = ground_truth in solution_str\n"
        "    return {'score': float(right), 'passed': right}\n"
    )
    found = reward.checks(
        what("gsm8k-grpo-24gb", f"reward.path={file}", "filter.enable=true", f"filter.metric={metric}")
    )
    assert ["REWARD-7" for each in found if each.id == "REWARD-7"] == ["REWARD-7"] * fails


@pytest.mark.slow
def test_tools_that_no_agent_loop_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    schema.write(tmp_path / "train.parquet", rows(64))
    turns = "rollout.multi_turn=true"
    only = [each for each in judged(tmp_path, turns, train=tmp_path / "train.parquet") if each.id == "AGENT-5"]
    assert [each.change for each in only] == [{"rollout.agent_loop": "tool_agent"}]
    called = judged(tmp_path, turns, "rollout.agent_loop=tool_agent", train=tmp_path / "train.parquet")
    assert [each for each in called if each.id == "AGENT-5"] == []
