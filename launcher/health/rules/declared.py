"""Rules that rules.toml declares: figures from the models of metrics, compared with limits."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter, methodcaller
from string import Formatter

from launcher.core.format import number
from launcher.health.catalogue import Figure, RuleData
from launcher.health.clauses import Clause, Measure, Rung, Values, ladder, worst
from launcher.health.derived import keys_of
from launcher.health.frame import Frame
from launcher.health.metric import ROUNDING, Metric
from launcher.health.rules.base import Rule, Setup
from launcher.health.state import LASTING, Reading
from launcher.record.levels import N_A, WARN

_ELSEWHERE = ("run", "waited", "unrewarded", "left")  # not on the scale of their metric


class _Compared:
    """A figure with its metric's model."""

    def __init__(self, figure: Figure, setup: Setup) -> None:
        self.figure, self.metric = figure, setup.signals.of(figure.metric)
        self.take, self._unit = _estimate(figure.take), _estimate(figure.unit) if figure.unit else None
        self._eases = setup.signals.of(figure.eases) if figure.eases else None
        self._of_unit = setup.signals.of(figure.unit) if figure.unit.isupper() else self.metric
        keys = () if figure.take in _ELSEWHERE else keys_of(figure.metric, drawn=True)
        positive = figure.most < math.inf or figure.unit or figure.take in ("size", "run")
        self._measure = Measure(figure.words, keys, (0.0 if positive else -math.inf, figure.most), figure.fixed)
        self._itself = self._measure._replace(words="")
        limits = () if figure.unit else (setup.limits.raising, setup.limits.releasing)
        self._fixed = {id(each): self._rungs(each) for each in limits}  # limits that do not move with the run

    def clause(self, x: float, limits: Values, rule: Rule) -> Clause:
        figure = self.figure
        if figure.stuck and rule.reward.since_best <= limits[f"notice.{figure.stuck}"]:
            x = math.nan
        if figure.flat and not rule.reward.flat:
            x = math.nan
        rungs: Sequence[Rung] = self._fixed.get(id(limits)) or self._rungs(limits)
        if figure.change:
            eased = self._eases is not None and self._eases.falls
            rungs = rule.weighed(rungs, eased or (figure.pays and rule.reward.rises))
        return x, rungs, self._itself if figure.take == "size" and self.metric.now >= 0 else self._measure

    def _rungs(self, limits: Values) -> list[Rung]:
        figure, unit = self.figure, max(self._unit(self._of_unit), ROUNDING) if self._unit else 1.0
        rungs = ladder(limits, figure.limit, figure.side, unit)
        if figure.distance:
            rungs = [(level, "<=", 1 - value) for level, _, value in rungs]
        if figure.swing:
            swings = [unit * self.metric.swing(sigmas, usual=True) for _, _, sigmas in ladder(limits, figure.swing)]
            rungs = [(level, side, max(x, y)) for (level, side, x), y in zip(rungs, swings, strict=True)]
        return rungs


def _estimate(words: str) -> Callable[[Metric], float]:
    name, _, count = ("now" if words.isupper() else words).partition(" ")
    return methodcaller(name, int(count)) if count else attrgetter(name)


_Values = Sequence[tuple[_Compared, float]]


class Declared(Rule):
    """A rule declared by its row in rules.toml."""

    data: RuleData

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.data = self.data.of(setup.config.supervised)
        mean = "token mean" if setup.config.token_mean else "other mean"
        known = "known loss" if setup.config.known else "unknown loss"
        scopes = {"", "supervised"} if setup.config.supervised else {"", mean, known}
        self._blamed: list[_Compared] = []  # the figures that the flag is about
        self._figures = [_Compared(figure, setup) for figure in self.data.figures if figure.only in scopes]

    def judge(self, frame: Frame) -> Reading | None:
        data, first = self.data, self._figures[0].metric
        if not data.any and None in map(frame.get, self.needs):
            return None
        found = [(each, each.take(each.metric)) for each in self._figures if each.metric.now == each.metric.now]
        if not found or not (data.any or found[0][0].metric is first):
            return Reading(N_A, data.missing) if data.missing and not first.count else None
        first = found[0][0].metric
        if data.constant and first.count >= 5 and first.run == 0 and not any(first.last(20)):
            return Reading(N_A, data.constant)
        grown = [(each, x) for each, x in found if each.metric.count >= each.figure.after]
        reading = self.compare(
            partial(self._message, frame, found, grown),
            lambda limits: [each.clause(x, limits, self) for each, x in grown],
        )
        if (missing := found[0][0].figure.after - first.count) > 0 and not (reading.raw or self.flag):
            return self.warming(missing)
        if reading.raw or self.flag:
            reading.lasts = not reading.level and any(each.figure.take == "run" and x > 0 for each, x in found)
            reading.message = reading.words()
        if reading.raw >= WARN:
            for each, _ in found:
                if each.figure.unit.startswith("usual"):
                    each.metric.refuse()
        if any(each.figure.unit == "usual" for each, _ in found):
            reading.usual = first.usual
        return self.with_harm(reading, first.now)

    def _message(self, frame: Frame, found: _Values, judged: _Values, reading: Reading) -> str:
        data, said, level, values = self.data, list[str](), reading.level, _Words(self, frame, found)
        every, bad = [each for each, _ in judged], list[_Compared]()
        blamed = [each for each in self._blamed if reading.flag and each in every] or every
        for (each, x), clause in zip(judged, reading.clauses, strict=True):
            lasts = each.figure.take == "run" and x > 0 and not level
            named = worst((clause,)) >= level if level else not data.message and each in blamed
            if each.figure.say and (lasts or named):
                said.append(values.format(each.figure.say) + (LASTING if lasts and not reading.flag else ""))
                bad += [each] if level else []
        self._blamed = bad or self._blamed
        if said:
            return "; ".join(dict.fromkeys(said))
        message, aside = values.format(data.message), values.format(data.aside)
        return message if values.unknown else message + aside


class _Words(Formatter):
    """Fills messages with figures by their limits, metrics by their names, and estimates of the first figure.

    `{}` is a number, `{:%}` a share, `{:step}` a step, `{:steps}` a number of steps; `{5:steps}` is constant.
    """

    def __init__(self, rule: Declared, frame: Frame, found: _Values) -> None:
        self._rule, self._frame, self._first = rule, frame, found[0][0].metric
        self._figures = {each.figure.limit: x for each, x in found}
        self.unknown = False  # whether the step lacks a requested value

    def get_value(self, key: int | str, args: object, kwargs: object) -> float:
        if isinstance(key, int):
            return key
        if not key.isupper():
            return self._figures[key] if key in self._figures else float(getattr(self._first, key))
        keys = keys_of(key)
        x = self._frame.get(keys) if keys else self._rule.signals.of(key).now
        self.unknown = self.unknown or x is None
        return math.nan if x is None else x

    def format_field(self, x: float, spec: str) -> str:
        if spec.startswith("step"):
            of = self._rule.config.numbering
            return of.count(x) if spec == "steps" else of.place(int(x))
        return f"{number(100 * x)} %" if spec else number(x)


def declared(data: RuleData) -> type[Rule]:
    """The class of a rule with figures in rules.toml."""
    groups = list(dict.fromkeys(filter(None, (keys_of(figure.metric) for figure in data.figures))))
    needs, also = groups[:1] + [keys_of(name) for name in data.needs], groups[1:]
    if data.any:
        needs, also = [tuple(key for group in groups for key in group)], groups
    also += map(keys_of, data.also)
    members = {"id": data.id, "data": data, "needs": tuple(needs), "also": tuple(also), "worse": data.worse}
    return type(data.id, (Declared,), members)
