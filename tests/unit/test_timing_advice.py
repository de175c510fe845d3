"""The setting that would save most: by made-up steps whose gain is known, and the proof of it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import span_runs

from launcher.compare.faster import COMPARED, STEPS, Plan, prove
from launcher.core.errors import UserError
from launcher.preset.files import load
from launcher.preset.remedy import configuration
from launcher.preset.schema import FIELDS
from launcher.record.layout import RunDir
from launcher.record.spans import Span
from launcher.timing.advice import Advice, best, rows
from launcher.timing.anatomy import step_times
from launcher.timing.evidence import Evidence
from launcher.timing.predictors import PREDICTORS
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

    In step `hung`, the reward takes a minute more.
    """
    luck, at, spans = random.Random(0), START, list[Span]()
    for step in range(1, count + 1):
        begun = at
        spans.append(Span("hf_generate", "replica_0", at, at + 1))
        scored = reward + 60 * (step == hung)
        end = at + 1 + scored + agent
        if reward:
            spans.append(Span("reward", "process_9", at + 1, at + 1 + scored))
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
