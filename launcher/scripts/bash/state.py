"""The variables and started programs of a script so far."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from launcher.scripts.bash.marks import plain, unknown
from launcher.scripts.bash.tree import Node


@dataclass(frozen=True)
class Started:
    """A program that the script starts: its words, exported variables and folder.

    Words can have marks (`marks`): parts known only at run time. `because`: the unknown conditions of its start.
    `within`: commands of the launchers around it, outermost first. `above`: the line before it in `script`, its file.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    because: tuple[str, ...] = ()
    line: int = 0
    within: tuple[tuple[str, ...], ...] = ()
    above: str = ""
    script: str = ""


@dataclass
class State:
    """Arrays are mappings from index or name to value, in the order of bash."""

    variables: dict[str, str]
    folder: str
    arrays: dict[str, dict[str, str]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    functions: dict[str, Node] = field(default_factory=dict)
    args: list[str] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    status: bool | None = True
    within: tuple[tuple[str, ...], ...] = ()
    fixed: frozenset[str] = frozenset()  # variables that keep their value where the script's is not known

    def copy(self) -> "State":
        """A copy that can be changed independently."""
        other = copy.copy(self)
        other.variables, other.arrays = dict(self.variables), {name: dict(a) for name, a in self.arrays.items()}
        other.exported, other.functions = set(self.exported), dict(self.functions)
        other.args, other.started = list(self.args), list(self.started)
        return other

    def adopt(self, other: "State") -> None:
        """Takes over all values of another state."""
        vars(self).update(vars(other.copy()))

    def env(self) -> dict[str, str]:
        """Exported variables set by the script itself."""
        return {name: self.variables[name] for name in sorted(self.exported) if name in self.variables}

    def merge(self, other: "State", reason: str) -> None:
        """Keeps common values; differing ones become unknown for this reason."""
        for name in {*self.variables, *other.variables}:
            mine, theirs = self.variables.get(name), other.variables.get(name)
            if mine != theirs and not (plain(mine or "") == plain(theirs or "") == "" and mine is not None):
                self.variables[name] = unknown(f"{name}, set where {reason}")
        for name in {*self.arrays, *other.arrays}:
            if self.arrays.get(name) != other.arrays.get(name):
                self.arrays[name] = {"0": unknown(f"{name}, set where {reason}")}
        if self.args != other.args:
            self.args = [unknown(f"the arguments, set where {reason}")]
        if self.folder != other.folder:
            self.folder = unknown(f"the folder, changed where {reason}")
        self.exported |= other.exported
        self.functions = {**other.functions, **self.functions}
        self._merge_started(other, reason)

    def _merge_started(self, other: "State", reason: str) -> None:
        if self.started == other.started:
            return
        common = 0
        while common < min(len(self.started), len(other.started)) and self.started[common] == other.started[common]:
            common += 1
        both = [*self.started[common:], *other.started[common:]]
        self.started = self.started[:common] + [replace(each, because=(*each.because, reason)) for each in both]
