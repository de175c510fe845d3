"""The console of a run, full screen: follow, search, go to errors and steps."""

import asyncio
from collections.abc import Mapping
from functools import partial

from textual import work
from textual.app import ComposeResult
from textual.widgets import Input

from launcher.console.diagnose import diagnose
from launcher.console.pager import LogPager, shown
from launcher.console.search import SOURCES, TROUBLE, Search, Wanted, both, containing, written_by
from launcher.core.format import counted
from launcher.core.tail import chunks
from launcher.core.text import clean
from launcher.runs.watch.steps import place_of_step
from tui.kit.drawing.rows import Row, spread, width
from tui.kit.keys import KEYS
from tui.kit.navigation import RunView
from tui.kit.page import HIDDEN
from tui.kit.run_page import RunPage
from tui.kit.terminal import LARGEST_COPY, copied
from tui.kit.widgets.lines import Lines
from tui.pages.log.view import LogView

_PROGRESS = 0.25  # seconds
_PROMPTS = {"search": "text to search for", "go": "step or :line"}


class LogScreen(RunPage):
    """The whole log. Reads only the visible lines, so that its size does not matter."""

    AUTO_FOCUS = "LogView"
    PAGE_NAME = "Log"
    BINDINGS = KEYS["log"]

    def __init__(self, run: RunView, line: int | None = None) -> None:
        """`line`: the first line to show, in the newest attempt; None: the end."""
        super().__init__(run)
        self._first = line
        self.attempt: int | None = None  # the displayed attempt
        self.group = SOURCES[0]
        self._search: Search | None = None
        self._asked = ""  # the purpose of the prompt
        self._message = ""
        self._wanted: Wanted | None = None  # target of n and N: a text search, or errors
        self._what = ""
        self._matches: tuple[int, str] | None = None  # the number and kind of matching lines
        self._only = False

    def body(self) -> ComposeResult:
        yield Lines(id="log-state")
        yield LogView()
        yield Input(id="log-prompt", classes=HIDDEN)

    @work(exclusive=True, group="go")
    async def _begin(self, line: int) -> None:
        if self.view.pager is not None:
            await asyncio.to_thread(self.view.pager.count)
            await self._go(f":{line}")

    def on_unmount(self) -> None:
        if self._search is not None:
            self._search.cancel()

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    def poll(self) -> None:
        view, attempts = self.view, self.reader.dir.attempt_numbers()
        if attempts and (view.pager is None or (view.following and self.attempt != attempts[-1])):
            self._open(attempts[-1])
        elif view.pager is not None and view.pager.look():
            self._count(view.pager)
            view.fill()
        self.show()
        if self._first is not None:
            self._begin(self._first)
            self._first = None

    def show_body(self) -> None:
        self._show_state()

    def _open(self, attempt: int) -> bool:
        """Shows the log of an attempt, unless there is none."""
        try:
            pager = LogPager(self.reader.dir.attempt(attempt).console)
        except OSError:
            return False
        self.attempt = attempt
        self._count(pager)
        self.view.open(pager)
        return True

    @work(group="count")
    async def _count(self, pager: LogPager) -> None:
        """Counts lines in a thread: a gigabyte takes a second."""
        await asyncio.to_thread(pager.count)
        self._show_state()

    def on_log_view_moved(self) -> None:
        self._show_state()

    def on_log_view_beyond(self, event: LogView.Beyond) -> None:
        keep = self.view.keep
        if keep is not None:
            self._seek(Wanted(keep), f"line of the {self.group}", event.offset, forward=event.forward)

    def action_leave(self) -> None:
        if not self.query_one("#log-prompt").has_class(HIDDEN):
            self._close_prompt()
        elif self._search is not None:
            self._search.cancel()
        elif self._only:
            self.action_only()
        elif self.view.mark is not None:
            self.view.mark = None
            self.view.redraw()
        else:
            self.dismiss()

    def action_follow(self) -> None:
        self._message = ""
        self.view.follow()

    def refusal(self, action: str) -> str | None:
        if action in ("again", "only") and self._wanted is None:
            return "search first (/)"
        if action == "attempt" and len(self.reader.dir.attempt_numbers()) < 2:
            return "the run has one attempt"
        return None

    def called_for(self) -> Mapping[str, str]:
        return {"cause": "cause"} if self.reader.state.failed else {}

    def action_ask(self, what: str) -> None:
        prompt = self.query_one("#log-prompt", Input)
        self._asked, prompt.value, prompt.placeholder = what, "", _PROMPTS[what]
        self.open_field(prompt)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_prompt()
        if self._asked == "go":
            self.in_worker(partial(self._go, event.value.strip()), "go")
        else:
            backward = self.view.following  # from the log's end, the search goes back
            self.view.needle = event.value
            self.view.redraw()
            self._want(containing(event.value) if event.value else None, f"'{event.value}'")
            if event.value:
                self.action_again(not backward)

    def _close_prompt(self) -> None:
        self.query_one("#log-prompt").add_class(HIDDEN)
        self.view.focus()

    async def _go(self, word: str) -> None:
        """Goes to a step (`120`) or a line (`:812`)."""
        pager, line = self.view.pager, word.startswith(":")
        if pager is None or not word.lstrip(":").isdecimal():
            self._show_state("" if not word else "enter a step number, or : and a line number")
            return
        number = int(word.lstrip(":"))
        if line:
            offset = pager.offset_of(number)
        else:
            place = await asyncio.to_thread(place_of_step, self.reader.dir, number)
            if place is not None and place[0] != self.attempt:
                self._open(place[0])
            pager = self.view.pager
            offset = pager.start_of(place[1]) if place is not None and pager is not None else None
        if offset is None:
            self._show_state(f"no {'line' if line else 'step'} {number} in the log")
        else:
            self._show_state("")
            self.view.show_at(offset)

    def action_again(self, forward: bool) -> None:
        if self._wanted is not None:
            self._seek(both(self._wanted, self.view.keep), self._what, forward=forward)

    def _want(self, wanted: Wanted | None, what: str) -> None:
        """Makes this search the target of `n` and `N`, and counts its lines in a thread."""
        self._wanted, self._what, self._matches = wanted, what, None
        self.refresh_bindings()
        self._narrow()
        if wanted is not None and (pager := self.view.pager) is not None:
            self._count_matches(Search(pager, wanted, 0, forward=True), what)

    @work(group="matches")
    async def _count_matches(self, search: Search, what: str) -> None:
        found = await asyncio.to_thread(search.count)
        if what == self._what:
            self._matches = found, what
            self._show_state()

    def action_cause(self) -> None:
        """Goes to the line of the failure's cause, or the last error; `n` and `N` go from error to error."""
        self.view.needle = ""
        self._want(TROUBLE, "error")
        self._find_cause()

    @work(exclusive=True, group="search")
    async def _find_cause(self) -> None:
        pager = self.view.pager
        if pager is None:
            return
        found = await asyncio.to_thread(lambda: diagnose(chunks(pager.path)))
        line = found.evidence[0].line if found.failed and found.evidence else None
        offset = await asyncio.to_thread(lambda: pager.offset_of(line)) if line is not None else None
        if offset is None:
            self._seek(both(TROUBLE, self.view.keep), "error", pager.size, forward=False)
        else:
            self._show_state(found.title)
            self.view.show_at(offset)

    def action_only(self) -> None:
        """Shows only matching lines (or the errors, after `cause`), or all again."""
        self._only = not self._only
        self._narrow()

    def _narrow(self) -> None:
        """Shows the lines of the chosen source, and only matches if so chosen."""
        view, chosen = self.view, self.view.chosen
        source, wanted = written_by(self.group), self._wanted if self._only else None
        self._only = wanted is not None
        view.keep = source if wanted is None else both(wanted, source).test
        if view.following or chosen is None:
            view.follow()
        else:
            view.show_at(chosen.offset)
        self._show_state("")

    def action_wrap(self) -> None:
        self.view.wrap = not self.view.wrap
        self._narrow()

    def _seek(self, wanted: Wanted, what: str, start: int | None = None, *, forward: bool) -> None:
        """Goes to the next matching line from the chosen one or a byte on, at most once around the log."""
        pager, chosen = self.view.pager, self.view.chosen
        if pager is None:
            return
        if self._search is not None:
            self._search.cancel()
        if start is None:
            start = (chosen.end if forward else chosen.offset) if chosen else pager.size
        self._search_log(pager, wanted, what, start, forward)

    @work(exclusive=True, group="search")
    async def _search_log(self, pager: LogPager, wanted: Wanted, what: str, start: int, forward: bool) -> None:
        timer = self.set_interval(_PROGRESS, self._show_state)
        around = {start: "", 0 if forward else pager.size: f"continued from the {'top' if forward else 'end'}"}
        for at, said in around.items():
            search = self._search = Search(pager, wanted, at, forward=forward)
            found = await asyncio.to_thread(search.run)
            if search.cancelled:
                said = "search cancelled"
            if found is not None or search.cancelled:
                break
        else:
            said = f"no {what} in the log"
        timer.stop()
        if search is self._search:  # otherwise another search has started
            self._search = None
            self._show_state(said)
            if found is not None and pager is self.view.pager:
                self.view.show_at(found)

    def action_source(self) -> None:
        self.group = SOURCES[(SOURCES.index(self.group) + 1) % len(SOURCES)]
        self._narrow()

    def action_mark(self) -> None:
        chosen = self.view.chosen
        if chosen is not None:
            self.view.following = False
            self.view.mark = chosen.offset
            self.view.redraw()

    def action_copy(self) -> None:
        view = self.view
        if view.pager is None or view.selected is None:
            return
        start, end = view.selected
        lines, room = [], LARGEST_COPY
        for line in view.pager.forward(start):
            if line.offset >= end or room < 0:
                break
            if view.keep is None or view.keep(line.raw):
                lines.append(shown(line).shown)
                room -= len(lines[-1])
        cut = " (the rest exceeds the copy limit)" if room < 0 else ""
        copied(self.app, self.reader.id, "\n".join(lines) + "\n", f"Copied {counted(len(lines), 'line')}{cut}")
        view.mark = None
        view.redraw()

    def action_attempt(self, distance: int) -> None:
        attempts = self.reader.dir.attempt_numbers()
        at = attempts.index(self.attempt) + distance if self.attempt in attempts else -1
        if not (0 <= at < len(attempts) and self._open(attempts[at])):
            self._show_state("no newer attempt" if distance > 0 else "no older attempt")
        elif distance < 0:
            self.view.following = False  # otherwise the next poll returns to the newest line
            self._show_state("")

    def action_path(self) -> None:
        if self.view.pager is not None:
            self.notify(clean(str(self.view.pager.path)), title="Full log", markup=False)

    def _show_state(self, said: str | None = None) -> None:
        """The line above the log: filter, search, cursor position."""
        if said is not None:
            self._message = said
        said = self._message
        if self._search is not None:
            said = f"searching, {100 * self._search.done:.0f} %; esc cancels"
        left: Row = [(" ", "text")]
        for group in SOURCES:
            if group == self.group:
                left.append((f"[{group}]", "live"))
            elif not said:
                left.append((f" {group} ", "dim"))
        if self._only:
            left.append((f" {self._what} only", "live"))
        if said:
            left.append((f" {clean(said)}", "notice"))
        elif self._matches is not None:
            count, what = self._matches
            left.append((f" {counted(count, 'line')} with {clean(what)}", "notice"))
        place, columns = self._place(), self.size.width
        while len(place) > 1 and width(left) + len(" · ".join(place)) + 3 > columns:
            place = place[1:]
        self.query_one("#log-state", Lines).show([spread(left, [(f"{' · '.join(place)} ", "dim")], columns)])

    def _place(self) -> list[str]:
        """Attempt, line and percentage; the most important part comes last."""
        view = self.view
        if view.pager is None or view.chosen is None:
            return []
        words = []
        if len(self.reader.dir.attempt_numbers()) > 1:
            words.append(f"attempt {self.attempt}")
        number = view.pager.number_at(view.chosen.offset)
        if number is not None:
            words.append(f"line {number:,}")
        end = "following" if self.reader.state.going else "end"
        words.append(end if view.following else f"{100 * view.chosen.end / max(view.pager.size, 1):.0f} %")
        return words
