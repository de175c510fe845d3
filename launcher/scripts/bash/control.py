"""The control flow of a script: conditions, loops, branches that may be taken or not."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from launcher.scripts.bash import marks, patterns, tree
from launcher.scripts.bash.builtins import Exit, Leave, Return
from launcher.scripts.bash.conditions import Conditions
from launcher.scripts.bash.marks import Budget
from launcher.scripts.bash.state import State
from launcher.scripts.bash.words import Words

_ROUNDS = 2_000  # maximum rounds of one loop

Way = Callable[[], bool | None]
"""A part of a script to follow; returns whether it succeeds, None if unknown."""


class Control(ABC):
    """Walks the tree of a script with its current state."""

    state: State
    budget: Budget
    words: Words
    conditions: Conditions
    early: list[tuple[Return | Leave, State, str]]
    _asking: int

    @abstractmethod
    def simple(self, node: tree.Simple) -> bool | None:
        """Follows one command."""

    @abstractmethod
    def pipeline(self, node: tree.Pipeline) -> bool | None:
        """Follows commands that are connected by `|`."""

    @abstractmethod
    def group(self, node: tree.Group) -> bool | None:
        """Follows `{ ... }` or `( ... )`."""

    def run(self, node: tree.Node) -> bool | None:
        """Follows one command; returns whether it succeeds, None if unknown."""
        self.budget.step()
        with self.budget:
            self.state.status = self._run(node)
        return self.state.status

    def _run(self, node: tree.Node) -> bool | None:
        match node:
            case tree.Simple():
                return self.simple(node)
            case tree.Sequence():
                for each in node.items:
                    self.run(each)
                return self.state.status if node.items else True
            case tree.Chain():
                return self._chain(node.parts)
            case tree.Pipeline():
                return self.pipeline(node)
            case tree.If():
                return self._if(node.branches, node.otherwise)
            case tree.Case():
                return self._case(node)
            case tree.For():
                words = [f for raw in node.words for f in self.words.fields(raw)] if node.words is not None else None
                for value in list(self.state.args if words is None else words)[:_ROUNDS]:
                    self.words.assign(node.name, value)
                    if not self._round(node.body):
                        break
                return True
            case tree.Count():
                self.words.number(node.start)
                return self._while(lambda: self._counted(node.test), node.body, node.step)
            case tree.While():
                return self._while(lambda: self._asked(node.condition, node.until), node.body)
            case tree.Group():
                return self.group(node)
            case tree.Function():
                self.state.functions[node.name] = node.body
                return True
            case tree.Test():
                return self.conditions.double(node.text)
            case tree.Sum():
                return self._counted(node.text)

    # conditions and loops

    def _counted(self, text: str) -> bool | None:
        if not text.strip():
            return True
        number = self.words.number(text)
        return None if number is None else number != 0

    def _asked(self, condition: tree.Node, until: bool = False) -> bool | None:
        self._asking += 1
        try:
            found = self.run(condition)
        finally:
            self._asking -= 1
        return found if found is None or not until else not found

    def _chain(self, parts: list[tuple[str, tree.Node]]) -> bool | None:
        found: bool | None = True
        for sign, node in parts:
            if not sign or found is (sign == "&&"):
                found = self.run(node)
            elif found is None:
                self._perhaps(partial(self.run, node), f"the command before {sign} decides it")
        return found

    def _perhaps(self, run: Way, reason: str) -> None:
        """Follows a part that may run or not; keeps values that are equal in both cases."""
        self._fork([run, lambda: True], reason)

    def _if(self, branches: list[tuple[tree.Sequence, tree.Sequence]], otherwise: tree.Sequence) -> bool | None:
        if not branches:
            return self.run(otherwise)
        (condition, body), rest = branches[0], branches[1:]
        found = self._asked(condition)
        if found is not None:
            return self.run(body) if found else self._if(rest, otherwise)
        self._fork([lambda: self.run(body), lambda: self._if(rest, otherwise)], told(condition))
        return None

    def _fork(self, ways: list[Way], reason: str) -> None:
        """Follows every way from here; keeps values on which the continuing ways agree.

        The state of a way that leaves a loop or function waits in `early` for its end.
        """
        before, ends, exits = self.state.copy(), [], []
        for way in ways:
            self.state.adopt(before)
            try:
                way()
            except Exit:
                exits.append(self.state.copy())
            except (Return, Leave) as leaving:
                self.early.append((leaving, self.state.copy(), reason))
            else:
                ends.append(self.state.copy())
        if not ends:
            if len(exits) == len(ways):
                self.state.adopt(exits[0])
                raise Exit
            last, state, _ = self.early.pop()
            self.state.adopt(state)
            raise last
        self.state.adopt(ends[0])
        for other in ends[1:]:
            self.state.merge(other, reason)
        for each in exits:
            lost = each.started[len(before.started) :]
            self.state.started += [replace(each, because=(*each.because, reason)) for each in lost]

    def _joined(self, kind: type[Return] | type[Leave], since: int, *, ended: bool) -> list[Return | Leave]:
        """Joins the states that waited for the end of a loop or function; keeps their common values.

        `ended`: the other way ended the script and does not count.
        """
        mine = [each for each in self.early[since:] if isinstance(each[0], kind)]
        self.early[since:] = [each for each in self.early[since:] if not isinstance(each[0], kind)]
        for place, (_, state, reason) in enumerate(mine):
            if ended and place == 0:
                self.state.adopt(state)
            else:
                self.state.merge(state, reason)
        return [each[0] for each in mine]

    def _case(self, node: tree.Case) -> bool | None:
        word = self.words.one(node.word)
        if marks.is_unknown(word):
            ways: list[Way] = [partial(self.run, body) for _, body, _ in node.branches]
            self._fork([*ways, lambda: True], f"case {node.word} in")
            return None
        text, going = marks.plain(word), False
        found: bool | None = True
        for each, body, end in node.branches:
            if going or any(patterns.matches(self.words.pattern(raw), text, self.budget) for raw in each):
                found = self.run(body)
                if end not in (";&", ";;&"):
                    break
                going = end == ";&"
        return found

    def _while(self, condition: Way, body: tree.Sequence, step: str = "") -> bool | None:
        for _ in range(_ROUNDS):
            found = condition()
            if found is False:
                break
            if found is None:  # once, perhaps
                self._perhaps(lambda: self._round(body), "a loop runs")
                break
            if not self._round(body):
                break
            self.words.number(step)
        return True

    def _round(self, body: tree.Sequence) -> bool:
        """Follows one round of a loop; returns whether there may be another."""
        since, again = len(self.early), True
        try:
            self.run(body)
        except Leave as leave:
            if leave.levels > 1:
                raise Leave(leave.levels - 1, leave.again) from None
            again = leave.again
        except Exit:
            if not self._joined(Leave, since, ended=True):
                raise
            return False  # the loop's condition comes true
        left = self._joined(Leave, since, ended=False)
        return again and all(isinstance(each, Leave) and each.again for each in left)


def told(condition: tree.Node) -> str:
    """The condition as text, for messages."""
    match condition:
        case tree.Sequence() if condition.items:
            return told(condition.items[-1])
        case tree.Simple():
            return " ".join(condition.words)
        case tree.Test():
            return f"[[ {condition.text.strip()} ]]"
        case tree.Pipeline():
            return ("! " if condition.negated else "") + " | ".join(map(told, condition.commands))
        case tree.Chain():
            return " ".join(f"{sign} {told(node)}".strip() for sign, node in condition.parts)
        case _:
            return "a condition"
