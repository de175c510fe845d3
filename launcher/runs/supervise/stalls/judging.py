"""The reason why a run hangs, from its facts. The first matching reason wins."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from launcher.record.standstill import HangFacts, Seen
from launcher.runs.supervise.stalls.collectives import collective
from launcher.runs.supervise.stalls.evidence import (
    MOST,
    Judgement,
    activity_of,
    first_call,
    judged,
    own_frame,
    short,
    waiting_call,
    waits_of,
    who,
)
from launcher.runs.supervise.stalls.looking import NETWORK
from launcher.runs.watch.stalls import UNKNOWN, reasons

_FATAL = frozenset({"48", "62", "64", "74", "79", "92", "94", "95", "109", "119", "120", "121", "122", "154"})
"""Xids that disable a GPU. The others are program errors, perhaps of another user."""
_ORDERLY = ("RAY_KILL", "OUT_OF_SCOPE", "REF_DELETED", "INTENDED", "exit_actor")  # normal ends of actors


def judge(facts: HangFacts, *, busy: bool = False) -> Judgement | None:
    """The reason; `busy`: processes use CPU, so that only certain reasons and unchanged stacks count."""
    for part in _PARTS:
        found = part(facts, busy)
        if found is not None and (not busy or reasons()[found.reason].certain):
            return found
    idle = tuple(f"{who(seen)} {activity_of(seen)}" for seen in facts.processes if seen.stacks)
    return None if busy else Judgement(UNKNOWN, {}, idle[:MOST])


def _gpu(facts: HangFacts, busy: bool) -> Judgement | None:
    ours = {str(seen.pid) for seen in facts.processes}
    for line in facts.kernel[::-1]:
        xid, pid = re.search(r"Xid.*?: (\d+)", line), re.search(r"pid=(\d+)", line)
        if xid is None or xid[1] in _FATAL or (pid is not None and pid[1] in ours):
            return judged("gpu-lost", [line], error=f"Xid {xid[1]}" if xid else "it is lost")
    return None


def _disk_full(facts: HangFacts, busy: bool) -> Judgement | None:
    if not facts.full:
        return None
    writers = [
        f"{who(seen)}: {short(frame)}"
        for seen in facts.processes
        for frames in waits_of(seen, busy)
        for frame in frames[:3]
        if "write" in frame
    ]
    return judged("disk-full", [f"no space left on {place}" for place in facts.full] + writers, place=facts.full[0])


def _stopped(facts: HangFacts, busy: bool) -> Judgement | None:
    held = [seen for seen in facts.processes if seen.state in "Tt"]
    if not held:
        return None
    evidence = [f"{who(seen)} is in state {seen.state} (stopped)" for seen in held]
    return judged("process-stopped", evidence, name=who(held[0]), pid=held[0].pid)


def _in_kernel(facts: HangFacts, busy: bool) -> Judgement | None:
    stuck = [seen for seen in facts.processes if seen.state == "D" and seen.cpu < 0.1]
    if not stuck:
        return None
    saves = facts.stage == "save"
    mounts = facts.mounts[:1] if saves else facts.mounts
    network = [mount for mount in mounts if NETWORK.match(mount.rpartition(" ")[2])]
    place = (network or [mount for mount in mounts if not mount.startswith("/ ")] or [*mounts, "?"])[0]
    evidence = [f"{who(seen)} is in state D, in {seen.wait or 'the kernel'}" for seen in stuck]
    evidence += [
        f"it {activity_of(stuck[0])}" if stuck[0].stacks else "",
        f"it {'saves to' if saves else 'has files on'} {place}",
    ]
    kind = "network-disk" if network else "disk-wait"
    return judged(kind, evidence, place=place, pid=stuck[0].pid)


def _ray(facts: HangFacts, busy: bool) -> Judgement | None:
    view = facts.ray
    if view is None:
        return None
    dead = [actor for actor in view.actors if actor.get("state") == "DEAD" and not _orderly(str(actor.get("cause")))]
    if dead:
        evidence = [
            f"{actor.get('name')} (pid {actor.get('pid')}): {_cause(str(actor.get('cause')))}" for actor in dead
        ]
        return judged("ray-actor-dead", evidence, name=dead[0].get("name"))
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
            return judged("ray-cpus", waiting, need=f"{needed[key]:g}", **words)
        return judged("ray-placement", waiting, need=f"{needed[key]:g} {key}", **words)
    if pending:
        return judged("ray-actor-pending", waiting, name=pending[0].get("name"))
    words = {"free": f"{view.free.get('CPU', 0.0):g}", "total": f"{view.total.get('CPU', 0.0):g} CPU"}
    return judged("ray-placement", waiting, need="the bundles of a placement group", **words)


def _amounts(resources: Mapping[str, float]) -> str:
    shown = [key for key in resources if "memory" not in key and "_group_" not in key]
    return ", ".join(f"{resources[key]:g} {key}" for key in shown) or "nothing"


def _orderly(cause: str) -> bool:
    return not cause or any(word in cause for word in _ORDERLY)


def _cause(text: str) -> str:
    message = re.search(r'error_message: \\?"(.*?)(?:Some common causes|\\?"|$)', text)
    return (message[1] if message else text)[:200].strip()


def _store(facts: HangFacts, busy: bool) -> Judgement | None:
    if facts.ray is None or not facts.ray.store:
        return None  # no recent message of Ray about its store
    puts = (
        f"{who(seen)}: {short(frame)}"
        for seen in facts.processes
        for frames in waits_of(seen, busy)
        for frame in frames
        if re.search(r"/ray/_private/worker\.py:\d+ put", frame)
    )
    return judged("object-store", [*islice(puts, 1), *facts.ray.store[::-1]])


def _queue(facts: HangFacts, busy: bool) -> Judgement | None:
    return _by_call("queue-full", "queue", facts, busy)


def _lock(facts: HangFacts, busy: bool) -> Judgement | None:
    if facts.locks:
        return judged("lock", facts.locks, place=facts.locks[0].partition(": ")[0])
    found = _by_call("lock", "lock", facts, busy)
    if found is None:
        return None
    locks = [file for seen in facts.processes for file in seen.files if file.endswith(".lock")]
    return Judgement("lock", {**found.words, "place": locks[0] if locks else found.words["place"]}, found.evidence)


def _download(facts: HangFacts, busy: bool) -> Judgement | None:
    found = _by_call("download", "download", facts, busy)
    if found is None:
        return None
    partial = [file for seen in facts.processes for file in seen.files if file.endswith((".incomplete", ".part"))]
    return Judgement("download", found.words, (*found.evidence, *(f"unfinished: {file}" for file in partial))[:MOST])


def _by_call(reason: str, pattern: str, facts: HangFacts, busy: bool) -> Judgement | None:
    for seen in facts.processes:
        if (found := waiting_call(seen, pattern, busy)) is not None:
            call, own = found
            evidence = [f"{who(seen)} waits in {short(call)}", f"called in {own}" if own else ""]
            return judged(reason, evidence, place=own or short(call), pid=seen.pid)
    return None


def _user(facts: HangFacts, busy: bool) -> Judgement | None:
    """A user's reward function, tool or data set called by veRL or torch; also veRL's own scores."""
    for kind in ("reward", "tool", "data-loader"):
        for seen in facts.processes:
            for frames in waits_of(seen, busy):
                role = first_call(frames, kind)
                inside = frames[: frames.index(role)] if role is not None else ()
                place = own_frame(inside)
                if place is None and kind == "reward":
                    place = first_call(frames, "scores-of-verl")
                if place is not None:
                    return _code(kind, seen, frames, short(place))
    for seen in facts.processes:
        for frames in waits_of(seen, busy):
            if (call := first_call(frames, "batch")) is not None:
                return _code("data-loader", seen, frames, own_frame(frames) or short(call))
            if (call := first_call(frames[:1], "scoring")) is not None:
                return _code("reward", seen, frames, short(call))
    return None


def _code(reason: str, seen: Seen, frames: Sequence[str], place: str) -> Judgement:
    inner = short(frames[0])
    evidence = [f"{place}, in {who(seen)}", f"it waits in {inner}" if inner != place else ""]
    return judged(reason, evidence, place=place, pid=seen.pid)


def _engine(facts: HangFacts, busy: bool) -> Judgement | None:
    waiting = [(seen, frames) for seen in facts.processes for frames in seen.tasks if first_call(frames, "engine")]
    if not waiting:
        return None
    seen, frames = waiting[0]
    servers = [each for each in facts.processes if re.search(r"(?i)ray::\w*server|vllm|sglang", each.name)]
    inside = [each for each in servers if any(map(own_frame, waits_of(each, busy)))]
    server = [None, *(inside or servers)][-1]  # an engine's worker is younger than its server
    evidence = [f"responses wait in {short(first_call(frames, 'engine') or '')}, in {who(seen)}"]
    evidence += [f"{who(server)} uses {server.cpu:.2f} CPU and {activity_of(server)}"] if server else []
    return judged("engine", evidence, pid=(server or seen).pid)


def _plain_code(facts: HangFacts, busy: bool) -> Judgement | None:
    """A process waits in a file outside of veRL; excludes processes that wait for another process."""
    for seen in facts.processes:
        for frames in waits_of(seen, busy):
            if (
                first_call(frames, "remote") is None
                and (own := own_frame(frames)) is not None
                and not own.startswith("<")
            ):
                return _code("user-code", seen, frames, own)
    return None


_PARTS: tuple[Callable[[HangFacts, bool], Judgement | None], ...] = (
    _gpu,
    _stopped,
    _in_kernel,
    _disk_full,
    collective,
    _ray,
    _lock,
    _download,
    _queue,
    _user,
    _engine,
    _store,
    _plain_code,
)
