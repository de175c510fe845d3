"""The glossary knows every metric that the installed veRL writes: a key of a new version shows here first."""

import shutil
from pathlib import Path

import pytest
from verl_metrics import keys, sources
from verl_watch import GENERAL, unknown

from launcher.metrics.glossary import describe
from launcher.verl.defaults import NEWEST


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


@pytest.mark.nightly("tools/verl_watch.py", "launcher/verl/", "launcher/metrics/")
@pytest.mark.slow
def test_the_watch_for_versions_lists_what_is_new_and_gone(tmp_path: Path) -> None:
    """Nothing in the installed veRL; in a copy, a new key, metric, estimator and program, and a phrase that is gone."""
    package = sources()
    if package is None:
        pytest.skip("needs veRL: pip install ppo-tui[cpu]")
    assert {kind: names for kind, names in unknown(package, package, NEWEST) if names} == {}
    copy = shutil.copytree(package, tmp_path / "verl", ignore=shutil.ignore_patterns("*.pyc"))
    for place, old, new in (
        ("trainer/config/data/legacy_data.yaml", "train_batch_size:", "new_key: 1\ntrain_batch_size:"),
        ("trainer/ppo/metric_utils.py", '"critic/score/mean"', '"critic/scored/mean"'),
        ("trainer/ppo/core_algos.py", '@register_policy_loss("vanilla")', '@register_policy_loss("plain")'),
    ):
        text = (copy / place).read_text()
        assert old in text, place
        (copy / place).write_text(text.replace(old, new))
    for path in copy.rglob("*.py"):
        if "Total training steps" in (text := path.read_text()):
            path.write_text(text.replace("Total training steps", "Steps"))
    (copy / "trainer/main_new.py").touch()
    found = {name for _, names in unknown(copy, package, NEWEST) for name in names}
    assert found == {
        "data.new_key",
        "critic/scored/mean",
        "plain",
        "trainer/main_new.py",
        "Total training steps: (?P<total>[0-9]{1,15})",
    }
