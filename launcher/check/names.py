"""Names that veRL, its engines, Ray and torch take: names.toml."""

import functools
from dataclasses import dataclass
from pathlib import Path

from launcher.core.tables import read_tables, record


@dataclass(frozen=True)
class Names:
    """Each list as the file explains it. `vllm`: key below rollout -> values; `verl`: kind -> registered names."""

    optimizers: tuple[str, ...]
    unusable_optimizers: tuple[str, ...]
    unsharded_optimizers: tuple[str, ...]
    number_types: tuple[str, ...]
    checkpoint_parts: tuple[str, ...]
    profilers: tuple[str, ...]
    ray_arguments: tuple[str, ...]
    logging_levels: tuple[str, ...]
    load_formats: tuple[str, ...]
    engine_types: tuple[str, ...]
    packages: tuple[str, ...]
    vllm: dict[str, list[str]]
    verl: dict[str, list[str]]


@functools.cache
def known_names() -> Names:
    """All lists, read once."""
    return record(Names, read_tables(Path(__file__).with_suffix(".toml")))
