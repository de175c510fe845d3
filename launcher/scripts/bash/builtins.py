"""Bash's builtin commands that change variables, arguments, the folder or the control flow."""

import contextlib
import re
from collections.abc import Callable
from functools import partial
from typing import Protocol

from launcher.scripts.bash import marks, programs
from launcher.scripts.bash.marks import Budget
from launcher.scripts.bash.state import State
from launcher.scripts.bash.words import Words


class Exit(Exception):
    """`exit`: the script ends."""


class Return(Exception):
    """`return`: a function ends."""

    def __init__(self, status: bool | None) -> None:
        super().__init__()
        self.status = status


class Leave(Exception):
    """`break` or `continue` (`again`), of this many loops."""

    def __init__(self, levels: int, again: bool) -> None:
        super().__init__()
        self.levels, self.again = levels, again


class Runner(Protocol):
    """The reader's functions for builtins."""

    state: State
    words: Words
    budget: Budget
    out: list[str]
    given: str
    notes: list[str]

    def source(self, text: str) -> None:
        """Runs a text as a part of the script."""

    def file(self, path: str) -> str | None:
        """The text of another script; None without one."""


def _declare(shell: Runner, args: list[str], *, export: bool = False, local: bool = False) -> bool:
    options = "".join(word[1:] for word in args if word.startswith("-"))
    for word in args:
        name, equals, value = word.partition("=")
        if word.startswith("-") or not re.fullmatch(r"[A-Za-z_]\w*\+?", name):
            continue
        append, name = name.endswith("+"), name.rstrip("+")
        if local:
            shell.state.variables["\nlocal"] = f"{shell.state.variables.get(chr(10) + 'local', '')} {name}"
        if equals:
            shell.words.assign(name, shell.state.variables.get(name, "") + value if append else value)
        elif local and name not in shell.state.arrays:
            shell.state.variables[name] = ""
        if "A" in options or "a" in options:
            shell.state.arrays.setdefault(name, {})
        if "n" in options and export:
            shell.state.exported.discard(name)
        elif export or "x" in options:
            shell.state.exported.add(name)
    return True


def _unset(shell: Runner, args: list[str]) -> bool:
    for name in args:
        base, bracket, index = name.partition("[")
        if bracket:
            shell.state.arrays.get(base, {}).pop(marks.plain(index.rstrip("]")), None)
            continue
        shell.state.variables.pop(name, None)
        shell.state.arrays.pop(name, None)
        shell.state.functions.pop(name, None)
        shell.state.exported.discard(name)
    return True


def _set(shell: Runner, args: list[str]) -> bool:
    if "--" in args:
        shell.state.args = args[args.index("--") + 1 :]
    elif "-a" in args or ("-o" in args and "allexport" in args):
        shell.notes.append("set -a exports every variable; the preset has only those named by an export command")
    elif args and not args[0].startswith(("-", "+")):
        shell.state.args = list(args)
    return True


def _shift(shell: Runner, args: list[str]) -> bool:
    count = int(args[0]) if args and args[0].isdigit() else 1
    if count > len(shell.state.args):
        return False
    del shell.state.args[:count]
    return True


def _echo(shell: Runner, args: list[str]) -> bool:
    shell.out.append(shell.budget.made(programs.echoed(args)))
    return True


def _printf(shell: Runner, args: list[str]) -> bool:
    name = args[1] if args[:1] == ["-v"] and len(args) > 1 else None
    found = programs.formatted(args[2:] if name else args)
    text = marks.derived(*args) if found is None and any(map(marks.is_marked, args)) else found
    text = shell.budget.made(marks.unknown("$(printf)") if text is None else text)
    if name:
        shell.words.assign(name, text)
    else:
        shell.out.append(text)
    return True


def _cd(shell: Runner, args: list[str]) -> bool | None:
    paths = [word for word in args if not word.startswith("-")] or [shell.state.variables.get("HOME", "/")]
    if marks.is_unknown(shell.state.folder) and not paths[0].startswith("/"):
        return True
    shell.state.folder = (
        paths[0] if marks.is_unknown(paths[0]) else programs.located(shell.state.folder, marks.plain(paths[0]))
    )
    return True


def _pwd(shell: Runner, args: list[str]) -> bool:
    shell.out.append(f"{shell.state.folder}\n")
    return True


def _source(shell: Runner, args: list[str]) -> bool | None:
    if not args or marks.is_unknown(args[0]):
        return True
    path = programs.located(shell.state.folder, marks.plain(args[0]))
    text = shell.file(path) if path.endswith((".sh", ".env", ".bash")) else None
    if text is None:
        if not re.search(r"bashrc|activate|conda|profile|set_env", path):
            shell.notes.append(f"not imported: source {marks.plain(args[0])}, which does not exist")
        return True
    outer = shell.state.args
    if args[1:]:
        shell.state.args = args[1:]
    before = shell.state.arrays.get("BASH_SOURCE", {})
    shell.state.arrays["BASH_SOURCE"] = {"0": path}
    with contextlib.suppress(Return):
        shell.source(text)
    shell.state.args, shell.state.arrays["BASH_SOURCE"] = outer, before
    return True


def _eval(shell: Runner, args: list[str]) -> bool | None:
    text = " ".join(args)
    if any(map(marks.is_unknown, args)) and not re.match(r"\s*set --|\s*python", text):
        return True  # conda and similar commands
    shell.source(text)
    return shell.state.status


def _read(shell: Runner, args: list[str]) -> bool | None:
    array, names, at = None, [], 0
    while at < len(args):
        word = args[at]
        if word.startswith("-") and word.endswith("a") and len(word) > 1:
            at += 1
            array = args[at] if at < len(args) else None
        elif word in ("-p", "-d", "-n", "-t", "-u"):
            at += 1
        elif not word.startswith("-"):
            names.append(word)
        at += 1
    if not shell.given:
        for name in names:
            shell.words.assign(name, marks.unknown(f"read {name}"))
        return None
    line = shell.given.split("\n")[0]
    shell.given = shell.given[len(line) + 1 :]
    separators = marks.plain(shell.state.variables.get("IFS", " \t\n"))
    parts = (
        re.split(f"[{re.escape(separators)}]+" if separators.isspace() else f"[{re.escape(separators)}]", line.strip())
        if separators
        else [line]
    )
    if array is not None:
        shell.state.arrays[array] = {str(place): part for place, part in enumerate(parts) if part or len(parts) > 1}
        shell.state.variables.pop(array, None)
    for place, name in enumerate(names):
        rest = parts[place : place + 1] if place + 1 < len(names) else [separators[:1].join(parts[place:])]
        shell.words.assign(name, "".join(rest))
    return True


def _mapfile(shell: Runner, args: list[str]) -> bool:
    name = next((word for word in reversed(args) if not word.startswith("-")), "MAPFILE")
    lines = shell.given.splitlines() if shell.given else [marks.unknown(f"mapfile {name}")]
    shell.state.arrays[name] = {str(place): line for place, line in enumerate(lines)}
    return True


def _getopts(shell: Runner, args: list[str]) -> bool | None:
    """`getopts`: the next option of the script's arguments; combined ones (`-ab`) are separated."""
    place = int(shell.state.variables.get("OPTIND", "1"))
    if len(args) < 2 or place > len(shell.state.args):
        return False
    word = shell.state.args[place - 1]
    if not re.fullmatch(r"-[A-Za-z0-9]", word):
        return False
    shell.state.variables[args[1]] = word[1]
    place += 1
    if f"{word[1]}:" in args[0]:
        shell.state.variables["OPTARG"] = "".join(shell.state.args[place - 1 : place])
        place += 1
    shell.state.variables["OPTIND"] = str(place)
    return True


def _let(shell: Runner, args: list[str]) -> bool | None:
    found = None
    for word in args:
        found = shell.words.number(word)
    return None if found is None else found != 0


def _exit(shell: Runner, args: list[str]) -> bool:
    raise Exit


def _return(shell: Runner, args: list[str]) -> bool:
    status = {"": shell.state.status, "0": True}.get("".join(args[:1]), False)
    raise Return(None if args and marks.is_unknown(args[0]) else status)


def _leave(shell: Runner, args: list[str], *, again: bool) -> bool:
    raise Leave(int(args[0]) if args and args[0].isdigit() else 1, again)


BUILTINS: dict[str, Callable[[Runner, list[str]], bool | None]] = {
    "export": partial(_declare, export=True),
    "declare": _declare,
    "typeset": _declare,
    "readonly": _declare,
    "local": partial(_declare, local=True),
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "echo": _echo,
    "printf": _printf,
    "cd": _cd,
    "pushd": _cd,
    "pwd": _pwd,
    "source": _source,
    ".": _source,
    "eval": _eval,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "getopts": _getopts,
    "let": _let,
    "exit": _exit,
    "return": _return,
    "break": partial(_leave, again=False),
    "continue": partial(_leave, again=True),
    "false": lambda shell, args: False,
    **dict.fromkeys(
        ("true", ":", "shopt", "trap", "wait", "ulimit", "umask", "alias", "popd", "mkdir", "sleep", "tee", "touch"),
        lambda shell, args: True,
    ),
}
"""Builtins by name, with some programs that are assumed to succeed."""
