"""Which of several runs is better: made of steps whose difference is known."""

import random
from collections.abc import Callable

import pytest
from quoted import quoted

from launcher.compare.comparison import Compared
from launcher.compare.contrast import Contrast, assumptions, contrast_rows, contrasts, spread_rows, steps_words
from launcher.metrics.records import StepRecord
from launcher.record.info import RunInfo
from launcher.record.layout import create
from launcher.record.state import RunState

pytestmark = pytest.mark.usefixtures("home")


def made(lr: float, seed: int, reward: Callable[[int], float], count: int = 80, **more: float) -> Compared:
    run = create(f"{lr}-{seed}")
    RunInfo(run.id, preset={"actor": {"lr": lr}, "data": {"seed": seed}}).write(run.run_yaml)
    RunState("finished", attempt=1).write(run.state)
    rng, attempt = random.Random(seed + 1000 * lr), run.add_attempt()
    with attempt.steps.open("wb") as file:
        for step in range(1, count + 1):
            data = {"critic/score/mean": reward(step) + rng.gauss(0, 0.02), "perf/throughput": 900 + rng.gauss(0, 50)}
            data |= {key.replace("__", "/"): value for key, value in more.items()}
            file.write(StepRecord(step, float(step), None, data).to_line())
    found = Compared(run)
    found.poll()
    return found


def learning(step: int) -> float:
    return step / 100


def by_figure(runs: list[Compared]) -> dict[str, Contrast]:
    return {each.metric: each for each in contrasts(runs)}


def test_a_better_run_is_told_though_both_learn() -> None:
    runs = [made(1, 1, learning), made(2, 2, lambda step: learning(step) + 0.05)]
    found = by_figure(runs)
    reward, speed = found["reward"], found["tokens/s"]
    assert (reward.result, reward.steps, reward.over, reward.hint) == ("better", (41, 80), "steps", "")
    assert reward.low is not None and reward.high is not None and 0 < reward.low < 0.05 < reward.high
    assert speed.result == "inconclusive" and "seed" in speed.hint
    assert found.keys() == {"reward", "tokens/s"}  # what neither logs is not a row
    assert by_figure(runs[::-1])["reward"].result == "worse"
    assert "for these two runs only" in assumptions(runs, list(found.values()))[0]


def test_seeds_decide_where_there_are_several() -> None:
    def off(by: float) -> Callable[[int], float]:
        return lambda step: learning(step) + by

    alike = [made(1, seed, off(by)) for seed, by in enumerate((-0.1, 0, 0.1))]
    luckier = [made(2, seed, off(by)) for seed, by in enumerate((-0.02, 0.08, 0.18))]
    found = by_figure([*alike, *luckier])["reward"]
    assert (found.result, found.over) == ("inconclusive", "seeds")
    assert found.more is not None and found.more > 3 and found.hint.startswith("needs about ")
    assert by_figure([alike[1], luckier[2]])["reward"].result == "better"  # of these two, steps alone tell so
    far = [made(2, seed, off(by)) for seed, by in enumerate((0.4, 0.5, 0.6), 5)]
    assert by_figure([*alike, *far])["reward"].result == "better"
    assert [row[1] for row in spread_rows(alike)[1:]] == ["3", "3"] and contrasts(alike) == []


def test_several_groups_are_judged_together() -> None:
    runs = [made(lr, 1, learning) for lr in (1, 2, 3)]
    found = contrasts(runs)
    assert {each.level for each in found} == {0.975} and {each.second for each in found} == {2, 3}
    assert "all 2 groups together" in " ".join(assumptions(runs, found))
    assert len(contrast_rows(found)) == 1 + len(found)


def test_what_cannot_be_compared_says_why() -> None:
    long = made(1, 1, learning, response_length__mean=20.0)
    short = made(2, 1, learning, count=9)
    found = by_figure([long, short])
    assert quoted(found["reward"].hint) == ["5", "12"]
    assert found["length"].hint and not quoted(found["length"].hint)
    empty = made(3, 1, learning, count=0)
    assert {(each.result, steps_words(each)) for each in contrasts([long, empty])} == {("not judged", "–")}
    other = made(4, 1, learning, response_length__mean=float("nan"))
    assert by_figure([long, other])["length"].result == "not judged"
