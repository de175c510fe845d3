"""How the dashboard shares its rows: charts come first, an empty log takes none."""

import pytest

from tui.pages.dashboard.room import CHART, SHARES, TIMING, share


@pytest.mark.parametrize("height", SHARES)
@pytest.mark.parametrize("lines", [0, 1, 9])
def test_more_rows_never_take_rows_from_the_charts(height: str, lines: int) -> None:
    left = []
    for free in range(10, 60):
        found = share(SHARES[height], free, 2, lines=lines, timed=True)
        left.append(free - found.checks - found.log - TIMING * found.timing)
        assert found.log <= max(lines, 1) and found.checks >= 1
    assert all(rows >= min(left[-1], 2 * CHART) for rows in left[20:])


def test_charts_get_their_rows_before_air_log_and_checks() -> None:
    roomy = share(SHARES["-tall"], 41, 2, lines=6, timed=True)
    assert roomy == SHARES["-tall"][0]
    crowded = share(SHARES["-tall"], 25, 3, lines=6, timed=True)
    assert not crowded.air and 25 - crowded.checks - crowded.log - TIMING * crowded.timing >= 3 * CHART
    assert share(SHARES["-tall"], 29, 2, lines=0, timed=False).log == 1
    assert share(SHARES["-home"], 18, 2, lines=9, timed=False) == SHARES["-home"][0]
    assert share(SHARES["-home"], 15, 2, lines=9, timed=False).checks == 2
