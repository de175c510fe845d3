"""Finds why a run ended from its console log: the true cause, which is rarely the last line.

Errors at the driver's end (after "Error executing job") come first. A symptom there, such as "Engine core
initialization failed" or a collective timeout, is traced to its cause in the lines of other processes and ranks: among
the errors since the last step, the earliest one that explains the later ones wins, and these are listed as its
consequences. A run that finished, was stopped or still runs did not fail, whatever harmless tracebacks its log
contains.
"""

import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from launcher.console import endings
from launcher.console.causes import Cause, Level, cause_of
from launcher.console.diagnosis import UNKNOWN, Diagnosis, Place, shorten
from launcher.console.entry import of_entry
from launcher.console.error_line import Candidate, ErrorLine, likeliest
from launcher.console.evidence import Evidence
from launcher.console.machine_end import KILLED, full_disk, proven, senders
from launcher.console.rivals import differential, open_symptom
from launcher.console.tracebacks import Owner, Quote
from launcher.console.unlisted import OWN, deciding, first_failure, isolation, place_of
from launcher.metrics.frameworks import Framework
from launcher.record.attempt import MachineEnd
from launcher.record.fix import Change, Fix

STALLED = 90.0
"""Seconds without output after which a start-up that waits for CPUs counts as hanging."""

_STOPPING = (signal.SIGINT, signal.SIGTERM)
_SAYS = re.compile(r": |\(")  # separates an exception's type and message
_PROMPTS = "AgentLoop|RewardLoop"  # processes in which a prompt can fail alone
_OWN = (
    Fix("run `ppo-tui check PRESET` and `ppo-tui doctor`, which find most mistakes before the start"),
    Fix(changes=(Change("env.HYDRA_FULL_ERROR", "set", ("1",)),), why="for a complete traceback"),
)
"""Commands that show more about a failure of veRL."""


def diagnose(
    chunks: Iterable[bytes],
    *,
    exit_code: int | None = None,
    requested_by: str | None = None,
    alive: bool | None = None,
    stalled_for: float | None = None,
    steps_total: int | None = None,
    settled: bool | None = None,
    machine: MachineEnd | None = None,
    framework: Framework | None = None,
    versions: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Reads the log, in chunks of any size, and returns why the run ended.

    exit_code: the driver's, as in a shell or from Popen; None if unknown.
    requested_by: who requested the stop (exit.json); None without a request.
    alive: whether the driver still runs; None if unknown, as for a log from elsewhere.
    stalled_for: seconds since the log grew, if it may still grow.
    steps_total: the planned last step, for a log without it.
    settled: whether the last planned step is done, with validation and checkpoint; None if unknown.
    machine: the machine at the end; without it, only the log can show a reason.
    framework: the log's, if not veRL; causes and fixes that need veRL are then omitted.
    versions: of packages, as recorded by the run; those printed in the log are added.
    """
    log = Evidence(framework)
    log.facts.versions = {name.lower(): str(version) for name, version in (versions or {}).items()}
    log.read(chunks)
    log.machine = machine
    log.total = log.total or steps_total
    code = 128 - exit_code if exit_code is not None and exit_code < 0 else exit_code
    diagnosis = _decide(log, code, requested_by, alive, stalled_for, settled)
    if diagnosis.cause == "finished" and code is None and settled is not None:
        diagnosis = replace(diagnosis, title=f"{diagnosis.title} (exit code unknown)")
    return _with_context(log, diagnosis if diagnosis.failed else endings.without_signal(log, diagnosis), code)


def _with_context(log: Evidence, diagnosis: Diagnosis, code: int | None) -> Diagnosis:
    """The diagnosis with unread parts of the log, the exit code, and who may have killed the run."""
    left_out = f" {log.left_out >> 20:,} MiB in the middle of the log were not read." if log.left_out else ""
    fixes = diagnosis.fixes
    if log.framework is not None:
        fixes = tuple(fix for fix in fixes if not any(change.key[:4] != "env." for change in fix.changes))
    return replace(
        diagnosis,
        meaning=diagnosis.meaning + left_out,
        fixes=fixes,
        exit_code=code,
        senders=senders(diagnosis.cause, log.machine, watched=code is not None),
        settings=log.facts.settings,
        versions=log.facts.versions,
    )


def errors_so_far(chunks: Iterable[bytes], framework: Framework | None = None) -> Diagnosis | None:
    """The diagnosis of the errors in a live run's log; None without errors."""
    log = Evidence(framework)
    log.read(chunks)
    cause = _find_cause(log, None)
    if cause is not None:
        return _explained(log, *cause)
    return _unexplained(log, None) if log.unknown_errors or log.final_errors else None


def _decide(
    log: Evidence,
    code: int | None,
    requested_by: str | None,
    alive: bool | None,
    idle: float | None,
    settled: bool | None,
) -> Diagnosis:
    announced = likeliest(
        (cause, error) for error in log.final_errors for cause in error.causes if cause.announced and error.fits(cause)
    )
    if announced is not None and code != 0 and not alive:
        return _explained(log, *announced)
    stop = log.quote("signal")
    if stop is None or (log.end is not None and log.end < stop.line):
        stop = _interrupt(log)
    if stop is not None:
        return endings.stopped(log, stop)
    if not alive and code != 0 and (requested_by is not None or (code or 0) - 128 in _STOPPING):
        cause = _find_cause(log, code) if log.end is not None else None
        if cause is None or cause[0].level.symptom:  # workers fail when a run is stopped
            return endings.stopped(log, log.quote("last"))
    if log.framework is not None and code is None and not alive and not log.final_errors and not log.errors:
        return endings.finished(log) if endings.complete(log) else endings.unended(log)
    if code == 0:
        swallowed = likeliest(pair for pair in log.errors.values() if pair[0].swallowed)
        return endings.finished(log) if swallowed is None or endings.complete(log) else _explained(log, *swallowed)
    return _failed(log, code) if code is not None or log.final_errors else _open(log, alive, idle, settled)


def _open(log: Evidence, alive: bool | None, idle: float | None, settled: bool | None) -> Diagnosis:
    """The diagnosis of a log without a failure of its driver."""
    still = alive is None if idle is None else idle >= STALLED
    if still and (waits := endings.waiting(log)) is not None:
        return of_entry(log, waits[0], [waits[1]], waits[1].text)
    if still and (hangs := endings.hung(log)) is not None:
        return _explained(log, *hangs)
    if alive:
        return endings.running(log, alive)
    late = likeliest(pair for pair in log.errors.values() if _ended_the_run(log, *pair, over=alive is False))
    clean = settled is None or log.quote("final") is not None or (late is None and _broken(log) is None)
    if clean and endings.complete(log, settled):
        return endings.finished(log)
    if late is not None:
        return _explained(log, *late)
    if log.end is not None or _broken(log) is not None or log.quote("closed") is not None:
        return _unexplained(log, None)
    if alive is None:
        return open_symptom(log, endings.running(log, alive))
    return endings.lost(log) if log.machine is None else endings.vanished(log)


def _failed(log: Evidence, code: int | None) -> Diagnosis:
    """The diagnosis of a failed run; among several programs in a log, the first that ended is the cause."""
    died, last = log.died, next((error.program for error in log.final_errors if error.program), "")
    if died is not None and last and last != died.program:
        known = likeliest((cause, died) for cause in died.causes if died.fits(cause))
        return _located(log, died) if known is None else _explained(log, *known)
    cause = _find_cause(log, code)
    return _unexplained(log, code) if cause is None else _explained(log, *cause)


def _hidden(log: Evidence, symptom: Cause, shown: ErrorLine) -> ErrorLine | None:
    """The exception without an entry behind a symptom, if the log has it."""
    if not symptom.level.symptom:
        return None
    before = (each for each in log.unknown_errors if each.raised and each.quote.line < shown.quote.line)
    found = (each for each in before if re.search(symptom.cause_in, each.source) and not log.survived(each))
    return next(found, None) or next(_logged(log, symptom, shown), None)


def _logged(log: Evidence, symptom: Cause, shown: ErrorLine) -> Iterator[ErrorLine]:
    """Errors that a process logged without raising them, before a wrapper reported it."""
    if symptom.level is Level.WRAPPER:
        for line, text, source in log.facts.errors:
            own = symptom.line and re.match(symptom.line, text)
            if line < shown.quote.line and source and re.search(symptom.cause_in, source) and not own:
                yield ErrorLine(Quote(line, text), text, source, (), raised=False, context="")


def _find_cause(log: Evidence, code: int | None) -> Candidate | None:
    """The best matching entry for the end of a failed run, with its line; None without a match."""
    elsewhere = list(log.errors.values())
    final = likeliest((cause, error) for error in log.final_errors for cause in error.causes if error.fits(cause))
    if final is None and (log.final_errors or (code or 0) > 128):
        # An exception without an entry, or a signal: exceptions elsewhere may be unrelated.
        return likeliest(pair for pair in elsewhere if not pair[1].raised and not pair[0].level.symptom)
    if final is None:
        return likeliest(elsewhere)
    if final[0].level.symptom:
        return _behind(log, *final) or final
    before = likeliest(pair for pair in elsewhere if _explains(pair[0], final[0]) and not log.survived(pair[1]))
    return before or final


def _explains(cause: Cause, other: Cause) -> bool:
    return bool(cause.explains) and re.fullmatch(cause.explains, other.id) is not None


def _ended_the_run(log: Evidence, cause: Cause, error: ErrorLine, over: bool) -> bool:
    """Whether this error most likely ended a run whose log stops; an error of a single prompt does not.

    over: the run is known to have ended; otherwise possible symptoms do not count.
    """
    step = log.quote("step")
    after = step is None or error.quote.line > step.line
    certain = over or cause.level is Level.ROOT or cause.fatal
    return after and certain and not re.match(_PROMPTS, error.source)


def _broken(log: Evidence) -> ErrorLine | None:
    """The first exception without an entry and without a later step, except in single prompts."""
    raised = (each for each in log.unknown_errors if each.raised and not log.survived(each))
    return next((each for each in raised if not re.match(_PROMPTS, each.source)), None)


def _behind(log: Evidence, symptom: Cause, shown: ErrorLine) -> Candidate | None:
    """The cause of a symptom, or an earlier symptom.

    Errors before the last step do not count, except errors of prompts, which veRL drops.
    """
    return likeliest(
        (cause, error)
        for cause, error in log.errors.values()
        if cause is not symptom
        and re.search(symptom.cause_in, error.source)
        and (not cause.level.symptom or error.quote.line < shown.quote.line)
        and (re.match(_PROMPTS, error.source) or not log.survived(error))
    )


def _explained(log: Evidence, cause: Cause, error: ErrorLine) -> Diagnosis:
    """The diagnosis of a catalog entry: its line, lines with details, then the symptom that it caused."""
    shown = [error]
    names = {_name(error)}
    same = [error]
    symptom = None
    for other in log.final_errors:
        if cause in other.causes and other.fits(cause):
            same.append(other)
            if _name(other) not in names and len(shown) < 3:
                names.add(_name(other))
                shown.append(other)
        elif any(known.level.symptom and other.fits(known) for known in other.causes):
            symptom = other.quote
    quotes = [quote for item in shown for quote in (item.quote, item.told) if quote is not None]
    if cause.level.symptom:
        quotes = _around(log, cause, error, quotes)
    # an exception that was raised and caught in a library shows no line of veRL; the one that followed does
    place = next((item.frame for item in same if item.owner is not Owner.LIBRARY), None)
    call = error.remote_call if cause.where and error.owner is not Owner.USER else None
    if call is not None and "TaskRunner" in call.text:  # adds nothing
        call = None
    key = next((item.config_key for item in same if item.config_key), None)
    shown_lines = [*quotes, place, *_ended(log, error), call, key, symptom]
    diagnosis = of_entry(log, proven(cause, log.machine), shown_lines, error.message, error)
    found = differential(log, cause, error, _judged(log, cause, error, diagnosis))
    own = error.own if log.framework is not None and found.place is None else ""
    return replace(found, place=Place(file=own)) if own else found


def _ended(log: Evidence, shown: ErrorLine) -> list[Quote]:
    """The exception that ended the run, if another one is shown as its cause."""
    raised = [error for error in log.final_errors if error.raised]
    ended = raised[-1:] if shown in raised else []
    said = f"{shown.message} {shown.told}"
    return [error.quote for error in ended if _SAYS.split(error.message, 1)[-1].strip("'\")")[:80] not in said]


def _around(log: Evidence, symptom: Cause, error: ErrorLine, quotes: list[Quote]) -> list[Quote]:
    """A symptom's lines with possible explanations: exceptions without an entry, lines logged as errors."""
    before = [item.quote for item in log.unknown_errors if re.search(symptom.cause_in, item.source)]
    logged = [Quote(each.line, each.text) for each in log.facts.errors if each.line < error.quote.line][:1]
    gone = symptom.level in (Level.ABORT, Level.DEATH)  # without a message of its own
    return [*before[:1], *(logged if gone else ()), *quotes, *logged]


def _judged(log: Evidence, cause: Cause, error: ErrorLine, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with consequences and confidence; for a symptom, also its possible reasons."""
    meaning = diagnosis.meaning + _others_on_the_gpu(log, error.message) + _after(log, error)
    hidden = _hidden(log, cause, error)
    if hidden is not None:
        located = _located(log, hidden)
        kept = [*located.evidence[:1], *diagnosis.evidence]
        found = located.place is not None and located.place.setting is not None
        fixes = located.fixes if found else diagnosis.fixes  # a symptom's fixes are for one without a known reason
        return replace(located, cause=cause.id, meaning=meaning, evidence=shorten(kept), fixes=fixes)
    vague = cause.level is Level.GENERAL and error.raised
    above = deciding(log, error) if vague else None
    place = place_of(log, error, above) if vague else None
    evidence, rivals = shorten([above, *diagnosis.evidence]), place.rivals if place is not None else ()
    return replace(diagnosis, meaning=meaning, evidence=evidence, place=place, rivals=rivals)


def _after(log: Evidence, error: ErrorLine) -> str:
    """The symptoms that followed, in order."""
    every = [*log.errors.values(), *((cause, other) for other in log.final_errors for cause in other.causes)]
    first: dict[str, Candidate] = {}
    for cause, other in sorted(every, key=lambda pair: pair[1].quote.line):
        if cause.level.symptom and other.fits(cause) and other.quote.line > error.quote.line:
            first.setdefault(cause.id, (cause, other))
    titles = [
        f"{cause.title} (line {other.quote.line})" for cause, other in first.values() if cause not in error.causes
    ]
    return f" Consequences: {', '.join(titles[:3])}." if titles else ""


def _others_on_the_gpu(log: Evidence, message: str) -> str:
    """Other holders of the GPU's memory; torch gives only their pids."""
    held = [
        f"{log.processes.get(int(pid), 'not a process of this log')} (pid {pid}) {size}"
        for pid, size in re.findall(r"Process (\d{1,9}) has ([\d.]+ .iB) memory in use", message)
    ]
    return f" Also on the GPU: {', '.join(held)}." if held else ""


def _name(error: ErrorLine) -> str:
    return re.split(r"[:( ]", error.message, maxsplit=1)[0]


def _located(log: Evidence, root: ErrorLine) -> Diagnosis:
    """A failure without an entry: its place, the setting that runs that code, and search words."""
    above = deciding(log, root)
    place = place_of(log, root, above)
    first = [above] if above is not None else []
    likely = bool(place.component and (place.file or place.setting))
    where = place.file if log.framework is not None and place.component == OWN else f"in {place.component}"
    message = (above.text if above else root.whole)[:160]
    found = Diagnosis(
        UNKNOWN,
        f"{f'Likely {where}' if likely else 'Unknown failure'}: {message}",
        "No entry of the catalog matches. The quoted line is the first failure, followed by the line in "
        f"your code or in veRL that led to it.{_after(log, root)}",
        shorten([*first, root.quote, root.told, root.frame, *_ended(log, root), root.config_key]),
        (*isolation(place), Fix("read the log around this line"), *(_OWN if log.framework is None else ())),
        confidence="likely" if likely else "unknown",
        place=place,
        rivals=place.rivals,
    )
    return differential(log, None, root, found)


def _unexplained(log: Evidence, code: int | None) -> Diagnosis:
    root = first_failure(log)
    if root is not None:
        return _located(log, root)
    last = log.quote("last")
    if (full := full_disk(code, log.machine)) is not None:
        return of_entry(log, full, [last])
    if code == 128 + signal.SIGKILL:
        return of_entry(log, proven(cause_of(KILLED), log.machine), [last])
    if code is not None and code > 128:
        killed = of_entry(log, cause_of("killed-by-signal"), [last])
        return replace(killed, title=f"Run ended by {_signal(code - 128)}")
    return _silent(log, last)


def _silent(log: Evidence, last: Quote | None) -> Diagnosis:
    """A run without an exception: its lines that report an error, if any."""
    repeated, named = log.facts.repeated, log.facts.named or next(iter(log.facts.errors), None)
    if named is not None:
        line, said, source = named
        if repeated is not None:
            line, said = repeated[0]
        found = _located(log, ErrorLine(Quote(line, said), said, source, (), raised=False, context=""))
        again = f" It was printed {repeated[1]}×." if repeated is not None else ""
        return replace(found, meaning=found.meaning + again)
    return Diagnosis(
        UNKNOWN,
        "Run ended without an error message",
        "The log ends without an exception. Ray can lose the driver's last lines.",
        shorten([last]),
        (Fix("read the logs in the Ray session folder: /tmp/ray/session_latest/logs"), Fix("run `dmesg | tail`")),
        confidence="unknown",
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _interrupt(log: Evidence) -> Quote | None:
    raised = [error for error in log.final_errors if error.raised]
    return raised[-1].quote if raised and raised[-1].message.startswith("KeyboardInterrupt") else None
