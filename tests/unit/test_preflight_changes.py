"""A change that is offered was tried before: it leads from one error to none, not to the next one."""

from corpus import machine

from launcher.check.checks import quick
from launcher.check.finding import Finding
from launcher.check.subject import subject
from launcher.preset.files import load


def errors(on: str, settings: list[str], where: str) -> dict[str, Finding]:
    found = quick(subject(load(on, settings), on=machine(where)))
    return {each.id: each for each in found if each.level == "error"}


def test_a_number_that_breaks_another_rule_gives_way_to_the_nearest_that_breaks_none():
    """15 would be below the mini-batch, and a mini-batch of 15 could not be cut into micro-batches."""
    found = errors("gsm8k-grpo-24gb", ["trainer.gpus=3"], "3x24")
    assert found["V1"].change == {"data.train_batch_size": 18}
    assert found["V1"].fix == "set data.train_batch_size=18"
    assert found["P11"].change == {"actor.ppo_mini_batch_size": 12}
    both = ["trainer.gpus=3", "data.train_batch_size=18", "actor.ppo_mini_batch_size=12"]
    assert errors("gsm8k-grpo-24gb", both, "3x24") == {}


def test_a_change_brings_along_what_follows_from_it():
    broken = [
        "trainer.gpus=8",
        "actor.ppo_mini_batch_size=100",
        "critic.ppo_mini_batch_size=24",
        "actor.ppo_micro_batch_size_per_gpu=25",
    ]
    finding = errors("gsm8k-0.5b-h800", broken, "8x80")["P11"]
    assert finding.change == {"actor.ppo_mini_batch_size": 96, "actor.ppo_micro_batch_size_per_gpu": 12}
    assert finding.fix == "set actor.ppo_mini_batch_size=96 and actor.ppo_micro_batch_size_per_gpu=12"


def test_what_the_model_cannot_share_is_not_offered():
    found = errors("gsm8k-0.5b-24gb", ["trainer.gpus=8", "rollout.tensor_model_parallel_size=3"], "8x24")
    assert found["P2"].change == {"rollout.tensor_model_parallel_size": 2}


def test_no_change_is_offered_where_none_helps():
    found = errors("gsm8k-0.5b-24gb", ["trainer.gpus=8", "data.train_batch_size=7"], "8x24")
    assert "V3" not in found  # a warning, as batches are dynamic
    few = ["trainer.gpus=8", "data.train_batch_size=7", "actor.use_dynamic_bsz=false"]
    finding = errors("gsm8k-0.5b-24gb", few, "8x24")["V3"]
    assert finding.change is None
    assert finding.fix == "set actor.ppo_mini_batch_size=7 or less"


def test_a_number_that_pads_is_not_offered_where_one_with_its_consequences_pads_nothing():
    few = ["data.train_batch_size=48", "actor.ppo_mini_batch_size=64"]
    sizes = ("ref.log_prob", "rollout.log_prob", "actor.ppo")
    along = {f"{name}_micro_batch_size_per_gpu": 24 for name in sizes}
    assert errors("toy-cpu", few, "1x24")["V3"].change == {**along, "actor.ppo_mini_batch_size": 48}
    found = quick(subject(load("toy-cpu", [few[0], "actor.ppo_mini_batch_size=32"]), on=machine("1x24")))
    (padded,) = (each for each in found if each.id == "P12")
    assert padded.change == {**along, "actor.ppo_mini_batch_size": 24}
