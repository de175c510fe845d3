"""What the charts say: value, trend, context, marks, and why there is nothing to see."""

import dataclasses
import math

import pytest
from pilots import words

from launcher.metrics.names import FEW, charts
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.check import Bound, Check
from launcher.record.events import Action, Event, PhaseChange
from launcher.record.levels import Level
from launcher.runs.watch.history import kept_rises
from launcher.runs.watch.proof import proven
from tui.kit.charts.figures import headline, legend, plot, trend
from tui.kit.charts.run_charts import check_plot
from tui.kit.drawing.line_chart import draw

REWARD, KL, ENTROPY, THROUGHPUT, LENGTH, _ = charts()
OLD, NEW = "val/test_score/gsm8k", "val-core/openai/gsm8k/acc/mean@1"


def store(records, attempt=1):
    made = SeriesStore()
    for record in records:
        made.add(record, attempt)
    return made


def said(shown):
    return " ".join(words([part]) for part in shown.headline)


def marks(shown):
    return [(mark.step, mark.sign) for mark in shown.marks]


def test_a_real_run_is_told_in_figures(make):
    steps = store(make.recorded())
    state = make.running(step=80)
    assert [said(plot(figure, steps, state, [])) for figure in charts()[:FEW]] == [
        "0.812 ↑ best 0.875 ○ val 0.850",
        "0.308   usual 0.202",
        "0.236 ↓ start 0.499",
        "1119   usual 1001",
    ]


@pytest.mark.parametrize(("gpus", "context"), [(1, "usual 461"), (2, "× 2 GPUs"), (8, "× 8 GPUs")])
def test_the_throughput_of_one_gpu_is_told_with_their_number(make, gpus, context):
    logged = {"perf__throughput": 461.0, "perf__time_per_step": 11.0}
    steps = store(make.made_up(3, perf__total_num_tokens=461 * 11 * gpus, **logged))
    assert said(plot(THROUGHPUT, steps, make.running(), [])) == f"461   {context}"
    assert said(plot(THROUGHPUT, store(make.made_up(3, **logged)), make.running(), [])).endswith("usual 461")


def test_kl_is_the_penalty_in_the_reward_first_then_the_loss_with_the_usual_of_the_check(make):
    for more, first in (({"actor__reward_kl_penalty": 0.2}, 0.2), ({}, 0.1)):
        shown = plot(KL, store(make.made_up(3, actor__kl_loss=0.1, **more)), make.running(), [])
        assert shown.curves[0].points.values[0] == first
    steps = store(make.recorded())
    checks = (Check("KL-1", keys=(steps.first_of(*KL.keys)[0],), usual=0.048),)
    assert said(plot(KL, steps, make.running(step=80, checks=checks), [])) == "0.308   usual 0.048"


def test_a_figure_that_is_not_there_says_why(make):
    shown = plot(KL, store(make.made_up(3, actor__pg_loss=0.1)), make.running(), [])
    assert (shown.curves, shown.note) == ([], "no KL logged")  # which keys would show it is the advice of KL-0
    assert plot(KL, store([]), make.running(state="starting"), []).note == "no step yet"
    assert plot(KL, store([]), make.ended("failed"), []).note == "no step finished"
    steps = store(make.made_up(5, actor__entropy=lambda step: math.nan if step == 5 else 0.4))
    found = headline(ENTROPY, steps.get("actor/entropy"), steps)
    assert found == [[("✖ nan", "critical")], [("start 0.400", "dim")]]  # a NaN now is shouted, and the rest stays
    lost = store(make.made_up(5, perf__throughput=math.nan))
    assert said(plot(THROUGHPUT, lost, make.running(), [])) == "✖ nan"


def test_the_nearest_warn_or_critical_of_each_side_is_drawn(make):
    limits = [("NOTICE", ">", 0.5), ("WARN", ">", 0.8), ("CRITICAL", ">", 0.7), ("WARN", "<", -0.05)]
    bounds = [Bound(Level[level], side, value) for level, side, value in limits]
    steps = store(make.made_up(3, actor__reward_kl_penalty=0.1))
    shown = plot(KL, steps, make.running(), [], bounds={"actor/reward_kl_penalty": bounds})
    assert [limit.label for limit in shown.limits] == ["CRITICAL > 0.700", "WARN < -0.050"]
    moved = [Bound(Level.WARN, ">", 0.05), Bound(Level.CRITICAL, ">", 0.09)]  # since it was passed
    assert not plot(KL, steps, make.running(), [], bounds={"actor/reward_kl_penalty": moved}).limits
    moved[0] = dataclasses.replace(moved[0], holds=True)
    shown = plot(KL, steps, make.running(), [], bounds={"actor/reward_kl_penalty": moved})
    assert [(limit.label, limit.passed) for limit in shown.limits] == [("WARN clears ≤ 0.050", True)]


def test_the_proof_of_the_first_flag_is_drawn_in_place_of_throughput():
    names = ("actor/kl_loss", "perf/throughput", "actor/grad_norm", "response_length/clip_ratio")
    steps = store([StepRecord(step, 0.0, None, dict.fromkeys(names, 0.5)) for step in range(1, 31)])

    def drawn(*checks):
        return [chart.proves or chart.title for chart in proven(charts(steps)[:FEW], steps, checks)][2:]

    kl, slow = Check("KL-1", level=Level.WARN, keys=names[:1]), Check("THR-1", level=Level.WARN, keys=names[1:2])
    cut, calm = Check("TRUNC-1", level=Level.NOTICE, keys=names[3:]), Check("GRAD-1", level=Level.OK, keys=names[2:3])
    assert drawn(kl, calm) == ["entropy", "throughput"] == drawn(kl, slow, cut)
    assert drawn(kl, cut, slow) == ["entropy", "TRUNC-1"]
    muted, elsewhere = dataclasses.replace(cut, muted=True), Bound(Level.WARN, ">", 0.1, series=1, crossed=True)
    assert drawn(muted) == ["entropy", "throughput"]
    second = dataclasses.replace(kl, keys=names[:3:2], bounds=(elsewhere,))
    assert drawn(second, cut) == ["entropy", "KL-1"]  # its limit is crossed by another metric than its first
    assert drawn(dataclasses.replace(calm, cleared=21)) == ["entropy", "GRAD-1"]
    assert drawn(dataclasses.replace(calm, cleared=20)) == ["entropy", "throughput"]


def test_a_limit_far_from_the_curve_is_named_in_the_title_and_does_not_flatten_it():
    values = [0.0, 1.0, 0.5, 1.0, 0.0]
    steps = store([StepRecord(step, 0.0, None, {"actor/kl_loss": x}) for step, x in enumerate(values, 1)])
    near, far = Bound(Level.NOTICE, ">", 1.6), Bound(Level.WARN, ">", 2.5)
    shown = check_plot("actor/kl_loss", steps, 5, [near, far], [])
    assert [(limit.label, limit.reach) for limit in shown.limits] == [("WARN > 2.50", False), ("NOTICE > 1.60", True)]
    lines = ["".join(text for text, _ in row) for row in draw(shown, 60, 16)]
    assert "↑ WARN > 2.50" in lines[0] and "2.5│" not in "".join(lines)
    assert any("NOTICE > 1.60 !" in line for line in lines)


@pytest.mark.parametrize(("share", "told"), [(0.004, "longest 256 (0.400 %)"), (0.71875, "longest 256 (72 %)")])
def test_the_longest_answers_are_told_with_their_share(make, share, told):
    lengths = {"response_length__mean": 229.0, "response_length__max": 256.0, "response_length__clip_ratio": share}
    assert said(plot(LENGTH, store(make.made_up(3, **lengths)), make.running(), [])).endswith(told)


@pytest.mark.parametrize(
    ("steps", "state", "total", "end"),
    [(30, "running", 34, 34), (31, "running", 1160, 35), (31, "running", None, 35), (26, "stopped", 640, 26)],
)
def test_the_axis_ends_at_the_planned_steps_where_they_are_near(make, steps, state, total, end):
    made = make.running(total=total) if state == "running" else make.ended(state, total=total)
    assert plot(REWARD, store(make.recorded(steps)), made, []).last == end


def test_trend_needs_six_values_and_ignores_noise():
    rows = ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [*map(float, range(20))])
    rows += ([-float(i) for i in range(20)], [(-1.0) ** i for i in range(20)], [0.5] * 20)
    assert [trend(row) for row in rows] == ["", "↑", "↑", "↓", "", ""]


def test_rises_seams_and_checkpoints_are_marked_on_their_own_charts_and_explained(make):
    events = [
        make.rise(10, "KL-4", "WARN", ""),
        make.rise(20, "KL-4", "OK", "", before="WARN"),
        make.rise(30, "ENT-1", "CRITICAL", ""),
        Event(make.start + 40, PhaseChange("save", 40)),
    ]
    steps, state = store(make.recorded(62)), make.running()
    assert marks(plot(KL, steps, state, kept_rises(events))) == [(10, "▲")]
    found = plot(ENTROPY, steps, state, kept_rises(events)).marks
    assert [(mark.step, mark.role) for mark in found] == [(30, "critical")]
    events.append(Event(make.start + 50, Action("resume", step=25)))  # step 30 is trained again
    assert plot(ENTROPY, steps, state, kept_rises(events)).marks == [] == legend([])
    found = plot(REWARD, steps, state, kept_rises([make.rise(10, "REW-1", "WARN", "")])).marks
    assert words([legend(found)]).split() == ["▲", "flag", "○", "validation"]
    steps = store(make.recorded(20))
    for record in make.recorded(30)[16:]:
        steps.add(record, 2)
    assert (16, "┊") in marks(plot(REWARD, steps, state, [])) and marks(plot(KL, steps, state, [])) == [(16, "┊")]
    saved = store(make.made_up(4, timing_s__save_checkpoint=1.0, critic__score__mean=0.5))
    for kept, left in (([3, 4], [3, 4]), ([], []), (None, [1, 2, 3, 4])):  # of a log from elsewhere nobody can tell
        shown = plot(REWARD, saved, state, [], kept=kept).marks
        assert [mark.step for mark in shown if mark.what == "checkpoint"] == left


def test_the_title_carries_the_worst_flag_about_its_figure(make):
    flagged = make.running(checks=make.checks(KL_1=("WARN", ""), KL_4=("CRITICAL", ""), ENT_1=("OK", "")))
    steps = store(make.recorded(62))
    assert plot(KL, steps, flagged, []).flag == ("✖", "critical")
    assert plot(ENTROPY, steps, flagged, []).flag is None


@pytest.mark.parametrize(
    ("logged", "second", "last"),
    [
        ({"actor__kl_loss": 0.0, "actor__ppo_kl": 0.1}, "KL to reference", "gradient norm"),
        ({"actor__ppo_kl": 0.1, "actor__pg_clipfrac": 0.1}, "policy drift (ppo_kl)", "gradient norm"),
        ({"actor__ppo_kl": 0.0, "actor__pg_clipfrac": 0.1}, "clipped tokens", "gradient norm"),
        ({"actor__ppo_kl": 0.0, "actor__pg_clipfrac": 0.0}, "KL to reference", "gradient norm"),
        ({"stale": 0.0, "actor__ppo_kl": 0.1}, "policy drift (ppo_kl)", "gradient norm"),
        ({"stale": 1.5, "actor__ppo_kl": 0.1}, "staleness", "gradient norm"),
        ({"stale": 1.5, "actor__kl_loss": 0.1}, "KL to reference", "staleness"),
    ],
)
def test_the_figures_are_those_that_the_algorithm_has(make, logged, second, last):
    stale = {"training__off_policy__trajectory_staleness__mean": logged.pop("stale", 0.0)}
    figures = charts(store(make.made_up(3, actor__pg_loss=0.1, **stale, **logged)))
    assert (figures[1].title, figures[-1].title) == (second, last)
    assert len(figures) == 6


def validated(make, reward, validations):
    """The points and the headline of a run with these validation scores."""
    made = SeriesStore()
    for step, value in enumerate(reward, 1):
        scores = {key: found[step] for key, found in validations.items() if step in found}
        made.add(StepRecord(step, step, None, {"critic/score/mean": value, **scores}))
    shown = plot(REWARD, made, make.running(), [])
    points = [curve.points for curve in shown.curves if curve.points_only]
    return [pair for each in points for pair in zip(each.steps, each.values, strict=True)], said(shown)


MATH, ASIDE = "val-core/math/acc/mean@1", ("val-core/math/acc/best@4/mean", "val-aux/math/acc/mean@1")
LOSSES = [-1.0, -0.5, 0.0]


@pytest.mark.parametrize(
    ("reward", "validations", "points", "told"),
    [
        ([0.1, 0.2, 0.3], {OLD: {1: 0.15, 3: 0.4}}, [(1, 0.15), (3, 0.4)], "○ val 0.400"),
        ([0.1, 0.2, 0.3], {NEW: {1: 0.15, 3: 0.4}}, [(1, 0.15), (3, 0.4)], "○ val 0.400"),
        (
            [0.1, 0.2],  # several data sources are one mean
            {NEW: {1: 0.2, 2: 0.3}, MATH: {1: 0.4}, ASIDE[0]: {1: 9.0}, ASIDE[1]: {1: 9.0}},
            [(1, pytest.approx(0.3)), (2, 0.3)],
            "○ val 0.300",
        ),
        (LOSSES, {NEW: {2: 62.5}}, [], "○ val 62.5"),  # another scale: told, but not drawn
        (LOSSES, {NEW: {2: 0.5}}, [(2, 0.5)], "○ val 0.500"),
        ([0.1, 0.2], {NEW: {1: math.nan}}, [], ""),
        ([0.1, 0.2], {}, [], ""),
    ],
)
def test_validations_are_points_and_the_last_one_is_told(make, reward, validations, points, told):
    found, line = validated(make, reward, validations)
    assert found == points and line.endswith(told) and ("val" in line) == bool(told)
