"""Parses veRL's step lines: `step:12 - actor/entropy:0.47 - val-core/openai/gsm8k/acc/mean@1:np.float64(0.29)`.

Formats: three decimals for every value (veRL up to 0.4.1), full digits (since 0.5), numpy 2 scalars (0.9), and `[Step
12] train | reward/overall=0.05 | kl=0.002`, as in tutorials. Forks print tensors, units and words among the metrics.
"""

import re
from typing import NamedTuple

import orjson

# A step line starts its line, or follows Ray's prefix behind text of another process. A `step:3 - ...` in a sentence
# of the model is not one.
_START = re.compile(
    r"(?:^|pid=[0-9]{1,10}(?:, ip=[^()]{1,60})?\))(?:\[[0-9;]{0,20}m| )*"
    r"(?:step:|(\[Step ))([0-9]{1,15})(?![0-9])"
)
# np.float64(0.3), tensor(0.01, device='cuda:0', grad_fn=<MulBackward0>), array([0.5]): by a text that each has
_WRAPPED = {
    begin: re.compile(rf"{re.escape(begin)}{name}\(\[{{0,3}}([^()\[\],]*)\]{{0,3}}(?:, ?\w+=[^(),]*)*\)")
    for begin, name in (("np.", r"\w+"), ("tensor", ""), ("array", ""))
}
_UNIT = r" ?(?:%|[smh]|ms|[KMGT]i?B| ?\(.*\))?"
_NUMBER = re.compile(
    r"['\"\[]{0,2}([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)['\"\]]{0,2}" + _UNIT, re.IGNORECASE
)
_METRIC = re.compile(r"[A-Za-z][\w.()-]*/")  # the form of a key of veRL
_PLAIN_KEY = re.compile(r"[^\s:=]+")
_WORDS = {"True": 1.0, "False": 0.0}
_WHOLE = (")", "nan", "inf", "True", "False")  # a value with this end was not cut
_BAR = "Training Progress:"  # follows the last value when the log lost its carriage returns
_REPEATED = " [repeated "  # Ray's suffix to a line that several processes wrote


class Step(NamedTuple):
    """A step line. `three_decimals`: every value has exactly three. `sound`: the line has only metrics."""

    step: int
    data: dict[str, float]
    three_decimals: bool
    sound: bool


def complete_step(first: str, more: str) -> Step | None:
    """The step line from two lines; None if `more` does not continue `first`.

    Ray forwards the text written so far, sometimes half a line, with a newline.
    """
    begun, text = read_step(first), first + more
    if read_step(more) or (begun and begun.sound and "- " not in more):
        return None
    whole = read_step(text)
    cut = text.rfind(" - ", 0, len(first) + 2) + 3
    entry = text[cut:].partition(" - ")[0]  # the text at the cut must be a valid entry
    return whole if whole and whole.sound and _METRIC.match(entry) and " " not in entry else None


def read_step(text: str, *, cut: bool = False) -> Step | None:
    """The metrics of a step line; None for other lines.

    `text`: a clean line. The last value of a repeated key counts. `cut`: the line has no newline, so its last value may
    lack digits and is omitted.
    """
    start = _START.search(text)
    if start is None:
        return None
    rest, bar, _ = text[start.end() :].partition(_BAR)
    if cut and not bar and not rest.endswith(_WHOLE):
        rest = rest[: max(rest.rfind(" - "), rest.rfind("|"), 0)]
    if (suffix := rest.rfind(_REPEATED)) >= 0:
        rest = rest[:suffix]
    whole = rest
    for begin, wrapped in _WRAPPED.items():
        if begin in rest:
            rest = "".join(wrapped.split(rest))  # leaves the text in the brackets
    full_digits, group = rest != whole, ""
    if start[1]:
        sign = "="
        kind, *entries = [entry.strip() for entry in rest.removeprefix("]").split("|")]
        if sign in kind:
            entries.insert(0, kind)
        elif kind.lower().startswith("val"):
            group = "val/"  # its metrics have the names of training metrics
    elif rest.startswith(" - "):
        if (quick := _quick(rest[3:])) is not None:
            data, three_decimals = quick
            return Step(int(start[2]), data, three_decimals and not full_digits, "" not in data)
        sign = ":"
        entries = rest[3:].split(" - ")
    else:
        return None
    data, sound = _metrics(entries, sign)
    if not any(map(_METRIC.match, data)) and not (sound and all(map(_PLAIN_KEY.fullmatch, data))):
        return None
    if group:
        data = {group + key: value for key, value in data.items()}
    return Step(int(start[2]), data, not full_digits and _three_decimals(entries), sound) if data else None


def _quick(text: str) -> tuple[dict[str, float], bool] | None:
    """Values by key of a line of metrics only, and whether all have three decimals; parsed as JSON."""
    if '"' in text or "\\" in text or ": " in text or ":-0 " in text or text.endswith(":-0"):
        return None
    try:
        read = orjson.loads('{"' + text.replace(" - ", ',"').replace(":", '":') + "}")
    except orjson.JSONDecodeError:
        return None
    if not {int, float}.issuperset(map(type, read.values())) or not any(map(_METRIC.match, read)):
        return None
    data = dict(zip(read, map(float, read.values()), strict=True))
    return data, text.partition(" - ")[0][-4:-3] == "." and _three_decimals(text.split(" - "))


def _three_decimals(entries: list[str]) -> bool:
    return all(entry[-4:-3] == "." or entry.endswith(("nan", "inf")) for entry in entries)


def _metrics(entries: list[str], sign: str) -> tuple[dict[str, float], bool]:
    """Values by key, and whether every entry is valid."""
    data: dict[str, float] = {}
    begun: list[str] = []  # start of a key with the separator or with words
    sound = True
    for entry in entries:
        key, _, value = entry.rpartition(sign)
        number = _number(value)
        if not key or number is None:
            begun.append(entry)
            continue
        if begun and _PLAIN_KEY.fullmatch(key) and (sign in begun[0] or not _METRIC.match(begun[0])):
            begun, sound = [], False
        data[" - ".join([*begun, key])] = number
        begun = []
    return data, sound and not begun


def _number(value: str) -> float | None:
    if value in _WORDS:
        return _WORDS[value]
    try:
        return None if value[:1].isspace() else float(value)
    except ValueError:
        match = _NUMBER.fullmatch(value)
        return float(match[1]) if match else None
