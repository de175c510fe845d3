"""Every key of real logs has a meaning; what nobody knows is not made up."""

import gzip
import json
import re
from pathlib import Path

import pytest
from tables import tabled

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


@tabled
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
