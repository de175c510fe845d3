"""The command `ppo-tui`: directly opens the screen or lists the runs if that is enough; otherwise calls Typer."""

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, cast

from launcher.cli.screen import CheckTheme, ListKeys, OpenScreen, Screen, ServeScreen, on_terminal
from launcher.core.errors import UserError, hint_for
from launcher.core.files import guard
from launcher.core.paths import home_hint
from launcher.core.secrets import Redacted
from launcher.core.text import TWINS
from launcher.record.layout import find, names_file


def main(
    open_screen: OpenScreen | None = None,
    list_keys: ListKeys | None = None,
    check_theme: CheckTheme | None = None,
    serve: ServeScreen | None = None,
) -> None:
    """Runs the command line and exits: 0, 1 for a failed check or run, 2 for wrong use, 130 for Ctrl-C."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller (`>&-`); no file of ours may get its descriptor
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=TWINS)  # text holds letters that the encoding of a C locale lacks
    # the one way to the terminal for what commands print; the screen paints on sys.__stderr__, through its own filter
    sys.stdout, sys.stderr = cast(TextIO, Redacted(sys.stdout)), cast(TextIO, Redacted(sys.stderr))
    guard()
    screen = Screen(open_screen, list_keys, check_theme, serve)
    code: int | str | None
    try:
        words = sys.argv[1:]
        code = _straight(words, screen)
        if code is None:
            from launcher.cli.root import command_line

            code = command_line(screen, words)
    except UserError as error:
        code = _failed(error.message, error.exit_code, error.hint, getattr(error, "table", ""))
    except KeyboardInterrupt:
        from launcher.cli.output import say

        say("cancelled")
        code = 130
    except BrokenPipeError:  # the reader of our output has ended (`| head`), which is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for pending output
        code = 0
    except OSError as error:  # a full disk, a folder that is not ours
        place = f"{error.filename}: " if error.filename else ""
        code = _failed(f"{place}{error.strerror or error}", 1, home_hint(error) or hint_for(error))
    sys.exit(code)


def _straight(words: Sequence[str], screen: Screen) -> int | None:
    """Opens the screen or lists the runs for simple command lines, and returns the exit code; None for others.

    Typer and its imports take a quarter of the time to the first frame, and of a list of 1,000 runs.
    """
    match words:
        case ["--host", host, *others]:
            from launcher.machine.hosts import run_on

            return run_on(host, others, terminal=on_terminal())
        case []:
            return screen.open()
        case ["attach", *others, run] if others in ([], ["--read-only"]) and _is_run(run) and on_terminal():
            return screen.show(find(run, _note), read_only=bool(others))
        case ["__complete", *others]:
            from launcher.cli.completion import complete

            for word, about in complete(others):
                print(f"{word}\t{about}")
            return 0
        case ["list"] | ["list", "--json"]:
            from launcher.cli.report import list_runs

            gc.disable()  # would take an eighth of the time of a list of 5,000 runs
            try:
                list_runs(json=len(words) > 1)
            finally:
                gc.enable()
            return 0
    return None


def _is_run(word: str) -> bool:
    """Whether a word is not an option, a cluster's address or a file."""
    return word[:1] != "-" and ":" not in word and not Path(word).exists() and not names_file(word)


def _note(text: str) -> None:
    from launcher.cli.output import say

    say(text)


def _failed(message: str, code: int, hint: str = "", table: str = "") -> int:
    from launcher.cli.output import fail

    fail(message, hint)
    print(table, end="\n" if table else "")
    return code


if __name__ == "__main__":
    main()
