"""Parquet: integers `step` and `attempt`, a double a figure; null where a step lacks it, nan stays nan."""

from launcher.errors import UserError
from launcher.export.table import Table


def render(table: Table) -> bytes:
    """The file. UserError without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(
            "parquet needs the package pyarrow, which comes with veRL: install ppo-tui[cpu] or ppo-tui[gpu], "
            "or export to .csv"
        ) from None
    columns = {
        "step": pa.array([record.step for _, record in table.rows], pa.int64()),
        "attempt": pa.array([attempt for attempt, _ in table.rows], pa.int64()),
    }
    for key in table.keys:
        columns[key] = pa.array([record.data.get(key) for _, record in table.rows], pa.float64())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
