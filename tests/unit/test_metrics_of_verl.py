"""The glossary knows every metric that the installed veRL writes: a key of a new version shows here first."""

import pytest
from verl_metrics import keys, sources

from launcher.metrics.glossary import UNKNOWN, describe

# What fits any part of a step says little: a part that veRL names has words of its own.
GENERAL = {UNKNOWN, describe("timing_s/anything").meaning}


@pytest.mark.slow
def test_every_key_that_the_installed_verl_writes_is_described() -> None:
    package = sources()
    if package is None:
        pytest.skip("needs veRL: pip install ppo-tui[cpu]")
    written = keys(package)
    assert {"actor/kl_loss", "timing_s/gen", "rollout_corr/kl", "val-core/data/acc/best@4/mean"} <= written.keys()
    assert len(written) > 200
    assert {key: file for key, file in written.items() if describe(key).meaning in GENERAL} == {}
    assert all(len(describe(key).meaning) < 140 for key in written)
