"""Finds the programs that a script would start, without running it.

Follows assignments, arrays, functions, conditions, loops, option parsers and small programs. Values known only at run
time (`$(date)`, whether a server answers) become marks in the values that depend on them.
"""

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.core.errors import UserError
from launcher.scripts.bash import launchers, marks, programs, syntax, tree
from launcher.scripts.bash.builtins import BUILTINS, Exit, Leave, Return, Runner
from launcher.scripts.bash.conditions import Conditions
from launcher.scripts.bash.control import Control
from launcher.scripts.bash.marks import Budget
from launcher.scripts.bash.state import Started, State
from launcher.scripts.bash.words import Words

_LARGEST = 500_000  # letters of a script
_WRITES = (">", ">>", ">|", "&>", "&>>")
_NPU = re.compile(r"-c import torch_npu\b[\w ;.()]*")


@dataclass
class Read:
    """All programs that a script starts, and the reader's notes."""

    started: list[Started] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: str | None = None  # the last words of a script that gives up; None for one that does not
    lacking: tuple[str, ...] = ()  # variables and arguments without a value


def read(
    text: str, folder: str, path: str, args: Sequence[str], environ: Mapping[str, str], answers: Mapping[str, str]
) -> Read:
    """The programs that the script `text` starts when run in `folder`, named `path`, with `args` and `environ`.

    `answers`: variables as in `environ`, which also replace random values and values known only at run time. Raises
    UserError for a script that is too large or does not end.
    """
    variables = {**environ, **answers, "PWD": folder, "0": path, "OPTIND": "1"}
    state = State(variables, folder, args=list(args), fixed=frozenset(answers))
    state.arrays["BASH_SOURCE"] = {"0": path}
    reader = _Reader(state)
    reader.script(text)
    return Read(reader.state.started, reader.notes, reader.said, tuple(reader.words.lacking))


class _Reader(Control, Runner):
    """Walks the tree of a script. `out` collects its output."""

    def __init__(self, state: State) -> None:
        self.state, self.budget = state, Budget()
        self.words = Words(state, self.budget, self._substituted)
        self.conditions = Conditions(self.words)
        self.out: list[str] = []
        self.given = ""  # the standard input
        self.notes: list[str] = []
        self.said: str | None = None
        self.early = []
        self.written: dict[str, str] = {}
        self._asking = 0

    def script(self, text: str) -> None:
        """Follows a whole script, up to its `exit`."""
        try:
            self.source(text)
        except (Exit, Return, Leave):
            self.said = next(reversed(marks.plain("".join(self.out)).strip().splitlines()), "")

    def source(self, text: str) -> None:
        self.budget.step(len(text))
        if len(text) > _LARGEST:
            raise UserError(
                f"the script has {len(text):,} characters, more than {_LARGEST:,}", "import only the veRL command"
            )
        parser = syntax.Parser(marks.unmarked(text))
        parsed = parser.script()
        self.notes += parser.notes
        with self.budget:
            self.run(parsed)

    # commands

    def group(self, node: tree.Group) -> bool | None:
        if not node.subshell:
            return self.run(node.body)
        with _Apart(self):
            try:
                return self.run(node.body)
            except (Exit, Return, Leave):
                return None

    def pipeline(self, node: tree.Pipeline) -> bool | None:
        found: bool | None = True
        given, out = self.given, self.out
        last = len(node.commands) - 1
        for place, each in enumerate(node.commands):
            if place < last:
                self.out = []
            else:
                self.out = out
            if last:
                with _Apart(self):
                    try:
                        found = self.run(each)
                    except (Exit, Return, Leave):
                        found = None
            else:
                found = self.run(each)
            self.given = self.budget.made("".join(self.out)) if place < last else given
        return found if found is None or not node.negated else not found

    def _substituted(self, text: str) -> str:
        """The output of `$(text)`."""
        out, self.out = self.out, []
        asking, self._asking = self._asking, 0
        try:
            with _Apart(self, keep_started=False):
                file = re.fullmatch(r"\s*<\s*(\S+)\s*", text)
                parsed = syntax.Parser(text).script()
                with contextlib.suppress(Exit, Return, Leave):
                    self.run(parsed)
            found = marks.unknown(f"$({text})") if file else "".join(self.out)
        finally:
            self.out, self._asking = out, asking
        why = marks.reasons(found)
        return (
            marks.unknown(f"$({text})") if why and why != [f"$({text})"] and not marks.plain(found).strip() else found
        )

    def simple(self, node: tree.Simple) -> bool | None:
        words = [found for raw in node.words for found in self.words.fields(raw)]
        given = self._input(node.redirections)
        if not words:
            for each in node.assignments:
                self._assign(each)
            return True if not any("$(" in each.value for each in node.assignments) else self._asking == 0 or None
        if words[0] in ("export", "declare", "local", "readonly", "typeset"):
            for each in node.assignments:
                self._assign(each)
            return BUILTINS[words[0]](self, [*words[1:], *(each.name for each in node.assignments)])
        before = {each.name: self.state.variables.get(each.name) for each in node.assignments}
        exported = set(self.state.exported)
        for each in node.assignments:
            self._assign(each)
            self.state.exported.add(each.name)
        old, self.given = self.given, given if given is not None else self.given
        out = self.out
        written = [each for each in node.redirections if each.operator in _WRITES and not each.word.isdigit()]
        if written:
            self.out = []
        try:
            return self._command(words, node)
        finally:
            if written:
                self._write(written[-1])
            self.given, self.out, self.state.exported = old, out, exported | (self.state.exported - set(before))
            for name, value in before.items():
                if value is None:
                    self.state.variables.pop(name, None)
                else:
                    self.state.variables[name] = value

    def _assign(self, each: tree.Assignment) -> None:
        if each.items is not None:
            held = dict(self.state.arrays.get(each.name, {})) if each.append else {}
            for raw in each.items:
                named = re.match(r"\[([^\]]*)\]=", raw)
                if named:
                    held[marks.plain(self.words.one(named[1]))] = self.words.one(raw[named.end() :])
                    continue
                for value in self.words.fields(raw):
                    numbers = [int(key) for key in held if key.isdigit()]
                    held[str(max(numbers, default=-1) + 1)] = value
            self.state.arrays[each.name] = held
            self.state.variables.pop(each.name, None)
            return
        name = each.name if each.index is None else f"{each.name}[{each.index}]"
        value = self.words.one(each.value)
        if each.append:
            held_value = self.words.one(f"${{{name}:-}}")
            value = held_value + value
        if each.index is None and each.name in self.state.arrays:
            name = f"{each.name}[0]"
        self.words.assign(name, value)

    def _write(self, to: tree.Redirection) -> None:
        """Keeps the text of a file that the script writes and may run later."""
        text, path = "".join(self.out), self.words.one(to.word)
        if text and not marks.is_unknown(text + path):
            path = programs.located(self.state.folder, marks.plain(path))
            self.written[path] = (self.written.get(path, "") if ">>" in to.operator else "") + marks.plain(text)

    def _input(self, redirections: list[tree.Redirection]) -> str | None:
        for each in redirections:
            if each.operator == "<<<":
                return self.words.one(each.word) + "\n"
            if each.operator in ("<<", "<<-"):
                return each.word if each.literal else self.words.text(each.word)
            if each.operator == "<":
                return marks.unknown(f"< {each.word}")
        return None

    def _command(self, words: list[str], node: tree.Simple) -> bool | None:
        name, bare = marks.plain(words[0]), words
        if words == ["exec"]:  # only redirections
            return True
        if name in self.state.functions:
            return self._call(name, words[1:])
        if name in BUILTINS:
            return BUILTINS[name](self, words[1:])
        if name in ("[", "test"):
            return self.conditions.single(words[1:-1] if name == "[" else words[1:])
        if name in launchers.WRAPPERS and (bare := launchers.unwrapped(words)) and bare[0] in self.state.functions:
            return self._call(bare[0], bare[1:])
        bare = launchers.unwrapped(words)
        if bare and (self._other_script(bare) or self._launched(bare)):
            return True
        output = programs.printed(words, self.given, self.state.folder)
        if output is not None:
            self.out.append(output)
            return True if name != "grep" else None if marks.is_unknown(output) else bool(output)
        if name.startswith("python") and _NPU.fullmatch(" ".join(words[1:])):
            npu = os.path.exists("/dev/davinci_manager")  # noqa: PTH110 (never raises)
            self.notes.append(
                f"{'an' if npu else 'no'} Ascend NPU is here, so torch_npu is taken as {'there' if npu else 'missing'}"
            )
            return npu
        state = self.state
        script = state.arrays.get("BASH_SOURCE", {}).get("0", "")
        state.started.append(
            Started(tuple(words), state.env(), state.folder, (), node.line, state.within, node.above, script)
        )
        self.out.append(marks.unknown(f"$({' '.join(map(marks.plain, words))})"))
        return None if self._asking else True

    def _other_script(self, words: list[str], *, foreign: bool = False) -> bool:
        """Follows `bash other.sh`, `bash -c text` and `bash <<EOF`; returns whether it was one and exists. A foreign
        script does not get the variables.
        """
        shell = launchers.name_of(words) in launchers.SHELLS
        at, is_text = launchers.operand(words) if shell else (0, False)
        if any(map(marks.is_unknown, words[: at + (not is_text)])):
            return False
        text: str | None = None
        path, args = "bash", words[at + 1 :]
        if is_text:
            text, args = marks.as_script("".join(words[at : at + 1])), words[at + 2 :]
        elif shell and at >= len(words):
            text, self.given = (self.given if not marks.is_unknown(self.given) else ""), ""
        elif shell or words[0].endswith(".sh"):
            path = programs.located(self.state.folder, words[at])
            text = self.file(path)
        if not text:
            return False
        with _Apart(self):
            self.state.args, self.state.variables["0"] = list(args), path
            self.state.arrays["BASH_SOURCE"] = {"0": path}
            kept = self.state.fixed if foreign else self.state.exported | self.state.fixed
            self.state.exported &= kept
            self.state.variables = {n: v for n, v in self.state.variables.items() if n in kept or n in ("0", "HOME")}
            with contextlib.suppress(Exit, Return, Leave):
                self.source(text)
        return True

    def _launched(self, words: list[str]) -> bool:
        """Reads the command inside `docker run IMAGE bash -c ...`, `sbatch --wrap=...`; returns False for others."""
        command = launchers.inner(words)
        if not command:
            return False
        outside = self.state.within
        self.state.within = (*outside, tuple(words[: len(words) - len(command)] or words[:1]))
        try:
            return self._other_script(command, foreign=launchers.name_of(words) in launchers.CONTAINERS)
        finally:
            self.state.within = outside

    def _call(self, name: str, args: list[str]) -> bool | None:
        outer, self.state.args = self.state.args, list(args)
        hidden = dict(self.state.variables)
        self.state.variables.pop("\nlocal", None)
        since = len(self.early)
        try:
            try:
                self.run(self.state.functions[name])
            except Return as end:
                self.state.status = end.status
            except Exit:
                if not self._joined(Return, since, ended=True):
                    raise
                self.state.status = None
            if self._joined(Return, since, ended=False):
                self.state.status = None
        finally:
            for each in self.state.variables.pop("\nlocal", "").split():
                if each in hidden:
                    self.state.variables[each] = hidden[each]
                else:
                    self.state.variables.pop(each, None)
            if "\nlocal" in hidden:
                self.state.variables["\nlocal"] = hidden["\nlocal"]
            self.state.args = outer
        return self.state.status

    def file(self, path: str) -> str | None:
        """The text of another script; None without one."""
        if path in self.written:
            return self.written[path]
        try:
            if not Path(path).is_file() or Path(path).stat().st_size > _LARGEST:
                return None
            return Path(path).read_text("utf-8", errors="replace")
        except (OSError, ValueError):
            return None


class _Apart:
    """A subshell: drops its variables at its end, and keeps the programs that it starts."""

    def __init__(self, reader: _Reader, *, keep_started: bool = True) -> None:
        self._reader, self._keep = reader, keep_started

    def __enter__(self) -> None:
        self._before, self._early = self._reader.state.copy(), len(self._reader.early)

    def __exit__(self, *_: object) -> None:
        started, status = self._reader.state.started, self._reader.state.status
        self._reader.state.adopt(self._before)
        del self._reader.early[self._early :]
        self._reader.state.status = status
        if self._keep:
            self._reader.state.started = started
