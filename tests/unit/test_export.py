"""Exports of real logs, read back by the tools they are for."""

import csv
import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from launcher.core.errors import UserError
from launcher.export import svg
from launcher.export.formats import Table, collect, destination, export, picture, tensorboard
from launcher.metrics.records import StepRecord
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs
from launcher.runs.watch.log import resolve
from launcher.runs.watch.steps import steps

LOGS = Path(__file__).parents[1] / "data" / "logs"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))


def imported(*names: str) -> RunDir:
    (run,) = import_logs([str(LOGS / f"{name}.log.gz") for name in names])
    return run


def same(a: float | None, b: float | None) -> bool:
    return a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b))


@pytest.mark.slow
@pytest.mark.parametrize("names", [("nan",), ("learning", "resume")])
def test_csv_jsonl_and_parquet_hold_every_digit_of_every_step(tmp_path: Path, names: tuple[str, ...]) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    run = imported(*names)
    expected = [(attempt, record.step, record.data) for attempt, record in steps(run)]
    keys = sorted({key for _, _, data in expected for key in data})

    with export(run, str(tmp_path / "x.csv")).open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = export(run, str(tmp_path / "x.jsonl")).read_text().splitlines()
    objects = [json.loads(line) for line in lines]
    table = pq.read_table(export(run, str(tmp_path / "x.parquet")))
    assert list(rows[0]) == ["step", "attempt", *keys] == table.column_names
    parquet = table.to_pylist()
    assert len(rows) == len(objects) == len(parquet) == len(expected) > 0

    for (attempt, step, data), row, found, column in zip(expected, rows, objects, parquet, strict=True):
        assert (row["step"], row["attempt"]) == (str(step), str(attempt))
        assert (found["step"], found["attempt"]) == (column["step"], column["attempt"]) == (step, attempt)
        assert found.keys() == {"step", "attempt", *data}
        for key in keys:
            value = data.get(key)
            assert same(float(row[key]) if row[key] else None, value), (step, key)
            assert same(column[key], value), (step, key)
            assert value is None or same(float(found[key]), value), (step, key)


def test_values_that_are_not_finite_are_words(tmp_path: Path) -> None:
    log = resolve(str(LOGS / "nan.log.gz"))
    keys = ("rollout_corr/training_ppl", "rollout_corr/kl")
    text = export(log, str(tmp_path / "x.csv"), keys).read_text().splitlines()
    assert text[0] == "step,attempt,rollout_corr/training_ppl,rollout_corr/kl"
    assert text[2] == "2,1,inf,nan"
    assert '"rollout_corr/training_ppl":"inf"' in export(log, str(tmp_path / "x.jsonl"), keys).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("to", ["x.tfevents", "folder/", "folder", "folder/events.out.tfevents.17.host"])
def test_tensorboards_own_reader_finds_all_scalars(tmp_path: Path, to: str) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = imported("learning", "resume")
    (tmp_path / "folder").mkdir()
    target = str(tmp_path / to) + ("/" if to.endswith("/") else "")
    written = export(run, target)
    where = tmp_path / "folder" if to.startswith("folder") else written
    events = accumulator.EventAccumulator(str(where), size_guidance={accumulator.SCALARS: 0})
    events.Reload()

    joined = collect(run, ()).joined()
    assert events.Tags()["scalars"] and set(events.Tags()["scalars"]) == set(joined.keys())
    for key in joined.keys():  # noqa: SIM118 - a store is no mapping
        series, scalars = joined.get(key), events.Scalars(key)
        assert series is not None and [scalar.step for scalar in scalars] == list(series.steps)
        for scalar, value in zip(scalars, series.values, strict=True):
            assert scalar.value == pytest.approx(value, rel=1e-6, abs=1e-30, nan_ok=True), key
    times = [scalar.wall_time for scalar in events.Scalars("critic/score/mean")]
    assert times == sorted(times) and times[0] > 1.6e9


def test_a_bare_logs_events_have_times(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    rows = collect(resolve(str(LOGS / "learning.log.gz")), ()).rows
    times = [record.t for _, record in rows]
    assert times[0] > 1.6e9 and times == sorted(set(times))


def test_what_32_bits_cannot_hold_is_infinite_in_tensorboard() -> None:
    pytest.importorskip("tensorboard")
    content = tensorboard(Table("x", ["a"], False, [(1, StepRecord(1, 1.0, None, {"a": 1e300}))]))
    assert b"\x00\x00\x80\x7f" in content  # infinity as a 32-bit float


def test_without_tensorboard_or_pyarrow_the_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tensorboard.compat.proto.event_pb2", "pyarrow"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    log = resolve(str(LOGS / "nan.log.gz"))
    with pytest.raises(UserError, match="pip install tensorboard"):
        export(log, str(tmp_path / "x.tfevents"))
    with pytest.raises(UserError, match="pip install pyarrow"):
        export(log, str(tmp_path / "x.parquet"))
    assert not list(tmp_path.glob("*x.*"))


def test_two_runs_do_not_share_a_tensorboard_folder(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.host.2.0").touch()
    with pytest.raises(UserError, match="another run"):
        destination(str(tmp_path))


def test_a_log_is_not_written_over_by_its_own_export(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"step":1,"data":{"actor/entropy":1.0}}\n')
    (tmp_path / "link.jsonl").symlink_to(log)
    before = log.read_text()
    for name in ("metrics.jsonl", "link.jsonl"):
        with pytest.raises(UserError, match="the log itself"):
            export(resolve(str(log)), str(tmp_path / name), force=True)
    assert log.read_text() == before


def charts(table: Table) -> dict[str, list[list[tuple[float, float]]]]:
    """Title -> the stretches of its curve, in pixels."""
    root = ElementTree.fromstring(picture(table))
    found = {}
    for group in root.iter(f"{SVG}g"):
        title = group.find(f"{SVG}text")
        assert title is not None and title.text
        paths = [path.get("d", "") for path in group.iter(f"{SVG}path")]
        found[title.text] = [
            [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+),([-\d.]+)", d)] for d in paths
        ]
    return found


def made(values: list[float], key: str = "critic/score/mean", seam: int | None = None) -> Table:
    """One figure from step 1 on."""
    rows = [
        (1 + (seam is not None and step >= seam), StepRecord(step, 0.0, None, {key: value}))
        for step, value in enumerate(values, 1)
    ]
    return Table("a <b> & c", [key], False, rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu-toy", "kl-blowup", "grpo", "nan"])
def test_the_four_charts_of_a_real_run_are_drawn_from_all_its_steps(name: str) -> None:
    table = collect(imported(name), ())
    drawn = charts(table)
    assert list(drawn) == ["reward", "KL to reference, nats", "entropy, nats", "throughput, tok/s"]
    score = table.joined().get("critic/score/mean")
    assert score is not None and [len(part) for part in drawn["reward"]] == [len(score)]


def test_chosen_figures_get_a_chart_each() -> None:
    keys = ("actor/grad_norm", "critic/vf_loss", "actor/lr")
    drawn = charts(collect(imported("learning"), keys))
    assert tuple(drawn) == keys and all(drawn.values())


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_leaves_a_gap(gap: float) -> None:
    first, dot, last = charts(made([1.0, 2.0, gap, 3.0, gap, gap, 2.0, 1.0]))["reward"]
    assert len(first) == len(last) == 2 and first[1][0] < dot[0][0] < last[0][0]
    assert len(dot) == 2 and dot[0] == dot[1]  # a single value is a dot


def test_many_steps_keep_their_spike_and_their_gap() -> None:
    values = [math.nan if 1000 < step < 2000 else 0.5 + 0.1 * (step % 2) for step in range(5000)]
    values[4321] = 9.0
    before, after = charts(made(values))["reward"]
    assert len(before) + len(after) <= 2 * svg._PLOT_WIDTH
    peak = min(after, key=lambda point: point[1])
    assert peak[0] == pytest.approx(svg._LEFT + svg._PLOT_WIDTH * 4321 / 5000, abs=2)
    assert peak[1] < min(y for _, y in before) - 100


@pytest.mark.parametrize(
    "values", [[0.0], [5.0] * 3, [1e308, -1e308], [5e-324, 0.0], [1e16, 1e16 + 2], [-3e-9, 2e-9], [1e300] * 2]
)
def test_any_finite_values_stay_inside_the_chart(values: list[float]) -> None:
    for part in charts(made(values))["reward"]:
        for x, y in part:
            assert svg._LEFT <= x <= svg._WIDTH - svg._RIGHT
            assert svg._TOP <= y <= svg._HEIGHT - svg._BOTTOM


@given(st.floats(-1e30, 1e30), st.floats(-1e-2, 1e-2))
@example(11.62352, 5e-5)
def test_the_labels_of_an_axis_differ(value: float, share: float) -> None:
    drawn = picture(made([value, value * (1 + share)])).decode()
    labels = re.findall(rf'x="{svg._LEFT - 6}"[^>]*>([^<]+)<', drawn)
    assert 2 <= len(labels) == len(set(labels)) <= 7


def test_a_run_without_a_figure_says_so_and_names_are_escaped() -> None:
    drawn = picture(made([math.nan], seam=None)).decode()
    assert "no finite value" in drawn and drawn.count("not logged in this run") == 3
    assert "a &lt;b&gt; &amp; c" in drawn


def test_a_resumed_attempt_is_marked() -> None:
    assert b'class="seam"' in picture(made([1.0] * 6, seam=4))
    assert b'class="seam"' not in picture(made([1.0] * 6))


def test_a_name_with_a_terminals_escapes_is_no_figure(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"step":1,"data":{"actor/entropy":1.0,"\\u001b[2Jx":2.0,"step":7,"\\ud800":1}}\n')
    assert export(resolve(str(log)), str(tmp_path / "x.csv")).read_text() == ("step,attempt,actor/entropy\n1,1,1.0\n")
