"""Shares of the responses of a step, such as equal rewards and copied answers."""

from launcher.core.format import number
from launcher.metrics.glossary import describe
from launcher.metrics.responses import PREFIX
from launcher.metrics.store import SeriesStore
from tui.kit.drawing.rows import Row

_FIGURES = (  # of launcher.metrics.responses, the words before each
    ("unvaried_groups", "equal rewards"),
    ("all_right_groups", "all right"),
    ("all_wrong_groups", "all wrong"),
    ("near_equal", "alike"),
    ("prompt_copied", "copied"),
    ("format_only", "no answer"),
    ("forgotten", "forgotten"),
)


def legend() -> list[tuple[str, str]]:
    """The words before the shares of a step, and what these are shares of."""
    return [(words, f"share of {describe(PREFIX + name).meaning}") for name, words in _FIGURES]


def figures_row(series: SeriesStore, step: int) -> Row:
    """`equal rewards 40 % · alike 3 %`: shares that were counted in the responses of a step; empty without any."""
    said = [
        f"{words} {number(100 * value)} %"
        for name, words in _FIGURES
        if (found := series.get(PREFIX + name)) is not None and (value := found.at(step)) is not None
    ]
    return [(" " + " · ".join(said), "dim")] if said else []
