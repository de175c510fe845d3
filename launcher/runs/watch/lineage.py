"""Where the settings and the first weights of a run came from, in words."""

from launcher.preset.yaml_text import text_of
from launcher.record.info import Origin


def lineage(origin: Origin | None, arrow: str = "→") -> str:
    """`fork of b87822-toy-cpu at step 24: actor.lr 3e-4 → 6e-5`; empty for a run that came from no other."""
    if origin is None:
        return ""
    if origin.step is None:
        began = f"with the settings of {origin.run}"
    else:
        at = f"at step {origin.step}" if origin.step else "from its start"
        began = f"fork of {origin.run} {at}" + (f", trial for {origin.trial}" if origin.trial else "")
    changes = ", ".join(f"{each.key} {_value(each.before)} {arrow} {_value(each.now)}" for each in origin.diff)
    return f"{began}: {changes}" if changes else f"{began}, no change"


def _value(value: object) -> str:
    return "unset" if value is None else text_of(value)
