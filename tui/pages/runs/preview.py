"""What a wide list shows next to it about the chosen run or preset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from launcher.core.format import duration, number, roughly
from launcher.core.text import clean
from launcher.record.layout import RunDir
from launcher.record.state import current
from tui.kit.drawing.glyphs import NOTICE, OK, WARN
from tui.kit.drawing.rows import Row, paragraph
from tui.kit.drawing.trace import spark
from tui.kit.run_words import level_sign, lineage, notice, state_words, verdict_words
from tui.pages.runs.run_list import RunSummary
from tui.pages.runs.run_rows import SEE_QUEUE

if TYPE_CHECKING:
    from launcher.preset.files import Summary


_NAME = 12  # cells of the names of facts


def preview_run(run: RunSummary, columns: int) -> list[Row]:
    """State, verdict, figures, flags with their messages, note and folder. Reads state.json."""
    if run.waits:
        waits = _fact("state", state_words(run.state))
        return [[(clean(run.id), "title")], [], waits, [], *_text(SEE_QUEUE, "dim", columns)]
    state = current(RunDir(run.path))
    series, step = run.scores.series, "–" if state.step is None else f"{state.step} of {state.total or '?'}"
    rows: list[Row] = [[(clean(run.id), "title")], [], _fact("state", state_words(state))]
    rows.append(_fact("verdict", verdict_words(state)))
    rows.append(_fact("step", [(step, "text")]))
    if state.live and state.eta is not None:
        rows.append(_fact("ETA", [(roughly(state.eta), "text")]))
    rows.append(_fact("time", [(duration(run.seconds), "text")]))
    rows.append(_fact("reward", [(f"{number(series.last)}, best {number(run.scores.best)}", "text")]))
    if series.steps:
        rows.append(_fact("", spark(series, series.steps[-1], max(columns - _NAME, 1))))
    if said := notice(state):
        rows += [[], *_text(said[1], said[0], columns)]
    flags = [check for check in state.checks if check.rule in state.flags]
    for check in flags:
        sign, role = level_sign(check.level)
        rows += [[], [(f"{sign} {check.level} ", role), (clean(check.rule), "dim")]]
        rows += _text(check.message, "text", columns)
    if origin := lineage(run.path):
        rows += [[], *_text(origin, "text", columns)]
    if str(run.note):
        rows += [[], *_text(str(run.note), "notice", columns)]
    return [*rows, [], *_text(str(run.path), "dim", columns)]


def preview_preset(preset: Summary, columns: int, rows: int) -> list[Row]:
    """Description, needs, and the file as far as it fits. Reads the file."""
    head: list[Row] = [[(clean(preset.name), "title")], []]
    head += _text(preset.error or preset.description, "critical" if preset.error else "text", columns)
    head += [
        [],
        *_text(f"needs {preset.needs or 'not stated'}", "dim", columns),
        *_text(str(preset.path), "dim", columns),
    ]
    try:
        lines = preset.path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return [*head, [], *([(clean(line), "dim" if line.lstrip().startswith("#") else "text")] for line in lines[:rows])]


def _fact(name: str, row: Row) -> Row:
    return [(f"{name:<{_NAME}}", "dim"), *row]


def _text(text: str, role: str, columns: int) -> list[Row]:
    return paragraph(text, role, columns + 1, indent=0)


DATA = Path("~/data/gsm8k/train.parquet")  # where the shipped presets look


class Welcome(NamedTuple):
    """A row a fact about the machine, and the preset to start with."""

    rows: list[Row]
    preset: str


def welcome() -> Welcome:
    """Looks at GPUs, veRL and data: some tenths of a second, and seconds where veRL is asked for the first time."""
    from launcher.check.machine import here
    from launcher.core.errors import UserError
    from launcher.core.format import gib
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
    rows: list[Row] = [
        [(f"   {sign} ", role), (f"{name:<6}", "dim"), (text, "text")] for sign, role, name, text in facts
    ]
    rows.append(
        [("   Next: ", "title"), ("press enter to check ", "text"), (preset, "live"), (" and start it", "text")]
    )
    return Welcome(rows, preset)
