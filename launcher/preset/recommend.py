"""Which shipped preset suits a machine, by what each says it needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from launcher.preset.files import load, shipped

ANYWHERE = "toy-cpu"

_NEEDS = re.compile(r"(\d+) GPUs?, (\d+) GB")


@dataclass(frozen=True)
class Needs:
    """GPUs, and bytes on each. GB are 10^9 bytes here: a card has a little less than is printed on it."""

    gpus: int
    memory: int

    def met_by(self, gpus: Sequence[int]) -> bool:
        """Whether enough of the GPUs, given by their bytes of memory, are large enough."""
        return sum(total >= self.memory for total in gpus) >= self.gpus


def needs_of(text: str) -> Needs | None:
    """What `8 GPUs, 80 GB each` asks for; None where no GPU is needed."""
    found = _NEEDS.match(text)
    return Needs(int(found[1]), int(found[2]) * 10**9) if found else None


def recommend(gpus: Sequence[int]) -> tuple[str, str]:
    """The shipped preset to start with on GPUs of so many bytes each, and why.

    The one that makes most of the machine; among equals one that stands by itself, PPO before GRPO.
    """
    best: tuple[tuple[int, int, bool, bool], str, str] | None = None
    for name in shipped():
        preset = load(name).preset
        needs = needs_of(preset.needs)
        if needs is None or not needs.met_by(gpus):
            continue
        rank = (needs.gpus, needs.memory, preset.extends is None, preset.algorithm == "ppo")
        if best is None or rank > best[0]:
            best = (rank, name, preset.needs)
    if best is None:
        short = "too small for the presets that require a GPU" if gpus else "none required"
        return ANYWHERE, f"{_machine(gpus)}; {short}"
    return best[1], f"{_machine(gpus)}; requires {best[2]}"


def _machine(gpus: Sequence[int]) -> str:
    if not gpus:
        return "no GPU found"
    least = round(min(gpus) / 10**9)
    return f"{len(gpus)} GPU{'s' * (len(gpus) > 1)} with {least} GB found"
