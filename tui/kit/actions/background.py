"""Work that takes minutes, outside of the event loop: closing the program never waits for it."""

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from textual.app import App
from textual.notifications import SeverityLevel

from launcher.core.errors import UserError

T = TypeVar("T")


async def in_background(work: Callable[[], T]) -> T:
    """Runs `work` in a separate thread; returns its result or raises its error.

    Unlike a thread of `asyncio.to_thread`, it ends with the program.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def report(act: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if done.done() else act())

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            failure = error
            report(lambda: done.set_exception(failure))
        else:
            report(lambda: done.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return await done


def in_terminal(app: App[Any], command: Sequence[str]) -> int:
    """Gives the terminal to a program until it ends; returns its exit code. Raises OSError if it cannot start.

    Inside of `suspend` nothing may raise, which would leave the terminal without the screen.
    """
    failure: Exception | None = None
    code = 0
    with app.suspend():
        try:
            code = subprocess.run(command, check=False).returncode
        except (OSError, ValueError) as error:
            failure = error
    if failure is not None:
        raise failure
    return code


@contextmanager
def reported(
    app: App[Any], title: str = "", severity: SeverityLevel = "error", also: type[Exception] = UserError
) -> Iterator[None]:
    """Ends its block at a user error, and shows the reason; `also`: another kind of error."""
    try:
        yield
    except (UserError, OSError, also) as error:
        app.notify(str(error), title=title, severity=severity, markup=False)


def narrator(app: App[Any]) -> Callable[[str], None]:
    """Shows the progress reported by work in a thread."""
    return partial(app.call_from_thread, partial(app.notify, markup=False))
