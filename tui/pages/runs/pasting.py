"""Imports a pasted text or path in the list: a script becomes a preset, a log a run; a thread is explained."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.core.errors import UserError
from launcher.core.progress import Progress, narrated
from launcher.core.text import clean
from launcher.record.events import Note, read_kind
from launcher.record.layout import RunDir
from launcher.runs.watch.tracker_files import is_tracker
from tui.kit.actions.background import narrator, reported
from tui.kit.dialogs.choose import ChooseScreen
from tui.kit.dialogs.paste import PasteScreen
from tui.kit.navigation import navigation
from tui.kit.page import Page
from tui.pages.runs.preset_actions import import_preset, is_path, named_file, no_script, unquoted

if TYPE_CHECKING:
    from launcher.runs.judge.pasted_text import PastedReading

_LARGEST_SCRIPT = 1 << 20  # bytes
_NO_THREADS = (".gz", ".jsonl", ".log", ".sh")
_SAID = (
    "Paste a veRL command, a script, a log or a whole thread, or type a path. A script (with its arguments) becomes "
    "a preset; a log or a run of wandb, TensorBoard, MLflow or Trackio becomes a run. Nothing is executed."
)


async def import_anything(page: Page[Any]) -> None:
    """Asks until there is something to import, or the user cancels. Runs in a worker."""
    typed = ""
    while (
        text := await page.app.push_screen_wait(PasteScreen("Import", _SAID, _wrong, _names_file, typed))
    ) is not None:
        typed, thread = text, _thread(text)
        if thread is None and (log := _log(text)) is not None:
            if await _import_log(page, log.name, partial(_run_of, log, narrated(narrator(page.app)))):
                return
            continue
        reading = None if thread is None and _names_file(text) else _read(thread or text)
        if reading is None or not reading.log:
            await import_preset(page.app, text)
            return
        if await _explained(page, thread or text, reading):
            return


async def _explained(page: Page[Any], text: str, reading: "PastedReading") -> bool:
    """Shows why the run in a text ended, and runs the chosen action. Returns whether one was chosen."""
    found = reading.diagnosis
    assert found is not None
    choices = [("p", "import its command")] if reading.command else []
    choices += [("r", "keep its log as a run"), ("b", "back")]
    title = f"{found.cause}: {found.title}" if found.failed else found.title
    details = clean("\n".join(_lines(reading)))
    choice = await page.app.push_screen_wait(ChooseScreen(clean(title), details, choices))
    if choice == "p":
        await import_preset(page.app, text)
    elif choice == "r":
        return await _import_log(page, "the pasted log", partial(_run_of_text, reading.log))
    return choice == "p"


def _lines(reading: "PastedReading") -> Iterator[str]:
    """The diagnosis, then the versions that differ from this machine's."""
    if (found := reading.diagnosis) is None:
        return
    yield found.meaning
    yield from (f"line {each.line}: {each.text}" for each in found.evidence)
    yield from (f"fix: {each.text}" for each in reading.offers)
    for each in reading.versions:
        if each.here != each.pasted:
            yield f"{each.package} {each.pasted} in the text, {each.here or 'not installed'} here"
    yield from reading.command.cut if reading.command else ()


def _wrong(text: str) -> str | None:
    """Why a text cannot be imported; empty if it can."""
    if _log(text) is not None:
        return None
    why = no_script(text)
    if why is None or _names_file(text):
        return why
    try:
        return None if _read(text).log else why
    except UserError as error:
        return str(error)


def _read(text: str) -> "PastedReading":
    from launcher.runs.judge.pasted_text import explain

    return explain(text)


def _names_file(text: str) -> bool:
    return named_file(text) is not None or is_path(text)


def _thread(text: str) -> str | None:
    """The content of a named file if it is a thread: veRL's output next to its command, or Markdown."""
    found = named_file(text)
    if found is None or found[1] or found[0].suffix in _NO_THREADS or found[0].stat().st_size > _LARGEST_SCRIPT:
        return None
    with contextlib.suppress(UserError, OSError):
        reading = _read(content := found[0].read_text("utf-8", errors="replace"))
        return content if reading.log and (reading.command or found[0].suffix == ".md") else None
    return None


def _log(text: str) -> Path | None:
    """The log named in a text: a file that is not a script, or a tracker's folder."""
    line = text.strip()
    for word in (line, unquoted(line)) if len(line.splitlines()) == 1 else ():
        with contextlib.suppress(RuntimeError):  # unknown home folder
            if is_tracker(path := Path(word).expanduser()):
                return path
    found = named_file(text)
    if found is None or found[1]:
        return None
    path = found[0]
    if path.stat().st_size <= _LARGEST_SCRIPT and path.suffix not in (".gz", ".jsonl", ".log"):
        return path if path.suffix != ".sh" and no_script(text) is not None else None
    return path


async def _import_log(page: Page[Any], name: str, make: Callable[[], RunDir]) -> bool:
    """Makes a run of a log and shows it. Returns whether it could."""
    page.app.notify(f"Importing {name}", markup=False)
    with reported(page.app, "Not imported"):
        run = await asyncio.to_thread(make)
        if notes := read_kind(run.events, Note):
            page.app.notify(clean("\n".join(note.text for note in notes)), severity="warning", markup=False)
        navigation(page.app).show_run(run.path, page, read_only=False)
        return True
    return False


def _run_of(log: Path, progress: Progress) -> RunDir:
    from launcher.runs.act.import_logs import import_logs

    return import_logs([str(log)], progress=progress)[0]


def _run_of_text(log: str) -> RunDir:
    from launcher.runs.act.import_logs import import_text

    return import_text(log)
