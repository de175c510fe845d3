"""Comma-separated values: one row a step; an empty cell where a step lacks a figure."""

import csv
import io

from launcher.export.table import Table


def render(table: Table) -> bytes:
    """The file, with all digits of the figures; nan and infinities are `nan`, `inf`, `-inf`."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", "attempt", *table.keys])
    for attempt, record in table.rows:
        writer.writerow([record.step, attempt, *(record.data.get(key, "") for key in table.keys)])
    return text.getvalue().encode()
