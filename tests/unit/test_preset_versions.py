"""The table of keys by version. Facts: composed from the wheels of veRL 0.5.0 to 0.9.1."""

import pytest
from tables import tabled

from launcher.core.errors import UserError
from launcher.preset.files import load, shipped
from launcher.preset.schema import FIELDS, value_of
from launcher.verl import versions
from launcher.verl.versions import ignored


@tabled
def test_a_key_in_each_version_and_back(newest, version, name):
    assert versions.at(newest, version) == name
    assert versions.newest(name) == newest


@tabled
def test_a_key_that_a_version_does_not_have(key, version, said):
    with pytest.raises(UserError, match=said):
        versions.at(key, version)


def test_the_same_keys_pass_where_they_exist():
    assert versions.at("data.seed", "0.6.1") == "data.seed"
    assert versions.at("data.sampler.class_path", "0.7.1") == "data.sampler.class_path"


@tabled
def test_what_a_version_takes_no_notice_of(key, value, version, why):
    found = dict(ignored({key: value, "trainer.nnodes": 1}, version))
    assert set(found) == ({key} if why else set())
    assert why is None or why in found[key]


def test_the_old_trainer_of_the_newest_version_reads_what_it_always_did():
    keys = {"trainer.use_v1": False, "trainer.balance_batch": True, "trainer.v1.trainer_mode": "sync"}
    assert [key for key, _ in ignored(keys, "0.9.1")] == ["trainer.v1.trainer_mode"]


def test_shipped_presets_set_nothing_that_is_ignored_but_what_is_demanded():
    for name in shipped():
        preset = load(name).preset
        keys = {spec.key: value_of(preset, spec) for spec in FIELDS.values() if spec.key}
        set_here = {key: value for key, value in keys.items() if value is not None}
        assert {key for key, _ in ignored(set_here, "0.9.1")} <= {"critic.ppo_micro_batch_size_per_gpu"}


def test_versions_that_can_be_launched():
    for version in ("0.5.0", "0.9", "0.9.1", "1.0rc1"):
        versions.check(version)
    for version in ("0.4.1", "0.1", ""):
        with pytest.raises(UserError, match=r"0\.5\.0 or newer"):
            versions.check(version)
