"""A report in words: one text for the command and the page."""

from collections.abc import Iterator

from launcher.core.format import number
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


def advice_rows(report: Report) -> Iterator[tuple[str, str]]:
    """The host, then the stages that take most and what to try, each with its label."""
    host = report.host
    if report.crowded and host is not None:
        yield "cause", host.words
        yield "try", "end other programs there, or wait: all stages are slow, so no setting is the reason"
        return
    if host is not None:
        yield "host", host.words
    elif report.together:
        yield "host", "not recorded, and all stages are slow: look at it first (`uptime`, `top`)"
    for index, advice in enumerate(report.advice):
        yield "cause" if index == 0 else "also", f"{advice.title}: {_share(advice.share)} of the recent steps"
        yield "try", "; ".join(offer.text for offer in advice.offers)
    if not report.advice:
        yield "try", "nothing: no stage with a known setting takes a tenth of the step, or fewer than three steps"


def _rate(tokens: float | None) -> str:
    return f"{number(tokens)} tokens/s"


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{number(100 * share, 2)} %"
