"""Text from outside: logs, presets, samples."""

import codecs
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

# CSI, OSC/DCS/APC/PM/SOS strings (ended by BEL or ST, cut off by the end of the line), two-character escapes.
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?|[ -/]*[0-~]?)"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
# C0 but tab and newline, C1, direction marks, other line ends, halves of surrogate pairs (UTF-8 has none); and
# characters without width: zero-width letters, soft hyphens, fillers, tags.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)

# Signs and their substitutes where a terminal or a locale lacks them; both one cell wide.
_SIGNS = "●◆▲✖·○■✔◇★ ↑↓→←❯ …–—−×÷≥≤°²Δ │┊─╌━╸▔ ╭╮╰╯ ▌▐▊▎ ▓▒░ ▁▂▃▄▅▆▇█"
_PLAIN = "*i!X.o#+o* ^v><> ~---x/>< 2d |:--=-- ++++ |||| =:. __.--==#"
ASCII = {sign: plain for sign, plain in zip(_SIGNS, _PLAIN, strict=True) if sign != " "}

_WORD = 4  # minimum letters of a word searched inside names and meanings
_SLIPS = 5  # minimum letters of a word whose slips are corrected

TWINS = "twins"
"""Name of a codec error handler: replaces a character that an encoding lacks by a similar one or a question mark."""


def _twins(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error(TWINS, _twins)


def inert(text: str) -> str:
    """Removes terminal escapes, control characters, direction marks and zero-width characters.

    Newlines and tabs stay. The result is safe to print on a terminal.
    """
    if text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable()):
        return text
    return without_controls(_ESCAPE.sub("", text))


def without_controls(text: str) -> str:
    """Removes control and invisible characters; keeps the printable part of escape sequences."""
    return _CONTROL.sub("", text)


def clean(text: str) -> str:
    """`inert` text with spaces for tabs, to be measured, folded or compared."""
    return inert(text).expandtabs(4)


def escaped(text: str) -> str:
    r"""JSON with `\uXXXX` for each character that `inert` would remove."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def without_login(text: str) -> str:
    """`text` without user and password in its addresses."""
    return re.sub(r"//[^/@\s]+@", "//", text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a wrong one probably means; None if none is near.

    Order: a part of a longer name (`lr` of `actor.lr`), a very similar name, the end of one (`batch_size`), its
    beginning (`gsm8k-`), one whose meaning (in a mapping of names to meanings) has the word, a similar name.
    """
    names, word = list(known), letters(name)
    parts = [each for each in names if name and (each.endswith((f".{name}", f"/{name}")) or f"/{name}/" in each)]
    ends = [each for each in names if len(word) >= _WORD and each.endswith(f"_{name}")]
    ends += [each for each in names if len(word) >= _WORD and each.startswith((f"{name}-", f"{name}_"))]
    meanings = known.items() if isinstance(known, Mapping) and len(word) >= _WORD else ()
    meant = [each for each, meaning in meanings if isinstance(meaning, str) and word in letters(meaning)]
    similar = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    near = [each for each in similar if difflib.SequenceMatcher(None, each, name).ratio() >= 0.8]
    return next(iter([*parts, *near, *ends, *meant, *similar]), None)


def slip_of(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs by one slip from a word of at least five letters: a letter missing, added, replaced,
    or swapped with the next. None otherwise: names that are only similar mean other things.
    """
    if len(letters(name)) < _SLIPS:
        return None
    for each in known:
        unlike = (place for place, (ours, theirs) in enumerate(zip(name, each, strict=False)) if ours != theirs)
        start = next(unlike, min(len(name), len(each)))
        ours, theirs = name[start:], each[start:]
        swapped = ours[1::-1] + ours[2:]
        if each != name and (ours[1:] in (theirs, theirs[1:]) or theirs == swapped or ours == theirs[1:]):
            return each
    return None


def letters(text: str) -> str:
    """The letters of a name or sentence, to find learning_rate in `Learning rate.`"""
    return "".join(filter(str.isalnum, text.lower()))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`; empty if no known name is near."""
    return perhaps(nearest(name, known))


def perhaps(near: str | None) -> str:
    """The end of an error with a similar name; empty without one."""
    return f" (did you mean '{near}'?)" if near else ""


def allowed_steps(values: Sequence[int], option: str) -> str:
    """`use --step 6`, `use --step 5, 10 or 15`, `use a --step from 1 to 60`: the hint for an invalid number."""
    first, last = values[0], values[-1]
    if len(values) > 2 and list(values) == list(range(first, last + 1)):
        return f"use a {option} from {first} to {last}"
    before = f"{', '.join(map(str, values[:-1]))} or " if len(values) > 1 else ""
    return f"use {option} {before}{last}"


def near_hint(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The hint for a misspelled name: the nearest known one, then `otherwise`, such as where all are listed."""
    return hint_of(nearest(name, known), otherwise)


def hint_of(near: str | None, otherwise: str = "") -> str:
    """The hint with a similar name, then `otherwise`."""
    return " ".join(filter(None, (near and f"did you mean '{near}'?", otherwise)))
