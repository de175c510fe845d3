"""All metrics: the table, the filter, the large chart, what is pinned to the dashboard, and the keys of all charts."""

import math

import pytest
from pilots import words

from launcher.core.format import number
from launcher.core.paths import layout_file
from launcher.metrics.names import pinned, toggle

LARGE = (160, 48)
PINS = ["actor/entropy", "actor/grad_norm"]


def table(user):
    return user.drawn("MetricTable").splitlines()


def facts(user, name="#facts"):
    return words(user.one(name).draw(*user.one(name).size))


def titles(user):
    return [chart.plot.title for chart in user.screen.query("MetricChart") if chart.region.area]


def charts(user):
    """What every visible chart shows."""
    return [words(chart.draw(*chart.size)) for chart in user.screen.query("MetricChart") if chart.region.area]


async def test_every_metric_is_listed_found_charted_and_followed(make, warned):
    async with make.open(warned) as user:
        await user("m", "MetricsScreen")
        assert user.one("MetricTable").cursor == user.screen.reader.state.checks[0].keys[0], "of the first flag"
        await user("home")
        listed, keys = user.one("MetricTable"), user.screen.reader.series.keys()
        assert list(listed.keys) == keys and len(keys) > 80 and f"metric ({len(keys)})" in facts(user, "#heads")
        values = user.screen.reader.series.get("actor/entropy").values
        first = table(user)[0]
        assert first.startswith("❯ actor/entropy") and " nats " in first and any("⠀" < sign <= "⣿" for sign in first)
        assert number(min(values)) in first and number(max(values)) in first
        assert "uncertainty of the policy per token" in facts(user, "#meaning")
        await user("end")
        assert listed.cursor == keys[-1] and table(user)[-1].startswith("❯") and keys[-1] in facts(user, "#meaning")
        record = make.recorded(63)[-1]
        record.data["zebra"] = 7.0
        with (warned / "attempts/1/steps.jsonl").open("ab") as file:
            file.write(record.to_line())
        await user(lambda: listed.keys[-1] == "zebra")
        assert listed.cursor == keys[-1]
        await user("home", "down", "slash", *"agn", lambda: listed.cursor == "actor/grad_norm", "enter", "enter")
        await user("MetricScreen")
        assert titles(user) == ["actor/grad_norm"]
        await user("escape", "escape", "MetricsScreen")
        assert listed.has_focus and user.one("Input").value == "" and len(listed.keys) > 80
        await user("slash", *"perplexity")  # units and meanings are searched
        assert listed.keys and all(key.startswith("rollout_corr/") for key in listed.keys)
        user.one("Input").value = ""
        await user("t", "o", "k", "slash", "s", lambda: listed.cursor == "perf/throughput", *" qqqq")
        assert "None matches the filter" in user.drawn("MetricTable")
        await user("enter", "p", "enter", "MetricsScreen")  # nothing is chosen: nothing happens
        assert pinned() == []
        page = user.screen
        await user("escape", "escape", "DashboardScreen")
        assert await user.app.run_action("filter", page)  # from a menu, too late


async def test_the_large_chart_tells_its_figures_also_where_none_is_finite(make):
    figures = {"actor__loss": lambda step: math.nan if step == 30 else step / 4, "mine": 1}
    steps = make.made_up(30, actor__grad_norm=math.nan, actor__inf=math.inf, **figures)
    for record in steps:
        record.data["mine\x1b[31m\nred"] = 1.0
    async with make.open(make.run(attempts=[steps])) as user:
        await user("m", "home")
        rows = {row.replace("❯", "").split()[0]: row.replace("❯", "").split()[1:] for row in table(user)}
        assert len(table(user)) == 5 and rows["actor/grad_norm"] == ["nan"] and rows["actor/inf"] == ["inf"]
        await user("enter")
        assert "no finite value yet" in user.drawn("MetricChart")
        await user("down", "down")
        shown = facts(user)
        assert "now nan" in shown and "lowest 0.250" in shown and "highest 7.25" in shown
        assert "steps 1 to 30, 30 values" in shown and "total loss of the actor" in shown
        await user("down")
        assert titles(user) == ["mine"] and "logged by veRL or your reward function" in facts(user)
        await user("down")
        assert "\x1b" not in user.drawn("MetricChart")
        await user("escape", "p")
        assert "\x1b" not in user.drawn("MetricTable") + facts(user, "#meaning")


async def test_a_pin_is_a_chart_on_every_dashboard(make, warned):
    async with make.open(warned, size=LARGE) as user:
        assert len(titles(user)) == 6
        await user("m", "MetricsScreen", "home", "p", "down", "enter", "MetricScreen", "p", "escape", "MetricsScreen")
        await user("escape")
        await user("DashboardScreen", "left")
        assert pinned() == PINS == titles(user)[6:]
        assert "at 62:" in charts(user)[-1]
    toggle("actor/kl_loss")
    async with make.open(warned, size=LARGE) as user:
        assert titles(user)[6:] == [*PINS, "actor/kl_loss"]
        pin = charts(user)[-1]
        assert pin.lstrip().startswith("▲ actor/kl_loss") and "▲" in pin.splitlines()[-1]  # where it rose
        await user("m", "home")
        assert table(user)[0].startswith("❯★actor/entropy")
        await user("p", "escape")
        assert titles(user)[6:] == ["actor/grad_norm", "actor/kl_loss"]
        layout_file().unlink()
        layout_file().mkdir(parents=True)
        await user("m", "p", lambda: "Cannot save the layout" in user.message)


async def test_at_home_size_tab_turns_to_the_pins_which_survive_every_size(make, warned):
    pins = ["critic/vf_loss", "not/logged", "training/off_policy/trajectory_staleness/mean"]
    async with make.open(warned) as user:
        await user("tab")
        four = titles(user)
        assert len(four) == 4  # nothing is pinned: tab does nothing
        for key in pins:
            toggle(key)
        await user("m", "escape")
        assert titles(user) == four
        await user("tab")
        assert titles(user)[:2] == pins[:2] and len(titles(user)) == 3
        shown = user.screen.query("PinnedCharts").first().query("MetricChart")
        assert "not logged" in words(shown[1].draw(*shown[1].size)) and "…" in words(shown[2].draw(*shown[2].size))
        assert words(shown[2].draw(*shown[2].size)).splitlines()[0].rstrip().endswith(" 0")
        for page in ("DashboardScreen", "MetricsScreen"):
            for size in ((20, 5), (29, 40), (40, 12), (60, 20), (100, 48), LARGE, (250, 80), (80, 24)):
                await user.resize_terminal(*size)
                await user(page)
            if page == "DashboardScreen":
                assert titles(user)[:2] == pins[:2]
                await user("tab")
                assert titles(user) == four
                await user("m")
        await user.resize_terminal(250, 80)
        await user()
        assert "★critic/vf_loss" in user.drawn("MetricTable")


@pytest.mark.parametrize("size", [(80, 24), LARGE])
def test_the_table_looks(shot, make, warned, size):
    toggle("critic/score/mean")
    assert shot(make.app(warned), "m", "slash", *"mean", "enter", "down", size=size)


@pytest.mark.parametrize("size", [(80, 24), LARGE])
def test_the_large_chart_looks(shot, make, warned, size):
    assert shot(make.app(warned), "m", "enter", size=size)


def test_pins_look(shot, make, warned):
    for key in ("actor/grad_norm", "critic/vf_explained_var", "response_length/mean", "timing_s/gen"):
        toggle(key)
    assert shot(make.app(warned), "tab")


def test_the_table_in_ascii(shot, make, warned):
    assert shot(make.app(warned, ascii=True), "m")
