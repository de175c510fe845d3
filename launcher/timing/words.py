"""A report in words: one text for the command and the page."""

from launcher.core.format import number
from launcher.record.fix import Fix, Offer
from launcher.record.levels import Level
from launcher.record.problem import Problem
from launcher.timing.limits import Limits
from launcher.timing.report import FEWEST, Report

_WAIT = Fix("end other programs on the host, or wait: all stages are slow, so no setting is the cause")


def limit_line(limits: Limits) -> str:
    """Tokens per second and the shares of the GPU's limits: `rollout 19.6k tokens/s, MBU 31 %; update ...`."""
    rollout, update = f"rollout {_rate(limits.rollout_tokens)}", f"update {_rate(limits.update_tokens)}"
    if not limits.why:
        return f"{rollout}, MBU {_share(limits.mbu)}; {update}, MFU {_share(limits.mfu)}"
    if limits.mfu is None:
        return f"{rollout}; {update}; MFU, MBU unknown: {limits.why}"
    return f"{rollout}; {update}, MFU {_share(limits.mfu)} by veRL; MBU unknown: {limits.why}"


def problems(report: Report) -> list[Problem]:
    """The reasons for slow steps: a crowded host, or the largest stages."""
    if report.crowded and report.host is not None:
        return [Problem("slow step", "host", Level.NOTICE, report.host.words, offers=(Offer(_WAIT, _WAIT.do),))]
    return [each.problem for each in report.advice]


def start_problems(report: Report) -> list[Problem]:
    """Problems of the start: stages that a setting shortens."""
    return [each.problem for each in report.start_advice]


def host_words(report: Report) -> str:
    """The load of the host in words, or that it was not recorded; empty if it is a separate problem."""
    if report.host is not None and not report.crowded:
        return report.host.words
    unseen = report.together and report.host is None
    return "not recorded, and all stages are slow: check the host load first (`uptime`, `top`)" if unseen else ""


def no_advice(report: Report) -> str:
    """The reason why there is no problem."""
    if not report.of_verl:
        return "no advice: advice covers only settings of veRL"
    if report.recent < FEWEST:
        return f"no advice before step {FEWEST + 1}: the first step is left out"
    stage, seconds = max(report.usual.items(), key=lambda pair: pair[1], default=("", 0.0))
    share = _share(seconds / sum(report.usual.values())) if seconds else "–"
    return f"no advice for the largest part of recent steps: {stage}, {share}"


def _rate(tokens: float | None) -> str:
    return f"{number(tokens)} tokens/s"


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{number(100 * share, 2)} %"
