"""Reads steps from other frameworks' logs, by their tables."""

import contextlib
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from launcher.console.counted import Counted
from launcher.console.lines import LONGEST, PREFIX, Piece, clean_text, is_bar
from launcher.metrics.frameworks import Framework, LineForm, Numbers, Settings
from launcher.metrics.records import LARGEST_STEP, float_of, trains

_PAIR = re.compile(
    r"""['"]([^'"]{1,200})['"]: *(?:np\.\w+\(|tensor\()?['"]?"""
    r"""([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)|None)(?=['"\s,)}]|$)""",
    re.IGNORECASE,
)
_BAR = re.compile(r"([^%|]*: *)? *[0-9]{1,3}%\|[^|]*\| *([0-9]{1,10})/([0-9]{1,10}) \[")
_KINDS = {float, int, bool, str}  # types of values that may be numbers
_NONE = {"None": math.nan, "none": math.nan}
_USUAL = 3  # steps that have a metric, after which a step without it lost it
_OPEN = 64  # steps that are incomplete at a time


class FormStep(NamedTuple):
    """A step under our names. `line`, `offset`: its place. `t`: its time, 0 if unknown."""

    step: int
    data: dict[str, float]
    line: int
    offset: int
    t: float = 0.0


class _Open:
    """A step that may still get metrics."""

    def __init__(self, line: int, offset: int) -> None:
        self.line, self.offset, self.t = line, offset, 0.0
        self.row: dict[str, float] = {}
        self.updates: dict[str, list[float]] = {}


class Joiner:
    """Joins the rows of each step: the mean over several updates, the last one of repeated metrics.

    Falling numbers mean an appended attempt: its steps are returned again.
    """

    def __init__(self, framework: Framework, before: int = 0) -> None:
        """`before`: lines of earlier parts, whose count is continued."""
        self._framework = framework
        self.counted, self.numbered = Counted(framework, before), False
        """The lines without a number; whether others have one."""
        self._open: dict[int, _Open] = {}
        self._now: int | None = None  # the step that was begun last
        self._ahead: dict[str, float] = {}  # metrics of the step with the next number
        self._newest: dict[str, int] = {}  # newest step by the first metric of a row
        self.last = -1
        """The last returned step."""
        self._always: frozenset[str] | None = None  # metrics of every step so far
        self._seen = 0

    def add(
        self, row: Mapping[str, float], step: int | None, numbers: str, place: tuple[int, int], t: float = 0.0
    ) -> list[FormStep]:
        """Adds a row; returns the steps that it completes."""
        before: list[FormStep] = []
        if numbers == "ahead":
            self._ahead |= row
            return before
        if numbers == "step" and step is not None and self._ahead:
            row, self._ahead = {**self._ahead, **row}, {}
        self.numbered = self.numbered or step is not None
        if numbers == "each" and not self.numbered and not row.keys().isdisjoint(self._framework.ends):
            if (step := self.counted.add(row)) <= (self._now or 0):
                before, self.last, self._now = self.close(), -1, None
        elif step is not None and numbers in ("step", "each") and self._again(row, step):
            before, self.last, self._now = self.close(), -1, None
        elif numbers == "each":
            step = self._counted(row, step)
        elif numbers == "part" or step is None or (numbers == "updates" and self._now is not None):
            step = self._now
        if step is None or step > LARGEST_STEP:
            return []
        if step <= self.last:  # only a validation counts for a returned step
            late = {key: value for key, value in self._framework.translate(row).items() if key.startswith("val")}
            return [FormStep(step, late, *place, t)] if late else []
        if (opened := self._open.get(step)) is None:
            opened = self._open[step] = _Open(*place)
        opened.t = t or opened.t
        if numbers != "updates":
            self._now = step
            opened.row.update(row)
        else:
            for name, value in row.items():
                opened.updates.setdefault(name, []).append(value)
        whole = -1 if row.keys().isdisjoint(self._framework.ends) else step
        ahead = max(self._open) - self._framework.lag - 1 if len(self._open) > 1 else -1
        if len(self._open) > _OPEN:
            ahead = max(ahead, sorted(self._open)[-_OPEN] - 1)
        return before + (self._take(max(whole, ahead)) if min(self._open) <= max(whole, ahead) else [])

    def _again(self, row: Mapping[str, float], step: int) -> bool:
        """Whether a training metric belongs to an earlier step: another attempt was appended."""
        name = next(iter(row), "")
        newest, self._newest[name] = self._newest.get(name, 0), step
        if step >= newest - 1:  # processes may print a step one after another
            return False
        ours = {key for key in self._framework.translate(row) if not key.startswith("val")}
        again = not row or trains(dict.fromkeys(ours, 0.0)) or not ours <= row.keys()
        self._newest = {name: step} if again else self._newest
        return again

    def _counted(self, row: Mapping[str, float], step: int | None) -> int | None:
        """The number of an unnumbered row: it starts a step if it has a metric of every step."""
        if row.keys().isdisjoint(self._framework.ends):
            return self._now
        after = (self._now or 0) + 1
        return max(step, after) if step is not None else after

    def close(self) -> list[FormStep]:
        """The incomplete steps."""
        return self._take(LARGEST_STEP, cut=True)

    def _take(self, upto: int, *, cut: bool = False) -> list[FormStep]:
        return [self._made(step, cut) for step in sorted(self._open) if step <= upto]

    def _made(self, step: int, cut: bool) -> FormStep:
        opened = self._open.pop(step)
        self.last = max(self.last, step)
        means = {name: sum(values) / len(values) for name, values in opened.updates.items()}
        data = self._framework.translate({**means, **opened.row} if means else opened.row)
        if self._framework.drops_nan and not cut:
            judged = _judged(tuple(data))
            if self._seen >= _USUAL and self._always is not None and judged:
                data |= dict.fromkeys(sorted(self._always - judged), math.nan)
            else:
                self._always = judged if self._always is None else self._always & judged
            self._seen += 1
        return FormStep(step, data, opened.line, opened.offset, opened.t)


@functools.lru_cache(maxsize=64)
def _judged(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for name in names if name.startswith(("actor/", "critic/", "rollout_corr/")))


class FormLine(NamedTuple):
    """The content of a line: step number and total, metrics, or a setting."""

    numbers: Numbers
    step: int | None
    total: int | None
    row: dict[str, float]
    setting: tuple[str, Any] | None = None


class FormReader:
    """Reads one framework's console lines. `settings`: printed settings, under its names."""

    def __init__(self, framework: Framework, before: int = 0) -> None:
        self.framework = framework
        self.hints = tuple(dict.fromkeys(form.hint.encode() for form in framework.lines))
        self._forms = [(form, re.compile(form.match), _reads(form)) for form in framework.lines]
        self._run = next((place for place, form in enumerate(self._forms) if _is_part(*form[:2])), -1)
        hint = re.escape(self._forms[self._run][0].hint.encode())
        self._several = re.compile(rb"(?:[^\n\r]*%b[^\n\r]*\n){2,64}" % hint)  # lines that may be of one step
        self._singly = b"", 0  # a block and the end of lines in it that are read one by one
        self._validates = functools.lru_cache(64)(
            lambda names: any(key.startswith("val") for key in framework.translate(dict.fromkeys(names, 0.0)))
        )
        self._closing = frozenset((*framework.ends, *framework.last))
        self._join = Joiner(framework, before)
        self._bar: tuple[int, int, int] | None = None  # the line of a progress bar, its step and their total
        self._plain_bar = False  # a bar without a name, like that of the training; others are for parts of a step
        self.settings: Settings = {}
        self._held: tuple[dict[str, float], Piece] | None = None  # the last "single" line
        self._over = -1  # the last step before the line that ends the training

    def find(self, piece: Piece) -> FormLine | None:
        """The content of a piece; None for another form."""
        number, _, raw, _ = piece
        prefix = PREFIX.match(raw)
        text = clean_text(raw, prefix.end() if prefix else 0)
        for form, match, read in self._forms:
            if form.hint in text and (found := match.match(text)):
                return self._found(form, read, found.groupdict(), number)
        if is_bar(raw) and (bar := _BAR.match(text)) and not (bar[1] and self._plain_bar):
            self._bar, self._plain_bar = (number, int(bar[2]), int(bar[3])), not bar[1]
        return None

    def parts(self, data: bytes, at: int) -> tuple[FormLine, int] | None:
        """The joint content of the next lines if they are parts of one step, as in most such logs, and their end.

        None if they must be read one by one: a writer changes, a line is damaged, or a metric is complete by itself.
        """
        if self._run < 0 or (self._singly[0] is data and at < self._singly[1]):
            return None
        if (block := self._several.match(data, at)) is None or (end := block.end()) - at > LONGEST:
            return None
        self._singly = data, end
        prefix = PREFIX.match(data, at)
        assert prefix is not None  # the pattern also matches empty text
        text = clean_text(block[0][:-1].replace(b"\n" + prefix[0], b"\n"), len(prefix[0]))
        if any(form.hint in text for form, _, _ in self._forms[: self._run]):
            return None
        _, match, read = self._forms[self._run]
        bodies = [(found and found["body"]) or "" for found in map(match.match, text.split("\n"))]
        row = _entries(bodies) if read is dict_row else {}
        if not row or not self._closing.isdisjoint([*row][:-1]):
            row = {}
            for count, body in enumerate(bodies, 1):
                if not (part := read(body)):
                    return None
                row.update(part)
                if not self._closing.isdisjoint(part):
                    end = at + sum(map(len, block[0].splitlines(True)[:count]))
                    break
        if self._validates(tuple(row)):
            return None
        self._singly = b"", 0
        return FormLine("part", None, None, row), end

    def _found(
        self, form: LineForm, read: Callable[[str], dict[str, float]], found: Mapping[str, str | None], number: int
    ) -> FormLine | None:
        if form.body == "setting":
            return FormLine("step", None, None, {}, (str(found["name"]), _meant(str(found["value"]))))
        row = read(body) if (body := found.get("body")) else {}
        if body and not row:
            return None
        step = int(text) if (text := found.get("step")) else None
        total = int(text) if (text := found.get("of")) else None
        if form.numbers == "each":
            own = (row.pop(name, math.nan) for name in self.framework.steps)
            if (numbered := next(filter(math.isfinite, own), None)) is not None:
                return FormLine("step", int(numbered), total, row)
        if step is None and self._bar is not None and self._bar[0] == number:
            _, step, total = self._bar
        return FormLine(form.numbers, step, total, row)

    def take(self, line: FormLine, piece: Piece) -> list[FormStep]:
        """The steps completed by a line."""
        if line.setting is not None:
            self.settings[line.setting[0]] = line.setting[1]
            return []
        if line.numbers == "single":
            return self._single(line.row, piece)
        steps = self._join.add(line.row, line.step, line.numbers, piece[:2])
        if not line.row.keys().isdisjoint(self.framework.last):
            self._over = self._join.last
            self._join.counted.end(line.row)
        return steps

    def _single(self, row: dict[str, float], piece: Piece | None) -> list[FormStep]:
        """The step of the last such line, which no numbered line followed; `row` is the next one."""
        held, self._held = self._held, (row, piece) if piece else None
        return self._join.add(held[0], None, "each", held[1][:2]) if held and not self._join.numbered else []

    @property
    def counted(self) -> Counted | None:
        """The step lines, if none has a number."""
        return self._join.counted if self._join.counted.grown and not self._join.numbered else None

    @property
    def over(self) -> bool:
        """Whether the final line of the training was read, without later steps."""
        return -1 < self._over == self._join.last

    def close(self) -> list[FormStep]:
        return self._single({}, None) + self._join.close()


def names_in(text: str, tables: Mapping[str, Framework]) -> Iterator[tuple[str, LineForm, dict[str, float]]]:
    """The tables, line forms and metrics that match `text` by its names."""
    for name, framework in tables.items():
        for form in framework.lines:
            if form.hint in text and form.body == "metrics" and (found := _compiled(form.match).match(text)):
                body = found.groupdict().get("body")
                row = _reads(form)(body) if body else {}
                if not framework.marks or any(_compiled(mark).search(text) for mark in framework.marks):
                    yield name, form, row


def _is_part(form: LineForm, match: re.Pattern[str]) -> bool:
    """Whether a line of this form has only some of a step's metrics; a dict has all of them."""
    some = form.numbers == "part" and form.body == "metrics" and "{" not in form.hint
    return some and "body" in match.groupindex and "step" not in match.groupindex


_compiled = re.compile  # not `re.compile`: it has its own cache


@functools.lru_cache(maxsize=256)
def _reads(form: LineForm) -> Callable[[str], dict[str, float]]:
    """A function that reads the metrics in a line's body."""
    if not form.pair:
        return dict_row
    pair = re.compile(form.pair)
    name, value, share = (pair.groupindex.get(group, 0) - 1 for group in ("name", "value", "share"))
    if share < 0:
        return lambda body: {each[name]: float(each[value]) for each in pair.findall(body)}
    return lambda body: {each[name]: float(each[value]) * (0.01 if each[share] else 1.0) for each in pair.findall(body)}


def _entries(bodies: Sequence[str]) -> dict[str, float]:
    """The numbers of lines with one dict entry each; empty for others."""
    row = dict_row("{" + " ".join(bodies).rstrip("},") + "}") if all(bodies) else {}
    return row if len(row) == len(bodies) else {}


def dict_row(body: str) -> dict[str, float]:
    """The numbers by key of a dict printed by Python or JSON; of a truncated dict, the complete ones."""
    text = body.rstrip()
    if text.startswith("{"):
        if not text.endswith("}"):
            text = text[: text.rfind(",") + 1]
        with contextlib.suppress(orjson.JSONDecodeError):
            return numbers(orjson.loads(text.replace("'", '"') if text[1:2] == "'" else text))
    return {name: _NONE[value] if value in _NONE else float(value) for name, value in _PAIR.findall(text)}


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """The numeric values: null is nan, and numbers may be words."""
    kinds = set(map(type, row.values()))
    if kinds == {float}:
        return dict(row)
    if kinds <= _KINDS:  # nearly every row
        with contextlib.suppress(ValueError, OverflowError):
            return dict(zip(row, map(float, row.values()), strict=True))
    found = {}
    for name, value in row.items():
        if value is None:
            found[name] = math.nan
        elif type(value) in _KINDS:
            with contextlib.suppress(ValueError):
                found[name] = float_of(value)
    return found


def _meant(text: str) -> Any:
    """The value of a printed setting."""
    if text in ("True", "False", "None"):
        return {"True": True, "False": False}.get(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
