"""The health checks, worst first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.text import clean
from tui.drawing.rows import Row, fit
from tui.run_words import LEVELS, ORDER
from tui.widgets.painted import Painted

FAMILIES = ("NUM", "ERR", "LR", "KL", "ENT", "SIG", "REW", "LEN")  # causes before symptoms
_ON = ORDER["NOTICE"]


def worst_first(checks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """By level, then by the step since which a check is on, then causes before symptoms."""

    def rank(check: Mapping[str, Any]) -> tuple[int, int, int]:
        level, since = ORDER.get(str(check.get("level")), 0), check.get("since")
        family = str(check.get("rule")).rpartition("-")[0]
        place = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
        return -level, since if level >= _ON and isinstance(since, int) else 0, place

    return sorted(checks, key=rank)


def check_row(check: Mapping[str, Any], question: int) -> Row:
    """`▲ WARN  Is the drift buying reward?  KL rose by 0.10 ...`; `question` is the width of its column."""
    level = str(check.get("level"))
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    quiet = ORDER.get(level, 0) < _ON
    return [
        (f" {sign} {level:<9}", role),
        *fit([(clean(str(check.get("question", ""))), "text")], question),
        (f" {clean(str(check.get('message') or ''))}", "dim" if quiet else "text"),
    ]


def summary(checks: Sequence[Mapping[str, Any]]) -> str:
    """`26 more fine · 3 warming up · 2 not applicable`, of the checks that are not shown."""
    counts = Counter(str(check.get("level")) for check in checks)
    flagged = sum(count for level, count in counts.items() if ORDER.get(level, 0) >= _ON)
    parts = [
        (flagged, "more on"),
        (counts["OK"], "more fine"),
        (counts["WARM"], "warming up"),
        (counts["N-A"], "not applicable"),
    ]
    return " · ".join(f"{count} {words}" for count, words in parts if count)


class Checklist(Painted):
    """As many checks as fit, and one line about the rest."""

    checks: Sequence[Mapping[str, Any]] = ()

    def show(self, checks: Sequence[Mapping[str, Any]]) -> None:
        self.checks = worst_first(checks)
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.checks:
            return [[(" · no check has been judged yet", "dim")]]
        judged = [check for check in self.checks if ORDER.get(str(check.get("level")), 0) >= ORDER["OK"]]
        shown = judged if len(self.checks) <= rows else judged[: rows - 1] if rows > 1 else judged[:1]
        longest = max((len(str(check.get("question", ""))) for check in shown), default=0)
        question = min(longest, columns * 2 // 5)
        drawn = [check_row(check, question) for check in shown]
        rest = summary(self.checks[len(shown) :])
        return [*drawn, [(f"   {rest}", "dim")]] if rest and len(drawn) < rows else drawn
