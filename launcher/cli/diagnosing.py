"""The command that shows why a run ended, and case files for another reader."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.output import (
    Every,
    Json,
    Yes,
    confirm,
    pasted_text,
    put,
    put_json,
    put_problems,
    put_result,
    put_table,
    resolved,
    say,
)
from launcher.core.errors import UserError
from launcher.record.layout import RunDir

if TYPE_CHECKING:
    from launcher.runs.watch.log import Log

CaseFile = Annotated[bool, typer.Option("--case", help="Print a case file for a colleague or an assistant.")]
Ask = Annotated[bool, typer.Option("--ask", help="Send the case file to the assistant in config.yaml; asks first.")]


def put_case(
    source: "RunDir | Log", config: Sequence[str] = (), *, health: bool = False, ask: bool, yes: bool, json: bool
) -> None:
    """Prints the case file of a source, or the assistant's answer to it; `health` as in `case_of`."""
    from launcher.report.case import case_of

    case = case_of(source, config, health=health)
    if not ask:
        put_result(case.text, {**asdict(case), "text": case.text}, json)
        return
    from launcher.report.assistant import answered
    from launcher.settings import read_assistant

    assistant, lines = read_assistant(), list[str]()
    say(f"{case.text}\n{len(case.text):,} characters to {assistant.to}")
    confirm("Send them?", yes, "sending a case file")

    async def answer() -> None:
        run = source if isinstance(source, RunDir) else None
        async with aclosing(answered(assistant, case.text, case.verl, run)) as coming:
            async for line in coming:
                lines.append(line)
                if not json:
                    put(line)

    asyncio.run(answer())
    if json:
        put_json({"assistant": assistant.name, "to": assistant.to, "lines": lines})


def diagnose(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A run, a console log, or - for a pasted log or thread.")
    ],
    case: CaseFile = False,
    ask: Ask = False,
    yes: Yes = False,
    every: Every = None,
    json: Json = False,
) -> None:
    """Show why a run ended and how to fix it. Also reads pasted logs and issue threads."""
    if source == "-":
        if case or ask:
            raise UserError("a case file needs a run or a log", "save the text as a file")
        _diagnose_pasted(json)
        return
    origin = resolved(source, text=True, every=every)
    if case or ask:
        put_case(origin, ask=ask, yes=yes, json=json)
        return
    _put_diagnosis(origin, json)


def put_without_step(origin: "RunDir | Log", json: bool, *, judged: bool = True) -> bool:
    """Prints why a log ended that has no step, or how much of one that has none yet was read; False for any other.

    `judged`: whether a rule judges it; steps that none judges do not count.
    """
    from launcher.core.format import counted
    from launcher.core.tail import lines_of
    from launcher.runs.watch.run_diagnosis import explained

    if isinstance(origin, RunDir) or ((begun := next(origin.steps(), None) is not None) and judged):
        return False
    if explained(origin).diagnosis.failed:
        _put_diagnosis(origin, json)
        return True
    lines = sum(1 for _ in lines_of(origin.text()))
    put_result(
        f"{origin.title or 'veRL'}: no {'judged ' if begun else ''}step yet, {counted(lines, 'line')} read",
        {"step": None, "lines": lines},
        json,
    )
    return True


def _put_diagnosis(origin: "RunDir | Log", json: bool) -> None:
    from launcher.runs.watch.history import stall_report
    from launcher.runs.watch.run_diagnosis import explained
    from launcher.runs.watch.stalls import last_standstill, problem_of

    found = explained(origin)
    stalled = stall_report(origin) if isinstance(origin, RunDir) else None
    standstill = last_standstill(origin) if isinstance(origin, RunDir) else None
    standstill = standstill if standstill and standstill.until is None else None  # it may have moved since
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
    """Prints the cause in a pasted log, its command, and its versions next to the installed ones."""
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
