"""The command that notes what the user says about a run."""

from typing import Annotated

import typer

from launcher.cli.launch import Run
from launcher.cli.output import Json, put, put_json
from launcher.record.control import refuse_later
from launcher.record.layout import find
from launcher.record.note import RunNote, read_note

Text = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="The note; words that begin with # are tags. '' removes the note.")
]


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(note)


def note(run: Run, text: Text = None, json: Json = False) -> None:
    """Set the note of a run, with #tags; without TEXT print the note."""
    found = find(run)
    if text is not None:
        refuse_later(found)
        RunNote.parse(text).write(found.note)
    noted = read_note(found.note)
    if json:
        put_json({"run": found.id, "note": noted.text, "tags": list(noted.tags)})
    else:
        put(str(noted))
