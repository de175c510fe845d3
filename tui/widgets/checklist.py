"""The health checks, worst first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.text import clean
from tui.drawing.rows import Row, fit
from tui.run_words import LEVELS, ORDER
from tui.widgets.painted import Painted

_ON = ORDER["NOTICE"]
_BOTH = 70  # columns from which a row holds a question and its answer


def check_row(check: Mapping[str, Any], question: int) -> Row:
    """`▲ WARN  Is the drift buying reward?  KL rose by 0.10 ...`.

    `question` is the width of its column; 0 leaves room for one of the two: what is wrong, else the question.
    """
    level = str(check.get("level"))
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    quiet = ORDER.get(level, 0) < _ON
    asked, told = clean(str(check.get("question", ""))), clean(str(check.get("message") or ""))
    if not question:
        return [(f" {sign} {level:<9}", role), (asked if quiet or not told else told, "text")]
    return [
        (f" {sign} {level:<9}", role),
        *fit([(asked, "text")], question),
        (f" {told}", "dim" if quiet else "text"),
    ]


def summary(checks: Sequence[Mapping[str, Any]]) -> str:
    """`26 more fine · 3 warming up · 2 not applicable`, of the checks that are not shown."""
    counts = Counter("muted" if check.get("muted") else str(check.get("level")) for check in checks)
    words = {
        "CRITICAL": "more critical",
        "WARN": "more warnings",
        "NOTICE": "more to watch",
        "OK": "more fine",
        "WARM": "warming up",
        "N-A": "not applicable",
        "muted": "muted",
    }
    return " · ".join(f"{counts[level]} {said}" for level, said in words.items() if counts[level])


class Checklist(Painted):
    """As many checks as fit, in the order in which they come, and one line about the rest."""

    checks: Sequence[Mapping[str, Any]] = ()

    def show(self, checks: Sequence[Mapping[str, Any]]) -> None:
        self.checks = checks
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.checks:
            return [[(" · no check has been judged yet", "dim")]]
        judged = [check for check in self.checks if _judged(check)]
        shown = judged if len(self.checks) <= rows else judged[: rows - 1] if rows > 1 else judged[:1]
        longest = max((len(str(check.get("question", ""))) for check in shown), default=0)
        question = min(longest, columns * 2 // 5) if columns >= _BOTH else 0
        drawn = [check_row(check, question) for check in shown]
        rest = summary(self.checks[len(shown) :])
        return [*drawn, [(f"   {rest}", "dim")]] if rest and len(drawn) < rows else drawn


def _judged(check: Mapping[str, Any]) -> bool:
    return ORDER.get(str(check.get("level")), 0) >= ORDER["OK"] and not check.get("muted")
