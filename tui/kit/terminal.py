"""Terminal output: inert text of the screen, title, notifications and clipboard; and whether the terminal still exists.

Title: OSC 2, between a push and a pop of the old title (CSI 22;0t, CSI 23;0t). Notification: OSC 9, which iTerm2,
kitty, WezTerm, Ghostty and foot show and others ignore. tmux uses the title for its pane (`set -g set-titles on` passes
it on) and drops notifications; ppo-tui sends no tmux passthrough.
"""

import contextlib
import os
import re
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter

from launcher.core.files import make_folder, write_atomic
from launcher.core.paths import cache_dir
from launcher.core.secrets import redact
from launcher.core.text import inert, without_controls

_PASTE, _REPORT = b"\x1b[200~", re.compile(rb"\x1b\[(?:<|[0-9;:]+u)")
_ESCAPED = re.compile(rb"(?<=\x1b)(?=[^\x1b\[\]OPX^_\x7fbdf0-9])")  # after escape, neither a sequence nor `alt`
_NOTHING = b"\x1b[?0;0$y"  # the reply for an unknown mode: it ends the previous escape
_ANSWERS = 0.1  # seconds in which a terminal reports no more
_FOCUS, _SIZE_QUERY = "\x1b[?1004h", "\x1b[?2048$p"
PUSH_TITLE, POP_TITLE = "\x1b[22;0t", "\x1b[23;0t"
LONGEST = 120  # characters of a title or notification
LARGEST_COPY = 1 << 20  # characters
_CLIPBOARD = 74_000  # maximum characters in an escape sequence
_DULL = ("", "dumb", "linux")  # TERM of terminals without a title, or that print such escapes


class ShellDriver(LinuxDriver):
    """Textual's driver behind a pipe: text typed after leaving the program stays in the terminal, for the shell.

    Textual reads on while its widgets are removed, then drops the pending input, again after the screen has left. It
    also reads escape and a following letter as `alt` and that letter, and loses the escape.
    """

    def __init__(self, *what: Any, **how: Any) -> None:
        super().__init__(*what, **how)
        self._terminal, self._left = self.fileno, os.pipe()
        self._reader = self._passer = threading.Thread()
        self._reports = False  # the terminal has sent the mouse, or keys as kitty does

    def start_application_mode(self) -> None:
        global _driver
        _driver = self
        if self.exit_event.is_set():  # suspended, not ended
            if self._reader.is_alive():
                self._reader.join()
            os.read(self._left[0], 1)
            self.exit_event.clear()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def run_input_thread(self) -> None:
        self.fileno, typed = os.pipe()
        self._reader = threading.current_thread()
        self._passer = threading.Thread(target=self._pass_on, args=(typed,), daemon=True)
        self._passer.start()
        try:
            super().run_input_thread()
        finally:
            os.close(self.fileno)
            self.fileno = self._terminal

    def _pass_on(self, typed: int) -> None:
        before = b""
        with contextlib.suppress(OSError), open(typed, "wb", buffering=0) as pipe:
            while self._left[0] not in select.select([self._terminal, self._left[0]], [], [])[0]:
                if not (data := os.read(self._terminal, 4096)):
                    break
                self._reports = self._reports or _REPORT.search(data) is not None
                split = data if _PASTE in data else _ESCAPED.sub(_NOTHING, before + data)[len(before) :]
                before = data[-1:] if data[-1:] == b"\x1b" else b""
                pipe.write(split)

    def stop_reading(self) -> None:
        """Leaves further input in the terminal. Textual then neither reads nor drops it."""
        if not self.exit_event.is_set():
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
            self.write(_REPORTS_OFF + ("\x1b[=0u" if self._reports else ""))
            self.exit_event.set()
            os.write(self._left[1], b".")
            if self._passer.is_alive():
                self._passer.join(_WRITES)

    def stop_application_mode(self) -> None:
        self.stop_reading()
        with contextlib.suppress(termios.error):
            if self._reports:  # pending reports
                time.sleep(_ANSWERS)
                termios.tcflush(self._terminal, termios.TCIFLUSH)
            if self.attrs_before is not None:
                termios.tcsetattr(self._terminal, termios.TCSANOW, self.attrs_before)
        super().stop_application_mode()


_driver: ShellDriver | None = None  # the one that has the terminal


def stop_reading() -> None:
    """Leaves the following keys to the shell, as the program ends."""
    if _driver is not None:
        _driver.stop_reading()


class CutDriver(ShellDriver):
    """A driver for links that can break, after which nothing resets the terminal's modes.

    It does not enable reports that the terminal would then type into the shell: of the focus, which is unused, and of
    the size, which ssh forwards. TEXTUAL_DISABLE_KITTY_KEY disables Kitty's keys. Bracketed paste stays on: without it
    a pasted text would act key by key, and shells reset it at each prompt.
    """

    def write(self, data: str) -> None:
        for switch in (_FOCUS, _SIZE_QUERY):  # without the query, a terminal does not report its size
            data = data.replace(switch, "")
        super().write(data)


class InertFilter(LineFilter):
    """Filters all text of the screen: no terminal control, no secrets. Each text keeps its width."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        shown = [segment if segment.control else segment._replace(text=_inert(segment.text)) for segment in segments]
        whole = "".join(segment.text for segment in segments if not segment.control)
        if len(shown) > 1 and redact(whole) != inert(whole):  # a name and its value differ in color
            width = sum(segment.cell_length for segment in shown)
            return [Segment(set_cell_size(_inert(whole), width), shown[0].style)]
        return shown


def _inert(text: str) -> str:
    found = redact(text)
    if found == inert(text):
        found = without_controls(text)
    found = found.replace("\t", "").replace("\n", "")
    return text if found == text else set_cell_size(found, cell_len(text))


def understands(env: Mapping[str, str] | None = None) -> bool:
    """Whether this terminal supports titles and notifications."""
    return (os.environ if env is None else env).get("TERM", "") not in _DULL


def send(app: App[Any], escape: str) -> None:
    """Writes an escape to Textual's output stream.

    Textual's public interface offers only the bell. Textual writes whole frames to this stream, one call each, so that
    this output comes between two frames and never inside an escape.
    """
    if not app.is_headless and understands() and sys.__stderr__ is not None:
        with contextlib.suppress(OSError):  # hung up; the app detects it itself
            sys.__stderr__.write(escape)
            sys.__stderr__.flush()


def title(text: str) -> str:
    """The escape that sets the title."""
    return f"\x1b]2;{_one_line(text)}\x07"


def notification(text: str) -> str:
    """The escape that shows a desktop notification."""
    return f"\x1b]9;{_one_line(text)}\x07"


def copy(app: App[Any], name: str, text: str) -> Path:
    """Sends text to the terminal's clipboard and to a file, because tmux may drop the former.

    Returns the file, `<cache>/copied/<name>.txt`; each copy replaces the previous one. Raises OSError.
    """
    text = redact(text)
    if len(text) <= _CLIPBOARD:
        app.copy_to_clipboard(text)
    folder = cache_dir() / "copied"
    make_folder(folder)
    path = folder / f"{name}.txt"
    write_atomic(path, text.encode(errors="replace"))
    return path


def copied(app: App[Any], name: str, text: str, words: str = "Copied") -> None:
    """Copies text as `copy` does, and shows these words and the file, or the reason for a failure."""
    try:
        app.notify(f"{words}; also saved in {copy(app, name, text)}", markup=False)
    except OSError as error:
        app.notify(f"Not copied: {error}", severity="error", markup=False)


def hung_up(descriptors: tuple[int, ...] = (0, 1)) -> bool:
    """Whether the terminal behind stdin or stdout is gone.

    A process that does not lead its session then gets no SIGHUP: Textual would read end-of-file forever.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, 0)  # POLLHUP and POLLERR are always reported
    gone = select.POLLHUP | select.POLLERR | select.POLLNVAL
    return any(found & gone for _, found in poll.poll(0))


_modes: list[Any] | None = None  # the terminal's modes before the screen
# The end of a sequence that was cut; synchronised output, the mouse, focus, pastes, kitty keys, in-band resize,
# colours, the other screen and the hidden cursor.
_REPORTS_OFF = "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l"
_GIVE_BACK = f"\x18\x1b\\\x1b[?2026l{_REPORTS_OFF}\x1b[?2004l\x1b[<u\x1b[?2048l\x1b[0m\x1b[?1049l\x1b[?25h"
_WRITES = 2.0  # seconds in which a terminal must take that


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """Within this block, SIGTERM and SIGHUP end the screen and restore the terminal, even if the event loop hangs."""
    global _modes
    _modes = termios.tcgetattr(0)
    before = {number: signal.signal(number, _on_signal) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_soon(code: int, farewell: str = "", patience: float = 0.8) -> None:
    """Ends this process after `patience` seconds, so that a thread waiting for a disk keeps nobody waiting."""
    timer = threading.Timer(patience, _leave, (code, farewell))
    timer.daemon = True
    timer.start()


def _on_signal(number: int, _: object) -> None:
    _leave(128 + number)


def _leave(code: int, farewell: str = "") -> NoReturn:
    """Restores the terminal and exits at once, even if the terminal accepts no bytes."""
    stream = sys.__stderr__
    with contextlib.suppress(OSError, termios.error, ValueError):
        if stream is not None and select.select([], [stream], [], _WRITES)[1]:
            text = _GIVE_BACK + (POP_TITLE if understands() else "") + (f"{farewell}\r\n" if farewell else "")
            os.write(stream.fileno(), text.encode(errors="replace"))
        if _modes is not None:
            termios.tcsetattr(0, termios.TCSANOW, _modes)
    os._exit(code)


def _one_line(text: str) -> str:
    return " ".join(redact(text).split())[:LONGEST]


@contextlib.contextmanager
def title_kept() -> Iterator[None]:
    """Restores the terminal's own title at the end."""
    stream = sys.__stderr__ if understands() else None  # Textual's output stream
    if stream is not None:
        stream.write(PUSH_TITLE)
    try:
        yield
    finally:
        if stream is not None:
            stream.write(POP_TITLE)
            stream.flush()
