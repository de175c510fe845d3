"""The configuration of a draft with given values."""

from collections.abc import Mapping
from typing import Any

from launcher.preset import effective
from launcher.preset.effective import EffectiveConfig
from launcher.preset.layers import LayerEntry


def of_draft(values: Mapping[tuple[str, ...], Any], *of: Any) -> EffectiveConfig:
    """The configuration with values by path, such as ("actor", "lr"); `of` a version."""
    return effective.of_draft({where: LayerEntry(value, "test", where[-1]) for where, value in values.items()}, *of)
