"""Suggestions for a finding: a value instead of a refused one; changes that are first applied and checked."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, get_origin

from launcher.check.finding import Finding, Settings, setting
from launcher.check.subject import Subject
from launcher.core.text import nearest
from launcher.preset import yaml_text
from launcher.preset.effective import EffectiveConfig
from launcher.preset.fields import Spec
from launcher.record.fix import Fix

REACH = 32  # maximum distance of a suggested number
ROUNDS = 5  # changes that one change may bring along
_SWITCHES = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}


def suggested_value(spec: Spec, value: Any, works: Callable[[Any], bool] = lambda _: True, own: Any = None) -> Any:
    """The value that is probably meant, is allowed and `works`; None without one.

    `1e-6` for the text '1e-6', 64 for 64.0, 0.9 for 90 with the limit 1; otherwise `own` (the preset's value without
    the refused one), the nearest limit, or veRL's default.
    """
    candidates = (each for each in _candidates(spec, value, own) if each is not None)
    return next((each for each in candidates if spec.allows(each) and works(each)), None)


def _candidates(spec: Spec, value: Any, own: Any) -> Iterator[Any]:
    is_text = isinstance(value, str)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # a text alone was taken for a list of one
    if isinstance(value, str):
        text = value.strip()
        yield _SWITCHES.get(text.lower())
        yield yaml_text.value_of(text)
        if any(get_origin(kind) is list for kind in spec.types):
            yield [yaml_text.value_of(part) for part in text.strip("[]").split(",")]
        if text.endswith("%"):
            value = _number(text[:-1])
            yield value and value / 100
        yield nearest(text.lower(), spec.choices)
        value = yaml_text.value_of(text)
    if isinstance(value, int) and value in (0, 1):
        yield bool(value)
    if isinstance(value, float) and value.is_integer():
        yield int(value)
    if isinstance(value, (int, float)) and 5 <= value <= 100:
        yield value / 100  # a percentage instead of a share
    yield own
    if isinstance(value, (int, float)):
        bounds = [bound for bound in (spec.ge, spec.le) if bound is not None]
        yield from sorted(bounds, key=lambda bound: abs(bound - value))
    if is_text and not spec.choices:
        return  # a word for a number does not mean veRL's default
    yield spec.default
    yield EffectiveConfig().get(spec.key) if spec.key else None


def _number(text: str) -> float | int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def tested(
    subject: Subject, findings: Sequence[Finding], check: Callable[[Subject], Iterable[Finding]]
) -> list[Finding]:
    """The findings, with changes after which `check` finds neither them nor other errors.

    A number that would cause another error is replaced by the nearest valid one. Without one, or if another finding
    would change it back, the change is extended by its consequences. If neither works, no change is offered.
    """
    known = {_name(finding) for finding in findings if finding.level == "error"}
    before = {_name(finding) for finding in findings}

    def wrong(finding: Finding, change: Settings) -> list[Finding]:
        """The remaining and new errors after a change."""
        after = check(subject.with_fields(change))
        return [
            each
            for each in after
            if _name(each) == _name(finding) or (each.level == "error" and _name(each) not in known)
        ]

    def settled(change: Settings) -> bool:
        """Whether no finding after the change would change its fields again."""
        new = (each for each in check(subject.with_fields(change)) if _name(each) not in before)
        return all(change.keys().isdisjoint(each.change or {}) for each in new)

    def better(finding: Finding) -> Finding:
        change = finding.change
        if not change or not (left := wrong(finding, change)):
            return finding
        instead = next((other for other in _numbers(change) if not wrong(finding, other)), None)
        if instead and settled(instead):
            return replace(finding, fixes=(setting(instead),))
        for _ in range(ROUNDS):
            more = next((each.change for each in left if each.change), None)
            if more is None:
                break
            change = {**change, **{name: value for name, value in more.items() if name not in change}}
            left = wrong(finding, change)
        if instead and (left or not settled(change)):
            return replace(finding, fixes=(setting(instead),))
        return replace(finding, fixes=(Fix(finding.fix) if left else setting(change),))

    return [better(finding) for finding in findings]


def _numbers(change: Settings) -> Iterator[Settings]:
    """Other numbers for a change of one number, nearest first."""
    (field, value), *others = change.items()
    if not others and type(value) is int:
        near = (number for distance in range(1, REACH + 1) for number in (value - distance, value + distance))
        yield from ({field: number} for number in near if number > 0)


def _name(finding: Finding) -> tuple[str, tuple[str, ...]]:
    return finding.id, finding.keys
