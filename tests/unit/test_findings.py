"""What the quick checks find in a preset, a finding per row; more broken presets: test_preflight_corpus.py."""

import importlib.util

import pytest
from corpus import machine
from tables import tabled

from launcher.check.checks import quick
from launcher.check.subject import Subject, subject
from launcher.preset.files import load
from launcher.verl import hydra


def what(preset: str, where: str, settings: list[str]) -> Subject:
    """A preset on a machine as corpus.machine describes it, or on one that is assumed: `assumed 1x24`."""
    loaded, assumed = load(preset, settings), where.removeprefix("assumed ")
    return subject(loaded, on=machine(where)) if assumed == where else subject(loaded, assume=assumed)


@pytest.mark.nightly("launcher/check/", "launcher/estimate/", "launcher/preset/", "tests/data/tables/findings", every=8)
@pytest.mark.slow
@tabled
def test_a_finding_has_its_level_its_change_and_the_values(preset, where, settings, expected):
    """By its id: level, change and parts of message and fix; null where it is not found. The change settles it."""
    if {"KEY-1", "V18"} & expected.keys() and importlib.util.find_spec("verl") is None:
        pytest.skip("needs veRL: pip install ppo-tui[cpu]")
    found = quick(what(preset, where, settings))
    for id, wanted in expected.items():
        these = [each for each in found if each.id == id]
        assert [(each.level, each.change) for each in these] == ([tuple(wanted[:2])] if wanted else [])
        text = "".join(f"{each.message}; {each.fix}" for each in these)
        assert [part for part in (wanted or [])[2:] if part not in text] == [], text
        if wanted and wanted[1]:
            changes = [f"{name}={hydra.quote(value)}" for name, value in wanted[1].items()]
            left = quick(what(preset, where, [*settings, *changes]))
            assert not {(each.id, each.keys) for each in these} & {(each.id, each.keys) for each in left}
            assert {each.id for each in left if each.level == "error"} <= {each.id for each in found}
