import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tabled

from launcher.core.format import duration, gib, number, remaining, roughly


@tabled
def test_figures_as_people_read_them(value: float | None, text: str) -> None:
    assert number(value) == text


@given(st.floats())
def test_a_figure_fits_a_narrow_column_and_is_nearly_the_value(value: float) -> None:
    text = number(value)
    assert len(text) <= 9
    if abs(value) < 1e308 and text[-1] not in "kMG" and abs(value) >= 1e-3:
        assert float(text) == pytest.approx(value, rel=0.5 if abs(value) < 0.01 else 0.06)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (math.inf, "–"), (-3, "0s"), (45.4, "45s"), (192, "3m 12s"), (7500, "2h 05m"), (273600, "3d 4h")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_gib() -> None:
    assert gib(38.14 * 2**30) == "38.1" and gib(None) == "–"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (44.6, "45s"), (64, "1m 00s"), (398, "6m 40s"), (1074, "18m"), (3599, "1h 00m"), (13440, "3h 44m")],
)
def test_estimates_are_rounded(seconds: float | None, text: str) -> None:
    assert roughly(seconds) == text


def test_the_end_has_its_clock_time_and_day() -> None:
    now = time.time()
    assert remaining(0.0) == "all steps done"
    assert remaining(38.0) == "ETA 38s" == remaining(38.0, now - 60), "a time that is over is not shown"
    assert re.fullmatch(r"ETA 2m 00s, done (\w{3} )?\d\d:\d\d", remaining(120.0, now + 120))
    clock = time.strftime("%H:%M", time.localtime(now + 3 * 86400))
    assert re.fullmatch(rf"ETA 3d 0h, done \w{{3}} {clock}", remaining(3 * 86400, now + 3 * 86400))
    assert re.fullmatch(r"ETA 20d 0h, done \w{3} \d+, \d\d:\d\d", remaining(20 * 86400, now + 20 * 86400))
