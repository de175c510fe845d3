"""The command that shows why a run ended, and case files for another reader."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.output import Json, pasted_text, put, put_json, put_problems, put_result, put_table, resolved
from launcher.core.errors import UserError
from launcher.record.layout import RunDir

if TYPE_CHECKING:
    from launcher.runs.watch.log import Log

CaseFile = Annotated[bool, typer.Option("--case", help="Print a case file for a colleague or an assistant.")]


def put_case(source: "RunDir | Log", config: Sequence[str] = (), *, health: bool = False, json: bool = False) -> None:
    """Prints the case file of a source; `health` as in `case_of`."""
    from launcher.report.case import case_of

    case = case_of(source, config, health=health)
    put_result(case.text, {**asdict(case), "text": case.text}, json)


def diagnose(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A run, a console log, or - for a pasted log or thread.")
    ],
    case: CaseFile = False,
    json: Json = False,
) -> None:
    """Show why a run ended and how to fix it. A pasted thread is read as well."""
    if source == "-":
        if case:
            raise UserError("--case needs a run or a file", "save the text as a file")
        _diagnose_pasted(json)
        return
    origin = resolved(source, text=True)
    if case:
        put_case(origin, json=json)
        return
    _put_diagnosis(origin, json)


def _put_diagnosis(origin: "RunDir | Log", json: bool) -> None:
    from launcher.runs.watch.history import stall_report
    from launcher.runs.watch.run_diagnosis import explained
    from launcher.runs.watch.stalls import last_standstill, problem_of

    found = explained(origin)
    stalled = stall_report(origin) if isinstance(origin, RunDir) else None
    standstill = last_standstill(origin) if isinstance(origin, RunDir) else None
    standstill = standstill if standstill and standstill.until is None else None  # it may have moved again
    if json:
        known = {"stall_report": str(stalled[0]) if stalled else None}
        put_json({**found.to_json(), **known, "standstill": standstill.to_json() if standstill else None})
        return
    if standstill is not None:
        put_problems([problem_of(standstill, None)], meaning=True)
        put(f"  stacks: {stalled[0]}" if stalled else "  stacks: none")
        if found.diagnosis.cause == "running":
            return
    put_problems([found.problem], meaning=True)
    if isinstance(origin, RunDir) and (last := origin.last_attempt()):
        put(f"  log: {last.console}")
    if stalled and standstill is None:
        put(f"  when it hung: {stalled[0]}")
        for line in stalled[1]:
            put(f"    {line}")


def _diagnose_pasted(json: bool) -> None:
    """The cause of the log in a pasted text, its command, and its versions next to the installed ones."""
    from launcher.runs.judge.pasted_text import explain
    from launcher.scripts.pasted import LARGEST

    found = explain(pasted_text(LARGEST))
    if json:
        put_json(found.to_json())
        return
    if found.diagnosis is not None:
        put_problems([found.diagnosis.problem(found.offers)], meaning=True)
    else:
        put("no output of veRL in the text")
    if found.command is not None:
        put("command: import it with 'ppo-tui preset import - --name NAME', and paste the text again")
        for note in found.command.cut:
            put(f"  {note}")
    if found.versions:
        put_table(
            [("PACKAGE", "PASTED", "HERE"), *((each.package, each.pasted, each.here or "–") for each in found.versions)]
        )
