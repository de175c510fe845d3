"""The setting that would save most: by made-up steps whose gain is known, and the proof of it."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import span_runs

from launcher.compare.faster import COMPARED, STEPS, Plan, prove
from launcher.core.errors import UserError
from launcher.estimate.models import facts
from launcher.preset.files import load
from launcher.preset.schema import FIELDS
from launcher.preset.settle import configuration
from launcher.record.layout import RunDir
from launcher.record.spans import Span
from launcher.timing.advice import Advice, best, rows
from launcher.timing.anatomy import step_times
from launcher.timing.evidence import Evidence
from launcher.timing.predictors import PREDICTORS
from launcher.timing.size import Size
from launcher.timing.stages import STAGES

START = span_runs.START


def evidence(
    spans: Sequence[Span], *settings: str, preset: str = "toy-cpu", figures: Mapping[str, float] | None = None
) -> Evidence:
    steps = step_times(spans)[1:]
    config = configuration(load(preset, settings).snapshot())
    return Evidence(RunDir(Path("/nowhere")), steps, {each.step: figures or {} for each in steps}, config, None)


def made_up(
    count: int = 12,
    *,
    reward: float = 0.0,
    agent: float = 0.0,
    micro: Sequence[float] = (),
    every: int = 0,
    hung: int = 0,
) -> list[Span]:
    """Steps of the toy: 1 s of rollout, then the seconds of rewards or agent loops, 1 s of update or micro-batches.

    The rewards are eight calls, one after another. In step `hung`, the last one takes a minute more.
    """
    luck, at, spans = random.Random(0), START, list[Span]()
    for step in range(1, count + 1):
        begun = at
        spans += [Span("hf_generate", "replica_0", at, at + 1)] * 8
        scored = 0.0
        for place in range(8 if reward else 0):
            hangs = 60 * (step == hung and place == 7)
            spans.append(Span("reward", "process_9", at + 1 + scored, at + 1 + scored + reward / 8 + hangs))
            scored += reward / 8 + hangs
        end = at + 1 + scored + agent
        spans.append(Span("session", "process_8", at, end))
        spans.append(Span("gen", "trainer", at, end, step))
        at = end
        tokens = [luck.randint(20, 40) for _ in range(32)] if micro else []
        parts = tuple((float(each), micro[0] + micro[1] * each) for each in tokens)
        seconds = sum(each for _, each in parts) or 1.0
        spans.append(Span("micro_batches", "rank_0", at, at + seconds, count=len(parts), parts=parts))
        spans.append(Span("actor_update", "rank_0", at, at + seconds))
        spans.append(Span("update_actor", "trainer", at, at + seconds, step))
        at += seconds
        spans.append(Span("step", "trainer", begun, at, step))
        if every and step % every == 0:
            spans.append(Span("testing", "trainer", at, at + 3, step))
            at += 3
    return spans


def told(found: Advice | None) -> tuple[str, float]:
    assert found is not None
    assert found.low <= found.saved <= found.high
    return found.setting, found.saved


def test_slow_rewards_are_spread_over_processes() -> None:
    setting, saved = told(best(evidence(made_up(reward=4.0))))
    assert setting == "reward.workers=4" and saved == pytest.approx(3.0, rel=0.3)


def test_a_reward_function_that_hung_once_needs_no_more_processes() -> None:
    assert best(evidence(made_up(reward=0.001, hung=6))) is None is best(evidence(made_up(reward=0.001)))


def test_agent_loops_that_block_are_spread_over_processes() -> None:
    setting, saved = told(best(evidence(made_up(agent=4.0))))
    assert setting == "rollout.agent_workers=4" and saved == pytest.approx(3.0, rel=0.1)
    assert best(evidence(made_up(agent=4.0), "rollout.agent_workers=4")) is None, "a CPU has no room for more"
    spans = made_up(agent=0.4)
    more = [each for each in spans if each.name == "session" for _ in range(63)]
    assert best(evidence([*spans, *more])) is None, "veRL itself needs so long for 64 responses"


def test_tiny_micro_batches_cost_what_does_not_depend_on_tokens() -> None:
    found = best(evidence(made_up(micro=(0.1, 0.002)), "actor.ppo_micro_batch_size_per_gpu=1"))
    setting, saved = told(found)
    assert setting == "actor.ppo_micro_batch_size_per_gpu=8"
    assert saved == pytest.approx((32 - 4) * 0.1, rel=0.2)
    free = best(evidence(made_up(micro=(0.0, 0.01)), "actor.ppo_micro_batch_size_per_gpu=1"))
    assert free is None or not free.setting.startswith("actor.ppo_micro"), "all of it is for the tokens"


def test_a_small_token_budget_of_the_critic_is_enlarged() -> None:
    rename = {"actor_update": "train_batch", "update_actor": "update_critic"}
    spans = [replace(each, name=rename.get(each.name, each.name)) for each in made_up(micro=(0.1, 0.002))]
    setting, saved = told(best(evidence(spans, "critic.ppo_max_token_len_per_gpu=40")))
    assert setting == "critic.ppo_max_token_len_per_gpu=320" and saved == pytest.approx((32 - 4) * 0.1, rel=0.2)


def test_a_validation_of_every_step_comes_less_often() -> None:
    setting, saved = told(best(evidence(made_up(every=1), "trainer.validate_every=1")))
    assert setting == "trainer.validate_every=50" and saved == pytest.approx(3 * (1 - 1 / 50), rel=0.01)


def test_a_gpu_run_with_a_tail_is_advised_to_overlap_and_keeps_its_graphs() -> None:
    found = best(evidence(span_runs.made_up(12), preset="gsm8k-0.5b-8gpu"))
    assert told(found)[0] == "trainer.mode=colocate_async"
    eager = best(evidence(span_runs.made_up(12), "rollout.enforce_eager=true", preset="gsm8k-0.5b-8gpu"))
    names = [each.id for each in (eager, *eager.others)] if eager else []
    assert "eager" in names and eager is not None and "eager" not in [each.id for each in found.others if found]


SUITE = (  # the settings of tests/gpu that the advice depends on
    "data.train_batch_size=64", "data.max_response_length=96", "actor.ppo_mini_batch_size=32",
    "actor.ppo_max_token_len_per_gpu=2048", "rollout.enforce_eager=true", "rollout.agent_workers=1", "reward.workers=1",
    "trainer.validate_every=-1", "trainer.save_every=-1",
)  # fmt: skip


def h100(name: str, *settings: str) -> Evidence:
    """A run of the GPU suite with a slow setting."""
    spans, logged = span_runs.recorded(f"h100-{name}"), span_runs.recorded_steps(f"h100-{name}")
    steps = [each for each in step_times(spans) if 1 < each.step < 6]
    config = configuration(load("gsm8k-format-reward", (*SUITE, *settings)).snapshot())
    model = facts("HuggingFaceTB/SmolLM2-135M", {})
    assert model is not None and len(steps) == 4
    figures = {record.step: record.data for record in logged}
    return Evidence(
        RunDir(Path("/nowhere")), steps, figures, config, Size.of(model), "NVIDIA H100 80GB HBM3", gpu_gb=85.5
    )


def test_an_eager_engine_is_slower_by_what_the_bandwidth_does_not_need() -> None:
    found = best(h100("eager"))
    setting, saved = told(found)
    assert setting == "rollout.enforce_eager=false" and saved == pytest.approx(1.33, rel=0.3)  # 28 to 14 ms per token
    assert found is not None and "actor.ppo_max_token_len_per_gpu=4096" in [each.setting for each in found.others]


def test_sequences_one_after_another_would_take_as_long_as_the_longest_of_them() -> None:
    found = best(h100("sequences", "rollout.max_num_seqs=4"))
    setting, saved = told(found)
    assert setting == "rollout.max_num_seqs=64" and saved == pytest.approx(16.6, rel=0.15)
    assert found is not None and found.low < 16.6 < found.high
    assert "rollout.max_num_seqs" not in [each.setting for each in found.others]


def test_calls_that_sleep_save_only_the_time_without_a_free_place() -> None:
    setting, saved = told(best(h100("reward")))  # 64 calls of 3 s, 32 at a time; the longest response takes 2.9 s
    assert setting == "reward.workers=4" and saved == pytest.approx(1.2, rel=0.3)


def on_one_processor(comes: Sequence[float], work: float) -> list[float]:
    """When calls end that get the same part of a processor each."""
    left, ends, now = dict.fromkeys(range(len(comes)), work), [0.0] * len(comes), 0.0
    while left:
        begun = [place for place in left if comes[place] <= now]
        following = min((at for place, at in enumerate(comes) if place in left and at > now), default=math.inf)
        least = min((left[place] for place in begun), default=math.inf) * len(begun)
        passed = min(following - now, least)
        now += passed
        for place in begun:
            left[place] -= passed / len(begun)
            if left[place] < 1e-9:
                ends[place] = now
                del left[place]
    return ends


@pytest.mark.parametrize(("busy", "expected"), [(False, 0.0), (True, 3.0)])
def test_calls_that_share_a_processor_divide_all_of_their_time(busy: bool, expected: float) -> None:
    luck, spans = random.Random(0), list[Span]()
    for step in range(1, 8):
        at = START + 10 * step
        comes = sorted(luck.uniform(0, 1) for _ in range(16))
        ends = on_one_processor(comes, 0.3) if busy else [each + 4 for each in comes]
        for each, end in zip(comes, ends, strict=True):
            spans.append(Span("hf_generate", "replica_0", at, at + each))
            spans.append(Span("reward", "process_9", at + each, at + end))
        spans.append(Span("gen", "trainer", at, at + max(ends), step))
        spans.append(Span("step", "trainer", at, at + max(ends), step))
    found = best(evidence(spans))
    assert (found.saved if found else 0.0) == pytest.approx(expected, abs=0.6)


def test_a_healthy_step_gets_no_advice() -> None:
    assert best(evidence(made_up(), "actor.ppo_micro_batch_size_per_gpu=32")) is None


def test_the_table_names_fields_stages_and_predictors() -> None:
    listed = rows()
    assert len({row.id for row in listed}) == len(listed) >= 12
    for row in listed:
        assert {row.key, *filter(None, (row.mini, row.dynamic))} <= set(FIELDS), row.id
        assert row.stage in STAGES and row.predictor in PREDICTORS and 0 < row.low <= row.high, row.id
    assert {row.predictor for row in listed} == set(PREDICTORS)


def run_of(folder: Path, seconds: Sequence[float]) -> RunDir:
    """A run whose steps took so long."""
    run = RunDir(folder)
    run.attempts.mkdir(parents=True)
    attempt, at, spans = run.add_attempt(), START, list[Span]()
    for step, each in enumerate(seconds, 1):
        spans.append(Span("update_actor", "trainer", at, at + each, step))
        spans.append(Span("step", "trainer", at, at + each, step))
        at += each
    span_runs.write_spans(attempt, spans)
    return run


def test_a_change_is_proven_by_two_pairs_of_runs(tmp_path: Path) -> None:
    luck = random.Random(1)
    runs = iter(range(100))

    def steps(seconds: float, count: int = COMPARED) -> RunDir:
        return run_of(tmp_path / f"{next(runs)}", [9.0, 9.0, *(seconds + luck.gauss(0, 0.1) for _ in range(count))])

    slow = steps(3)
    planned = Plan(slow, Advice("reward", "cause", "do", "reward.workers=4", "1", 3.0, 1.0, 0.9, 1.1), 0, STEPS)
    proof = prove(planned, [slow, steps(2), steps(2), steps(3)])
    assert proof.proven and proof.saved == pytest.approx(1.0, abs=0.15) and proof.low < 1.0 < proof.high + 0.1
    assert not prove(planned, [slow, steps(3), steps(3), steps(3)]).proven
    assert not prove(planned, [slow, steps(2), steps(4), steps(3)]).proven, "the second pair contradicts"
    assert not prove(planned, [steps(6), steps(5), steps(4), steps(3)]).proven, "the machine got faster meanwhile"
    with pytest.raises(UserError, match="too few"):
        prove(planned, [slow, steps(2), steps(2), steps(3, count=COMPARED - 1)])
