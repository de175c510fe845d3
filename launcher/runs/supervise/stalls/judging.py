"""The reason why a run stands still, from what was seen of it. The first reason that fits wins."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.record.standstill import Facts, Seen
from launcher.runs.supervise.stalls.looking import NETWORK
from launcher.runs.watch.stalls import UNKNOWN, calls, reasons

_MOST = 4  # lines of evidence
_SHORT = re.compile(r".*/(?:site|dist)-packages/|.*/lib/python3\.\d+/")
_ORDERLY = ("RAY_KILL", "OUT_OF_SCOPE", "REF_DELETED", "INTENDED", "exit_actor")  # ends of actors that nobody misses


@dataclass(frozen=True)
class Judgement:
    """A reason, what fills the places of its texts, and the evidence."""

    reason: str
    words: Mapping[str, Any]
    evidence: tuple[str, ...]

    @property
    def title(self) -> str:
        return _filled(reasons()[self.reason].title, self.words)

    @property
    def command(self) -> str | None:
        command = reasons()[self.reason].command
        return _filled(command, self.words) if command else None


def judge(facts: Facts, *, busy: bool = False) -> Judgement | None:
    """The reason; `busy`: processes use CPU, so that only a certain one counts and only unchanged stacks."""
    for part in _PARTS:
        found = part(facts, busy)
        if found is not None and (not busy or reasons()[found.reason].certain):
            return found
    return None if busy else Judgement(UNKNOWN, {}, tuple(_idle(facts))[:_MOST])


def _filled(text: str, words: Mapping[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: str(words.get(name[1], "…")), text)


def _found(reason: str, evidence: Sequence[str], **words: Any) -> Judgement:
    return Judgement(reason, words, tuple(dict.fromkeys(each for each in evidence if each))[:_MOST])


def short(frame: str) -> str:
    """`torch/distributed/distributed_c10d.py:3012 all_reduce`, without the place where a library is installed."""
    return _SHORT.sub("", frame)


def name(seen: Seen) -> str:
    """`ray::Worker.update`, or the script of a process."""
    words = seen.name.split()
    if words and words[0].startswith("ray::"):
        return words[0]
    scripts = [word for word in words[1:] if not word.startswith("-")]
    return (scripts[0] if scripts else words[0] if words else "?").rpartition("/")[2]


def _who(seen: Seen) -> str:
    rank = f", rank {seen.ranks[0]}" if len(seen.ranks) == 2 else ""
    return f"{name(seen)} (pid {seen.pid}{rank})"


def _waits(seen: Seen, busy: bool) -> Iterator[Sequence[str]]:
    """The frames of each thread and coroutine, the innermost first."""
    yield from (stack.frames for stack in seen.stacks if stack.still or not busy)
    yield from (task for task in seen.tasks if not busy)


def _first(frames: Sequence[str], pattern: str) -> str | None:
    return next((frame for frame in frames if calls()[pattern].search(frame)), None)


def _own(frames: Sequence[str]) -> str | None:
    """The innermost frame that is neither of a library nor of veRL."""
    return next((frame for frame in frames if not calls()["library"].search(frame)), None)


def _gpu(facts: Facts, busy: bool) -> Judgement | None:
    if not facts.kernel:
        return None
    xid = re.search(r"Xid.*?: (\d+)", facts.kernel[-1])
    return _found("gpu-lost", facts.kernel[::-1], error=f"Xid {xid[1]}" if xid else "it fell off the bus")


def _disk_full(facts: Facts, busy: bool) -> Judgement | None:
    if not facts.full:
        return None
    writers = [f"{_who(seen)}: {short(frame)}" for seen, frame in _innermost(facts, busy) if "write" in frame]
    return _found("disk-full", [f"no room on {place}" for place in facts.full] + writers, place=facts.full[0])


def _stopped(facts: Facts, busy: bool) -> Judgement | None:
    held = [seen for seen in facts.processes if seen.state in "Tt"]
    if not held:
        return None
    evidence = [f"{_who(seen)} is in state {seen.state} (stopped)" for seen in held]
    return _found("process-stopped", evidence, name=_who(held[0]), pid=held[0].pid)


def _in_kernel(facts: Facts, busy: bool) -> Judgement | None:
    stuck = [seen for seen in facts.processes if seen.state == "D" and (busy or seen.cpu < 0.1)]
    if not stuck:
        return None
    network = [mount for mount in facts.mounts if NETWORK.match(mount.rpartition(" ")[2])]
    place = (network or [mount for mount in facts.mounts if not mount.startswith("/ ")] or [*facts.mounts, "?"])[0]
    evidence = [f"{_who(seen)} is in state D, in {seen.wait or 'the kernel'}" for seen in stuck]
    evidence += [f"it {_doing(stuck[0])}" if stuck[0].stacks else "", f"it has files on {place}"]
    kind = "network-disk" if network else "disk-wait"
    return _found(kind, evidence, place=place, pid=stuck[0].pid)


def _collective(facts: Facts, busy: bool) -> Judgement | None:
    inside: dict[int, tuple[Seen, str, Sequence[str]]] = {}
    ranked = {seen.pid: seen for seen in facts.processes if len(seen.ranks) == 2}
    for seen in ranked.values():
        for frames in _waits(seen, busy):
            if (call := _first(frames, "collective")) is not None:
                inside[seen.pid] = (seen, call, frames)
                break
    if not inside:
        return None
    size = max(ranked[pid].ranks[1] for pid in inside)
    operations = {seen.ranks[0]: call.rpartition(" ")[2] for seen, call, _ in inside.values()}
    operation = next(iter(operations.values()))
    waiting = [f"rank {seen.ranks[0]} waits in {short(call)}{_recorded(seen)}" for seen, call, _ in inside.values()]
    waiting = waiting[:1] + ([f"{len(waiting) - 1} more ranks wait"] if len(waiting) > 2 else waiting[1:])
    here = {seen.ranks[0]: seen for seen in ranked.values() if seen.ranks[1] == size}
    missing = [seen for rank, seen in sorted(here.items()) if rank not in operations]
    if missing:
        seen = missing[0]
        return _found(
            "collective-missing",
            [f"rank {seen.ranks[0]} (pid {seen.pid}) {_doing(seen)}", *waiting],
            rank=seen.ranks[0],
            operation=operation,
            pid=seen.pid,
        )
    gone = sorted(set(range(size)) - set(here))
    if gone and size <= len(here) + 8 and not _elsewhere(facts):
        evidence = [f"{len(here)} of {size} ranks have a process; rank {gone[0]} has none", *waiting]
        return _found("collective-lost", evidence, rank=gone[0], operation=operation)
    pid = next(iter(inside))
    if _differ([seen for seen, _, _ in inside.values()], operations):
        evidence = [
            f"rank {seen.ranks[0]} waits in {short(call)}{_recorded(seen)}" for seen, call, _ in inside.values()
        ]
        own = [f"rank {seen.ranks[0]} called it in {place}" for seen, _, at in inside.values() if (place := _own(at))]
        return _found("collective-mismatch", [*evidence[:2], *own], pid=pid)
    return _found("collective", waiting, operation=operation)


def _differ(waiting: Sequence[Seen], operations: Mapping[int, str]) -> bool:
    """Whether ranks wait in different operations: by the flight recorder where it has them, or by their stacks."""
    recorded = [_last(seen) for seen in waiting]
    known = {(each["sequence"], each["operation"]) for each in recorded if each is not None}
    return len(known) > 1 if None not in recorded else len(set(operations.values())) > 1


def _last(seen: Seen) -> Mapping[str, Any] | None:
    """The newest collective operation that has not ended."""
    return next((each for each in seen.collectives[::-1] if each.get("state") != "completed"), None)


def _recorded(seen: Seen) -> str:
    last = _last(seen)
    return f" (flight recorder: {last['operation']} no. {last['sequence']})" if last else ""


def _elsewhere(facts: Facts) -> bool:
    """Whether the run may have processes on other nodes."""
    return facts.ray is not None and sum(key.startswith("node") for key in facts.ray.total) > 1


def _doing(seen: Seen) -> str:
    """What a process does instead of waiting for the others."""
    waits = list(_waits(seen, busy=False))
    own = next((place for frames in waits if (place := _own(frames))), None)
    if own is not None:
        return f"is in {own}"
    main = next((stack.frames for stack in seen.stacks[::-1] if stack.frames), None)
    if main is None:
        return f"shows no stack ({seen.source or 'no answer'}; state {seen.state})"
    return f"is in {short(main[0])}"


def _ray(facts: Facts, busy: bool) -> Judgement | None:
    view = facts.ray
    if view is None:
        return None
    dead = [actor for actor in view.actors if actor.get("state") == "DEAD" and not _orderly(str(actor.get("cause")))]
    if dead:
        evidence = [
            f"{actor.get('name')} (pid {actor.get('pid')}): {_cause(str(actor.get('cause')))}" for actor in dead
        ]
        return _found("ray-actor-dead", evidence, name=dead[0].get("name"))
    pending = [actor for actor in view.actors if actor.get("state") in ("PENDING_CREATION", "RESTARTING")]
    waiting = [f"actor {actor.get('name')} waits for {_amounts(actor.get('needs') or {})}" for actor in pending[:2]]
    bundles = [bundle for group in view.groups for bundle in group.get("bundles") or ()]
    waiting += [f"placement group waits for {_amounts(bundle)}" for bundle in bundles[:2]]
    if not waiting:
        return None
    waiting.insert(1, f"Ray counts {_amounts(view.total)}, of which {_amounts(view.free)} are free")
    needs = [*bundles, *(actor.get("needs") or {} for actor in pending)]
    needed: dict[str, float] = {}
    for key, amount in ((key, float(amount)) for need in needs for key, amount in need.items() if "_group_" not in key):
        needed[key] = needed.get(key, 0.0) + amount
    short_of = sorted((key for key, amount in needed.items() if amount > view.free.get(key, 0.0)), key="CPU".__eq__)
    if short_of:
        key = short_of[0]
        words = {"free": f"{view.free.get(key, 0.0):g}", "total": f"{view.total.get(key, 0.0):g}"}
        if key == "CPU":
            return _found("ray-cpus", waiting, need=f"{needed[key]:g}", **words)
        return _found("ray-placement", waiting, need=f"{needed[key]:g} {key}", **words)
    if pending:
        return _found("ray-actor-pending", waiting, name=pending[0].get("name"))
    words = {"free": f"{view.free.get('CPU', 0.0):g}", "total": f"{view.total.get('CPU', 0.0):g} CPU"}
    return _found("ray-placement", waiting, need="the bundles of a placement group", **words)


def _amounts(resources: Mapping[str, float]) -> str:
    shown = [key for key in resources if "memory" not in key and "_group_" not in key]
    return ", ".join(f"{resources[key]:g} {key}" for key in shown) or "nothing"


def _orderly(cause: str) -> bool:
    return not cause or any(word in cause for word in _ORDERLY)


def _cause(text: str) -> str:
    message = re.search(r'error_message: \\?"(.*?)(?:Some common causes|\\?"|$)', text)
    return (message[1] if message else text)[:200].strip()


def _store(facts: Facts, busy: bool) -> Judgement | None:
    if facts.ray is None or not facts.ray.store:
        return None  # Ray has said nothing about its store lately
    puts = [
        f"{_who(seen)}: {short(frame)}" for seen, frame in _anywhere(facts, busy, r"/ray/_private/worker\.py:\d+ put")
    ]
    return _found("object-store", [*puts[:1], *facts.ray.store[::-1]])


def _queue(facts: Facts, busy: bool) -> Judgement | None:
    return _by_call("queue-full", "queue", facts, busy)


def _lock(facts: Facts, busy: bool) -> Judgement | None:
    if facts.locks:
        return _found("lock", facts.locks, place=facts.locks[0].partition(": ")[0])
    found = _by_call("lock", "lock", facts, busy)
    if found is None:
        return None
    locks = [file for seen in facts.processes for file in seen.files if file.endswith(".lock")]
    return Judgement("lock", {**found.words, "place": locks[0] if locks else found.words["place"]}, found.evidence)


def _download(facts: Facts, busy: bool) -> Judgement | None:
    found = _by_call("download", "download", facts, busy)
    if found is None:
        return None
    partial = [file for seen in facts.processes for file in seen.files if file.endswith((".incomplete", ".part"))]
    return Judgement("download", found.words, (*found.evidence, *(f"unfinished: {file}" for file in partial))[:_MOST])


def _by_call(reason: str, pattern: str, facts: Facts, busy: bool) -> Judgement | None:
    for seen in facts.processes:
        for frames in _waits(seen, busy):
            if (call := _first(frames, pattern)) is not None:
                own = _own(frames)
                evidence = [f"{_who(seen)} waits in {short(call)}", f"called in {own}" if own else ""]
                return _found(reason, evidence, place=own or short(call), pid=seen.pid)
    return None


def _user(facts: Facts, busy: bool) -> Judgement | None:
    """A reward function, tool or data set of the user's, called by veRL or torch; veRL's own scores as well."""
    for reason in ("reward", "tool", "data-loader"):
        for seen in facts.processes:
            for frames in _waits(seen, busy):
                role = _first(frames, reason)
                inside = frames[: frames.index(role)] if role is not None else ()
                place = _own(inside) or (role if reason == "reward" and role and "/reward_score/" in role else None)
                if place is not None:
                    return _code(reason, seen, frames, short(place))
    for seen in facts.processes:
        for frames in _waits(seen, busy):
            if (call := _first(frames, "batch")) is not None:
                return _code("data-loader", seen, frames, _own(frames) or short(call))
            if (call := _first(frames[:1], "scoring")) is not None:
                return _code("reward", seen, frames, short(call))
    return None


def _code(reason: str, seen: Seen, frames: Sequence[str], place: str) -> Judgement:
    inner = short(frames[0])
    return _found(
        reason,
        [f"{place}, in {_who(seen)}", f"it waits in {inner}" if inner != place else ""],
        place=place,
        pid=seen.pid,
    )


def _engine(facts: Facts, busy: bool) -> Judgement | None:
    waiting = [(seen, frames) for seen in facts.processes for frames in seen.tasks if _first(frames, "engine")]
    if not waiting:
        return None
    seen, frames = waiting[0]
    server = next((each for each in facts.processes if re.search(r"(?i)ray::\w*server|vllm|sglang", each.name)), None)
    evidence = [f"responses wait in {short(_first(frames, 'engine') or '')}, in {_who(seen)}"]
    evidence += [f"{_who(server)} uses {server.cpu:.2f} CPU and {_doing(server)}"] if server else []
    return _found("engine", evidence, pid=(server or seen).pid)


def _plain_code(facts: Facts, busy: bool) -> Judgement | None:
    """The driver itself waits in a file that is not veRL's."""
    for seen in facts.processes:
        for frames in _waits(seen, busy):
            if (own := _own(frames)) is not None and not own.startswith("<"):
                return _code("user-code", seen, frames, own)
    return None


def _innermost(facts: Facts, busy: bool) -> Iterator[tuple[Seen, str]]:
    for seen in facts.processes:
        for frames in _waits(seen, busy):
            yield from ((seen, frame) for frame in frames[:3])


def _anywhere(facts: Facts, busy: bool, pattern: str) -> Iterator[tuple[Seen, str]]:
    for seen in facts.processes:
        for frames in _waits(seen, busy):
            if (frame := next((frame for frame in frames if re.search(pattern, frame)), None)) is not None:
                yield seen, frame


def _idle(facts: Facts) -> Iterator[str]:
    """What the processes with stacks do, for a reason that is not known."""
    for seen in facts.processes:
        if seen.stacks:
            yield f"{_who(seen)} {_doing(seen)}"


_PARTS: tuple[Callable[[Facts, bool], Judgement | None], ...] = (
    _gpu,
    _stopped,
    _in_kernel,
    _disk_full,
    _collective,
    _ray,
    _lock,
    _download,
    _queue,
    _user,
    _engine,
    _store,
    _plain_code,
)
