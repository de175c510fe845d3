"""Facts about a failure without a catalog entry: its place, the responsible setting, the versions.

Software components are the rows of components.toml, which describes their fields.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from launcher.console.diagnosis import Package, Place, Setting
from launcher.console.error_line import ErrorLine
from launcher.console.evidence import Evidence
from launcher.console.run_facts import RunFacts
from launcher.console.tracebacks import Owner, Quote
from launcher.core.tables import record, tables_of
from launcher.record.fix import Change, Fix
from launcher.verl.code_settings import Condition, conditions, default_of, requirements, within

OWN = "your code"  # the component of an exception that it raises
_NEAR = 4  # innermost frames whose settings precede their component's
_WHOLE = 200  # settings in a log with the whole configuration, so that missing keys are unset
_LONG, _SHORT = 12, 8  # characters of a setting's name that is not a word of the language; of one that is likely
_ABOVE = 40  # lines above an exception in which a decisive line may be
_TOGETHER = 3  # lines between outputs of one tool, of which the first decides
# What only says that an exception was raised in a worker of a loader.
_CAUGHT = re.compile(r"\S+: Caught \w+ in ")
# An exception that says little by itself: one of another process before it is its reason.
_THIN = re.compile(
    r"(?:AttributeError|TypeError): 'NoneType'|(?:\w+\.)*(?:KeyError|IndexError|EOFError|BrokenPipeError)\b"
    r"|(?:\w+\.)*\w*(?:Timeout|Connection|Cancelled)\w*Error|AssertionError$|RuntimeError: .*(?:failed|died|exited)"
)
_VERL = re.compile(r"(?:actor_rollout_ref|critic|data|trainer|algorithm|reward\w*|custom_reward_function|ray_kwargs)\.")
_QUOTED = re.compile(r"""['"`]([A-Za-z][\w.-]{1,40})['"`]|(?:: |=|\bgot )([A-Za-z][\w.-]{1,40})\b""")
_VALUE = re.compile(r"0x[0-9a-f]+|/\S+/|\b\d[\d.,]*\b|[\[{(].{60,}")


@dataclass(frozen=True)
class Component:
    """A software component, found by an exception's frames or words."""

    name: str
    package: str = ""
    at: str = ""
    text: str = ""
    settings: tuple[Condition, ...] = ()


@functools.cache
def _components() -> tuple[Component, ...]:
    """All components, cached."""
    tables = tables_of(__file__, "components.toml")
    named = tables["settings"]

    def conditions(written: str | Sequence[str]) -> tuple[Condition, ...]:
        return tuple(map(Condition.read, named[written] if isinstance(written, str) else written))

    return tuple(record(Component, row, settings=conditions(row.get("settings", ()))) for row in tables["component"])


def first_failure(log: Evidence) -> ErrorLine | None:
    """The first failure in causal order among the exceptions without an entry.

    The driver's innermost one, unless it is unspecific and a worker called by the driver failed before.
    """
    raised = [error for error in log.final_errors if error.raised]
    raised = [error for error in raised if not _CAUGHT.match(error.message)] or raised
    elsewhere = [error for error in log.unknown_errors if not log.survived(error)]
    if not raised:
        return elsewhere[0] if elsewhere else next(iter(log.unknown_errors[-1:]), None)
    root = raised[0] if log.chained else raised[-1]
    before = [error for error in elsewhere if error.raised and error.quote.line < root.quote.line]
    if not _THIN.match(root.message):
        return root
    mine = [error for error in raised if error.calls and error.quote.line < root.quote.line]
    return next(iter(before), None) or (mine[-1] if mine and not root.calls else root)


def deciding(log: Evidence, error: ErrorLine) -> Quote | None:
    """The decisive line above an exception: `/usr/bin/ld: cannot find -lcuda`."""
    before = [
        quote for quote in log.facts.deciding if quote.line < error.quote.line and quote.text not in error.message
    ]
    first = next((quote for quote in before if error.quote.line - quote.line <= _ABOVE), None)
    for quote in reversed(before):
        if first is not None and 0 < first.line - quote.line <= _TOGETHER:
            first = quote
    return first


def place_of(log: Evidence, error: ErrorLine, above: Quote | None = None) -> Place:
    """The place of an exception, and the settings and versions that its code depends on."""
    text = f"{error.message} {above.text if above else ''}"
    frames = [place for place in error.calls if ":" in place]
    if log.framework is not None and (own := error.own_call) in frames:  # its callers, a TRL trainer, are not at fault
        frames = frames[len(frames) - 1 - frames[::-1].index(own) :]
    raised = error.message.partition(": ")[0]
    last = [f"{place} {error.codes.get(place, '')}" for place in frames[-1:]]
    module = [raised.replace(".", "/")] if raised.count(".") > 1 and " " not in raised else []
    component, frame = _component_of(text, [error.source, *module, *frames[:-1], *last])
    if component is None and error.owner is Owner.USER:
        component = Component(OWN)
    file = frame.partition(":")[0] if ":" in frame else f"process {frame}" if frame and frame == error.source else ""
    if error.owner is Owner.USER and error.frame is not None:
        file = error.own if log.framework is not None else error.frame.text.partition('"')[2].partition('"')[0]
    setting = _setting(text, error, component, log.facts)
    packages = tuple(_packages(component, log.facts))
    return Place(component.name if component else "", file, setting, packages, _search(error, component, frame))


def isolation(place: Place) -> Iterator[Fix]:
    """The run without the setting that enables the failing code, which isolates the failure, but is not a fix."""
    if place.setting is not None and place.setting.without:
        change = Change(place.setting.key, "set", (place.setting.without,))
        why = "in a short fresh run: not a fix, but shows whether it is the cause"
        yield Fix("isolate", (change,), why=why, isolates=True)
        yield Fix("start this short run with `ppo-tui try RUN`", fits="own run")


def _component_of(text: str, places: Sequence[str]) -> tuple[Component | None, str]:
    """The component of an exception with these frames (innermost last), and the frame that shows it."""
    for each in _components():
        if each.text and not each.at and re.search(each.text, text):
            return each, places[-1] if places else ""
    for place in reversed(places):
        for each in _components():
            if each.at and re.search(each.at, place):
                return each, place
    return next((each for each in _components() if each.text and re.search(each.text, text)), None), ""


def _setting(text: str, error: ErrorLine, component: Component | None, facts: RunFacts) -> Setting | None:
    """The setting whose value the message quotes, that enables the innermost frames, or that they or the message name.

    A setting with its default is never at fault.
    """
    given = facts.given
    set_ = {key: value for key, value in given.items() if _is_set(key, value)}
    quoted = {word for pair in _QUOTED.findall(text) for word in pair} & {value.strip("'\"") for value in set_.values()}
    having = [key for key in set_ if key in facts.settings and set_[key].strip("'\"") in quoted]
    having = [key for key in having if key.startswith("actor_rollout_ref.")] or having  # others follow the actor's
    if len(having) == 1:
        default = default_of(having[0])
        words = f"{having[0]}={set_[having[0]]}"
        return Setting(having[0], set_[having[0]], words, False, "" if default == "null" else default)
    alike = {key.rpartition(".")[2]: key for key in facts.settings if not _VERL.match(key)}  # other trainers'
    frames = [place for place in reversed(error.calls) if ":" in place]
    imported = (f"import {'.'.join(each.split('/')[:2]).removesuffix('.py')}" for each in (*_modules(error), *frames))
    near = frames[:_NEAR]
    for each in chain(*(conditions(place, error.codes.get(place, "")) for place in (*near, *imported))):
        key = each.key if each.key in given else alike.get(each.key.rpartition(".")[2], each.key)
        value = given.get(key)
        known = each.holds(value) if value is not None else len(given) <= _WHOLE
        if known and not each.broad:
            without = "" if each.key.endswith(("path", "files")) else each.without or ""
            return Setting(key, value or "", each.words, True, without)
    return _named(" ".join((text, *near, *(error.codes.get(place, "") for place in near))), component, set_)


def _is_set(key: str, value: str) -> bool:
    """Whether a setting differs from its default; names of runs and their folders do not count."""
    off = value.strip("'\"").lower() in ("", "null", "none", default_of(key).lower())
    return not off and not key.startswith(("trainer.", "hydra."))


def _named(text: str, component: Component | None, set_: Mapping[str, str]) -> Setting | None:
    """The run's setting named in the text: `tensor parallel size` is Megatron's.

    For the component's own settings, short names and paths also count.
    """
    plain = _plain(text)
    for each in component.settings if component is not None else ():
        value = set_.get(each.key)
        path = value is not None and value.count("/") > 1 and value.strip("'\"") in text
        if value is not None and each.holds(value) and (path or _has_name(plain, each.key, _SHORT)):
            return Setting(each.key, value, each.words, False, each.without or "")
    found = next((key for key in set_ if _has_name(plain, key, _LONG)), None)
    return None if found is None else Setting(found, set_[found], f"{found}={set_[found]}", False)


def _has_name(text: str, key: str, shortest: int) -> bool:
    name = _plain(key.rpartition(".")[2])
    return (
        len(name) >= shortest
        and not key.endswith(("path", "name"))
        and re.search(rf"(?<![a-z]){name}", text) is not None
    )


def _plain(text: str) -> str:
    return text.lower().replace("-", "_").replace(" ", "_").replace("model_parallel", "parallel")


def _modules(error: ErrorLine) -> Iterable[str]:
    """The modules named in an ImportError, as paths."""
    named = re.findall(r"[Nn]o module named '([\w.]+)'|from '([\w.]+)'", error.message)
    return (name.replace(".", "/") for pair in named for name in pair if name)


def _packages(component: Component | None, facts: RunFacts) -> Iterator[Package]:
    """The versions of the component's package, torch and veRL in log and run, and whether they fit."""
    wanted = requirements().get(facts.versions.get("verl", ""), {})
    for name in dict.fromkeys(filter(None, (component.package if component else "", "torch", "verl"))):
        version = facts.versions.get(name.lower())
        if version is None:
            continue
        if name in wanted:
            fits = "fits veRL" if within(version, wanted[name]) else f"veRL requires {wanted[name]}"
        else:
            asking = [verl for verl, ranges in requirements().items() if within(version, ranges.get(name, "==0"))]
            fits = f"fits veRL {asking[0]} to {asking[-1]}" if asking and "verl" not in facts.versions else ""
        yield Package(name, version, fits)


def _search(error: ErrorLine, component: Component | None, frame: str) -> str:
    """Search words: the exception's type and names, without this run's values."""
    kind, _, message = error.message.partition(": ")
    plain = " ".join(_VALUE.sub(" ", message)[:120].split())
    function = frame.partition(" ")[0].rpartition(":")[2].strip("<>")
    package = component.package if component else ""
    return " ".join(dict.fromkeys(filter(None, (package, kind.rpartition(".")[2], plain, function))))
