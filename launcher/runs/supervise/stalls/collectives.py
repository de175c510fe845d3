"""Ranks that wait in a collective operation, by their stacks and by torch's flight recorder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.record.standstill import Facts, Seen
from launcher.runs.supervise.stalls.evidence import Judgement, activity_of, judged, short, waiting_call

_IDLE = 0.05  # cores; a rank that computes will join later


@dataclass(frozen=True)
class _Waiting:
    """A rank that waits: the operation, and where it was called. On a GPU the call returns before the operation."""

    seen: Seen
    operation: str
    call: str
    own: str | None = None

    @property
    def words(self) -> str:
        last = _last(self.seen)
        recorded = f" (flight recorder: {last['operation']} no. {last['sequence']})" if last else ""
        return f"rank {self.seen.ranks[0]} waits in {self.call}{recorded}"


def collective(facts: Facts, busy: bool) -> Judgement | None:
    """A rank that others wait for, or an operation that does not end."""
    ranked = [seen for seen in facts.processes if len(seen.ranks) == 2 and seen.ranks[1] > 1]
    inside = {found.seen.ranks[0]: found for seen in ranked if (found := _waiting(seen, busy)) is not None}
    if not inside:
        return None
    size = max(each.seen.ranks[1] for each in inside.values())
    here = {seen.ranks[0]: seen for seen in ranked if seen.ranks[1] == size}
    some = next(iter(inside.values()))
    words = [each.words for each in inside.values()]
    words = [*words[:1], f"{len(words) - 1} more ranks wait"] if len(words) > 2 else words
    missing = [seen for rank, seen in sorted(here.items()) if rank not in inside]
    if missing:
        seen = missing[0]
        if busy and (seen.cpu > _IDLE or not all(stack.still for stack in seen.stacks)):
            return None
        evidence = [f"rank {seen.ranks[0]} (pid {seen.pid}) {activity_of(seen)}", *words]
        return judged("collective-missing", evidence, rank=seen.ranks[0], operation=some.operation, pid=seen.pid)
    gone = sorted(set(range(size)) - set(here))
    if gone:
        if facts.ray is not None and facts.ray.nodes > 1:  # it may be on another one
            return judged("collective", words, operation=some.operation)
        evidence = [f"{len(here)} of {size} ranks have a process; rank {gone[0]} has none", *words]
        return judged("collective-lost", evidence, rank=gone[0], operation=some.operation)
    if _differ(list(inside.values())):
        own = [f"rank {rank} called it in {each.own}" for rank, each in inside.items() if each.own]
        evidence = [each.words for each in inside.values()][:2]
        return judged("collective-mismatch", [*evidence, *own], pid=some.seen.pid)
    return judged("collective", words, operation=some.operation)


def _waiting(seen: Seen, busy: bool) -> _Waiting | None:
    if (found := waiting_call(seen, "collective", busy)) is not None:
        call, own = found
        return _Waiting(seen, call.rpartition(" ")[2], short(call), own)
    last = _last(seen)
    if last is None or not last.get("still"):
        return None
    operation = str(last["operation"]).rpartition(":")[2]
    return _Waiting(seen, operation, f"{operation} of group {last['group']}")


def _differ(waiting: Sequence[_Waiting]) -> bool:
    """Whether ranks wait in different operations: by the flight recorder where it has them, or by their stacks."""
    recorded = [_last(each.seen) for each in waiting]
    known = {(each["sequence"], each["operation"]) for each in recorded if each is not None}
    return len(known) > 1 if None not in recorded else len({each.operation for each in waiting}) > 1


def _last(seen: Seen) -> Mapping[str, Any] | None:
    """The newest collective operation that has not ended."""
    return next((each for each in seen.collectives[::-1] if each.get("state") != "completed"), None)
