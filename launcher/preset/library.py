"""Named presets: the user's files (copy, rename, delete), and the best shipped preset for a machine."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.core import paths
from launcher.core.errors import UserError
from launcher.core.files import obeyed, write_atomic
from launcher.core.format import counted
from launcher.preset import yaml_text
from launcher.preset.draft import Draft, target, without_source
from launcher.preset.files import Summary, find, load, read_text, shipped, users

ANYWHERE = "toy-cpu"

_NEEDS = re.compile(r"(\d+) GPUs?, (\d+) GB")


def copy(name_or_path: str, new: str) -> Path:
    """Copies a preset to a user's preset with another name: the text with its comments; paths are adapted.

    Raises UserError for an unknown preset, an invalid or taken name, or an unreadable file.
    """
    if "/" in new or new.endswith((".yaml", ".yml")):
        raise UserError(f"{new!r} is not a valid preset name", "use letters, digits, '-', '.' and '_'")
    path, _ = find(name_or_path)
    text = read_text(path)
    draft = Draft(path, text, on_disk=text)
    draft.save_as(new)
    return draft.path


def rename(name: str, new: str) -> Path:
    """Renames a user's preset, also in the presets that extend it. Raises UserError, OSError.

    The old file is removed last: an interrupted rename loses nothing and continues when repeated.
    """
    path = obeyed(own(name, f"copy it with 'ppo-tui preset copy {name} {new}'"))
    if "/" in new or new == name:
        raise UserError(f"{new!r} is not a valid new name for preset {name}")
    children = _children(name)  # read before the new file is one of them
    moved, text = target(new), without_source(read_text(path))
    if not moved.exists():
        _write(moved, text)
    elif read_text(moved) != text:
        raise UserError(f"{moved} already exists", "choose another name")
    for child in children:
        _write(child, yaml_text.put(read_text(obeyed(child)), ("extends",), new))
    path.unlink()
    return moved


def delete(name: str) -> Path | None:
    """Removes a user's preset; returns the shipped one that it hid. Raises UserError if it is shipped or extended."""
    path = own(name)
    children = _children(name)
    if children:
        raise UserError(
            f"preset {name} is extended by {', '.join(child.stem for child in children)}",
            "delete those first or change what they extend",
        )
    path.unlink()
    return shipped().get(name)


def own(name: str, hint: str = "name a preset of yours: 'ppo-tui preset list' lists them") -> Path:
    """The file of a user's preset. Raises UserError for shipped ones, with the hint, and for unknown names."""
    known = users()
    if name in known:
        return known[name]
    if name in shipped():
        raise UserError(f"{name} is a shipped preset and cannot be changed", hint)
    load(name)  # raises for an unknown preset, and the nearest name
    raise UserError(f"{name!r} is a file", f"use the name of a preset in {paths.presets_dir()}")


def _children(name: str) -> list[Path]:
    """The user's presets that extend the named one, without the one that hides it."""
    return [path for path in users().values() if path.stem != name and _extends(path) == name]


def _extends(path: Path) -> str | None:
    try:
        parent = yaml_text.parse(path)[0].get("extends")
    except UserError:
        return None  # ignores a broken preset
    return parent if isinstance(parent, str) else None


def _write(path: Path, text: str) -> None:
    write_atomic(path, text.encode())


@dataclass(frozen=True)
class Needs:
    """GPUs, and bytes on each. GB are 10^9 bytes here: a card has a little less than its label."""

    gpus: int
    memory: int

    def met_by(self, gpus: Sequence[int]) -> bool:
        """Whether enough of the GPUs (bytes of memory each) are large enough."""
        return sum(total >= self.memory for total in gpus) >= self.gpus


def needs_of(text: str) -> Needs | None:
    """The GPUs required by `8 GPUs, 80 GB each`; None without GPUs."""
    found = _NEEDS.match(text)
    return Needs(int(found[1]), int(found[2]) * 10**9) if found else None


def fits(needs: str, gpus: Sequence[int]) -> bool | None:
    """Whether GPUs with these bytes of memory meet a preset's needs; None without any."""
    if not needs:
        return None
    wanted = needs_of(needs)
    return wanted is None or wanted.met_by(gpus)


def suited(presets: Sequence[Summary], gpus: Sequence[int]) -> list[Summary]:
    """The presets with `fits`: first those that run on such GPUs; among these the user's, then the recommended one."""
    best, _ = recommend(gpus)
    known = [preset if preset.error else replace(preset, fits=fits(preset.needs, gpus)) for preset in presets]
    return sorted(known, key=lambda each: (each.fits is not True, each.origin != "user", each.name != best))


def recommend(gpus: Sequence[int]) -> tuple[str, str]:
    """The shipped preset to start with on GPUs of this size in bytes, and the reason.

    It makes best use of the machine; among equals, presets that extend no other come first, and PPO before GRPO.
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
    return f"{counted(len(gpus), 'GPU')} with {least} GB found"
