"""stall.txt: the facts that maintainers need about a hang, without secrets and control characters."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from launcher.core.secrets import redact
from launcher.core.tail import last_text
from launcher.core.text import clean
from launcher.record.standstill import HangFacts, Standstill
from launcher.runs.watch.stalls import problem_of

_TAIL = 2 << 20  # bytes read from the console's end
_SIZE = 256 << 10  # characters of the report
_FROM = re.compile(r"^\s*\(([^()]*\bpid=\d+[^()]*)\)\s?(.*)")


def report(facts: HangFacts, console: Path, samples: Path, found: Standstill | None) -> str:
    """The reason, the last line of every process, Ray's waits, the machine, and all stacks."""
    parts: list[tuple[str, Callable[[], Iterator[str]]]] = [
        ("Last line of each process", lambda: _last_lines(console)),
        ("Ray", lambda: _ray(facts)),
        ("GPUs and host", lambda: _machine(samples)),
        ("Also seen", lambda: iter([*facts.full, *facts.mounts, *facts.locks, *facts.kernel])),
        ("Stacks", lambda: _stacks(facts)),
    ]
    text = [time.strftime("Collected %Y-%m-%d %H:%M:%S", time.localtime(facts.t))]
    if found is not None:
        problem = problem_of(found, facts.t)
        text += ["", f"## {found.title}", "", f"{problem.id}: {problem.meaning}", *problem.lines()]
    for title, part in parts:
        try:
            found_lines = list(part())
        except Exception as error:
            found_lines = [f"could not be collected: {type(error).__name__}: {error}"]
        text += ["", f"## {title}", "", *found_lines] if found_lines else []
    text += ["", *(f"not collected, no permission: {command}" for command in facts.missing)]
    return redact("\n".join(clean(line) for line in text)).rstrip()[:_SIZE] + "\n"


def _last_lines(console: Path) -> Iterator[str]:
    last: dict[str, str] = {}
    for line in map(clean, last_text(console, _TAIL).splitlines()):
        match = _FROM.match(line)
        name, said = (match[1], match[2]) if match else ("driver", line)
        if said.strip():
            last[name] = said.strip()
    return (f"{name}: {said[:300]}" for name, said in last.items())


def _ray(facts: HangFacts) -> Iterator[str]:
    if facts.ray is None:
        yield "no Ray of this run was found"
    elif facts.ray.error:
        yield facts.ray.error
    else:
        yield from (f"actor {each.get('name')} {each.get('state')} {each.get('cause')}" for each in facts.ray.actors)
        yield from (f"placement group waits: {each.get('bundles')}" for each in facts.ray.groups)
        yield f"resources {facts.ray.total}, free {facts.ray.free}"
        yield from facts.ray.store


def _machine(samples: Path) -> Iterator[str]:
    if not samples.exists():
        yield "no samples were taken"
        return
    yield last_text(samples, 64 << 10).strip().rpartition("\n")[2]


def _stacks(facts: HangFacts) -> Iterator[str]:
    for seen in facts.processes:
        rank = f", rank {seen.ranks[0]} of {seen.ranks[1]}" if len(seen.ranks) == 2 else ""
        yield f"{seen.pid} {seen.state}, {seen.cpu:.2f} CPU{rank}: {seen.name}"
        if not seen.stacks and seen.source:
            yield f"    {seen.source}"
        for stack in seen.stacks:
            yield f"    thread {stack.thread}"
            yield from (f"        {frame}" for frame in stack.frames)
        for task in seen.tasks:
            yield "    waiting coroutine"
            yield from (f"        {frame}" for frame in task)
