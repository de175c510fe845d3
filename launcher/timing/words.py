"""A report in words: one text for the command and the page."""

from collections.abc import Iterator

from launcher.core.format import number
from launcher.timing.advice import Advice
from launcher.timing.limits import Limits
from launcher.timing.report import Report


def limit_line(limits: Limits) -> str:
    """Tokens per second and the shares of the GPU's limits: `rollout 19.6k tokens/s, MBU 31 %; update ...`."""
    rollout, update = f"rollout {_rate(limits.rollout_tokens)}", f"update {_rate(limits.update_tokens)}"
    if not limits.why:
        return f"{rollout}, MBU {_share(limits.mbu)}; {update}, MFU {_share(limits.mfu)}"
    if limits.mfu is None:
        return f"{rollout}; {update}; MFU, MBU unknown: {limits.why}"
    return f"{rollout}; {update}, MFU {_share(limits.mfu)} by veRL; MBU unknown: {limits.why}"


def advice_line(advice: Advice | None) -> str:
    """The change that would save most, in one line."""
    if advice is None:
        return "none: no setting is sure to save time, or too few steps"
    return f"{advice.setting} (now {advice.now}): {gain(advice)}"


def gain(advice: Advice) -> str:
    """`1.8x as fast, saves 2.4 s per step (1.9 to 2.6)`."""
    interval = f"{number(advice.low, 2)} to {number(advice.high, 2)}"
    return f"{advice.speedup:.2f}x as fast, saves {number(advice.saved, 2)} s per step ({interval})"


def advice_rows(report: Report) -> Iterator[tuple[str, str]]:
    """The host, the cause, the change, and the next best ones, each with its label."""
    advice, host = report.advice, report.host
    if report.crowded and host is not None:
        yield "cause", host.words
        yield "advice", "end other programs there, or wait: all stages are slow, so no setting is the reason"
        return
    if host is not None:
        yield "host", host.words
    elif report.together:
        yield "host", "not recorded, and all stages are slow: look at it first (`uptime`, `top`)"
    if advice is None:
        yield "advice", advice_line(None)
        return
    yield "cause", advice.cause
    yield "advice", advice_line(advice)
    for other in advice.others:
        yield "also", advice_line(other)


def _rate(tokens: float | None) -> str:
    return f"{number(tokens)} tokens/s"


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{number(100 * share, 2)} %"
