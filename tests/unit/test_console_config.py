"""The resolved configuration as the console reader puts it together."""

import math

import pytest
from console_logs import DATA, TASK, events_of, only, stored

from launcher.console.reader import ConfigDump, StepLine

EVERY = [path.name.removesuffix(".log.gz") for path in sorted((DATA / "logs").glob("*.log.gz"))]


@pytest.mark.parametrize("name", EVERY)
def test_the_configuration_of_every_run(name: str) -> None:
    (dump,) = only(ConfigDump, events_of(stored(name), 4096))
    assert len(dump.keys) > 900
    assert dump.keys["algorithm.adv_estimator"] == ("grpo" if name == "grpo" else "gae")
    assert dump.keys["trainer.logger"] == ["console", "file"]
    assert dump.keys["actor_rollout_ref.actor.optim.lr"] == (50 if name == "nan" else pytest.approx(0, abs=1e-3))


def test_a_float_for_a_name() -> None:  # Hydra reads experiment_name=nan as a number
    (dump,) = only(ConfigDump, events_of(stored("nan")))
    assert math.isnan(dump.keys["trainer.experiment_name"])


def test_a_configuration_among_other_lines() -> None:
    text = (
        f"{TASK}{{'actor_rollout_ref': {{'actor': {{'kl_loss_coef': 1e-05,\n"
        "\x1b[36m(WorkerDict pid=9)\x1b[0m {'not': 'ours'}\n"
        f"{TASK}/opt/x.py:1: UserWarning: [careful] {{'not': 'ours'}}\n"
        f"{TASK}                                     'use':\n{TASK} \n{TASK}True}},\n"
        f"{TASK}                       'text': 'it is '\n{TASK}                               'long'}},\n"
        f"{TASK} 'data': {{'x': \"don't\", 'empty': {{}}, 'list': [1, None]}}}}\n"
    )
    (dump,) = only(ConfigDump, events_of(text))
    assert dump.keys == {
        "actor_rollout_ref.actor.kl_loss_coef": 1e-05,
        "actor_rollout_ref.actor.use": True,
        "actor_rollout_ref.text": "it is long",
        "data.x": "don't",
        "data.empty": {},
        "data.list": [1, None],
    }


def test_a_configuration_that_ray_broke_at_every_pause() -> None:
    (dump,) = only(ConfigDump, events_of(stored("real-no-environment")))
    assert dump.keys["critic.model.external_lib"] is None
    assert len(dump.keys) > 900


TREE = "{'actor_rollout_ref': {'a': [], 'b': {}, 'c': None, 'd': [None, True, -1, 1e-06], 'e': [{'f': nan}, [-inf]]}}"


def test_a_configuration_that_is_broken_anywhere_between_two_values() -> None:
    places = [at for at in range(25, len(TREE)) if TREE[at] in "[{}]'NTn-" and TREE[at - 1] in "[{ "]
    places += [at for at in range(25, len(TREE)) if TREE[at] in ",:}]"]
    for start in places:
        for end in (end for end in places if end > start):
            parts = TREE[:start], TREE[start:end], TREE[end:]
            (dump,) = only(ConfigDump, events_of("".join(f"{TASK}{part}\n" for part in parts)))
            assert len(dump.keys) == 5, parts


def test_a_configuration_with_both_quotes_and_numbers_that_are_none() -> None:
    (dump,) = only(ConfigDump, events_of(f"{TASK}{{'actor_rollout_ref': {{'a': \"don't\", 'b': -inf, 'c': [nan]}}}}\n"))
    assert dump.keys["actor_rollout_ref.b"] == -math.inf and math.isnan(dump.keys["actor_rollout_ref.c"][0])


@pytest.mark.parametrize(
    "body",
    [
        "{'actor_rollout_ref': {'actor': <object at 0x7f>}}",
        "{'actor_rollout_ref': {'actor': [" + "[" * 5000 + "}",
        "{'actor_rollout_ref': {'actor': {'x': __import__('os').system('true')}}}",
        "{'actor_rollout_ref': {'actor': 1}",
    ],
)
def test_an_odd_configuration_is_ignored(body: str) -> None:
    events = events_of(f"{TASK}{body}\n" + f"{TASK}'x'}}\n" * 50 + f"{TASK}step:1 - a/b:1.0\n")
    assert only(ConfigDump, events) == []
    assert [step.step for step in only(StepLine, events)] == [1]
