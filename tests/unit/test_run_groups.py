import math

from launcher.compare.comparison import band, groups
from launcher.metrics.store import Series
from launcher.record.info import RunInfo


def series(values: dict[int, float]) -> Series:
    found = Series()
    for step, value in values.items():
        found.append(step, value)
    return found


def test_runs_that_differ_in_seeds_alone_are_one_group() -> None:
    def run(lr: float, seed: int) -> RunInfo:
        return RunInfo(preset={"actor": {"lr": lr, "data_loader_seed": seed}, "data": {"seed": seed}})

    infos = [run(1e-6, 1), run(3e-6, 1), run(1e-6, 2), RunInfo(), RunInfo()]
    assert groups(infos) == [0, 1, 0, 2, 3]


def test_a_band_has_the_steps_that_all_runs_have() -> None:
    found = band([series({1: 1.0, 2: 2.0, 3: math.nan, 4: 4.0}), series({1: 3.0, 2: 2.0, 3: 1.0})])
    assert list(found.mean.steps) == [1, 2]
    assert [list(each.values) for each in found] == [[2.0, 2.0], [1.0, 2.0], [3.0, 2.0]]
