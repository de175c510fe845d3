"""veRL's `file` logger: one object a line, `{"step": n, "data": {...}}`."""

from launcher.metrics.records import figures, is_step, parse_object


def parse_record(line: bytes) -> tuple[int, dict[str, float]] | None:
    """Step and figures of one line; a null (veRL's nan and inf) is nan. None when the line is no record."""
    found = parse_object(line)
    if found is None or not is_step(found.get("step")) or not isinstance(found.get("data"), dict):
        return None
    return found["step"], figures(found["data"])
