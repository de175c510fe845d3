"""Every key of real logs has a meaning; what nobody knows is not made up."""

import gzip
import json
import re
from pathlib import Path

import pytest

from launcher.core.tables import read_tables
from launcher.metrics import glossary
from launcher.metrics.glossary import GLOSSARY, UNKNOWN, Metric, describe

LOGS = sorted((Path(__file__).parent.parent / "data" / "logs").glob("*.jsonl.gz"))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_every_key_of_a_real_run_is_described(log: Path) -> None:
    lines = gzip.decompress(log.read_bytes()).splitlines()
    keys = {key for line in lines for key in json.loads(line)["data"]}
    assert keys
    assert {key for key in keys if describe(key).meaning == UNKNOWN} == set()
    assert all(len(describe(key).meaning) < 140 for key in keys)


@pytest.mark.parametrize(
    ("key", "unit", "part"),
    [
        ("critic/score/max", "", "also logged without a critic; highest of the batch"),
        ("actor/entropy", "nats", "per token"),
        ("critic/grad_norm", "", "before clipping"),
        ("actor/perf/max_memory_reserved_gb", "GiB", "reserved"),
        ("perf/max_memory_reserved_gb", "GiB", "reserved"),
        ("perf/mfu/actor_infer", "share", "peak"),
        ("critic/kl", "nats", "to the reference"),
        ("rollout_corr/kl", "nats", "not the KL to the reference"),
        ("timing_s/agent_loop/num_preempted/mean", "", "restart"),
        ("timing_s/agent_loop/tool_calls/max", "s", "agent loop"),
        ("timing_s/my_own_part", "s", "this part"),
        ("timing_s/switch_to_trainer", "s", "taking the trainer's GPUs back"),
        ("timing_s/agent_loop/slowest/response_length", "tok", "took longest"),
        ("actor/rollout_corr/kl", "nats", "bypass_mode"),
        ("rollout_corr/rollout_rs_token_k1_seq_masked_fraction", "share", "responses"),
        ("rollout_corr/rollout_is_seq_fraction_high", "share", "above the upper limit"),
        ("actor/distillation/ppo_kl", "nats", "distillation"),
        ("training/off_policy/evicted_samples_staleness/max", "versions", "too old; highest"),
        ("training/filter_groups/discarded_surplus_samples", "groups", "already full"),
        ("val-core/openai/gsm8k/acc/mean@1", "", "main validation metric of this data source; one response per prompt"),
        ("val-core/openai/gsm8k/acc/best@4/std", "", "best of 4 responses (standard deviation)"),
        ("val-aux/openai/gsm8k/acc_success_only/mean@4", "", "mean of 4 responses per prompt"),
        ("val-aux/num_turns/max", "turns", "messages in a chat; 2 is one prompt and one response; highest"),
        ("val/test_score/openai/gsm8k", "", "up to 0.3"),
    ],
)
def test_meaning_and_unit(key: str, unit: str, part: str) -> None:
    found = describe(key)
    assert found.unit == unit
    assert part in found.meaning


@pytest.mark.parametrize("key", ["", "mine", "actor", "reward/mean", "critic/score_of_mine", "/mean"])
def test_an_unknown_key_is_not_explained(key: str) -> None:
    assert describe(key) == Metric(UNKNOWN)


def test_each_line_of_the_glossary_is_typed_and_reached() -> None:
    sections = read_tables(GLOSSARY)
    assert all(re.fullmatch("[a-z]+", section) for section in sections)
    for key, row in (each for section in sections.values() for each in section.items()):
        assert row.keys() <= {"unit", "meaning"} and all(isinstance(value, str) and value for value in row.values())
        found = describe(key.replace("*", "x"))
        assert found.unit == row.get("unit", "") and row["meaning"] in found.meaning, f"a line before {key} fits, too"


def test_an_exact_name_needs_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first frame would wait for 200 of them."""
    monkeypatch.setattr(glossary, "fnmatchcase", lambda key, pattern: pytest.fail(f"{key} is compared with {pattern}"))
    describe.cache_clear()
    assert describe("actor/entropy").unit == "nats"
