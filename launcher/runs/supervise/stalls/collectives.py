"""Ranks that wait in a collective operation, from their stacks and torch's flight recorder."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.core.format import counted
from launcher.record.standstill import HangFacts, Seen
from launcher.runs.supervise.stalls.evidence import Judgement, activity_of, judged, name, short, waiting_call

_IDLE = 0.05  # cores; a rank that computes will join later
_KIND = re.compile(r"(?:\w+::)?[A-Za-z]+")  # the kind in `ray::WorkerDict.update` and `VLLM::Worker_TP0`
_PAIR = re.compile(r":(?:send|recv)")  # operations of two ranks


@dataclass(frozen=True)
class _Waiting:
    """A waiting rank: the operation, and its call site. On a GPU the call returns before the operation ends."""

    seen: Seen
    operation: str
    call: str
    own: str | None = None
    members: Sequence[int] = ()  # ranks of its group, if known

    @property
    def words(self) -> str:
        last = _last(self.seen)
        recorded = f" (flight recorder: {last['operation']} no. {last['sequence']})" if last else ""
        return f"rank {self.seen.ranks[0]} waits in {self.call}{recorded}"


def collective(facts: HangFacts, busy: bool) -> Judgement | None:
    """The rank that others wait for, or the operation that does not end."""
    kinds: dict[tuple[str, int], list[Seen]] = {}  # ranks of the trainer and of an engine have equal numbers
    for seen in facts.processes:
        if len(seen.ranks) == 2 and seen.ranks[1] > 1:
            kind = _KIND.match(name(seen))
            kinds.setdefault((kind[0] if kind else "", seen.ranks[1]), []).append(seen)
    found = (_among(kinds[kind], kind[1], facts, busy) for kind in sorted(kinds, key=lambda kind: -kind[1]))
    return next((judgement for judgement in found if judgement is not None), None)


def _among(ranked: Sequence[Seen], size: int, facts: HangFacts, busy: bool) -> Judgement | None:
    """As `collective`, for processes of one kind, `size` in number."""
    inside = {found.seen.ranks[0]: found for seen in ranked if (found := _waiting(seen, busy)) is not None}
    if not inside:
        return None
    some = next(iter(inside.values()))
    members = some.members or range(size)
    here = {seen.ranks[0]: seen for seen in ranked if seen.ranks[0] in members}
    words = [each.words for each in inside.values()]
    words = [*words[:1], f"{counted(len(words) - 1, 'other rank')} waiting"] if len(words) > 2 else words
    missing = [seen for rank, seen in sorted(here.items()) if rank not in inside]
    if missing:
        seen = missing[0]
        if busy and (seen.cpu > _IDLE or not all(stack.still for stack in seen.stacks)):
            return None
        evidence = [f"rank {seen.ranks[0]} (pid {seen.pid}) {activity_of(seen)}", *words]
        return judged("collective-missing", evidence, rank=seen.ranks[0], operation=some.operation, pid=seen.pid)
    gone = sorted(set(members) - set(here))
    if gone:
        if facts.ray is not None and facts.ray.nodes > 1:  # it may be on another node
            return judged("collective", words, operation=some.operation)
        evidence = [f"{len(here)} of {len(members)} ranks have a process; rank {gone[0]} has none", *words]
        return judged("collective-lost", evidence, rank=gone[0], operation=some.operation)
    if _differ(list(inside.values())):
        own = [f"rank {rank} called it in {each.own}" for rank, each in inside.items() if each.own]
        evidence = [each.words for each in inside.values()][:2]
        return judged("collective-mismatch", [*evidence, *own], pid=some.seen.pid)
    return judged("collective", words, operation=some.operation)


def _waiting(seen: Seen, busy: bool) -> _Waiting | None:
    last = _last(seen)
    members = last.get("ranks") or () if last is not None else ()
    if (found := waiting_call(seen, "collective", busy)) is not None:
        call, own = found
        return _Waiting(seen, call.rpartition(" ")[2], short(call), own, members)
    if last is None or not last.get("still"):
        return None
    operation = str(last["operation"]).rpartition(":")[2]
    return _Waiting(seen, operation, f"{operation} of group {last['group']}", members=members)


def _differ(waiting: Sequence[_Waiting]) -> bool:
    """Whether ranks wait in different operations, by the flight recorder or their stacks."""
    recorded = [_last(each.seen) for each in waiting]
    known = [each for each in recorded if each is not None]
    if len(known) < len(recorded):
        return len({each.operation for each in waiting}) > 1
    if len({each["group"] for each in known}) > 1 or all(_PAIR.search(each["operation"]) for each in known):
        return False  # with several groups, a rank may be in any; one rank sends to another
    return len({(each["sequence"], each["operation"]) for each in known}) > 1


def standing(facts: HangFacts, before: HangFacts | None) -> bool:
    """Whether all busy processes are ranks with an unfinished operation: NCCL waits at full speed, on CPU and GPU."""
    earlier = {seen.pid: _last(seen) for seen in (before.processes if before is not None else ())}
    busy = [seen for seen in facts.processes if seen.cpu > _IDLE]
    return bool(busy) and all((last := _last(seen)) is not None and _same(last, earlier.get(seen.pid)) for seen in busy)


def _same(operation: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> bool:
    return earlier is not None and all(operation[key] == earlier[key] for key in ("group", "sequence", "operation"))


def _last(seen: Seen) -> Mapping[str, Any] | None:
    """The newest unfinished collective operation."""
    return next((each for each in seen.collectives[::-1] if each.get("state") != "completed"), None)
