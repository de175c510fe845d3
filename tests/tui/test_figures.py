"""What the charts say: value, trend, context, marks, and why there is nothing to see."""

import math
from types import SimpleNamespace

import pytest

from launcher.metrics.names import FEW, charts
from launcher.metrics.records import StepRecord
from launcher.metrics.store import SeriesStore
from launcher.record.check import Bound, Check
from launcher.record.events import Action, Event, PhaseChange
from launcher.record.levels import Level
from launcher.runs.watch.history import kept_rises
from tui.kit.charts.figures import headline, legend, plot, trend
from tui.kit.charts.run_charts import check_plot
from tui.kit.drawing.line_chart import draw

REWARD, KL, ENTROPY, THROUGHPUT, LENGTH, _ = charts()


def store(records: list[StepRecord], attempt: int = 1) -> SeriesStore:
    made = SeriesStore()
    for record in records:
        made.add(record, attempt)
    return made


def said(shown: object) -> str:
    return " ".join("".join(text for text, _ in part) for part in shown.headline)  # type: ignore[attr-defined]


def test_a_real_run_is_told_in_figures(make: SimpleNamespace) -> None:
    steps = store(make.recorded())
    state = make.running(step=80)
    assert [said(plot(figure, steps, state, [])) for figure in charts()[:FEW]] == [
        "0.812 ↑ best 0.875 ○ val 0.850",
        "0.308   usual 0.202",
        "0.236 ↓ start 0.499",
        "1119   usual 1001",
    ]


@pytest.mark.parametrize(("gpus", "context"), [(1, "usual 461"), (2, "× 2 GPUs"), (8, "× 8 GPUs")])
def test_the_throughput_of_one_gpu_is_told_with_their_number(make: SimpleNamespace, gpus: int, context: str) -> None:
    logged = {"perf__throughput": 461.0, "perf__time_per_step": 11.0}
    steps = store(make.made_up(3, perf__total_num_tokens=461 * 11 * gpus, **logged))
    assert said(plot(THROUGHPUT, steps, make.running(), [])) == f"461   {context}"
    assert said(plot(THROUGHPUT, store(make.made_up(3, **logged)), make.running(), [])).endswith("usual 461")


def test_kl_is_the_penalty_in_the_reward_first_then_the_loss(make: SimpleNamespace) -> None:
    both = store(make.made_up(3, actor__kl_loss=0.1, actor__reward_kl_penalty=0.2))
    assert plot(KL, both, make.running(), []).curves[0].points.values[0] == 0.2
    loss = store(make.made_up(3, actor__kl_loss=0.1))
    assert plot(KL, loss, make.running(), []).curves[0].points.values[0] == 0.1


def test_the_chart_says_the_same_usual_as_the_check(make: SimpleNamespace) -> None:
    steps = store(make.recorded())
    found = steps.first_of(*KL.keys)
    assert found is not None
    checks = (Check("KL-1", keys=(found[0],), usual=0.048),)
    assert said(plot(KL, steps, make.running(step=80, checks=checks), [])) == "0.308   usual 0.048"


def test_a_run_without_kl_says_so(make: SimpleNamespace) -> None:
    shown = plot(KL, store(make.made_up(3, actor__pg_loss=0.1)), make.running(), [])
    assert shown.curves == []
    assert shown.note == "no KL logged"  # which keys would show it is the advice of KL-0


def test_before_the_first_step_no_figure_is_called_missing(make: SimpleNamespace) -> None:
    assert plot(KL, store([]), make.running(state="starting"), []).note == "no step yet"
    assert plot(KL, store([]), make.ended("failed"), []).note == "no step finished"


def test_a_limit_says_which_side_of_it_is_bad(make: SimpleNamespace) -> None:
    bounds = [Bound(level=Level.WARN, side="<", value=-0.05), Bound(level=Level.NOTICE, side=">=", value=0.5)]
    steps = store(make.made_up(3, actor__reward_kl_penalty=0.1))
    shown = plot(KL, steps, make.running(), [], bounds={"actor/reward_kl_penalty": bounds})
    assert [limit.label for limit in shown.limits] == ["WARN < -0.050", "NOTICE ≥ 0.500"]


def test_a_limit_far_from_the_curve_is_named_at_its_edge_and_does_not_flatten_it() -> None:
    values = [0.0, 1.0, 0.5, 1.0, 0.0]
    steps = store([StepRecord(step, 0.0, None, {"actor/kl_loss": x}) for step, x in enumerate(values, 1)])
    near, far = Bound(Level.NOTICE, ">", 1.6), Bound(Level.WARN, ">", 2.5)
    shown = check_plot("actor/kl_loss", steps, 5, [near, far], [])
    assert [(limit.label, limit.reach) for limit in shown.limits] == [("WARN > 2.50", False), ("NOTICE > 1.60", True)]
    lines = ["".join(text for text, _ in row) for row in draw(shown, 60, 16)]
    assert "↑ WARN > 2.50" in lines[1] and "2.5│" not in "".join(lines)
    assert any("NOTICE > 1.60 ╌" in line for line in lines)


def test_the_longest_answers_are_told_with_their_share(make: SimpleNamespace) -> None:
    def told(share: float) -> str:
        lengths = {"response_length__mean": 229.0, "response_length__max": 256.0}
        steps = store(make.made_up(3, **lengths, response_length__clip_ratio=share))
        return said(plot(LENGTH, steps, make.running(), [])).split("  ")[-1].strip()

    assert [told(share) for share in (0.004, 0.71875)] == ["longest 256 (0.400 %)", "longest 256 (72 %)"]


def test_the_axis_ends_at_the_planned_steps_where_they_are_near(make: SimpleNamespace) -> None:
    steps = store(make.recorded(30))
    assert plot(REWARD, steps, make.running(total=34), []).last == 34
    assert plot(REWARD, store(make.recorded(31)), make.running(total=1160), []).last == 35
    assert plot(REWARD, store(make.recorded(31)), make.running(total=None), []).last == 35


def test_the_axis_of_a_run_that_ended_ends_at_its_last_step(make: SimpleNamespace) -> None:
    assert plot(REWARD, store(make.recorded(26)), make.ended("stopped", total=640), []).last == 26


def test_a_nan_now_is_shouted_and_the_rest_stays(make: SimpleNamespace) -> None:
    steps = store(make.made_up(5, actor__entropy=lambda step: math.nan if step == 5 else 0.4))
    series = steps.get("actor/entropy")
    assert series is not None
    assert headline(ENTROPY, series, steps) == [[("✖ nan", "critical")], [("start 0.400", "dim")]]
    lost = store(make.made_up(5, perf__throughput=math.nan))
    assert said(plot(THROUGHPUT, lost, make.running(), [])) == "✖ nan"


def test_trend_needs_six_values_and_ignores_noise() -> None:
    assert trend([1.0, 2.0, 3.0, 4.0, 5.0]) == ""
    assert trend([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == "↑"
    assert trend([float(i) for i in range(20)]) == "↑"
    assert trend([-float(i) for i in range(20)]) == "↓"
    assert trend([(-1.0) ** i for i in range(20)]) == ""
    assert trend([0.5] * 20) == ""


def test_rises_are_marked_on_their_own_chart_and_releases_are_not(make: SimpleNamespace) -> None:
    events = [
        make.rise(10, "KL-4", "WARN", ""),
        make.rise(20, "KL-4", "OK", "", before="WARN"),
        make.rise(30, "ENT-1", "CRITICAL", ""),
        Event(make.start + 40, PhaseChange("save", 40)),
    ]
    steps = store(make.recorded(62))
    assert [(mark.step, mark.sign) for mark in plot(KL, steps, make.running(), kept_rises(events)).marks] == [(10, "▲")]
    assert [(mark.step, mark.role) for mark in plot(ENTROPY, steps, make.running(), kept_rises(events)).marks] == [
        (30, "critical")
    ]
    events.append(Event(make.start + 50, Action("resume", step=25)))  # step 30 is trained again
    assert plot(ENTROPY, steps, make.running(), kept_rises(events)).marks == []


def test_an_attempt_leaves_a_seam(make: SimpleNamespace) -> None:
    steps = store(make.recorded(20))
    for record in make.recorded(30)[16:]:
        steps.add(record, 2)
    assert (16, "┊") in [(mark.step, mark.sign) for mark in plot(REWARD, steps, make.running(), []).marks]
    assert [(mark.step, mark.sign) for mark in plot(KL, steps, make.running(), []).marks] == [(16, "┊")]


def test_checkpoints_that_are_gone_lose_their_marks(make: SimpleNamespace) -> None:
    steps = store(make.made_up(4, timing_s__save_checkpoint=1.0, critic__score__mean=0.5))

    def marked(kept: list[int] | None) -> list[int]:
        drawn = plot(REWARD, steps, make.running(), [], kept=kept)
        return [mark.step for mark in drawn.marks if mark.what == "checkpoint"]

    assert marked([3, 4]) == [3, 4] and marked([]) == []
    assert marked(None) == [1, 2, 3, 4], "of a log from elsewhere nobody can tell"


def test_one_legend_explains_the_marks_that_occur(make: SimpleNamespace) -> None:
    assert legend([]) == []
    found = plot(
        REWARD, store(make.recorded(62)), make.running(), kept_rises([make.rise(10, "REW-1", "WARN", "")])
    ).marks
    assert "".join(text for text, _ in legend(found)).split() == ["▲", "flag", "○", "validation"]


def test_the_title_carries_the_worst_flag_about_its_figure(make: SimpleNamespace) -> None:
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
def test_the_figures_are_those_that_the_algorithm_has(
    make: SimpleNamespace, logged: dict[str, float], second: str, last: str
) -> None:
    stale = {"training__off_policy__trajectory_staleness__mean": logged.pop("stale", 0.0)}
    figures = charts(store(make.made_up(3, actor__pg_loss=0.1, **stale, **logged)))
    assert (figures[1].title, figures[-1].title) == (second, last)
    assert len(figures) == 6
