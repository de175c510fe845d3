"""Where the time of a step goes."""

import gzip
import json
import math
from pathlib import Path

import pytest

from launcher.metrics.records import StepRecord, read_metrics
from launcher.metrics.store import SeriesStore
from launcher.metrics.timing import last_split, usual_split
from launcher.timing.stages import STAGES
from tui.kit.drawing.rows import width
from tui.pages.dashboard.timing_split import TimingSplit

LOGS = Path(__file__).parent.parent / "data" / "logs"


def store_of(name: str) -> SeriesStore:
    store = SeriesStore()
    for line in gzip.decompress((LOGS / f"{name}.jsonl.gz").read_bytes()).splitlines():
        row = json.loads(line)
        store.add(StepRecord(row["step"], float(row["step"]), None, read_metrics(row["data"])))
    return store


def drawn(store: SeriesStore, columns: int, rows: int) -> list[str]:
    widget = TimingSplit()
    widget.last, widget.usual = last_split(store), usual_split(store)
    lines = widget.draw(columns, rows)
    assert all(width(line) <= max(columns, 50) for line in lines)
    return ["".join(text for text, _ in line) for line in lines]


@pytest.mark.parametrize("name", ["learning", "grpo", "two-gpus", "cpu-toy", "kl-blowup"])
def test_the_parts_of_a_real_step_make_up_the_whole(name: str) -> None:
    store = store_of(name)
    split, usual = last_split(store), usual_split(store)
    assert split is not None and usual is not None
    whole = store.get("timing_s/step")
    assert whole is not None and split.seconds == pytest.approx(whole.values[-1])
    assert sum(split.share(part) for part in split.parts) == pytest.approx(1)
    assert (split.parts["critic"] == 0) is (name == "grpo")
    assert 0.3 < usual.seconds / split.seconds < 3


def test_bars_share_a_scale_and_parts_are_told_apart_without_colour() -> None:
    legend, last, usual = drawn(store_of("learning"), 150, 3)
    split = last_split(store_of("learning"))
    assert split is not None
    for part in ("rollout", "log-prob", "reference", "critic", "update", "other"):
        assert part in STAGES
        assert part in legend and f"{split.share(part):.0%}"[:-1] in legend
    room = 60  # cells at most
    assert last.count("▒") == pytest.approx(split.share("rollout") * room * split.seconds / split.seconds, abs=2)
    assert max(len(last.rstrip()), len(usual.rstrip())) == pytest.approx(len(" last step  17.8 s ") + room, abs=2)
    assert {"▒", "▌", "╌", "━", "▓", "·"} <= set(last)


@pytest.mark.parametrize("columns", [1, 20, 40, 60, 80, 160])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 5])
def test_any_size_will_do(columns: int, rows: int) -> None:
    assert len(drawn(store_of("learning"), columns, rows)) <= rows


def test_without_times_there_is_nothing_and_odd_ones_do_no_harm() -> None:
    store = SeriesStore()
    assert last_split(store) is None and drawn(store, 80, 3) == []
    store.add(StepRecord(0, 1.0, None, {"timing_s/testing": 9.0}))
    store.add(StepRecord(1, 2.0, None, {"timing_s/step": float("nan"), "timing_s/gen": 1.0}))
    assert last_split(store) is None
    odd = SeriesStore()
    odd.add(StepRecord(2, 3.0, None, {"perf/time_per_step": 1.0, "timing_s/gen": 4.0, "timing_s/ref": math.inf}))
    split = last_split(odd)
    assert split is not None and split.parts["other"] == 0 and split.share("rollout") == 1


def test_waiting_with_lent_gpus_is_generation() -> None:
    store = SeriesStore()
    data = {"timing_s/step": 10.0, "timing_s/gen": 1.0, "timing_s/switch_wait": 4.0, "timing_s/update_actor": 2.0}
    store.add(StepRecord(1, 1.0, None, data))
    split = last_split(store)
    assert split is not None and split.parts["rollout"] == 5.0 and split.parts["other"] == 3.0
