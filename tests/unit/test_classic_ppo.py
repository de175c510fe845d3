"""Logs of classic PPO, Stable-Baselines3 and CleanRL: an iteration is a step."""

import itertools
import tarfile
from pathlib import Path

import pytest

from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.log import Log, resolve
from launcher.runs.watch.steps import steps


def test_a_tracker_that_counts_steps_of_the_environment_has_an_iteration_per_update(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for step, data in {
        21: {"charts/episodic_return": 20.0, "charts/episodic_length": 21.0},
        64: {"charts/episodic_return": 30.0},
        128: {"losses/value_loss": 4.5, "losses/explained_variance": 0.25, "losses/clipfrac": 0.125},
        256: {"losses/value_loss": 3.5, "losses/explained_variance": 0.5, "losses/clipfrac": 0.0625},
    }.items():
        log.add(step, 1.0, data)

    log.translate(None)

    assert log.title == "CleanRL"
    assert {step: record.data for step, record in log.tracked.items()} == {
        1: {
            "critic/score/mean": 25.0,
            "charts/episodic_length": 21.0,
            "critic/vf_loss": 4.5,
            "critic/vf_explained_var": 0.25,
            "actor/pg_clipfrac": 0.125,
            "environment_steps": 128,
        },
        2: {
            "critic/vf_loss": 3.5,
            "critic/vf_explained_var": 0.5,
            "actor/pg_clipfrac": 0.0625,
            "environment_steps": 256,
        },
    }


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of PPO of Stable-Baselines3 2.9.2: CartPole with rates of 1e-3 and 0.1, Pendulum with 1e-3."""
    folder = tmp_path_factory.mktemp("sb3")
    with tarfile.open("tests/data/frameworks/sb3.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(("name", "warns"), [("healthy", False), ("broken", True), ("continuous", False)])
def test_all_that_one_run_of_stable_baselines3_wrote_has_its_flags_and_steps(
    name: str, warns: bool, classic: Path
) -> None:
    logs = [resolve(str(path)) for path in sorted((classic / name).iterdir())]
    numbers = [[record.step for _, record in steps(log)] for log in logs]
    flags = [{(each.rule, each.step, each.after) for each in judged(log, []).changes if each.notable} for log in logs]

    assert {log.title for log in logs} == {"Stable-Baselines3"}
    assert all(each == [*range(1, len(numbers[0]) + 1)] for each in numbers)
    assert any(level >= Level.WARN for _, _, level in flags[0]) == warns
    assert all(each == flags[0] for each in flags)
    first = next(record.data for _, record in itertools.islice(steps(logs[0]), 1, None))
    assert ("actor/entropy" in first) == (name != "continuous")
