"""The health checks, worst first."""

from collections.abc import Sequence

from launcher.core.text import clean
from launcher.record.check import Check
from launcher.record.levels import Level
from tui.kit.drawing.glyphs import CURSOR
from tui.kit.drawing.rows import Row, fit, spread, width
from tui.kit.run_words import level_sign, short_symptom, summary
from tui.kit.widgets.painted import Painted

HINT = "↑↓ select · enter open "
_BOTH = 70  # columns from which a row holds a name and a message


def check_row(check: Check, columns: int, name: int, chosen: bool = False) -> Row:
    """`▲ WARN Unrewarded drift KL rose by 0.10 ...`.

    `name`: the width of its column; at 0 the row has the leading cause or the message, otherwise its name.
    """
    sign, role = level_sign(check.level)
    level: Row = [(CURSOR if chosen else " ", "live"), (f"{sign} {check.level!s:<9}", role)]
    named, message = clean(check.heading), short_symptom(check, columns - width(level) - (name + 1 if name else 0))
    if not name:
        return [*level, (message if check.on and message and check.lead is None else named, "text")]
    return [*level, *fit([(named, "text")], name), (f" {message}", "text" if check.on else "dim")]


class Checklist(Painted):
    """As many checks as fit, in order, and one line about the others."""

    BORDER_TITLE = "rules"
    checks: Sequence[Check] = ()
    known = False  # whether the checks have been read
    cursor: str | None = None  # the chosen rule; None without a choice
    hints = True  # whether the title shows its keys

    @property
    def chosen(self) -> str | None:
        """The chosen rule, or the worst."""
        rules = [check.rule for check in self.checks if _judged(check)]
        return self.cursor if self.cursor in rules else rules[0] if rules else None

    @property
    def first(self) -> str | None:
        """The rule of the top row."""
        return next((check.rule for check in self.checks if _judged(check)), None)

    def move(self, distance: int) -> None:
        """Chooses the check `distance` rows further; the first move chooses the worst."""
        rules = [check.rule for check in self.checks if _judged(check)]
        if self.cursor in rules:
            at = rules.index(self.cursor) + distance
            self.cursor = rules[min(max(at, 0), len(rules) - 1)]
        else:
            self.cursor = rules[0] if rules else None
        self.redraw()

    def leave(self) -> bool:
        """Removes the choice. Returns whether there was one."""
        before, self.cursor = self.cursor, None
        self.redraw()
        return before is not None

    def show(self, checks: Sequence[Check]) -> None:
        self.checks, self.known = checks, True
        self.redraw()

    def draw(self, columns: int, rows: int) -> list[Row]:
        if not self.checks:
            return [[(" · no rule has judged yet", "dim")]] if self.known else []
        judged = [check for check in self.checks if _judged(check)]
        room = len(judged) if len(self.checks) <= rows else max(rows - 1, 1)
        at = next((i for i, check in enumerate(judged) if check.rule == self.cursor), 0)
        first = max(at - room + 1, 0)
        shown = judged[first : first + room]
        longest = max((len(check.heading) for check in shown), default=0)
        name = min(longest, columns * 2 // 5) if columns >= _BOTH else 0
        drawn = [check_row(check, columns, name, check.rule == self.cursor) for check in shown]
        others = [check for check in self.checks if not _judged(check)]
        rest = summary([*judged[:first], *judged[first + room :], *others])
        if not rest or len(drawn) >= rows:
            return drawn
        hinted = self.hints and columns >= _BOTH and len(rest) + len(HINT) + 5 <= columns
        return [*drawn, spread([(f"   {rest}", "dim")], [(HINT, "dim")] if hinted else [], columns)]


def _judged(check: Check) -> bool:
    return check.level >= Level.OK and not check.muted
