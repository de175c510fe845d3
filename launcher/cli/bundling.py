"""The command that packs a run for an issue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.output import Json, Run, put_result, say
from launcher.record.layout import find

if TYPE_CHECKING:
    from launcher.report.minimal import Minimal


def bundle(
    run: Run,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE.zip", help="File to write (default: RUN-bundle.zip).")
    ] = None,
    minimal: Annotated[
        bool, typer.Option("--minimal", help="Find the fewest settings with which the run fails on the toy.")
    ] = False,
    json: Json = False,
) -> None:
    """Pack a run for an issue: text, versions, cause, stacks. Secrets and names of people and hosts are replaced.

    With --minimal, Ctrl-C ends the search and packs what it has found.
    """
    from launcher.report.bundle import check, write

    target = find(run)
    to = to or Path(f"{target.id}-bundle.zip")
    check(to)
    found = _minimal(target.id) if minimal else None
    written = write(target, to, found)
    smallest = {"settings": list(found.settings), "before": found.before, "probes": found.probes} if found else None
    put_result(str(written), {"run": target.id, "file": str(written), "minimal": smallest}, json)


def _minimal(run: str) -> "Minimal":
    from launcher.report.minimal import minimal

    found = minimal(find(run), say)
    say(found.told)
    say(found.command)
    return found
