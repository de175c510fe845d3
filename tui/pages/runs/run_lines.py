"""The lines in the list of runs by key: headings, runs, runs of other machines, presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from launcher.core.errors import UserError
from launcher.core.text import clean
from launcher.record.info import Edit
from launcher.runs.watch.run_settings import differs
from tui.kit.drawing.glyphs import NOTICE, OK, WARN
from tui.kit.drawing.rows import HEADING, Row, Span
from tui.pages.runs.elsewhere import THERE, Elsewhere
from tui.pages.runs.run_list import GROUPED, ORDERS, RunList, RunSummary, arranged, group_of, named
from tui.pages.runs.run_rows import Columns, about_preset, about_run, columns_of, preset_row, run_heading, run_row

if TYPE_CHECKING:
    from launcher.preset.files import Summary


def preset_files() -> list[tuple[Path, int]]:
    from launcher.preset.files import available

    return [(path, path.stat().st_mtime_ns) for path in available().values() if path.exists()]


def read_presets() -> list[Summary]:
    """The presets; those that fit this machine first."""
    from launcher.machine.capacity import here
    from launcher.preset.files import available, summary
    from launcher.preset.library import suited

    found = []
    for name in available():
        with suppress(UserError):  # renamed or deleted meanwhile
            found.append(summary(name))
    return suited(found, [gpu.total for gpu in here().gpus])


RUN, PRESET, QUEUED = "run ", "preset ", "queued "
_RUNS, _NONE, _GAP, _THERE, _PRESETS = (HEADING + name for name in ("runs", "none", "gap", "there", "presets"))
_GROUP = HEADING + "group "  # and its name
_FACT = HEADING + "fact "  # and the index of a row of the welcome


class RunLines:
    """The content of the list. `welcome`: shown while there are no runs."""

    def __init__(self, runs: RunList) -> None:
        self.runs, self.welcome = runs, list[Row]()
        self.presets: dict[str, Summary] = {}
        self.elsewhere: Elsewhere | None = None  # None until config.yaml is read
        self.order, self.words = ORDERS[0], ""
        self.shown: dict[str, RunSummary] = {}
        self.changes: Mapping[Path, Sequence[Edit]] = {}  # differing settings, as far as read
        self._longest = self._longest_preset = 0  # cells of a name

    def keys(self) -> list[str]:
        """All lines that match the search, in the chosen order."""
        runs = arranged(self.runs.runs, self.order, self.words)
        queued = {f"{QUEUED}{run.id}": run for run in arranged(self.runs.queued, ORDERS[0], self.words)}
        self.shown = queued | {f"{RUN}{run.path}": run for run in runs}
        there = self.elsewhere.keys(self.words) if self.elsewhere is not None else []
        self._longest = max((len(run.name) for run in [*self.shown.values(), *self._of(there).values()]), default=0)
        presets = [f"{PRESET}{name}" for name in named(self.presets, self.words)]
        self._longest_preset = max(map(len, self.presets), default=0)
        none = [_NONE] if self.runs.runs or not self.welcome else [f"{_FACT}{at}" for at in range(len(self.welcome))]
        others = [_GAP, _THERE, *there] if there else []
        return [_RUNS, *(self._in_groups() or none), *others, *([_GAP, _PRESETS] if presets else []), *presets]

    def line(self, key: str, columns: int, marked: Sequence[Path]) -> Row:
        """The line of a key; `marked`: the runs to compare."""
        if run := self.shown.get(key):
            mark = str(marked.index(run.path) + 1) if run.path in marked else ""
            return run_row(run, mark, self._columns(columns), self.changes.get(run.path, ()))
        if key.startswith(PRESET):
            preset = self.presets[key.removeprefix(PRESET)]
            return preset_row(preset, columns, self._longest_preset)
        if key.startswith(THERE) and self.elsewhere is not None:
            run = self.elsewhere.run(key)
            return self.elsewhere.heading(key) if run is None else run_row(run, "", self._columns(columns))
        if key.startswith(_FACT):
            return self.welcome[int(key.removeprefix(_FACT))]
        if key.startswith(_GROUP):
            return [(f"   {clean(key.removeprefix(_GROUP)) or 'no tag'}", "dim")]
        ordered = f" · {self.order}" if self.order != ORDERS[0] else ""
        found = f" · /{clean(self.words)}" if self.words else ""
        nothing = "   No matching run; esc shows all" if self.runs.runs else "   No runs yet. Checking this machine …"
        return {
            _RUNS: run_heading(self._columns(columns), ordered + found),
            _NONE: [(nothing, "dim")],
            _GAP: [],
            _THERE: [(" Other machines", "title")],
            _PRESETS: [(" Start a new run", "title")],
        }[key]

    def about(self, key: str) -> list[Span]:
        """A sentence or two about a line."""
        if run := self.shown.get(key):
            return about_run(run)
        if preset := self.presets.get(key.removeprefix(PRESET)):
            return about_preset(preset)
        return self.elsewhere.about(key) if key.startswith(THERE) and self.elsewhere is not None else []

    def place(self, key: str) -> tuple[str, str, bool]:
        """For a line of another machine: that machine, its run or "", and whether it is a cluster."""
        name, _, run = key.removeprefix(THERE).partition(" ")
        return name, run, self.elsewhere is not None and name in self.elsewhere.clusters

    def _columns(self, columns: int) -> Columns:
        return columns_of(columns, self._longest, max(map(len, map(differs, self.changes.values())), default=0))

    def _of(self, keys: Sequence[str]) -> Mapping[str, RunSummary]:
        found = {key: self.elsewhere.run(key) for key in keys} if self.elsewhere is not None else {}
        return {key: run for key, run in found.items() if run is not None}

    def _in_groups(self) -> list[str]:
        """The keys of the runs, under headings if the order groups them."""
        keys: list[str] = []
        group = None
        for key, run in self.shown.items():
            queued = key.startswith(QUEUED)
            if self.order in GROUPED and not queued and group != (group := group_of(run, self.order)):
                keys.append(f"{_GROUP}{group}")
            keys.append(key)
        return keys


DATA = Path("~/data/gsm8k/train.parquet")  # default place of the shipped presets


class Welcome(NamedTuple):
    """One row per fact about the machine, and the preset to start with."""

    rows: list[Row]
    preset: str


def welcome() -> Welcome:
    """Reads GPUs, veRL and data in some tenths of a second, or seconds at veRL's first import."""
    from launcher.core.format import gib
    from launcher.machine.capacity import here
    from launcher.preset.library import ANYWHERE, recommend
    from launcher.verl import env as verl_env

    gpus = here().gpus
    preset, _ = recommend([gpu.total for gpu in gpus])
    try:
        verl = verl_env.probe(verl_env.interpreter(None)).verl
    except UserError:
        verl = None
    names = ", ".join(dict.fromkeys(f"{gpu.name} {gib(gpu.total)} GiB" for gpu in gpus))
    facts = [
        (OK, "ok", "GPU", f"{len(gpus)}: {names}") if gpus else (NOTICE, "notice", "GPU", "none; toy-cpu needs none"),
        (OK, "ok", "veRL", verl) if verl else (WARN, "warn", "veRL", "not installed; run `ppo-tui doctor`"),
    ]
    if preset != ANYWHERE:
        ready = DATA.expanduser().exists()
        data = (OK, "ok", "data", f"GSM8K in {DATA.parent}") if ready else (WARN, "warn", "data", "a d prepares it")
        facts.append(data)
    rows: list[Row] = [[("   No runs yet. Runs started here appear with their state, verdict and reward.", "dim")]]
    rows += [[(f"   {sign} ", role), (f"{name:<6}", "dim"), (text, "text")] for sign, role, name, text in facts]
    rows.append(
        [("   Next: ", "title"), ("press enter to check ", "text"), (preset, "live"), (" and start it", "text")]
    )
    return Welcome(rows, preset)
