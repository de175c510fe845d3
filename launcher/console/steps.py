"""veRL's step lines: `step:12 - actor/entropy:0.47 - val-core/openai/gsm8k/acc/mean@1:np.float64(0.29)`.

Formats: three decimals for every value (veRL up to 0.4.1), full digits (0.5 on), numpy scalars as numpy 2
prints them (0.9), and `[Step 12] train | reward/overall=0.05 | kl=0.002`, which tutorials show.
"""

import re
from typing import NamedTuple

# A step line starts its line, or follows what others wrote without a newline: a Ray prefix, a progress bar.
# An answer of the model that has a `step:3 - ...` in the middle of a sentence is not one.
_START = re.compile(
    r"(?:^|pid=[0-9]{1,10}(?:, ip=[^()]{1,60})?\)|[0-9]%\|[^|]*\|[^|\]]*\])(?:\[[0-9;]{0,20}m| )*"
    r"(?:step:|(\[Step ))([0-9]{1,15})(?![0-9])"
)
_NUMPY = re.compile(r"np\.\w+\(([^()]*)\)")
_METRIC = re.compile(r"[A-Za-z][\w.()-]*/\S")  # what a key of veRL looks like
_PLAIN_KEY = re.compile(r"[^\s:=]+")
_WORDS = {"True": 1.0, "False": 0.0}
_WHOLE = (")", "nan", "inf", "True", "False")  # a figure that ends so was not cut
_REPEATED = " [repeated "  # Ray's suffix to a line that several processes wrote


class Step(NamedTuple):
    """What a step line holds; `sound` when it is figures and nothing else."""

    step: int
    data: dict[str, float]
    three_decimals: bool
    sound: bool


def parse_step(text: str, *, cut: bool = False) -> tuple[int, dict[str, float], bool] | None:
    """Step, figures by key, and whether every figure has exactly three decimals. None for any other line.

    `text` is a clean line. A key that stands twice has its last value. With `cut` the line ends with the file
    and not with a newline: its last figure may lack digits and is left out.
    """
    found = read_step(text, cut=cut)
    return found[:3] if found else None


def complete_step(first: str, more: str) -> Step | None:
    """The step line that came as two lines; None if `more` is not the rest of `first`.

    Ray forwards what a process has written so far, at times half a line, and ends it with a newline.
    """
    whole = read_step(first + more)
    return whole if whole and whole.sound else None


def read_step(text: str, *, cut: bool = False) -> Step | None:
    """As `parse_step`, and whether the line is sound."""
    start = _START.search(text)
    if start is None:
        return None
    rest = text[start.end() :]
    if cut and not rest.endswith(_WHOLE):
        rest = rest[: max(rest.rfind(" - "), rest.rfind("|"), 0)]
    if (suffix := rest.rfind(_REPEATED)) >= 0:
        rest = rest[:suffix]
    full_digits = "np." in rest
    if full_digits:
        rest = _NUMPY.sub(r"\1", rest)
    group = ""
    if start[1]:
        sign = "="
        kind, _, rest = rest.partition("|")
        group = "val/" if "val" in kind.lower() else ""  # its keys have the names of the training figures
        entries = [entry.strip() for entry in rest.split("|")]
    elif rest.startswith(" - "):
        sign = ":"
        entries = rest[3:].split(" - ")
    else:
        return None
    data, sound = _figures(entries, sign)
    if not data or not (any(map(_METRIC.match, data)) or (sound and all(map(_PLAIN_KEY.fullmatch, data)))):
        return None
    three_decimals = not full_digits and all(
        entry[-4:-3] == "." or entry.endswith(("nan", "inf")) for entry in entries
    )
    if group:
        data = {group + key: value for key, value in data.items()}
    return Step(int(start[2]), data, three_decimals, sound)


def _figures(entries: list[str], sign: str) -> tuple[dict[str, float], bool]:
    """Figures by key, and whether every entry was one."""
    try:
        data = {key: float(value) for key, _, value in [entry.rpartition(sign) for entry in entries]}
        return data, "" not in data
    except ValueError:
        pass
    data = {}
    begun: list[str] = []  # of a key that has the separator inside
    for entry in entries:
        key, _, value = entry.rpartition(sign)
        try:
            number = _WORDS[value] if value in _WORDS else float(value)
        except ValueError:
            begun.append(entry)
        else:
            data[" - ".join([*begun, key])] = number
            begun = []
    return data, not begun and "" not in data
