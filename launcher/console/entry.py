"""A catalog entry as the diagnosis of a run: filled in from the message, with the fixes for this run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from launcher.console.causes import Cause, Level
from launcher.console.diagnosis import Confidence, Diagnosis, shorten
from launcher.console.error_line import ErrorLine
from launcher.console.evidence import Evidence
from launcher.console.tracebacks import Quote
from launcher.record.fix import Change, Fix

_GUIDE = Fix("use the versions or the image of veRL's guide for this device")
_HAS = Fix("read the quoted lines: the run already has the settings that usually prevent this")
_INSTALL = re.compile(r"verl\[vllm\](==[\d.]+')(?: \(installs [^)]*\))?")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def of_entry(
    log: Evidence, cause: Cause, quotes: Iterable[Quote | None], message: str = "", error: ErrorLine | None = None
) -> Diagnosis:
    """A catalog entry as a diagnosis, filled in from its matching message."""
    words: dict[str, str] = {}
    for pattern in filter(None, (cause.raised, cause.line)):
        found = re.compile(pattern)
        match = found.search(message)
        for name in found.groupindex:
            value = match[name] if match is not None else None
            name = name.rstrip("0123456789")  # numbered alternatives: value, value2
            words[name] = value or words.get(name, "…")

    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda name: words.get(name[1], "…"), text) if words else text

    quotes = shorten(quotes)
    fixes, certain = fixes_for(log, cause.fixes, "\n".join((message, *(quote.text for quote in quotes))), error)
    confidence: Confidence = "likely" if cause.level <= Level.BREAKDOWN else "unknown"
    if cause.level is Level.ROOT and not cause.several and certain:
        confidence = "exact"
    fixes = [fix.filled(fill) for fix in fixes]
    return Diagnosis(cause.id, fill(cause.title), fill(cause.meaning), quotes, tuple(fixes), confidence=confidence)


def fixes_for(log: Evidence, fixes: Sequence[Fix], shown: str, error: ErrorLine | None) -> tuple[list[Fix], bool]:
    """The fixes that change something in this run, and whether one has no open condition.

    `needs` of a fix must match in the error, its frames, `KEY=VALUE` of the run or `device npu` (amd, nvidia).
    Otherwise the fix comes last or, without a `when`, is omitted.
    """
    given = log.facts.given
    device = log.facts.device or "device nvidia"
    frames = (f"{place} {error.codes.get(place, '')}" for place in error.calls) if error is not None else ()
    text = "\n".join((shown, device, *frames, *(f"{key}={value}" for key, value in given.items())))
    useful = [fix for each in fixes if (fix := _in_this_run(each, given)) is not None]
    first = [fix for fix in useful if re.search(fix.needs, text)]
    later = [fix for fix in useful if fix not in first and fix.when]
    found = first + later or ([_GUIDE] if log.facts.device else [fix for fix in fixes if not fix.changes][:1] or [_HAS])
    return [replace(fix, needs="", alternative=fix.alternative and fix is not found[0]) for fix in found], bool(first)


def _in_this_run(fix: Fix, given: Mapping[str, str]) -> Fix | None:
    """The fix without changes for a missing critic or another engine; None if nothing is left."""
    lacks_critic = given.get("algorithm.adv_estimator", "gae") != "gae" and given.get("critic.enable") != "True"
    changes = tuple(each for each in fix.changes if not (lacks_critic and each.key.startswith("critic.")))
    if fix.changes and all(_idle(each, given) for each in changes):
        return None
    if given.get("actor_rollout_ref.rollout.name") == "sglang":
        fix = replace(fix, do=_INSTALL.sub(r"verl[sglang]\1", fix.do))
    return replace(fix, changes=changes)


def _idle(change: Change, given: Mapping[str, str]) -> bool:
    """Whether it sets an existing value, or removes a missing one."""
    key = change.key.lstrip("+")
    if change.operation == "remove":
        return bool(given) and key not in given and not key.startswith("env.")
    return change.operation == "set" and key in given and [_plain(given[key])] == [*map(_plain, change.values)]


def _plain(value: object) -> str:
    return str(value).strip("'\"").lower()
