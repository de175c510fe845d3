"""Formats numbers for people: 1.2e-4, 3m 12s, 38.1/79.6 GiB."""

import math
import re
from datetime import datetime
from decimal import Decimal

GIB = 1 << 30
SHORT_ID = 4  # letters of a run's id that are shown and typed
_EXPONENT = re.compile(r"e([+-])0*(?=\d)")
_SMALL = 1e-3  # below, YAML writes 3e-4


def number(value: float | None, digits: int = 3) -> str:
    """Formats a number with about `digits` significant digits; `–` for None."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 1e12:
        mantissa, exponent = f"{value:.{digits - 2}e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    for start, factor, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= start:
            scaled = value / factor
            return f"{scaled:.{digits}g}{unit}" if abs(scaled) < 999.5 else f"{scaled:.0f}{unit}"
    if value == int(value):
        return str(int(value))
    decimals = digits - 1 - math.floor(math.log10(size))
    return f"{value:.{min(max(decimals, 0), digits)}f}"


def yaml_number(value: float) -> str:
    """A number in YAML 1.2 with all digits: `1e-6`, `0.05`, `.inf`."""
    text = repr(value)
    if 0 < abs(value) < _SMALL and "e" not in text:
        text = f"{Decimal(text).normalize():e}"
    return _EXPONENT.sub(lambda found: "e" + found[1].lstrip("+"), text).replace("inf", ".inf")


def counted(count: float, noun: str, form: str = ",") -> str:
    """`1 step`, `5 steps`, `1,200 batches`; `form`: the number's format."""
    ending = "" if count == 1 else "es" if noun.endswith(("tch", "s", "x")) else "s"
    return f"{count:{form}} {noun}{ending}"


def duration(seconds: float | None) -> str:
    """Formats seconds as `45s`, `3m 12s`, `2h 05m` or `3d 4h`; `–` if unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    total = max(0, round(seconds))
    if total < 60:
        return f"{total}s"
    minutes, second = divmod(total, 60)
    if minutes < 60:
        return f"{minutes}m {second:02d}s"
    hours, minute = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h {minute:02d}m"
    days, hour = divmod(hours, 24)
    return f"{days}d {hour}h"


def roughly(seconds: float | None) -> str:
    """Formats an estimated time: `45s`, `6m 40s`, `18m`, `3h 44m`."""
    if seconds is None or not math.isfinite(seconds) or seconds < 60:
        return duration(seconds)
    if seconds < 600:
        return duration(round(seconds, -1))
    return duration(60 * round(seconds / 60)).removesuffix(" 00s")


def remaining(seconds: float | None, done: float | None = None) -> str:
    """`ETA 3h 44m, done 18:12` (local time; `done` with the day unless today, not if past), or `all steps done`."""
    if seconds == 0:
        return "all steps done"
    words, today = f"ETA {roughly(seconds)}", datetime.now()
    if done is None or done < today.timestamp():
        return words
    end = datetime.fromtimestamp(done)
    day = "" if end.date() == today.date() else f"{end:%a} " if (end - today).days < 6 else f"{end:%b} {end.day}, "
    return f"{words}, done {day}{end:%H:%M}"


def gib(count: float | None) -> str:
    """Formats bytes as GiB with one decimal, without the unit."""
    return "–" if count is None else f"{count / GIB:.1f}"


def range_bar(low: int, high: int, limit: int, most: int, cells: int) -> tuple[str, str]:
    """A bar of `cells` for `most`, filled to `low` and shaded to `high`: its parts up to `limit` and beyond."""
    filled, shaded, within = (round(cells * each / most) for each in (low, high, limit))
    bar = f"{'▓' * filled}{'░' * (shaded - filled)}".ljust(within)
    return bar[:within], bar[within:]


def amount(count: float) -> str:
    """Formats bytes with their unit: `0 B`, `80 KiB`, `3.1 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
