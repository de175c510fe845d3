"""run.yaml: the settings and software of a run."""

import copy
import dataclasses
import functools
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from launcher.core.files import write_atomic
from launcher.core.yaml_bounds import refusal
from launcher.record.json import RARE, SCHEMA, Record

_SAVES = re.compile(r"^ +save_every: ([1-9]\d*)$", re.MULTILINE)  # the preset's interval
_ON_CPU = re.compile(r"^(?:on_cpu: true|- trainer\.device=cpu)$", re.MULTILINE)  # the latter in version 0.1
_KEY = re.compile(r"^([a-z_]+):", re.MULTILINE)
_PLAIN = re.compile(r"\w*name: ((?!(?:null|true|false|yes|no|on|off|y|n)$)[A-Za-z][\w.-]*)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edit(Record):
    """A setting with its values in two runs; None if a run does not set it."""

    key: str
    before: Any = None
    now: Any = None


@dataclass(frozen=True, slots=True)
class Origin(Record):
    """The run whose settings were edited for this one, and the changes.

    `step`: a fork's checkpoint in its parent, 0 for the start. `trial`: the health rule whose fix is tried, or
    "isolation" for a failure. `undoes`: what this trial undoes, such as "what the fork changed".
    """

    run: str
    diff: tuple[Edit, ...] = ()
    step: int | None = field(default=None, metadata=RARE)
    trial: str | None = field(default=None, metadata=RARE)
    undoes: str | None = field(default=None, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Preflight(Record):
    """The findings of the preflight, and whether the run was started against them."""

    forced: bool = False
    findings: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class RunInfo(Record):
    """The settings of a run.

    `name`: the run's own or its preset's; `preset_name`: the preset's, if different. `preset`: None for an external log
    without a configuration. `preset_notes`: parts missing from a preset of a log. `env` contains no secrets;
    `versions`: of ppo-tui, Python and veRL's packages. `framework`: the run's, if not veRL, as in
    `launcher.metrics.frameworks.described`. `overrides`: KEY=VALUE settings given with the preset. `on_cpu`: the run
    uses no GPU.
    """

    id: str = ""
    name: str = ""
    created: float | None = None
    preset: dict[str, Any] | None = field(default=None, metadata=RARE)
    preset_notes: tuple[str, ...] = field(default=(), metadata=RARE)
    preset_file: str | None = field(default=None, metadata=RARE)
    overrides: tuple[str, ...] = field(default=(), metadata=RARE)
    argv: tuple[str, ...] = field(default=(), metadata=RARE)
    on_cpu: bool = field(default=False, metadata=RARE)
    env: dict[str, Any] = field(default_factory=dict)
    cwd: str | None = field(default=None, metadata=RARE)
    versions: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    preflight: Preflight | None = field(default=None, metadata=RARE)
    after: Origin | None = field(default=None, metadata=RARE)
    imported_from: tuple[str, ...] = field(default=(), metadata=RARE)
    replay_of: str | None = field(default=None, metadata=RARE)
    framework: dict[str, Any] | None = field(default=None, metadata=RARE)
    preset_name: str | None = field(default=None, metadata=RARE)

    @classmethod
    def read(cls, path: Path) -> "RunInfo":
        """The info in run.yaml; without a name if missing or invalid."""
        info = cls.from_json(mapping_of(_text(path)))
        # version 0.1 did not tell
        return dataclasses.replace(info, on_cpu=True) if "trainer.device=cpu" in info.argv else info

    def write(self, path: Path) -> None:
        """Replaces run.yaml atomically. Raises OSError."""
        from ruamel.yaml import YAML

        yaml = YAML()
        yaml.width = 1 << 16  # one argument per line, of any length
        text = io.StringIO()
        yaml.dump({"schema": SCHEMA, **self.to_json()}, text)
        write_atomic(path, text.getvalue().encode())

    @property
    def of_preset(self) -> str:
        """The preset's name."""
        return self.preset_name or self.name

    @property
    def from_log(self) -> bool:
        """Whether the run was made elsewhere: its settings come from an imported or replayed log."""
        return bool(self.imported_from or self.replay_of)

    @property
    def followed(self) -> bool:
        """Whether only the run's log is known, which is followed during the run."""
        return bool(self.imported_from)

    @property
    def resumable(self) -> bool:
        """Whether it has a preset to start from, and veRL ran here."""
        return self.preset is not None and not self.from_log

    @property
    def parent(self) -> Origin | None:
        """The parent of a fork; None for other runs."""
        return self.after if self.after is not None and self.after.step is not None else None

    @property
    def health(self) -> dict[str, Any]:
        """The preset's `health:` block."""
        block = (self.preset or {}).get("health")
        return block if isinstance(block, dict) else {}


class Head(NamedTuple):
    """Facts from single lines of run.yaml; `keys`: its top-level keys.

    Parsing the file takes 10 ms, importing the parser 30 more: a list reads hundreds of runs, and a dashboard paints
    its first frame without the parser.
    """

    name: str | None
    on_cpu: bool
    keys: frozenset[str]
    saves: int = 0
    """Steps between checkpoints, by its preset; 0: no checkpoints."""
    of_preset: str | None = None

    @classmethod
    def read(cls, path: Path) -> "Head":
        text = _text(path)
        on_cpu, saves = _ON_CPU.search(text) is not None, _SAVES.search(text)
        keys, name = frozenset(_KEY.findall(text)), _name(text)
        preset = _name(text, "preset_name") if "preset_name" in keys else name
        return cls(name, on_cpu, keys, int(saves[1]) if saves else 0, preset)

    @property
    def named(self) -> bool:
        """Whether the run has its own name, not its preset's."""
        return self.name != self.of_preset

    @property
    def from_log(self) -> bool:
        """As `RunInfo.from_log`."""
        return bool(self.keys & {"imported_from", "replay_of"})

    @property
    def followed(self) -> bool:
        """As `RunInfo.followed`."""
        return "imported_from" in self.keys

    @property
    def resumable(self) -> bool:
        """As `RunInfo.resumable`."""
        return "preset" in self.keys and not self.from_log


def read_name(path: Path) -> str | None:
    """`name` of run.yaml, from its line only."""
    return _name(_text(path))


def _name(text: str, key: str = "name") -> str | None:
    line = re.search(rf"^{key}: .*", text, re.MULTILINE)
    if line and (plain := _PLAIN.fullmatch(line[0])):  # for nearly all lines; YAML takes half a millisecond
        return plain[1]
    name = ((mapping_of(line[0]) if line else {}) or mapping_of(text)).get(key)
    return None if name is None else str(name)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def mapping_of(text: str) -> dict[str, Any]:
    """The mapping of a YAML text; empty for other texts, and for those too large or too deep to be ours."""
    return copy.deepcopy(_loaded(text))


@functools.lru_cache(maxsize=64)
def _loaded(text: str) -> dict[str, Any]:
    """Cached: a command compares the same runs once per flag."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if refusal(text) is not None:
        return {}
    try:
        value = YAML(typ="safe").load(text)
    except (YAMLError, ValueError, RecursionError):  # ValueError: a date of no calendar
        return {}
    return value if isinstance(value, dict) else {}
