"""Text from outside, made safe to draw."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled

from launcher.core.text import clean, did_you_mean, nearest
from launcher.metrics.glossary import meanings
from launcher.preset.layers import near_name
from launcher.preset.schema import BY_KEY

UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ESCAPES = st.sampled_from(
    ["\x1b", "\x1b[", "\x1b[36m", "\x1b]0;", "\x07", "\x1b\\", "\x9b", "\x9c", "\x9d", "\x1bP", "\t", "\n", "\r"]
)
WILD = st.lists(st.one_of(st.text(max_size=6), ESCAPES, st.characters(codec=None))).map("".join)


@given(WILD)
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    assert not UNSAFE.search(clean(text))


@given(WILD)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(WILD)
def test_newlines_stay(text: str) -> None:
    assert clean(text).count("\n") == text.count("\n")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays(text: str) -> None:
    assert clean(text) == text


@tabled
def test_what_is_removed(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_the_nearest_name() -> None:
    assert did_you_mean("actr", ["actor", "critic"]) == " (did you mean 'actor'?)"
    assert did_you_mean("zzz", ["actor", "critic"]) == ""
    keys = ["actor.lr", "critic.lr", "data.train_batch_size", "critic/score/mean"]
    assert [nearest(name, keys) for name in ("lr", "batch_size", "score", "e")] == [*keys[:1], *keys[2:], None]
    named = {"critic/score/mean": "Reward of a response.", "actor/lr": "Learning rate."}
    assert [nearest(word, named) for word in ("reward", "learning_rate", "a")] == [*named, None]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        *((key, spec.name) for key, spec in BY_KEY.items() if key.startswith("actor_rollout_ref.actor.optim.")),
        ("actor.optim.lr", "actor.lr"),
        ("lr", "actor.lr"),
        ("learning_rate", "actor.lr"),
        ("critic.learning_rate", "critic.lr"),
        ("actor.kl_loss_coef", "kl.loss_coef"),
        ("batch_size", "data.train_batch_size"),
        ("actr", "actor"),
        ("zzzz", None),
    ],
)
def test_a_wrong_key_leads_to_the_field(typed: str, field: str | None) -> None:
    assert near_name(typed) == field


def test_a_wrong_metric_leads_to_the_one_that_it_describes() -> None:
    seen = [
        "actor/entropy",
        "critic/rewards/mean",
        "critic/score/max",
        "critic/score/mean",
        "val-core/gsm8k/acc/mean@1",
    ]
    assert [nearest(word, meanings(seen)) for word in ("reward", "entropy", "score")] == [seen[3], seen[0], seen[3]]
