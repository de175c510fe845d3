"""The way of a batch, against veRL's own formulas and the tutorials' numbers."""

import operator
from pathlib import Path

import pytest
from drafted import of_draft
from tables import tabled

from launcher.preset import effective
from launcher.preset.field_values import where_of
from launcher.preset.files import load
from launcher.preset.flow import flow, rows_of


@tabled
def test_the_way_of_a_batch(preset, rows, settings, expected):
    if preset:
        config = effective.of_draft(load(preset, [f"{name}={value}" for name, value in settings.items()]).layer)
    else:
        config = of_draft({where_of(name): value for name, value in settings.items()})
    found = flow(config, rows)
    assert {name: operator.attrgetter(name)(found) for name in expected} == expected


def test_rows_are_read_from_the_end_of_the_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name, count in (("a", 3), ("b", 4)):
        parquet.write_table(pyarrow.table({"x": list(range(count))}), tmp_path / f"{name}.parquet")
    assert rows_of([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]) == 7
    assert rows_of(str(tmp_path / "none.parquet")) is None and rows_of(None) is None
    (tmp_path / "bad.parquet").write_text("no")
    assert rows_of(str(tmp_path / "bad.parquet")) is None
