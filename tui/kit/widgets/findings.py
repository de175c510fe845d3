"""The findings of the preflight; the selected one with its fixes."""

from collections.abc import Sequence
from textwrap import wrap

from textual.events import Resize
from textual.message import Message

from launcher.check.finding import Finding
from launcher.core.text import clean
from tui.kit.drawing.glyphs import ELLIPSIS, OK
from tui.kit.drawing.rows import Item, Row, paragraph, width
from tui.kit.keys import KEYS
from tui.kit.page import Offers
from tui.kit.run_words import level_sign, reference
from tui.kit.widgets.lists import Items

_INDENT = 3
_LEAST = 8  # cells of text, however narrow


class Findings(Offers, Items, inherit_bindings=False):
    """Belongs into a `VerticalScroll`. The caller sorts the findings, errors first."""

    BINDINGS = KEYS["findings"]

    class FixWanted(Message):
        """The user requests the change of this finding."""

        def __init__(self, finding: Finding) -> None:
            super().__init__()
            self.finding = finding

    findings: Sequence[Finding] = ()
    quiet = ""
    beside = False
    _steered = False
    _listed: tuple[object, ...] = ()

    def show(  # type: ignore[override]  # what it lists are findings, and it makes the items of them
        self, findings: Sequence[Finding], quiet: str = "no problems found", *, beside: bool = False
    ) -> None:
        """Replaces the findings; `quiet`: shown without any.

        An inspector `beside` it shows the selected one's fixes.
        """
        self.findings, self.quiet, self.beside = findings, quiet, beside
        self._lay()

    @property
    def chosen(self) -> Finding | None:
        """The finding under the cursor."""
        return next((each for each in self.findings if _name(each) == self.cursor), None)

    def on_resize(self, _: Resize) -> None:
        self._lay()

    def action_move(self, distance: int) -> None:
        self._steered = True
        super().action_move(distance)
        self._lay()

    def action_fix(self) -> None:
        if self.chosen is not None:
            self.post_message(self.FixWanted(self.chosen))

    def refusal(self, action: str) -> str | None:
        if action != "fix" or (self.chosen is not None and (self.chosen.change or self.chosen.rename)):
            return None
        return "no finding is selected" if self.chosen is None else "this finding has no fix that is a setting"

    def _lay(self) -> None:
        """Opens the selected finding; at first the worst."""
        names = [_name(each) for each in self.findings]
        if self.cursor not in names or not self._steered:
            self.cursor = names[0] if names else None
        columns = self.size.width
        wanted = (columns, self.cursor, tuple(names), self.quiet, self.beside)
        if wanted == self._listed or not columns:  # its width is known only after the first resize
            return
        self._listed = wanted
        items = [
            Item(_name(each), finding_rows(each, columns, opened=_name(each) == self.cursor and not self.beside))
            for each in self.findings
        ]
        if not items and self.quiet:
            items = [Item(None, [[(f" {OK} ", "ok"), (self.quiet, "dim")]])]
        super().show(items)
        self.refresh_bindings()
        if self.cursor is not None:
            self.call_after_refresh(self._into_sight)


def finding_rows(finding: Finding, columns: int, *, opened: bool) -> list[Row]:
    """` ✖ error V3 batch 64 is ...`; `opened` also with the keys and the fixes."""
    rows = message_rows(finding, columns)
    if not opened:
        return rows
    if finding.keys:
        from launcher.preset.settle import shown_name  # imports all of veRL's keys, which no first frame needs

        keys = _cut(", ".join(map(shown_name, finding.keys)), max(columns - _INDENT - 1, _LEAST))
        rows.append([(f"{'':{_INDENT}}{keys}", "dim")])
    topic: list[Row] = [[(f"{'':{_INDENT - 1}}", "text"), *row] for row in reference(finding.id)]
    return [*rows, *fix_rows(finding, columns), *topic]


def message_rows(finding: Finding, columns: int) -> list[Row]:
    """Level, rule and the complete message of a finding."""
    sign, role = level_sign(finding.problem.level)
    head: Row = [(" ", "text"), (f"{sign} {finding.level}", role), (f" {clean(finding.id)}  ", "dim")]
    beside = columns - width(head)
    narrow = beside < 3 * _LEAST  # the message gets lines of its own
    message = " ".join(clean(finding.message).split())
    first, *more = ["", *_wrap(message, columns)] if narrow else _hang(message, beside, columns)
    return [[*head, (first, "text")], *([(f"{'':{_INDENT}}{line}", "text")] for line in more)]


def fix_rows(finding: Finding, columns: int) -> list[Row]:
    """The fixes of a finding, and the effect of `F`."""
    rows: list[Row] = []
    for line in finding.problem.lines():
        rows += paragraph(" ".join(clean(line).split()), "live", columns, indent=_INDENT)
    if finding.change:
        settings = " ".join(f"{field}={value}" for field, value in finding.change.items())
        rows += paragraph(f"F sets {settings}", "dim", columns, indent=_INDENT)
    if finding.rename:
        rows += paragraph("F renames {} to {}".format(*finding.rename), "dim", columns, indent=_INDENT)
    return rows


def _name(finding: Finding) -> str:
    return f"{finding.id} {finding.message}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1].rstrip() + ELLIPSIS


def _wrap(text: str, columns: int) -> list[str]:
    return wrap(text, max(columns - _INDENT - 1, _LEAST)) or [""]


def _hang(text: str, first: int, columns: int) -> list[str]:
    """Lines; the first continues the head."""
    begin, *_ = wrap(text, first) or [""]
    rest = text[len(begin) :].strip()
    return [begin, *(_wrap(rest, columns) if rest else [])]
