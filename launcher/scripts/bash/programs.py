"""Computes the output of small programs in scripts (counts, ranges, parts of text) without running them."""

import posixpath
import re
from collections.abc import Callable
from functools import partial

from launcher.scripts.bash import marks
from launcher.scripts.bash.arithmetic import Arithmetic, NotANumber

_MOST = 10_000  # lines of a range


def printed(words: list[str], given: str, folder: str) -> str | None:
    """The output of a program for its arguments and input; None if unknown."""
    name, args = words[0].rpartition("/")[2], words[1:]
    found = _PROGRAMS.get(name)
    if found is None:
        return None
    if any(map(marks.is_unknown, [*args, given])):
        return marks.derived(*args, given)
    left = marks.kept(*args, given)
    try:
        output = found([marks.plain(each) for each in args], marks.plain(given), folder)
        return output if output is None or not left else output.removesuffix("\n") + left
    except (ValueError, IndexError, OverflowError, re.error):
        return None


def formatted(args: list[str]) -> str | None:
    """`printf`; the format is repeated until the arguments are used up."""
    if not args:
        return ""
    layout, rest = _unescaped(args[0]), args[1:]
    if re.search(r"%[^sd%qib]", layout):
        return None
    holes = len(re.findall(r"%[sdqib]", layout))
    found = ""
    while True:
        now, rest = rest[:holes], rest[holes:]
        parts = re.split(r"(%[sdqib%])", layout)
        found += "".join(
            "%" if part == "%%" else (now.pop(0) if now else "") if part[:1] == "%" else part for part in parts
        )
        if not rest or not holes:
            return found


def echoed(args: list[str]) -> str:
    """`echo` with its `-n` and `-e`."""
    end, escapes = "\n", False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        end, escapes = "" if "n" in args[0] else end, escapes or "e" in args[0]
        args = args[1:]
    text = " ".join(args)
    return (_unescaped(text) if escapes else text) + end


def located(folder: str, path: str) -> str:
    """A path seen from the script's folder, without `..`."""
    return path if path.startswith("~") else posixpath.normpath(posixpath.join(folder, path))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([nt\\\"])", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def _paths(args: list[str]) -> list[str]:
    return [word for word in args if not word.startswith("-")]


def _basename(args: list[str], _: str, __: str) -> str:
    paths = _paths(args)
    suffix = "".join(paths[1:2])
    name = posixpath.basename(paths[0].rstrip("/"))
    return (name.removesuffix(suffix) if name != suffix else name) + "\n"


def _realpath(args: list[str], _: str, folder: str) -> str:
    return located(folder, _paths(args)[0]) + "\n"


def _seq(args: list[str], _: str, __: str) -> str | None:
    separator = "\n"
    if args and args[0] == "-s":
        separator, args = args[1], args[2:]
    numbers = [int(word) for word in args]
    first, step, last = (
        (1, 1, *numbers) if len(numbers) == 1 else ((numbers[0], 1, numbers[1]) if len(numbers) == 2 else numbers)
    )
    if step == 0 or abs(last - first) // abs(step) > _MOST:
        return None
    found = separator.join(map(str, range(first, last + (1 if step > 0 else -1), step)))
    return found + "\n" if found else ""


def _wc(args: list[str], given: str, _: str) -> str | None:
    counts = {"-l": given.count("\n"), "-w": len(given.split()), "-c": len(given.encode()), "-m": len(given)}
    return f"{counts[args[0]]}\n" if len(args) == 1 and args[0] in counts else None


def _tr(args: list[str], given: str, _: str) -> str | None:
    classes = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:space:]": " \t\n", "[:digit:]": "0-9"}
    option = args[0] if args[0] in ("-d", "-s", "-cd") else ""
    sets = [_spread(_unescaped(classes.get(word, word))) for word in args[bool(option) :]]
    if option == "-d":
        return "".join(letter for letter in given if letter not in sets[0])
    if option == "-cd":
        return "".join(letter for letter in given if letter in sets[0])
    if option == "-s":
        if len(sets) != 1:
            return None
        return re.sub(f"([{re.escape(sets[0])}])\\1+", r"\1", given)
    padded = sets[1].ljust(len(sets[0]), sets[1][-1])
    return given.translate({ord(old): new for old, new in zip(sets[0], padded, strict=False)})


def _spread(text: str) -> str:
    return re.sub(
        r"([0-9a-zA-Z])-([0-9a-zA-Z])", lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), text
    )


def _option(args: list[str], name: str) -> tuple[str | None, list[str]]:
    """The value of `-dX` or `-d X`, and the words without it."""
    for place, word in enumerate(args):
        if word == name and place + 1 < len(args):
            return args[place + 1], args[:place] + args[place + 2 :]
        if word.startswith(name):
            return word[len(name) :], args[:place] + args[place + 1 :]
    return None, args


def _cut(args: list[str], given: str, _: str) -> str | None:
    separator, args = _option(args, "-d")
    wanted, args = _option(args, "-f")
    match = re.fullmatch(r"(\d*)(-?)(\d*)", wanted or "")
    if args or match is None or not wanted:
        return None
    first = int(match[1] or 1) - 1
    last = int(match[3]) if match[3] else None if match[2] else first + 1
    lines = []
    for line in given.splitlines():
        parts = line.split(separator or "\t")
        lines.append((separator or "\t").join(parts[first:last]) if len(parts) > 1 else line)
    return "".join(f"{line}\n" for line in lines)


def _awk(args: list[str], given: str, _: str) -> str | None:
    separator, args = _option(args, "-F")
    match = re.fullmatch(r"\s*\{\s*print\s+(?:NF|\$(\d+)|\$(NF))\s*;?\s*\}\s*", args[0])
    if match is None or len(args) > 1 or (separator is not None and len(separator) != 1):
        return None
    lines = []
    for line in given.splitlines():
        parts = line.split(separator) if line else []
        if match[1] == "0":
            lines.append(line)
        elif match[1]:
            lines.append("".join(parts[int(match[1]) - 1 : int(match[1])]))
        else:
            lines.append("".join(parts[-1:]) if match[2] else str(len(parts)))
    return "".join(f"{line}\n" for line in lines)


def _sed(args: list[str], given: str, _: str) -> str | None:
    extended = args[0] in ("-E", "-r")
    args = [word for word in args if word not in ("-e", "-E", "-r")]
    match = re.fullmatch(r"s(.)((?:(?!\1).)*)\1((?:(?!\1).)*)\1(g?)", args[0])
    if (
        match is None
        or len(args) > 1
        or re.search(r"[()\[\]{}|+?\\&*]" if not extended else r"[^\w ,./:-]", match[2] + match[3])
    ):
        return None
    lines = [re.sub(match[2], match[3], line, count=0 if match[4] else 1) for line in given.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _lines(args: list[str], given: str, _: str, *, last: bool) -> str | None:
    match = re.fullmatch(r"(?:-n ?)?-?(\d+)?", " ".join(args))
    if match is None:
        return None
    count, lines = int(match[1] or 10), given.splitlines(keepends=True)
    return "".join(lines[max(0, len(lines) - count) :] if last else lines[:count])


def _grep(args: list[str], given: str, _: str) -> str | None:
    if len(args) == 2 and args[0] == "-o" and re.fullmatch(r"[\w, :/-]+", args[1]):
        return f"{args[1]}\n" * given.count(args[1])
    return None


def _paste(args: list[str], given: str, _: str) -> str | None:
    match = re.fullmatch(r"-sd ?(.)(?: -)?|-s -d ?(.)(?: -)?", " ".join(args))
    return (match[1] or match[2]).join(given.splitlines()) + "\n" if match else None


def _expr(args: list[str], _: str, __: str) -> str | None:
    if any(re.fullmatch(r"-?\d{1,18}|[-+*/%()]", word) is None for word in args):
        return None
    try:
        return f"{Arithmetic(' '.join(args), lambda name: '', lambda name, value: None).value()}\n"
    except (NotANumber, RecursionError):
        return None


_PROGRAMS: dict[str, Callable[[list[str], str, str], str | None]] = {
    "dirname": lambda args, _, __: (posixpath.dirname(_paths(args)[0].rstrip("/")) or ".") + "\n",
    "basename": _basename,
    "realpath": _realpath,
    "readlink": _realpath,
    "seq": _seq,
    "wc": _wc,
    "tr": _tr,
    "cut": _cut,
    "awk": _awk,
    "gawk": _awk,
    "sed": _sed,
    "head": partial(_lines, last=False),
    "tail": partial(_lines, last=True),
    "grep": _grep,
    "paste": _paste,
    "xargs": lambda args, given, _: None if args else " ".join(given.split()) + "\n",
    "expr": _expr,
    "getopt": lambda args, _, __: " --\n" if args and args[-1] == "--" else None,
    "cat": lambda args, given, _: given if not _paths(args) else None,
}
