"""No slot is given twice, no entry is started twice and none starves, in every arrangement of small queues."""

import os
import socket
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain, product
from random import Random

import pytest

from launcher.record.attempt import LaunchRecord
from launcher.record.process import ProcessId
from launcher.record.queued import Checked, Queued
from launcher.record.state import RunState
from launcher.runs.watch.turns import Ran, Seen, Turn, arrange, slots

HERE, US, GONE = socket.gethostname(), ProcessId.of(os.getpid()), ProcessId(1 << 22, 1.0, 1, "another boot")
RUNNING, FINISHED, FAILED = (RunState(word, attempt=1) for word in ("running", "finished", "failed"))
PASSED, NOT_YET = Checked(ended=1.0), Checked()
UUIDS = {f"GPU-{n}": str(n) for n in range(4)}
STATES = ("checked", "unchecked", "starting", "paused", "after")


def numbers(words: tuple[str, ...]) -> set[str]:
    return {UUIDS.get(word, word) for word in words}


@dataclass
class World:
    """A machine with so many GPUs, of which NVML reports all or none, and its queue."""

    count: int
    max_cpu_runs: int = 1
    reported: bool = True
    others: tuple[str, ...] = ()  # GPUs that other programs use
    entries: list[Queued] = field(default_factory=list)
    checks: dict[str, Checked] = field(default_factory=dict)
    runs: dict[str, Ran] = field(default_factory=dict)
    slots: dict[str, set[str]] = field(default_factory=dict)  # of the runs that go on
    started: Counter[str] = field(default_factory=Counter)
    paused: bool = False

    def add(self, needs: int, words: tuple[str, ...], state: str) -> bool:
        """Adds an entry; False if it cannot be starting, since its slot is taken."""
        id, given = str(len(self.entries)), ()
        if state == "starting":
            free = [gpu for gpu in map(str, reversed(range(self.count))) if gpu not in self.taken() | {*self.others}]
            given = words or (tuple(free[:needs]) if self.reported else ())
            slot = self.slot(needs, given)
            if clash([slot, *self.held()]) or self.cpus() + (not needs) > self.max_cpu_runs or len(slot) < needs > 1:
                return False
        changes = {"paused": state == "paused", "starter": US if state == "starting" else None}
        after = "run" if state == "after" else None
        self.entries.append(Queued(id, id, {}, HERE, needs, 0, 0, gpus=words, after=after, given=given, **changes))
        self.checks[id] = NOT_YET if state == "unchecked" else PASSED
        self.runs.setdefault("run", Ran(FAILED, ending=True))
        return True

    def slot(self, needs: int, given: tuple[str, ...]) -> set[str]:
        return (numbers(given) or {"all"}) if needs else set()

    def held(self) -> list[set[str]]:
        starting = [self.slot(each.needs, each.given) for each in self.entries if each.starter is US]
        return [*self.slots.values(), *starting]

    def taken(self) -> set[str]:
        return set().union(*self.held())

    def cpus(self) -> int:
        starting = sum(each.starter is US and not each.needs for each in self.entries)
        return starting + sum(not slot for slot in self.slots.values())

    def look(self) -> list[Turn]:
        """The turns, after they were checked."""
        numbers = map(str, range(self.count if self.reported else 0))
        gpus = {gpu: "is in use" if gpu in self.others else None for gpu in numbers}
        named = {word: {number: gpus.get(number)} for word, number in UUIDS.items()} if self.reported else {}
        seen = Seen(self.entries, self.checks, self.runs, gpus, named, self.max_cpu_runs, self.paused)
        found = arrange(seen)
        self.assert_slots(seen, found)
        assert [turn.entry for turn in found] == self.entries
        due = [turn for turn in found if turn.due]
        assert not clash([*self.held(), *(self.slot(turn.entry.needs, turn.gpus) for turn in due)]), self
        assert self.cpus() + sum(not turn.entry.needs for turn in due) <= self.max_cpu_runs, self
        assert not [turn for turn in due if turn.entry.starter is US or not self.eligible(turn.entry)], self
        for kind in (False, True):  # the first of each kind starts if there is room
            first = next((turn for turn in found if bool(turn.entry.needs) is kind and self.eligible(turn.entry)), None)
            assert first is None or first.due or not self.fits(first.entry), (self, first)
        return found

    def assert_slots(self, seen: Seen, found: list[Turn]) -> None:
        """Each run is on its GPUs, and what starts now is the first on each of its GPUs."""
        due = {turn.entry.id for turn in found if turn.due or turn.entry.starter is US}
        for slot in slots(seen, found):
            gpu = slot.gpu
            on = {id for id, taken in self.slots.items() if (not taken if gpu is None else taken & {gpu, "all"})}
            assert {*slot.runs} == on and (slot.user is None or not on), (self, slot)
            most = self.max_cpu_runs - len(on) if gpu is None else 0 if on else 1
            assert {*slot.next} & due <= {*slot.next[:most]}, (self, slot)

    def eligible(self, entry: Queued) -> bool:
        waits = self.paused or entry.paused or entry.starter is US or self.checks[entry.id] is NOT_YET
        return not waits and (entry.after is None or self.runs[entry.after].state is FINISHED)

    def fits(self, entry: Queued) -> bool:
        if not entry.needs:
            return self.cpus() < self.max_cpu_runs
        used = self.taken() | {*self.others}
        if wanted := numbers(entry.gpus) or (set() if self.reported else {"all"}):
            return not clash([wanted, *self.held()]) and not wanted & {*self.others}
        return self.count - len(used) >= entry.needs and "all" not in used

    def claim(self, turn: Turn) -> None:
        self.entries[self.entries.index(turn.entry)] = replace(turn.entry, starter=US, given=turn.gpus)

    def become(self, entry: Queued) -> None:
        """Lets a start end: the entry leaves, its run appears."""
        self.entries.remove(entry)
        self.started[entry.id] += 1
        env = {"CUDA_VISIBLE_DEVICES": ",".join(words)} if (words := entry.gpus or entry.given) else {}
        keys = {"trainer.n_gpus_per_node": entry.needs} if entry.needs else {"trainer.device": "cpu"}
        self.runs[entry.id] = Ran(RUNNING, LaunchRecord(env=env, keys=keys))
        self.slots[entry.id] = self.slot(entry.needs, entry.given)

    def end(self, id: str) -> None:
        del self.slots[id]
        self.runs[id] = replace(self.runs[id], state=FINISHED)

    def assert_each_starts_once(self) -> None:
        """Lets everything start that can."""
        self.others, self.paused, self.runs["run"] = (), False, Ran(FINISHED)
        self.entries = [replace(each, paused=False) for each in self.entries]
        self.checks = dict.fromkeys(self.checks, PASSED)
        everything = {each.id for each in self.entries} | {*self.started}
        while self.entries:
            before = len(self.started), len(self.slots)
            for turn in self.look():
                if turn.due:
                    self.claim(turn)
            for entry in [each for each in self.entries if each.starter is US]:
                self.become(entry)
            for id in [*self.slots]:
                self.end(id)
            assert before != (len(self.started), len(self.slots)), self
        assert self.started == dict.fromkeys(everything, 1), self


def clash(slots: list[set[str]]) -> bool:
    """Whether two have a GPU in common; `all` stands for all of a machine whose GPUs nobody knows."""
    used = [slot for slot in slots if slot]
    return len(set().union(*used)) < sum(map(len, used)) or (len(used) > 1 and any("all" in slot for slot in used))


def test_every_queue_of_up_to_three_entries() -> None:
    entries = [(*kind, state) for kind, state in product(((0, ()), (1, ()), (2, ()), (1, ("GPU-1",))), STATES)]
    cases = 0
    for queue in chain.from_iterable(product(entries, repeat=length) for length in (1, 2, 3)):
        world = World(2)
        if all(world.add(*entry) for entry in queue):
            world.look()
            world.assert_each_starts_once()
            cases += 1
    assert cases > 5000


def lived(random: Random) -> World:
    """A queue with a history: entries come, start, are paused or killed, and runs end."""
    world = World(random.randint(1, 4), random.randint(1, 2), reported=random.random() < 0.8)
    world.others = (str(random.randrange(world.count)),) if world.reported and random.random() < 0.3 else ()
    for _ in range(random.randint(2, 6)):
        needs = random.randint(0, min(2, world.count))
        pick = random.sample([*UUIDS][: world.count], needs) if random.random() < 0.3 else []
        words = (random.choice((word, UUIDS[word])) if world.reported else UUIDS[word] for word in pick)
        world.add(needs, tuple(words), random.choice(STATES))
        random.shuffle(world.entries)
    for _ in range(random.randint(1, 5)):
        found, what = world.look(), random.random()
        if what < 0.5:
            for turn in found:
                if turn.due and random.random() < 0.8:
                    world.claim(turn)
        if what < 0.2:  # the process that starts them is killed
            world.entries = [replace(each, starter=GONE if each.starter is US else None) for each in world.entries]
        elif what < 0.5:
            for entry in [each for each in world.entries if each.starter is US and random.random() < 0.7]:
                world.become(entry)
        elif what < 0.7 and world.slots:
            world.end(random.choice([*world.slots]))
        elif what < 0.8:
            world.paused = not world.paused
        elif world.entries:
            at = random.randrange(len(world.entries))
            world.entries[at] = replace(world.entries[at], paused=not world.entries[at].paused)
    world.look()
    return world


MANY = pytest.param(range(2_000, 20_000), marks=pytest.mark.nightly("launcher/runs/watch/turns.py"))


@pytest.mark.parametrize("seeds", [range(2_000), MANY], ids=["some", "many"])
def test_random_queues_of_up_to_six_entries(seeds: range) -> None:
    for seed in seeds:
        lived(Random(seed)).assert_each_starts_once()
