"""The broken presets of tests/data/preflight/corpus.yaml: read, judged, and turned into veRL's arguments."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.check.checks import refused
from launcher.check.config import RULES
from launcher.check.finding import Finding
from launcher.check.subject import Subject, subject
from launcher.core.errors import UserError
from launcher.core.format import GIB
from launcher.machine.capacity import Gpu, Machine
from launcher.preset.files import load
from launcher.preset.translate import Launch, RunFolders, build, settings

FILE = Path(__file__).parents[1] / "data" / "preflight" / "corpus.yaml"
VERSION = "0.9.1"
FOLDERS = RunFolders.below(Path("/nonexistent"))


@dataclass(frozen=True)
class Case:
    """A preset with settings that break it, the preflight's findings, and veRL's behavior.

    `by`: the source of veRL's behavior: `probe` (tests/support/verl_probe.py, in `make test`), `run` (a run on the CPU
    platform, `make corpus`), or why neither can show it.
    """

    on: str
    set: list[str] = field(default_factory=list)
    machine: str = "1x24"
    finds: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stage: str | None = None
    says: str = ""
    by: str = "probe"

    @property
    def name(self) -> str:
        return " ".join([self.on, *self.set])

    def findings(self) -> list[Finding]:
        """The findings of the configuration rules."""
        try:
            what = subject(load(self.on, self.set), on=machine(self.machine))
        except UserError as wrong:
            return [refused(wrong)]
        return [finding for rule in RULES for finding in rule(what)]

    def launch(self) -> Launch:
        """The launch of veRL. Settings refused by a preset are passed on unchanged."""
        try:
            return _launch(self.on, self.set)
        except UserError:
            plain = _launch(self.on, ())
            plain.argv.extend(self.set)
            return plain

    def overrides(self) -> list[str]:
        """veRL's arguments without Hydra's own."""
        return [word for word in self.launch().argv[4:] if not word.startswith("hydra.")]


def _launch(preset: str, settings: Sequence[str]) -> Launch:
    return build(load(preset, settings), version=VERSION, folders=FOLDERS, python=sys.executable)


@functools.cache
def cases() -> list[Case]:
    from ruamel.yaml import YAML

    found: list[dict[str, Any]] = YAML(typ="safe").load(FILE.read_text("utf-8"))
    return [Case(**entry) for entry in found]


def machine(text: str) -> Machine:
    """`8x80 12`: eight GPUs of 80 GiB and 12 CPUs [default: 64]; counts as this machine."""
    gpus, _, cpus = text.partition(" ")
    count, size = gpus.split("x")
    gpu = Gpu(f"{size} GiB GPU", int(size) * GIB, 0)
    return Machine((gpu,) * int(count), 256 * GIB, 256 * GIB, int(cpus or 64), assumed=False)


def older(version: str, preset: str, *changes: str, on: str = "8x80") -> Subject:
    """A preset for another veRL than the installed one, with the bundled defaults."""
    loaded = load(preset, changes)
    passed = settings(loaded, version, FOLDERS, {})
    return Subject(version=version, settings=passed, loaded=loaded, python=sys.executable, machine=machine(on))


def assert_only(found: Sequence[Finding], expected: Sequence[str]) -> None:
    """Asserts exactly one finding with this id, level and words; none if nothing is expected."""
    assert [[each.id, each.level] for each in found] == ([expected[:2]] if expected else []), found
    text = "".join(f"{each.message}; {each.fix} {each.keys} {each.change} {each.group}" for each in found)
    assert [words for words in expected[2:] if words not in text] == [], text
    assert "hunter2" not in text and "\x1b" not in text
