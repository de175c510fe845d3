"""Why a run ended, from its console log: the true cause, which is rarely the last line.

The driver's last words (from "Error executing job" on) are asked first. What is only a symptom there, such as
"Engine core initialization failed", is traced to the lines of the processes in which its cause stands. A run
that finished, was stopped or still runs is no failure, whatever harmless tracebacks its log contains.
"""

import re
import signal
from collections.abc import Iterable
from dataclasses import replace

from launcher.console.causes import CATALOGUE, Cause, Level
from launcher.console.causes.frames import Owner
from launcher.console.causes.scan import Scan
from launcher.console.causes.sighting import Found, Quote, Sighting, best
from launcher.console.diagnosis import Diagnosis, evidence
from launcher.console.endings import RAY_CPUS, complete, finished, hung, lost, running, stopped, waiting
from launcher.console.lines import Line

STALLED = 90.0
"""Seconds without a line after which a start-up that stands where Ray waits for CPUs is called stalled."""

_BY_ID = {cause.id: cause for cause in CATALOGUE}
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def diagnose(
    lines: Iterable[Line],
    *,
    exit_code: int | None = None,
    requested_by: str | None = None,
    alive: bool | None = None,
    stalled_for: float | None = None,
    steps_total: int | None = None,
) -> Diagnosis:
    """Reads the log once and says why the run ended.

    exit_code: of the driver, as a shell or as Popen gives it; None when not known.
    requested_by: who asked for the stop (exit.json); None when nobody did.
    alive: whether the driver still lives; None when not known, as for a log from elsewhere.
    stalled_for: seconds since the log grew, when it may still grow.
    steps_total: the last step, for a log that does not say it.
    """
    scan = Scan()
    scan.read(lines)
    scan.total = scan.total or steps_total
    code = 128 - exit_code if exit_code is not None and exit_code < 0 else exit_code
    return replace(_decide(scan, code, requested_by, alive, stalled_for), exit_code=code)


def _decide(
    scan: Scan, code: int | None, requested_by: str | None, alive: bool | None, idle: float | None
) -> Diagnosis:
    stop = scan.marks.get("signal")
    if stop is None or (scan.fatal is not None and scan.fatal < stop.line):
        stop = _interrupt(scan)
    if stop is not None:
        return stopped(scan, stop)
    if not alive and code != 0 and (requested_by is not None or (code or 0) - 128 in _STOPPING):
        found = _explain(scan, code) if scan.fatal is not None else None
        if found is None or found[0].level is Level.SYMPTOM:  # workers die when a run is stopped
            return stopped(scan, scan.marks.get("last"))
    if code == 0:
        return finished(scan)
    if code is None and not scan.block:
        stands = waiting(scan)
        if stands is not None and (alive is None if idle is None else idle >= STALLED):
            return _told(RAY_CPUS, [stands])
        hangs = hung(scan)
        if hangs is not None and (alive is None if idle is None else idle >= STALLED):
            return _explained(scan, *hangs)
        if complete(scan) and not alive:
            return finished(scan)
        if alive:
            return running(scan, alive)
        late = best(pair for pair in scan.seen.values() if _deadly(scan, *pair, over=alive is False))
        if late is not None:
            return _explained(scan, *late)
        return running(scan, alive) if alive is None else lost(scan)
    found = _explain(scan, code)
    return _unexplained(scan, code) if found is None else _explained(scan, *found)


def _explain(scan: Scan, code: int | None) -> Found | None:
    """The entry that fits the end of a failed run best, with the line that shows it; None when none does."""
    elsewhere = list(scan.seen.values())
    found = best((cause, sighting) for sighting in scan.block for cause in sighting.causes if sighting.shows(cause))
    if found is None and (scan.block or (code or 0) > 128):
        # An exception that no entry knows, or a signal: exceptions elsewhere need not have to do with it.
        return best(pair for pair in elsewhere if not pair[1].raised and pair[0].level is not Level.SYMPTOM)
    if found is None:
        return best(elsewhere)
    return (_behind(found[0], elsewhere) or found) if found[0].level is Level.SYMPTOM else found


def _deadly(scan: Scan, cause: Cause, sighting: Sighting, over: bool) -> bool:
    """Whether a log that was cut off most likely ended because of this: only a prompt can fail alone.

    over: the run is known to have ended; else what may be a symptom does not count.
    """
    step = scan.marks.get("step")
    after = step is None or sighting.quote.line > step.line
    telling = over or cause.level is Level.ROOT
    return after and telling and not re.match("AgentLoop|RewardLoop", sighting.source)


def _behind(symptom: Cause, elsewhere: list[Found]) -> Found | None:
    """What stands behind a symptom; another symptom when that is nearer to the cause."""
    hidden = [pair for pair in elsewhere if re.search(symptom.hides, pair[1].source) and pair[0] is not symptom]
    return best(hidden)


def _explained(scan: Scan, cause: Cause, sighting: Sighting) -> Diagnosis:
    """The diagnosis of a catalogue entry: its line, then others that say more, then the symptom it caused."""
    shown = [sighting]
    names = {_name(sighting)}
    same = [sighting]
    symptom = None
    for other in scan.block:
        if cause in other.causes and other.shows(cause):
            same.append(other)
            if _name(other) not in names and len(shown) < 3:
                names.add(_name(other))
                shown.append(other)
        elif any(known.level is Level.SYMPTOM and other.shows(known) for known in other.causes):
            symptom = other.quote
    quotes = [item.quote for item in shown]
    if cause.level is Level.SYMPTOM:
        quotes = [item.quote for item in scan.strangers if re.search(cause.hides, item.source)][:1] + quotes
    # an exception that was raised and caught in a library shows no line of veRL; the one that followed does
    place = next((item for item in same if item.owner is not Owner.LIBRARY), None)
    method = sighting.method if cause.where and sighting.owner is not Owner.USER else None
    if method is not None and "TaskRunner" in method.text:  # says nothing
        method = None
    key = next((item.full_key for item in same if item.full_key), None)
    extras = (place.frame if place else None, method, key, symptom)
    told = _told(cause, quotes + [extra for extra in extras if extra is not None], sighting.message)
    return replace(told, meaning=told.meaning + _others_on_the_gpu(scan, sighting.message))


def _others_on_the_gpu(scan: Scan, message: str) -> str:
    """Who else held memory of the GPU: torch names the others by their pid only."""
    held = [
        f"{scan.processes.get(int(pid), 'not a process of this log')} (pid {pid}) {size}"
        for pid, size in re.findall(r"Process (\d{1,9}) has ([\d.]+ .iB) memory in use", message)
    ]
    return f" Beside it on the GPU: {', '.join(held)}." if held else ""


def _name(sighting: Sighting) -> str:
    return re.split(r"[:( ]", sighting.message, maxsplit=1)[0]


def _told(cause: Cause, quotes: list[Quote], message: str = "") -> Diagnosis:
    words: dict[str, str] = {}
    for pattern in (cause.raised, cause.line):
        match = re.search(pattern, message) if pattern else None
        if match is not None:
            words |= {name: value for name, value in match.groupdict().items() if value}

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: words.get(found[1], "…"), text) if words else text

    return Diagnosis(cause.id, fill(cause.title), fill(cause.meaning), evidence(quotes), tuple(map(fill, cause.fixes)))


def _unexplained(scan: Scan, code: int | None) -> Diagnosis:
    raised = [sighting for sighting in scan.block if sighting.raised] or scan.strangers[-1:]
    if raised:
        root = raised[0] if scan.chained else raised[-1]
        return Diagnosis(
            "unknown",
            f"Unknown failure: {root.message[:160]}",
            "No entry of the catalogue fits. This is the innermost exception, and the line of your code or "
            "veRL's that led to it.",
            evidence([root.quote, root.frame, root.full_key]),
            (
                "read the log around this line",
                "`ppo-tui check PRESET` and `ppo-tui doctor` find most mistakes before the start",
                "env: HYDRA_FULL_ERROR=1 for a complete traceback",
            ),
        )
    last = scan.marks.get("last")
    if code == 128 + signal.SIGKILL:
        return _told(_BY_ID["host-oom-killed"], [last] if last else [])
    if code is not None and code > 128:
        told = _told(_BY_ID["killed-by-signal"], [last] if last else [])
        return replace(told, title=f"The run was ended by {_signal(code - 128)}")
    return Diagnosis(
        "unknown",
        "The run ended without saying why",
        "The log ends without an exception. Ray can lose a driver's last lines.",
        evidence([last]),
        ("look into the Ray session folder: /tmp/ray/session_latest/logs", "look at `dmesg | tail`"),
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _interrupt(scan: Scan) -> Quote | None:
    raised = [sighting for sighting in scan.block if sighting.raised]
    return raised[-1].quote if raised and raised[-1].message.startswith("KeyboardInterrupt") else None
