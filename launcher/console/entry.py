"""An entry of the catalog as the diagnosis of a run: filled from the message, with the fixes that this run can use."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from launcher.console.causes import Cause, Level
from launcher.console.diagnosis import Confidence, Diagnosis, shorten
from launcher.console.error_line import ErrorLine
from launcher.console.evidence import Evidence
from launcher.console.tracebacks import Quote
from launcher.record.fix import Fix
from launcher.verl.versions import newest

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def of_entry(
    log: Evidence, cause: Cause, quotes: Iterable[Quote | None], message: str = "", error: ErrorLine | None = None
) -> Diagnosis:
    """A catalog entry as a diagnosis, filled from the message that it matches."""
    words: dict[str, str] = {}
    for pattern in filter(None, (cause.raised, cause.line)):
        found = re.compile(pattern)
        match = found.search(message)
        for name in found.groupindex:
            value = match[name] if match is not None else None
            name = name.rstrip("0123456789")  # of alternatives: value, value2
            words[name] = value or words.get(name, "…")

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda name: words.get(name[1], "…"), text) if words else text

    quotes = shorten(quotes)
    fixes, certain = _fixes(log, cause, "\n".join((message, *(quote.text for quote in quotes))), error)
    return Diagnosis(
        cause.id,
        fill(cause.title),
        fill(cause.meaning),
        quotes,
        tuple(fix.filled(fill) for fix in fixes),
        confidence=_confidence(cause, certain),
    )


def _confidence(cause: Cause, certain: bool) -> Confidence:
    """`certain`: whether a fix needs nothing that the run does not show."""
    if cause.level is Level.ROOT and not cause.several and certain:
        return "exact"
    return "likely" if cause.level <= Level.BREAKDOWN else "unknown"


def _fixes(log: Evidence, cause: Cause, shown: str, error: ErrorLine | None) -> tuple[list[Fix], bool]:
    """The fixes of an entry, those with a condition that nothing shows last; whether there are others."""
    given = {newest(key): value for key, value in log.facts.settings.items()} | log.facts.settings
    device = log.facts.device or " device nvidia"
    frames = (f"{place} {error.codes.get(place, '')}" for place in error.calls) if error is not None else ()
    text = "\n".join((shown, device, *frames, *(f"{key}={value}" for key, value in given.items())))
    holding = [re.search(needs, text) is not None for needs in cause.needs]
    useful = [(fix, holds) for fix, holds in zip(cause.fixes, holding, strict=True) if not _idle(fix, given)]
    first = [fix for fix, holds in useful if holds]
    found = [*first, *(fix for fix, holds in useful if not holds and fix.when)] or list(cause.fixes)
    return [replace(found[0], alternative=False), *found[1:]], bool(first)


def _idle(fix: Fix, given: Mapping[str, str]) -> bool:
    """Whether a fix sets what the run has already, or removes what it does not have."""
    if not fix.changes or not given:
        return False
    absent = (not each.key.startswith("env.") and each.key.lstrip("+") not in given for each in fix.changes)
    removed = all(each.operation == "remove" for each in fix.changes) and all(absent)
    same = (
        each.operation == "set"
        and [_plain(value) for value in each.values] == [_plain(given.get(each.key.lstrip("+")))]
        for each in fix.changes
    )
    return removed or all(same)


def _plain(value: object) -> str:
    return str(value).strip("'\"").lower()
