"""JSON lines: one object a step, as `ppo-tui metrics --json` prints them."""

import orjson

from launcher.export.table import Table
from launcher.metrics.records import jsonable


def render(table: Table) -> bytes:
    """The file; a step's object lacks the figures that the step lacks."""
    return b"".join(
        orjson.dumps(
            {
                "step": record.step,
                "attempt": attempt,
                **jsonable({key: record.data[key] for key in table.keys if key in record.data}),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for attempt, record in table.rows
    )
