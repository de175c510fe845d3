"""The fields of a draft: choose, step, type, reset, add one."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message

from launcher.core.errors import UserError
from launcher.core.text import did_you_mean
from launcher.preset.choices import choices, new_keys, step, verl_keys
from launcher.preset.draft import Draft
from launcher.preset.field_values import typed, where_of
from launcher.preset.schema import SETTINGS
from launcher.preset.yaml_text import Where
from launcher.verl.defaults import NEWEST
from launcher.verl.versions import newest
from tui.kit.drawing.glyphs import DASH
from tui.kit.drawing.rows import Row
from tui.kit.keys import KEYS
from tui.pages.editor.form import FormLines
from tui.pages.editor.preset_form import Form, value_column
from tui.pages.editor.value_box import ROWS, ValueBox

_OFFERED = 200  # maximum number of keys


class FormArea(Container):
    """Changes the draft and posts `Edited`; the receiver calls `show` with the new form."""

    BINDINGS = KEYS["form"]

    class Edited(Message):
        """The draft changed; `where`: the typed or chosen value, if any."""

        def __init__(self, where: Where = ()) -> None:
            super().__init__()
            self.where = where

    def __init__(self, draft: Draft, *, read_only: bool) -> None:
        super().__init__(id="editor-form")
        self.draft, self.read_only = draft, read_only
        self.form = Form(draft)
        self.query_text = ""
        self.verl: tuple[str, Path | None] = (NEWEST, None)  # version and folder, for the keys that there are
        self._everything = False
        self._editing: str | None = None  # the field being edited
        self._adding: str | None = None  # "" while asking for a key; the key while asking for its value

    def compose(self) -> ComposeResult:
        yield FormLines(self._line, " no matching field; press esc to show all fields")
        yield ValueBox()

    @property
    def lines(self) -> FormLines:
        return self.query_one(FormLines)

    @property
    def box(self) -> ValueBox:
        return self.query_one(ValueBox)

    def show(self, form: Form | None = None) -> None:
        """Draws the fields that match the query, the essential ones, or all."""
        self.form = form or self.form
        everything = self._everything or bool(self.query_text)
        self.lines.show(self.form.names(everything=everything, query=self.query_text))

    def go_to(self, key: str) -> None:
        """Moves to a field by its name or veRL key; shows all fields if it is not an essential one."""
        try:
            name = key if key in self.form.names(everything=True) else ".".join(where_of(key))
        except UserError as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        self.query_text = ""
        self._everything = self._everything or name not in self.form.names(everything=False)
        self.show()
        if name in self.lines.keys:
            self.lines.move_to(name)

    def open_at(self, name: str) -> None:
        """Moves to a field and opens its value for typing or choosing."""
        self.go_to(name)
        self._open(name)

    def edit(self, change: Callable[[], object], where: Where = ()) -> bool:
        """Changes the value `where`, or shows why it is refused. Returns whether it changed."""
        if self.refused():
            return False
        try:
            change()
        except UserError as error:
            self.notify(str(error), severity="error", markup=False)
            return False
        self.post_message(self.Edited(where))
        return True

    def refused(self) -> bool:
        """Whether nothing can be changed here; shows the reason."""
        if self.read_only:
            self.notify("Read-only: use `ppo-tui preset edit` to change presets", severity="warning")
        elif self.form.reading.problem is not None:
            self.notify("Cannot read the file; press a, then o, to open it in your editor", severity="warning")
        return self.read_only or self.form.reading.problem is not None

    def action_everything(self) -> None:
        self._everything = not self._everything
        self.show()

    def action_reset(self) -> None:
        if (name := self.lines.cursor) is not None:
            self.edit(partial(self.draft.unset, self.form.where(name)))

    def on_form_lines_stepped(self, event: FormLines.Stepped) -> None:
        spec = SETTINGS.get(self.lines.cursor or "")
        if spec is None or self.refused():
            return
        value = step(spec, self.draft.value(spec.path), event.up, self.form.config)
        if value is None or self.draft.wrong(spec.path, value):
            self.notify("No further value on the scale; press enter to type one", timeout=4)
        else:
            self.edit(partial(self.draft.set, spec.path, value))

    def on_listing_chosen(self, event: FormLines.Chosen) -> None:
        event.stop()
        self._open(event.key)

    def _open(self, name: str) -> None:
        """Opens the box over a line's value."""
        if self.refused():
            return
        self._editing = name
        where, text = self.form.where(name), self.form.text(name)
        self._place_at(name)
        self.call_after_refresh(self._place_at, name)  # a form that was hidden has a size then
        spec = SETTINGS.get(name)
        self.box.open(
            "" if text == DASH else text,
            lambda text, fresh: choices(
                where, text, fresh=fresh, config=self.form.config, folder=self.draft.path.parent
            ),
            lambda text, entered: self.draft.check_text(where, text),
            note=spec.allowed if spec else "a YAML value",
            was="not set" if text == DASH else text,
        )

    def on_resize(self) -> None:
        if self._editing is not None:  # the lines below get their size after this
            self.call_after_refresh(self._place_at, self._editing)

    def _place_at(self, name: str) -> None:
        """Puts the box over the edited value."""
        if self._editing == name:
            self.lines.make_room(ROWS)
            self._place(self.lines.row_of(name), value_column(self.lines.size.width - 1))

    def action_add(self) -> None:
        """Asks for a key, then for its value."""
        if not self.refused():
            self._adding = ""
            self._place(0, 2)
            self.box.open("", self._keys, self._no_key, hint="veRL key, env.NAME or usual.FIELD")

    def _keys(self, text: str, fresh: bool) -> list[str]:
        return [] if fresh else new_keys(text, *self.verl)[:_OFFERED]

    def _no_key(self, text: str, entered: bool) -> str | None:
        """What is wrong with a typed key; empty while it may become a valid one."""
        if not text.strip() or (not entered and self._keys(text, False)):
            return None
        try:
            where = where_of(text)
        except UserError as error:
            return str(error)
        known = verl_keys("", *self.verl)
        if where[0] != "overrides" or text.startswith("+") or where[1] in map(newest, known):
            return None
        return f"veRL {self.verl[0]} has no key {text}{did_you_mean(text, known)}; prefix it with + to add it"

    def _ask_value(self, key: str) -> None:
        self._adding, where = key, where_of(key)
        self._place(0, 2)
        self.box.open(
            "", lambda text, fresh: [], lambda text, entered: self.draft.check_text(where, text), hint=f"value of {key}"
        )

    def _place(self, row: int, column: int) -> None:
        size = self.lines.size
        self.box.styles.offset = (column - 1, row)
        self.box.styles.width = max(size.width - column, 12)
        self.box.styles.max_height = max(min(ROWS, size.height - row), 2)

    def on_value_box_done(self, event: ValueBox.Done) -> None:
        name, self._editing = self._editing, None
        key, self._adding = self._adding, None
        self.lines.make_room(0)
        self.lines.focus()
        if name is not None and event.text is not None and event.text != self.form.text(name):
            where = self.form.where(name)
            self.edit(partial(self.draft.set_text, where, event.text), where)
        elif key is not None and event.text:
            self._add(key, event.text)
        self.show()

    def _add(self, key: str, text: str) -> None:
        try:
            if key:
                if self.edit(partial(self.draft.add, key, typed(where_of(key), text))):
                    self.show(Form(self.draft, *self.verl))
                    self.go_to(key)
                return
            name = ".".join(where_of(text))
        except UserError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        if name in self.form.names(everything=True):
            self.open_at(name)
        else:
            self._ask_value(text)

    def _line(self, name: str, columns: int) -> Row:
        return self.form.line(name, columns)
