"""What could shorten a step: by made-up and recorded steps, and the proof of a change."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import span_runs
from tables import tabled

from launcher.compare.faster import COMPARED, STEPS, FasterPlan, prove
from launcher.core.errors import UserError
from launcher.metrics.host import HostLoad
from launcher.preset.effective import EffectiveConfig
from launcher.preset.files import load, restore
from launcher.preset.schema import FIELDS
from launcher.preset.settle import configuration, settings_of
from launcher.record.fix import Fix, Offer
from launcher.record.info import Edit
from launcher.record.layout import RunDir
from launcher.record.spans import Span
from launcher.timing.advice import Advice, advise, advise_start, rows
from launcher.timing.anatomy import step_times
from launcher.timing.stages import STAGES

START, TOKENS = span_runs.START, "perf/total_num_tokens"
BUSY = HostLoad(load=60.0, cores=2.0, busy=2.0, others=1.7)
PRESETS = ("toy-cpu", "gsm8k-0.5b-24gb", "gsm8k-0.5b-8gpu", "math-7b-8gpu")


def config_of(*settings: str, preset: str = "toy-cpu") -> EffectiveConfig:
    return configuration(load(preset, settings).snapshot())


def told(stages: Mapping[str, float], config: EffectiveConfig) -> list[tuple[str, str]]:
    """The ids of the advice with the first thing to try."""
    return [(each.id, each.offers[0].text) for each in advise([stages, stages], config, {})]


@tabled
def test_the_largest_stage_comes_first(
    stages: Mapping[str, float], settings: tuple[str, ...], first: list[str]
) -> None:
    assert list(told(stages, config_of(*settings))[0]) == first


def test_a_rollout_of_nearly_the_whole_step_gets_advice_on_every_engine() -> None:
    for preset in PRESETS:
        found = told({"rollout": 9.1, "update": 0.9}, config_of(preset=preset))
        assert found, preset
    eager = config_of("rollout.enforce_eager=true", preset="gsm8k-0.5b-8gpu")
    assert told({"rollout": 9.1, "update": 0.9}, eager)[0][0] == "eager"
    graphs = config_of("rollout.enforce_eager=false", preset="gsm8k-0.5b-8gpu")
    assert "eager" not in dict(told({"rollout": 9.1, "update": 0.9}, graphs))


def test_more_responses_at_a_time_help_only_where_they_wait_for_a_place() -> None:
    stages = {"rollout": 9.0, "update": 1.0}
    few = config_of("rollout.max_num_seqs=4", preset="gsm8k-0.5b-24gb")
    assert "sequences" in dict(told(stages, few))
    assert "sequences" not in dict(told(stages, config_of("rollout.max_num_seqs=100000", preset="gsm8k-0.5b-24gb")))


def test_a_micro_batch_is_not_advised_beyond_the_mini_batch() -> None:
    config = config_of("actor.ppo_micro_batch_size_per_gpu=32", "actor.ppo_mini_batch_size=32")
    assert "update-micro" not in dict(told({"update": 10.0}, config))


def test_a_token_budget_is_raised_only_where_a_mini_batch_has_more_tokens() -> None:
    config, steps = (
        config_of("actor.use_dynamic_bsz=true", "critic.ppo_max_token_len_per_gpu=4096"),
        [{"update": 5.0, "critic": 5.0}],
    )
    budget = config.number(FIELDS["critic.ppo_max_token_len_per_gpu"].key) or 0
    assert not {"update-tokens", "critic-tokens"} & {each.id for each in advise(steps, config, {TOKENS: budget})}
    minis = 64 / 32  # mini-batches of a step
    assert "critic-tokens" in {each.id for each in advise(steps, config, {TOKENS: budget + 1})}
    budget = config.number(FIELDS["actor.ppo_max_token_len_per_gpu"].key) or 0
    assert "update-tokens" not in {each.id for each in advise(steps, config, {TOKENS: minis * budget})}
    assert "update-tokens" in {each.id for each in advise(steps, config, {TOKENS: minis * budget + 2})}


def test_more_processes_do_not_help_where_tasks_wait_for_a_core() -> None:
    steps = [{"agent": 6.0, "update": 4.0}]
    assert "agents" in {each.id for each in advise(steps, config_of(), {})}
    assert "agents" not in {each.id for each in advise(steps, config_of(), BUSY.metrics())}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("stage", STAGES)
def test_every_advice_changes_something_that_the_run_can_use(preset: str, stage: str) -> None:
    snapshot = load(preset).snapshot()
    config = configuration(snapshot)
    for advice in advise([{stage: 5.0, "other": 5.0}], config, {TOKENS: 1e9}):
        assert advice.stage == stage and advice.share == 0.5
        for offer in advice.offers:
            assert all(edit.now != edit.before for edit in offer.edits)
            restore("faster", snapshot, settings_of(offer.edits))
        assert not config.on_cpu or not any("GPU" in offer.text for offer in advice.offers)


@pytest.mark.parametrize("name", span_runs.NAMES)
def test_recorded_steps_get_advice_about_their_stages_in_order(name: str) -> None:
    stages = [each.stages for each in step_times(span_runs.recorded(name))[1:]]
    whole = sum(sum(step.values()) for step in stages)
    for preset in PRESETS:
        found = advise(stages, config_of(preset=preset), {})
        assert [each.share for each in found] == sorted((each.share for each in found), reverse=True)
        for each in found:
            assert each.share == pytest.approx(sum(step.get(each.stage, 0.0) for step in stages) / whole)


def test_a_step_without_a_large_stage_of_a_setting_gets_no_advice() -> None:
    assert not told({"other": 9.5, "reward": 0.5}, config_of()) and not advise([], config_of(), {})


def test_the_table_names_fields_and_stages() -> None:
    assert len({row.id for row in rows()}) == len(rows()) >= 12
    for row in rows():
        assert {*row.where, *filter(None, [row.most])} <= FIELDS.keys(), row.id
        assert {change.key for fix in row.fixes for change in fix.changes} <= FIELDS.keys(), row.id
        assert row.stage in STAGES and row.only in ("", "gpu", "engine") and 0 < row.least < 1, row.id


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


ADVICE = Advice("reward", "", "reward", 0.6, (Offer(Fix(), "", "reward.workers", (Edit("reward.workers", 1, 4),)),))


def test_a_change_is_proven_by_two_pairs_of_runs(tmp_path: Path) -> None:
    luck = random.Random(1)
    runs = iter(range(100))

    def steps(seconds: float, count: int = COMPARED) -> RunDir:
        return run_of(tmp_path / f"{next(runs)}", [9.0, 9.0, *(seconds + luck.gauss(0, 0.1) for _ in range(count))])

    slow = steps(3)
    planned = FasterPlan(slow, ADVICE, 0, STEPS)
    proof = prove(planned, [slow, steps(2), steps(2), steps(3)])
    assert proof.proven and proof.saved == pytest.approx(1.0, abs=0.15) and proof.low < 1.0 < proof.high + 0.1
    assert not prove(planned, [slow, steps(3), steps(3), steps(3)]).proven
    assert not prove(planned, [slow, steps(2), steps(4), steps(3)]).proven, "the second pair contradicts"
    assert not prove(planned, [steps(6), steps(5), steps(4), steps(3)]).proven, "the machine got faster meanwhile"
    with pytest.raises(UserError, match="too few"):
        prove(planned, [slow, steps(2), steps(2), steps(3, count=COMPARED - 1)])


def test_settings_that_shorten_the_start_are_named_where_its_stage_is_long() -> None:
    config = config_of("rollout.enforce_eager=false", "trainer.validate_first=true", preset="gsm8k-0.5b-24gb")
    start = {"engine": 20.0, "graphs": 30.0, "validate-first": 5.0, "rollout": 45.0}
    (graphs,) = advise_start(start, config)
    assert graphs.problem.what.endswith(": 50 % of the start")
    assert graphs.offers[0].text.startswith("set rollout.enforce_eager=true (now false): ")
    assert [each.stage for each in advise_start({}, config)][:2] == ["engine", "validate-first"]
    assert advise_start({"engine": 9.0}, config_of("rollout.enforce_eager=true", preset="gsm8k-0.5b-24gb")) == ()
    filtered = [advise_start({"data": data, "engine": 138.0}, config) for data in (17.0, 60.0)]
    assert ["data" in {each.stage for each in found} for found in filtered] == [False, True]
