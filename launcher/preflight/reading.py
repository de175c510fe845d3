"""A preset by name with settings, judged: what cannot even be read is a finding like any other."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.errors import UserError
from launcher.preflight.engine import Progress, Report, check, refused
from launcher.preset import hydra
from launcher.preset.files import find, load
from launcher.preset.layers import ROOTS
from launcher.preset.schema import FIELDS


def report(
    preset: str, settings: Sequence[str] = (), *, assume: str | None = None, progress: Progress = lambda _: None
) -> Report:
    """The report on a preset. Raises UserError for wrong use: an unknown preset, key or machine."""
    try:
        loaded = load(preset, settings)
    except UserError as wrong:
        broken = _alone(preset)
        return Report([refused(broken or wrong, None if broken else _culprit(preset, settings))], {})
    return check(loaded, assume=assume, progress=progress)


def _alone(preset: str) -> UserError | None:
    """What is wrong with a preset without the settings. Raises UserError for one that is not there."""
    find(preset)
    try:
        load(preset)
    except UserError as wrong:
        return wrong
    return None


def _culprit(preset: str, settings: Sequence[str]) -> str:
    """The key of the first setting with a value that is not allowed. Raises UserError for an unknown key."""
    for count, text in enumerate(settings, 1):
        key = hydra.split(text)[1]
        try:
            load(preset, settings[:count])
        except UserError:
            if key not in FIELDS and key.partition(".")[0] not in ROOTS:
                raise
            return key
    raise AssertionError("only called for settings that cannot be loaded")
