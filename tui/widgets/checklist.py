"""The health checks, worst first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.text import clean
from tui.drawing.glyphs import CURSOR
from tui.drawing.rows import Row, fit, spread
from tui.widgets.painted import Painted
from tui.words.run import LEVELS, ORDER

_ON = ORDER["NOTICE"]
HINT = "↑↓ enter explains "
_BOTH = 70  # columns from which a row holds a question and its answer


def check_row(check: Mapping[str, Any], question: int, chosen: bool = False) -> Row:
    """`▲ WARN  Is the drift buying reward?  KL rose by 0.10 ...`.

    `question` is the width of its column; 0 leaves room for one of the two: what is wrong, else the question.
    """
    level = str(check.get("level"))
    sign, _, role = LEVELS.get(level, LEVELS["N-A"])
    quiet = ORDER.get(level, 0) < _ON
    mark: Row = [(CURSOR if chosen else " ", "live")]
    asked, message = clean(str(check.get("question", ""))), clean(str(check.get("message") or ""))
    if not question:
        return [*mark, (f"{sign} {level:<9}", role), (asked if quiet or not message else message, "text")]
    return [
        *mark,
        (f"{sign} {level:<9}", role),
        *fit([(asked, "text")], question),
        (f" {message}", "dim" if quiet else "text"),
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
    cursor: str | None = None  # the rule that was chosen; None: nobody chose

    @property
    def chosen(self) -> str | None:
        """The rule that enter explains: the chosen one, else the worst."""
        rules = [str(check.get("rule")) for check in self.checks if _listed(check)]
        return self.cursor if self.cursor in rules else rules[0] if rules else None

    def move(self, distance: int) -> None:
        """Chooses the check so many rows further; the first move chooses the worst."""
        rules = [str(check.get("rule")) for check in self.checks if _listed(check)]
        if self.cursor in rules:
            at = rules.index(self.cursor) + distance
            self.cursor = rules[min(max(at, 0), len(rules) - 1)]
        else:
            self.cursor = rules[0] if rules else None
        self.redraw()

    def leave(self) -> None:
        """Nothing is chosen any more."""
        self.cursor = None
        self.redraw()

    def show(self, checks: Sequence[Mapping[str, Any]]) -> None:
        self.checks = checks
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.checks:
            return [[(" · no check has been judged yet", "dim")]]
        listed = [check for check in self.checks if _listed(check)]
        room = len(listed) if len(self.checks) <= rows else max(rows - 1, 1)
        at = next((i for i, check in enumerate(listed) if check.get("rule") == self.cursor), 0)
        first = max(at - room + 1, 0)
        shown = listed[first : first + room]
        longest = max((len(str(check.get("question", ""))) for check in shown), default=0)
        question = min(longest, columns * 2 // 5) if columns >= _BOTH else 0
        drawn = [check_row(check, question, check.get("rule") == self.cursor) for check in shown]
        others = [check for check in self.checks if not _listed(check)]
        rest = summary([*listed[:first], *listed[first + room :], *others])
        if not rest or len(drawn) >= rows:
            return drawn
        return [*drawn, spread([(f"   {rest}", "dim")], [(HINT, "dim")] if columns >= _BOTH else [], columns)]


def _listed(check: Mapping[str, Any]) -> bool:
    return ORDER.get(str(check.get("level")), 0) >= ORDER["OK"] and not check.get("muted")
