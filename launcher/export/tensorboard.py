"""TensorBoard's event file: one scalar a figure, as veRL's own TensorBoard logger would have written them."""

import io

from launcher.errors import UserError
from launcher.export.table import Table

VERSION = "brain.Event:2"  # what the first event of a file names; readers refuse another


def render(table: Table) -> bytes:
    """The file. Scalars are 32 bits wide there. UserError without the package tensorboard."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        raise UserError(
            "TensorBoard events need the package tensorboard, which comes with veRL: "
            "'pip install tensorboard' adds it to this Python"
        ) from None
    # A step stands once in an event file, so attempts are joined; TensorBoard draws repeats as a zigzag.
    store = table.joined()
    curves = {key: series for key in table.keys if (series := store.get(key)) is not None}
    content = io.BytesIO()
    writer = RecordWriter(content)
    writer.write(Event(wall_time=store.times[0], file_version=VERSION).SerializeToString())
    for step, t in zip(store.steps, store.times, strict=True):
        values = [
            Summary.Value(tag=key, simple_value=value)
            for key, series in curves.items()
            if (value := series.at(step)) is not None
        ]
        if values:
            event = Event(wall_time=t, step=step, summary=Summary(value=values))
            writer.write(event.SerializeToString())
    return content.getvalue()
