"""Parses veRL's step lines: `step:12 - actor/entropy:0.47 - val-core/openai/gsm8k/acc/mean@1:np.float64(0.29)`.

Formats: three decimals for every value (veRL up to 0.4.1), full digits (since 0.5), numpy scalars as numpy 2
prints them (0.9), and `[Step 12] train | reward/overall=0.05 | kl=0.002`, as in tutorials.
"""

import re
from contextlib import suppress
from typing import NamedTuple

# A step line starts its line, or follows text without a newline: a Ray prefix, a progress bar. A `step:3 - ...` in
# the middle of a sentence of the model is not one.
_START = re.compile(
    r"(?:^|pid=[0-9]{1,10}(?:, ip=[^()]{1,60})?\)|[0-9]%\|[^|]*\|[^|\]]*\])(?:\[[0-9;]{0,20}m| )*"
    r"(?:step:|(\[Step ))([0-9]{1,15})(?![0-9])"
)
_NUMPY = re.compile(r"np\.\w+\(([^()]*)\)")
_METRIC = re.compile(r"[A-Za-z][\w.()-]*/")  # the form of a key of veRL
_PLAIN_KEY = re.compile(r"[^\s:=]+")
_WORDS = {"True": 1.0, "False": 0.0}
_WHOLE = (")", "nan", "inf", "True", "False")  # a value with this end was not cut
_BAR = "Training Progress:"  # follows the last value when the log lost its carriage returns
_REPEATED = " [repeated "  # Ray's suffix to a line that several processes wrote


class Step(NamedTuple):
    """The content of a step line.

    `three_decimals`: every value has exactly three. `sound`: the line has only metrics.
    """

    step: int
    data: dict[str, float]
    three_decimals: bool
    sound: bool


def complete_step(first: str, more: str) -> Step | None:
    """The step line that came as two lines; None if `more` is not the rest of `first`.

    Ray forwards the text that a process has written so far, at times half a line, with a newline.
    """
    begun, text = read_step(first), first + more
    if read_step(more) or (begun and begun.sound and "- " not in more):
        return None
    whole = read_step(text)
    cut = text.rfind(" - ", 0, len(first) + 2) + 3
    entry = text[cut:].partition(" - ")[0]  # the text at the cut must be a valid entry
    return whole if whole and whole.sound and _METRIC.match(entry) and " " not in entry else None


def read_step(text: str, *, cut: bool = False) -> Step | None:
    """The metrics of a step line; None for any other line.

    `text` is a clean line. Of a repeated key the last value counts. With `cut` the line ends with the file and not
    with a newline: its last value may lack digits and is left out.
    """
    start = _START.search(text)
    if start is None:
        return None
    rest, bar, _ = text[start.end() :].partition(_BAR)
    cut = cut and not bar
    if cut and not rest.endswith(_WHOLE):
        rest = rest[: max(rest.rfind(" - "), rest.rfind("|"), 0)]
    if (suffix := rest.rfind(_REPEATED)) >= 0:
        rest = rest[:suffix]
    full_digits = "np." in rest
    if full_digits:
        rest = "".join(_NUMPY.split(rest))  # leaves the text in the brackets
    group = ""
    if start[1]:
        sign = "="
        kind, *entries = [entry.strip() for entry in rest.removeprefix("]").split("|")]
        if sign in kind:
            entries.insert(0, kind)
        elif kind.lower().startswith("val"):
            group = "val/"  # its metrics have the names of those of training
    elif rest.startswith(" - "):
        sign = ":"
        entries = rest[3:].split(" - ")
    else:
        return None
    data, sound = _metrics(entries, sign)
    if not any(map(_METRIC.match, data)) and not (sound and all(map(_PLAIN_KEY.fullmatch, data))):
        return None
    three_decimals = not full_digits and all(entry[-4:-3] == "." or entry.endswith(("nan", "inf")) for entry in entries)
    if group:
        data = {group + key: value for key, value in data.items()}
    return Step(int(start[2]), data, three_decimals, sound) if data else None


def _metrics(entries: list[str], sign: str) -> tuple[dict[str, float], bool]:
    """Values by key, and whether every entry is valid."""
    together = sign.join(entries)
    parts = together.split(sign)
    if len(parts) == 2 * len(entries) and f"{sign} " not in together:  # no key contains the sign
        with suppress(ValueError):
            data = dict(zip(parts[::2], map(float, parts[1::2]), strict=True))
            return data, "" not in data
    data = {}
    begun: list[str] = []  # of a key that contains the separator
    for entry in entries:
        key, _, value = entry.rpartition(sign)
        number = _number(value)
        if key and number is not None:
            data[" - ".join([*begun, key])] = number
            begun = []
        else:
            begun.append(entry)
    return data, not begun


def _number(value: str) -> float | None:
    if value in _WORDS:
        return _WORDS[value]
    try:
        return None if value[:1].isspace() else float(value)
    except ValueError:
        return None
