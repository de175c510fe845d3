"""What a list without runs shows: this machine, and the preset to start with."""

from pathlib import Path
from typing import NamedTuple

from tui.kit.drawing.glyphs import NOTICE, OK, WARN
from tui.kit.drawing.rows import Row

DATA = Path("~/data/gsm8k/train.parquet")  # where the shipped presets look


class Welcome(NamedTuple):
    """One row per fact about the machine, and the preset to start with."""

    rows: list[Row]
    preset: str


def welcome() -> Welcome:
    """Reads GPUs, veRL and data in some tenths of a second, or in seconds when veRL is imported for the first time."""
    from launcher.core.errors import UserError
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
