"""The texts of `ppo-tui help TOPIC` and of the screen's reference page, from reference data.

`tools/pages.py` makes the reference pages of the documentation from the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.tables import read_tables
from launcher.core.text import near_hint
from launcher.search import Words, occurs, ranked

if TYPE_CHECKING:
    from launcher.health.catalogue import RuleData
    from launcher.rivals.rows import Row

_PLACE = re.compile(r"\{[\w./-]+\}")  # a value of the run
_LIMITS = Path(__file__).parent / "health" / "limits.toml"
_COMMANDS = Path(__file__).parent / "cli" / "words.toml"
REFERENCE = Path(__file__).with_name("reference.toml")
"""Settings, pages, and search words."""
GUIDE, GUIDES = "guide", Path(__file__).with_name("guides.toml")
"""The kind of a topic that is a documentation page; these pages, and the words of questions about them."""
_LISTED = 3  # topics that the list names of each kind
_FOUND = 10  # topics that a search lists
_GUIDES = 2  # guides listed before other topics
_ESSENTIAL, _RULE, _RIVAL = 0.08, 0.05, -0.5  # weights


class Topic(NamedTuple):
    """A topic: its kind, name, title and meaning, and the function that makes its text."""

    kind: str
    name: str
    title: str
    meaning: str
    text: Callable[[], str]
    weight: float = 0  # higher for the topics that users mean most often

    @property
    def words(self) -> Words:
        """The searched words."""
        return Words(self.name, f"{self.title} {_also().get(self.name, '')}", self.meaning, self.weight)

    @property
    def about(self) -> str:
        """The topic in one line."""
        return self.title or self.meaning.partition(". ")[0].rstrip(".")


def text_of(topic: str) -> str:
    """The text of a topic: its name and kind, then paragraphs and items. Raises UserError for an unknown topic."""
    found = [each for each in topics() if each.name.lower() == topic.lower()]
    if not found:
        from launcher.metrics.glossary import UNKNOWN, describe

        if describe(topic).meaning == UNKNOWN:
            hint = near_hint(topic, (each.name for each in topics()), "'ppo-tui help' lists the kinds")
            raise UserError(f"no topic '{topic}'", hint)
        return f"{topic} (metric)\n\n{_metric_text(topic)}"
    return "\n\n".join(f"{each.name} ({each.kind})\n\n{each.text()}" for each in found)


def search(query: str) -> list[Topic]:
    """The matching topics, best first: topics with this name, guides, others."""
    meant = " ".join(word for word in query.split() if word.lower() not in read_tables(GUIDES)["fillers"].split())
    asked = ranked(meant, (row for row in _asked() if occurs(meant, row[1])), itemgetter(1))
    guides = list(dict.fromkeys(guide for guide, _ in asked))[:_GUIDES]
    found = dict.fromkeys([*guides, *ranked(query, topics(), lambda each: each.words)])
    return sorted(found, key=lambda each: each.name.lower() != query.lower())[:_FOUND]


def hits(query: str) -> list[Topic]:
    """The topics of a search that have the words themselves."""
    return [each for each in search(query) if each.kind == GUIDE or occurs(query, each.words)]


def listed() -> list[tuple[str, str, str]]:
    """A row per kind of topic: its number of topics, and examples."""
    kinds: dict[str, list[str]] = {}
    for each in topics():
        kinds.setdefault(each.kind, []).append(each.name)
    rows = [(kind, str(len(names)), ", ".join(names[:_LISTED])) for kind, names in kinds.items()]
    return [("KIND", "TOPICS", "SUCH AS"), *rows]


@cache
def topics() -> tuple[Topic, ...]:
    """Every topic."""
    kinds = (_fields, _rules, _findings, _causes, _metrics, _settings, _pages, _commands, _recipes, _guides)
    return tuple(topic for kind in kinds for topic in kind())


@cache
def _also() -> Mapping[str, str]:
    words: Mapping[str, str] = read_tables(REFERENCE)["also"]
    return words


def _plain(name: str, kind: str, text: str) -> Topic:
    """A topic whose text is its meaning, without Markdown links and code marks."""
    meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
    return Topic(kind, name, "", meaning, lambda: meaning)


def _guides() -> Iterator[Topic]:
    yield from dict.fromkeys(guide for guide, _ in _asked())


@cache
def _asked() -> list[tuple[Topic, Words]]:
    rows = []
    for path, row in read_tables(GUIDES)["guide"].items():
        guide = _plain(path, GUIDE, "\n\n".join((row["about"], *row["commands"])))._replace(title=row["title"])
        rows += [(guide, Words(asked, row["title"], row["about"])) for asked in row["asked"]]
    return rows


def _settings() -> Iterator[Topic]:
    for name, row in read_tables(REFERENCE)["setting"].items():
        parts = [f"{word}: {row[key]}" for word, key in (("Set by", "by"), ("Default", "default")) if key in row]
        topic = _plain(name, "setting of config.yaml", "\n".join([f"{row['about']}.", *parts]))
        yield topic._replace(meaning=topic.meaning.partition("\n")[0])


def _pages() -> Iterator[Topic]:
    for name, about in read_tables(REFERENCE)["page"].items():
        yield _plain(name, "page", about)


def _commands() -> Iterator[Topic]:
    for name, row in read_tables(_COMMANDS).items():
        if name:
            yield _plain(name, "command", f"{row['about']}.\n\nppo-tui {name} --help")._replace(meaning=row["about"])


def _metrics() -> Iterator[Topic]:
    from launcher.metrics.glossary import describe, examples

    for name in examples():
        yield Topic("metric", name, "", describe(name).meaning, partial(_metric_text, name))


def _metric_text(key: str) -> str:
    from launcher.metrics.glossary import describe

    metric = describe(key)
    return metric.meaning + (f"\n\nUnit: {metric.unit}" if metric.unit else "")


def _rules() -> Iterator[Topic]:
    from launcher.health.catalogue import rules

    for id, rule in rules().items():
        yield Topic("rule", id, rule.title, rule.meaning, partial(_rule_text, rule), _RULE)


def _rule_text(rule: RuleData) -> str:
    return "\n".join(rule_lines(rule))


def rule_lines(rule: RuleData) -> Iterator[str]:
    """The meaning of a rule, its limits, when its flag rises and clears, and what to try."""
    from launcher.core.format import number
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


def _findings() -> Iterator[Topic]:
    from launcher.check.finding import levels, variants

    def text(id: str) -> str:
        return f"{variants()[id][0]['text']}\n\nLevel: {levels(id)}"

    for id, rows in variants().items():
        yield Topic("finding", id, "", str(rows[0]["text"]), partial(text, id))


def _causes() -> Iterator[Topic]:
    from launcher.console.causes import Cause, catalogue
    from launcher.console.rivals import symptoms
    from launcher.health.rivals import rows
    from launcher.preset.settle import shown_name

    def text(cause: Cause | Row) -> str:
        looks, threads = [fix.sentence(shown_name) for fix in cause.fixes], list[str]()
        if isinstance(cause, Cause):
            threads = ["", *(sample.thread for sample in cause.samples if sample.thread)][:2]
        elif cause.decides:
            looks.append(cause.decides)
        lines = [f"{cause.title}. {cause.meaning}", "", "What to try:", "", *(f"* {look}" for look in looks), *threads]
        return _PLACE.sub("…", "\n".join(lines))

    rivals: list[Row] = [*(row for each in symptoms() if each.message for row in each.rivals), *rows()]
    every: list[Cause | Row] = [*catalogue(), *(row for row in rivals if not row.entry)]
    for cause in every:
        title, weight = _PLACE.sub("…", cause.title), 0 if isinstance(cause, Cause) else _RIVAL
        yield Topic("cause", cause.id, title, cause.meaning, partial(text, cause), weight)


def _fields() -> Iterator[Topic]:
    from launcher.preset.fields import Spec
    from launcher.preset.schema import FIELDS, SETTINGS
    from launcher.verl.usual import BY_VERL_KEY

    def text(spec: Spec) -> str:
        unit = f" ({spec.unit})" if spec.unit else ""
        key = f"\nveRL key: {spec.plus}{spec.key}" if spec.key else ""
        default = "" if spec.default is None else f"\nDefault: {spec.default}"
        usual = "".join(f"\nUsual: {each.words} ({each.source})" for each in BY_VERL_KEY.get(spec.key, ()))
        return f"{spec.help}\n\nValues: {spec.allowed}{unit}{key}{default}{usual}"

    for name, spec in SETTINGS.items():
        kind = "preset field" if name in FIELDS else "preset setting"
        yield Topic(kind, name, "", spec.help, partial(text, spec), _ESSENTIAL if spec.essential else 0)


def _recipes() -> Iterator[Topic]:
    from launcher.preset.files import recipe_about, recipes

    for name in recipes():
        yield Topic("recipe", name, "", recipe_about(name), partial(recipe_about, name))
