"""Other frameworks as data: the form of their logs, and the metrics that match ours.

Each table in frameworks/ describes one; `--names FILE` adds one in the same form.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from launcher.core.about import documentation
from launcher.core.errors import UserError, of_file
from launcher.core.tables import read_tables, record
from launcher.core.text import hint_of, nearest
from launcher.metrics.glossary import UNKNOWN, describe, examples, meanings

_FOLDER = Path(__file__).with_suffix("")
_PLANS = 256  # sets of names with cached translations
_FEW = 3  # known names that recognize a framework
_OURS = (  # prefixes of our keys, under which another framework's value would be judged
    *("actor/", "critic/", "response_length/", "prompt_length/", "response/", "timing_s/", "timing/", "perf/", "val"),
    *("training/", "rollout_corr/", "num_turns/", "tool_call_counts/", "responses/", "separate_async/", "fully_async/"),
    *("test_score/", "machine/", "global_seqlen/"),
)
Settings: TypeAlias = dict[str, Any]
"""Settings by key, or a TOML table."""
Numbers = Literal["step", "part", "ahead", "each", "single", "updates"]


@dataclass(frozen=True)
class Name:
    """A metric: `theirs` in order of preference, or a `pattern` whose group fills the {} of `ours`.

    `ours` is empty if none of our metrics has this meaning; `differs` is the reason. A value times `scale` is ours.
    `unless`: a metric whose presence changes the meaning. `per`: the unit of the mean. `share`: one per micro-batch of
    a step. `estimator`: the KL estimator, or the setting that selects it. `per` and `estimator` may differ by the
    advantage estimator. `source`: FILE: SYMBOL.
    """

    theirs: tuple[str, ...] = ()
    ours: str = ""
    pattern: str = ""
    scale: float = 1.0
    unless: str = ""
    unit: str = ""
    per: str | Mapping[str, str] = ""
    share: bool = False
    estimator: str | Mapping[str, str] = ""
    differs: str = ""
    source: str = ""


@dataclass(frozen=True)
class LineForm:
    """A kind of line, which contains `hint` and matches `match`, with the groups `step` and `body`.

    The body is a Python or JSON dict, or has one metric per match of `pair` (`name`, `value`, `share` for %). A
    "setting" has the groups `name` and `value`. `numbers`: the line has the number of its "step"; is a "part" of the
    current step or of the one "ahead"; is a step of its own ("each"; "single": if no other line has a number); or is
    numbered by "updates", of which a step may have several. `alone`: text that no other program prints, so that one
    line identifies the framework.
    """

    match: str
    hint: str
    alone: str = ""
    body: Literal["metrics", "setting"] = "metrics"
    pair: str = ""
    numbers: Numbers = "step"


@dataclass(frozen=True)
class Kind:
    """A training that is not reinforcement learning: its rows have all metrics of `has` and none of `lacks`.

    Records store the `id`. rules.toml marks the rules that judge it.
    """

    id: str
    title: str
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()

    def fits(self, names: Collection[str]) -> bool:
        """Whether a row with these names is of such a training."""
        return all(name in names for name in self.has) and not any(name in names for name in self.lacks)


@dataclass(frozen=True)
class Framework:
    """A framework's table.

    `commit`: version of `repository` that was read. `module`: its Python package. `configuration`: where to find its
    settings. `settings`: the veRL key of each. `named`: per veRL key and value, the pattern of texts that name the
    value. `defaults`: values that a log does not print. `base`: another table whose names, and missing line forms, it
    inherits; `marks` distinguish the two. `steps`: names for the step number in file rows. `mini`: names for update
    numbers. `prefixes`: prefixes that trackers add. A step is complete with one of the metrics `ends`, or when a line
    is `lag` steps ahead. Training is complete with one of `last`. `grows` orders lines without step numbers, `every` is
    their interval in steps (0: unknown); the last line has the seconds of training and its steps per second, `rate`.
    `drops_nan`: non-finite metrics are omitted; `null`: missing ones are null. `own`: its names are ours. A tracker
    that numbers rows by steps of an `environment` has one iteration per row with the metric `iteration`.
    `kinds`: trainings other than reinforcement learning; `kind`: that of a log, whose names `supervised` has.
    """

    title: str
    repository: str = ""
    commit: str = ""
    module: str = ""
    configuration: str = ""
    base: str = ""
    marks: tuple[str, ...] = ()
    steps: tuple[str, ...] = ("step",)
    mini: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    lag: int = 0
    grows: tuple[str, ...] = ()
    rate: tuple[str, ...] = ()
    every: int = 0
    drops_nan: bool = False
    null: bool = False
    own: bool = False
    iteration: str = ""
    environment: str = ""
    prefixes: tuple[str, ...] = ()
    lines: tuple[LineForm, ...] = ()
    metrics: tuple[Name, ...] = ()
    kinds: tuple[Kind, ...] = ()
    kind: Kind | None = None
    supervised: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """`TRL`, `TRL, supervised fine-tuning (SFT)`."""
        return f"{self.title}, {self.kind.title}" if self.kind else self.title

    def of_kind(self, names: Iterable[str]) -> "Framework":
        """The table for a log with these names."""
        short = {self.short(name) for name in names}
        return dataclasses.replace(self, kind=next((kind for kind in self.kinds if kind.fits(short)), None))

    @functools.cached_property
    def _names(self) -> dict[str, tuple[Name, int]]:
        """Each name with its row, and its rank within the row."""
        return {name: (row, rank) for row in self.metrics for rank, name in enumerate(row.theirs)}

    @functools.cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], Name]]:
        return [(re.compile(row.pattern), row) for row in self.metrics if row.pattern]

    @functools.cached_property
    def _plans(self) -> dict[tuple[str, ...], tuple[list[tuple[str, str, float]], list[tuple[str, str]]]]:
        return {}

    def short(self, name: str) -> str:
        """A name without the prefix of a tracker."""
        return next((name.removeprefix(each) for each in self.prefixes if name.startswith(each)), name)

    def _ours(self, name: str, beside: Collection[str] = ()) -> tuple[str, float, int]:
        """Our key for a name, the scale, and the name's rank; -1 if the table does not list it."""
        if self.kind is not None:
            return (found, 1.0, 0) if (found := self.supervised.get(self.short(name))) else (name, 1.0, -1)
        row, rank = self._names.get(name) or self._names.get(self.short(name)) or (None, 0)
        if row is not None and row.ours and row.unless not in beside:
            return row.ours, row.scale, rank
        for pattern, by in self._patterns if row is None else ():
            if match := pattern.match(name):
                return by.ours.format(*match.groups()), by.scale, 0
        return (f"{self.title}/{name}" if name.startswith(_OURS) and not self.own else name), 1.0, -1

    def translate(self, row: Mapping[str, float]) -> dict[str, float]:
        """The metrics under our names. Unlisted metrics keep their names, unless we use the name."""
        known, others = self._plans.get(tuple(row)) or self._plan(tuple(row))
        data = {key: row[name] * scale for key, name, scale in known}
        for key, name in others:
            if self.own or row[name] - row[name] == 0:  # metrics that are never judged are not reported either
                data[key] = row[name]
        return data

    def _plan(self, names: tuple[str, ...]) -> tuple[list[tuple[str, str, float]], list[tuple[str, str]]]:
        """Key, name and scale of the listed metrics (the preferred of several names), and the unlisted metrics."""
        short = {self.short(name) for name in names}
        found = sorted(((self._ours(name, short), name) for name in names), key=lambda each: -each[0][2])
        best = {key: (key, name, scale) for (key, scale, rank), name in found if rank >= 0}
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        others = [(key, name) for (key, _, rank), name in found if rank < 0]
        self._plans[names] = plan = list(best.values()), others
        return plan

    def known(self, names: Iterable[str]) -> int:
        """How many of these names the table lists."""
        rows = set()
        for name in names:
            rows |= {id(found[0]) for each in (name, self.short(name)) if (found := self._names.get(each))}
            rows |= {id(row) for pattern, row in self._patterns if pattern.match(name)}
        return len(rows)

    def recognizes(self, names: Collection[str]) -> bool:
        """Whether the table lists some of these names, and at least one specific to it."""
        own = (name for name in names if self.short(name).lower() not in _common())
        return self.known(names) >= _FEW and any(self.known((name,)) for name in own)

    def keys(self, config: Mapping[str, Any]) -> Settings:
        """The veRL keys for the framework's settings."""
        return {ours: config[theirs] for theirs, ours in self.settings.items() if config.get(theirs) is not None}

    def named_in(self, texts: Iterable[str]) -> Settings:
        """The veRL keys whose value these texts name; one of which they name several is unknown."""
        text = "" if self.kind is not None else "\n".join(texts)
        found = {key: [each for each in of if re.search(of[each], text)] for key, of in self.named.items()}
        return {key: values[0] for key, values in found.items() if len(values) == 1}

    def units(self, key: str, estimator: str | None) -> set[str]:
        """The units that `key`, one of ours, is a mean per; "" if unknown. `estimator`: of the advantages."""
        rows = (row.per for row in self.metrics if row.ours == key)
        return {per if isinstance(per, str) else per.get(estimator or "", "") for per in rows}


@functools.cache
def frameworks() -> dict[str, Framework]:
    """All tables by file name."""
    tables = {path.stem: read_tables(path) for path in sorted(_FOLDER.glob("*.toml"))}
    return {name: _made(_based(table, tables)) for name, table in tables.items()}


def _based(table: Settings, tables: Mapping[str, Settings]) -> Settings:
    """The table with its inherited entries."""
    if "base" not in table:
        return table
    base = _based(tables[table["base"]], tables)
    return {**base, **table, "metrics": [*base["metrics"], *table.get("metrics", ())]}


@functools.cache
def _common() -> frozenset[str]:
    """Metric names common to all programs."""
    return frozenset(read_tables(_FOLDER.with_name("common_names.toml"))["names"])


def _made(table: Mapping[str, Any]) -> Framework:
    rows: dict[str, type[Any]] = {"lines": LineForm, "metrics": Name, "kinds": Kind}
    return record(
        Framework, table, **{name: tuple(record(rows[name], row) for row in table.get(name, ())) for name in rows}
    )


def is_ours(name: str) -> bool:
    """Whether a name begins as one of veRL's."""
    return name.startswith(_OURS)


def of_names(names: Collection[str], alone: Set[str] = frozenset()) -> Framework | None:
    """The framework of a file with these names, or with line forms of the tables `alone`; None if none fits."""
    return recognized({name: names for name, each in frameworks().items() if not each.marks}, alone)


def recognized(seen: Mapping[str, Collection[str]], alone: Set[str] = frozenset()) -> Framework | None:
    """The framework that printed the names `seen`, per table, or a line of `alone`.

    The table with the most names wins; among equals veRL's, one with marks, the smallest.
    """

    def rank(name: str) -> tuple[int, bool, bool, int]:
        table = frameworks()[name]
        return table.known(seen[name]), table.own, bool(table.marks), -len(table.metrics)

    found = [name for name in seen if name in alone or frameworks()[name].recognizes(seen[name])]
    best = max(found, key=rank, default=None)
    return None if best is None else frameworks()[best].of_kind(seen[best])


def of_settings(config: Mapping[str, Any]) -> Framework | None:
    """The framework of a run with these settings, of which some are specific to it; None if none fits."""

    def known(each: Framework) -> Set[str]:
        return config.keys() & each.settings.keys()

    found = (
        each
        for each in frameworks().values()
        if f"{each.module}_version" in config or (len(known(each)) >= _FEW and not known(each) <= _common())
    )
    return max(found, key=lambda each: (len(known(each)), -len(each.metrics)), default=None)


def described(by: Mapping[str, Any] | None) -> Framework | None:
    """The framework in run.yaml: the name of a table, or a user's table."""
    if not by:
        return None
    known = frameworks().get(str(by["table"])) if "table" in by else None
    if known is None:
        return None if "table" in by else _made(by)
    kind = next((each for each in known.kinds if each.id == by.get("kind")), None)
    return dataclasses.replace(known, every=by.get("every", 0), kind=kind)


def reference(framework: Framework | None, table: Mapping[str, Any] | None = None) -> Settings | None:
    """The framework's entry in run.yaml, for `described`; `table`: the user's."""
    if framework is None:
        return None
    every = {"every": framework.every} if framework.every else {}
    if not table:
        known, kind = dataclasses.replace(framework, every=0, kind=None), framework.kind
        more = every | ({"kind": kind.id} if kind else {})
        return next(({"table": name, **more} for name, each in frameworks().items() if each == known), None)
    lines = [dataclasses.asdict(line) for line in framework.lines]
    return {**table, "lines": lines, "ends": list(framework.ends), "lag": framework.lag, **every}


_EXAMPLE = '[[metrics]] with theirs = ["reward"], ours = "critic/score/mean"'


def user_table(path: Path) -> Settings:
    """The table of `--names FILE`. Raises UserError with the place for an invalid one."""
    try:
        table = {"title": path.stem, **read_tables(path)}
        _check("it", Framework, table)
        for name, kind in (("metrics", Name), ("lines", LineForm)):
            for number, row in enumerate(table.get(name, ()), 1):
                _check(f"row {number} of {name}", kind, row)
        made = _made(table)
        for number, name_ in enumerate(made.metrics, 1):
            re.compile(name_.pattern)
            if not (name_.theirs or name_.pattern) or not (name_.ours or name_.differs):
                raise ValueError(f"row {number} of metrics lacks theirs or ours")
        for number, line in enumerate(made.lines, 1):
            pair = ("name", "value")
            groups = pair if line.body == "setting" else ("step",) if line.numbers == "step" else ("body",)
            for pattern, needed in ((line.match, groups), (line.pair, pair if line.pair else ())):
                if not re.compile(pattern).groupindex.keys() >= {*needed}:
                    raise ValueError(f"row {number} of lines: {pattern} lacks a group: {', '.join(needed)}")
        if not made.metrics:
            raise ValueError("it has no metrics")
    except OSError as error:
        raise of_file(f"cannot read --names {path}", error) from None
    except (ValueError, TypeError, AttributeError, re.error) as error:
        raise UserError(f"--names {path}: {' '.join(str(error).split())}", f"use {_EXAMPLE}") from None
    known = {row.ours for each in frameworks().values() for row in each.metrics if row.ours[:3] not in ("", "val")}
    for number, name_ in enumerate(made.metrics, 1):
        ours = name_.ours.replace("{}", "mean")
        if ours and (f"{ours}/mean" in known or (ours not in known and describe(ours).meaning == UNKNOWN)):
            mean = f"{ours}/mean" if f"{ours}/mean" in known else None
            near = mean or nearest(ours, meanings(known)) or nearest(ours, examples())
            hint = hint_of(near, f"see '{documentation('reference/metrics')}'")
            raise UserError(f"--names {path}: row {number} of metrics: {name_.ours!r} is not a metric of veRL", hint)
    return table


def _check(place: str, kind: type, row: Mapping[str, Any]) -> None:
    """Raises ValueError for a field that is unknown, missing or of the wrong type."""
    fields = {each.name: each for each in dataclasses.fields(kind) if each.name != "kind"}
    if unknown := next((name for name in row if name not in fields), None):
        raise ValueError(f"{place} has '{unknown}', which is not one of {', '.join(fields)}")
    for name, field_ in fields.items():
        if name not in row and field_.default is field_.default_factory is MISSING:
            raise ValueError(f"{place} lacks {name}")
        kinds = {"a list": (list, tuple), "a number, true or false": (int, float), "a text": (str, type(MISSING))}
        words = next((words for words, each in kinds.items() if isinstance(field_.default, each)), "")
        if name in row and field_.default_factory is MISSING and not isinstance(row[name], kinds[words]):
            raise ValueError(f"{place}: {name} must be {words}")
