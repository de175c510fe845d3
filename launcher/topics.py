"""The texts of `ppo-tui help TOPIC` and of the reference page of the screen, from reference data.
`tools/pages.py` makes the reference pages of the documentation from the same texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.text import near_hint

if TYPE_CHECKING:
    from launcher.health.catalogue import RuleData

_LIMITS = Path(__file__).parent / "health" / "limits.toml"
_LISTED = 3  # topics that the list names of each kind


def text_of(topic: str) -> str:
    """The text about a topic: its name and kind, then paragraphs and items. Raises UserError for an unknown topic."""
    wanted = topic.lower()
    known = [(kind, name, text) for kind, texts in topics().items() for name, text in texts.items()]
    found = [entry for entry in known if entry[1].lower() == wanted]
    if not found:
        from launcher.metrics.glossary import UNKNOWN, describe

        metric = describe(topic)
        if metric.meaning == UNKNOWN:
            names = [name for _, name, _ in known]
            raise UserError(f"no topic '{topic}'", near_hint(topic, names, "'ppo-tui help' lists the kinds"))
        unit = f"\n\nUnit: {metric.unit}" if metric.unit else ""
        return f"{topic} (metric)\n\n{metric.meaning}{unit}"
    return "\n\n".join(f"{name} ({kind})\n\n{text()}" for kind, name, text in found)


def listed() -> list[tuple[str, str, str]]:
    """A row per kind of topic: how many there are, and some."""
    rows = [("KIND", "TOPICS", "SUCH AS")]
    rows += [(kind, str(len(texts)), ", ".join(list(texts)[:_LISTED])) for kind, texts in topics().items()]
    return [*rows, ("command", "all", "run, check, try"), ("metric", "all", "actor/entropy, critic/score/mean")]


Texts = Mapping[str, Callable[[], str]]


def topics() -> dict[str, Texts]:
    """Every topic by its kind, with the function that makes its text."""
    return {
        "rule": _rules(),
        "finding": _findings(),
        "cause": _causes(),
        "preset field": _fields(),
        "recipe": _recipes(),
    }


def _rules() -> Texts:
    from launcher.health.catalogue import rules

    return {id: partial(_rule_text, rule) for id, rule in rules().items()}


def _rule_text(rule: RuleData) -> str:
    return "\n".join(rule_lines(rule))


def rule_lines(rule: RuleData) -> Iterator[str]:
    """The meaning of a rule, its limits, when its flag rises and clears, and what to try."""
    from launcher.core.format import number
    from launcher.core.tables import read_tables
    from launcher.preset.settle import shown_name
    from launcher.record.levels import FLAGS

    yield f"{rule.title}. {rule.meaning}"
    yield ""
    words = read_tables(_LIMITS)[rule.id]
    for name in dict.fromkeys(name.partition(".")[2] for name in rule.limits):
        values = [(level, rule.limits.get(f"{key}.{name}")) for level, key in FLAGS]
        given = [f"{level} {number(limit.value)}" for level, limit in values if limit is not None]
        yield f"* {name}: {words[name]}. {', '.join(given)}"
    yield ""
    yield debounce_sentence(rule)
    yield ""
    yield "What to try:"
    yield ""
    yield from dict.fromkeys(f"* {fix.sentence(shown_name)}" for fix in rule.advice)


def debounce_sentence(rule: RuleData) -> str:
    """When the flag of a rule rises, and when it clears."""
    (count, window), release = rule.raised, rule.release
    rises = "The flag rises at once" if window == 1 else f"The flag rises when {count} of {window} steps cross a limit"
    return f"{rises}. It clears after {counted(release, 'good step')}."


def _findings() -> Texts:
    from launcher.check.finding import levels, variants

    def text(id: str) -> str:
        return f"{variants()[id][0]['text']}\n\nLevel: {levels(id)}"

    return {id: partial(text, id) for id in variants()}


def _causes() -> Texts:
    from launcher.console.causes import Cause, catalogue
    from launcher.preset.settle import shown_name

    def text(cause: Cause) -> str:
        threads = [sample.thread for sample in cause.samples if sample.thread]
        fixes = [f"* {fix.sentence(shown_name)}" for fix in cause.fixes]
        return "\n".join([f"{cause.title}. {cause.meaning}", "", "What to try:", "", *fixes, *["", *threads[:1]]])

    return {cause.id: partial(text, cause) for cause in catalogue()}


def _fields() -> Texts:
    from launcher.preset.fields import Spec
    from launcher.preset.schema import FIELDS
    from launcher.preset.usual import BY_VERL_KEY

    def text(spec: Spec) -> str:
        unit = f" ({spec.unit})" if spec.unit else ""
        key = f"\nveRL key: {spec.plus}{spec.key}" if spec.key else ""
        default = "" if spec.default is None else f"\nDefault: {spec.default}"
        usual = "".join(f"\nUsual: {each.words} ({each.source})" for each in BY_VERL_KEY.get(spec.key, ()))
        return f"{spec.help}\n\nValues: {spec.allowed}{unit}{key}{default}{usual}"

    return {name: partial(text, spec) for name, spec in FIELDS.items()}


def _recipes() -> Texts:
    from launcher.preset.files import recipe_about, recipes

    return {name: partial(recipe_about, name) for name in recipes()}
