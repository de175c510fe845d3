"""Whether B is better than A: metrics of groups of runs against the first group, each with its interval."""

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from launcher.compare.comparison import Compared, groups
from launcher.core.format import counted, number
from launcher.health import keys
from launcher.metrics import intervals, names
from launcher.metrics.store import Series, SeriesStore
from launcher.preset.yaml_text import shown
from launcher.runs.watch.run_settings import differences
from launcher.runs.watch.steps import validation

_DASH = "–"
_INCONCLUSIVE = "inconclusive"
_TOLD = 6  # maximum number of distinguishing settings in a group's row
_NAMED = 2  # maximum number of listed settings that change a metric's meaning


class Measure(NamedTuple):
    """A metric for judging runs: veRL's keys, words for more and less, settings that change its meaning. A setting with
    a final dot or underscore means all with this prefix.
    """

    title: str
    keys: tuple[str, ...]
    more: str
    less: str
    settings: tuple[str, ...] = ()


_REWARD = ("reward.", "filter.", "rollout.temperature", "rollout.top_p", "rollout.top_k", "data.train")
_VALIDATION = "validation"  # the mean of the headline scores, which have no one key
MEASURES = (
    Measure("reward", names.SCORE, "better", "worse", _REWARD),
    Measure(_VALIDATION, (), "better", "worse", ("reward.", "data.val", "rollout.val_")),
    Measure("length", keys.LENGTH, "longer", "shorter", ("data.max_response_length", "model.path")),
    Measure("tokens/s", names.THROUGHPUT, "faster", "slower"),
)


@dataclass(frozen=True)
class Contrast:
    """A metric of two groups of runs over common steps: `second` minus `first` (group numbers from 1).

    `values`: means of the groups. `low`, `high`: interval of their difference at `level`, over "steps" or "seeds"
    (`over`); None without one, for the `reason`. `more`: runs missing per group to detect this difference, None above
    50.
    """

    metric: str
    first: int
    second: int
    steps: tuple[int, int]
    values: tuple[float | None, float | None]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = intervals.LEVEL
    over: str | None = None
    result: str = "not judged"
    more: int | None = None
    reason: str = ""

    @property
    def told(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def hint(self) -> str:
        """The runs missing for a result; empty with a result."""
        if self.reason or self.told:
            return self.reason
        if self.more is None:
            return "a difference this small needs > 50 seeds per group"
        least = "about" if self.over == "seeds" else "at least"
        return f"needs {least} {counted(self.more, 'more seed')} per group"

    def to_json(self) -> Mapping[str, object]:
        """For `--json`."""
        fields = asdict(self) | {"hint": self.hint, "figure": self.metric}  # the name in 0.1
        return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}


def contrasts(runs: Sequence[Compared]) -> list[Contrast]:
    """Every metric of every group against the first group; empty if all runs differ only in their seeds."""
    of_run = groups([run.info for run in runs])
    members = [
        [run.store for run, its in zip(runs, of_run, strict=True) if its == group] for group in range(max(of_run) + 1)
    ]
    level = 1 - (1 - intervals.LEVEL) / max(len(members) - 1, 1)
    return [
        contrast
        for place, group in enumerate(members[1:], 2)
        for measure in MEASURES
        if (contrast := _contrast(measure, members[0], group, place, level)) is not None
    ]


def assumptions(runs: Sequence[Compared], results: Sequence[Contrast]) -> list[str]:
    """The assumptions behind the results."""
    lines = []
    of_run = groups([run.info for run in runs])
    over = {each.over for each in results}
    compared = max(of_run)
    if "steps" in over:
        lines.append(
            "one run per group: holds for these two runs only, not for other seeds; assumes independent blocks of steps"
        )
    if "seeds" in over:
        few = min(of_run.count(group) for group in of_run) < 3
        alone = "; a group of one or two runs is assumed to vary as much as the other group" if few else ""
        lines.append(f"groups of several runs: assumes independent, roughly normal seeds{alone}")
    if results:
        together = f" of all {compared} groups together" if compared > 1 else ""
        lines.append(f"compared: second half of the common steps; 95 % intervals{together}, per metric")
    changed = [entry.key for entry in differences([run.info for run in runs])]
    for measure in MEASURES:
        if changing := [key for key in changed if any(_covers(setting, key) for setting in measure.settings)]:
            more = f" and {len(changing) - _NAMED} more" if len(changing) > _NAMED else ""
            lines.append(
                f"{measure.title}: {', '.join(changing[:_NAMED])}{more} differ, so the values may not be comparable"
            )
    return lines


def spread_rows(runs: Sequence[Compared]) -> list[list[str]]:
    """Mean and standard deviation over runs that differ only in their seeds, as rows of words."""
    stores = [run.store for run in runs]
    window, rows = _window(stores), []
    for measure in MEASURES:
        means = [mean for series in _all(measure, stores) if (mean := _mean(series, window)) is not None]
        if len(means) > 1:
            rows.append(
                [measure.title, str(len(means)), *map(number, (statistics.fmean(means), statistics.stdev(means)))]
            )
    return [["METRIC", "RUNS", "MEAN", "DEVIATION"], *rows] if rows else []


def arm_rows(runs: Sequence[Compared]) -> list[list[str]]:
    """The groups as rows of words: their distinguishing settings, and the states of their runs."""
    of_run, rows = groups([run.info for run in runs]), []
    places = [of_run.index(group) for group in range(max(of_run) + 1)]
    differ = differences([runs[place].info for place in places])
    differ = [entry for entry in differ if not entry.key.endswith("seed") and not entry.key.startswith("versions.")]
    more = f" and {len(differ) - _TOLD} more" if len(differ) > _TOLD else ""
    for group in range(len(places)):
        facts = [run.facts() for run, its in zip(runs, of_run, strict=True) if its == group]
        states = Counter(fact.state for fact in facts)
        flagged = sum(fact.verdict == "CRITICAL" for fact in facts)
        rows.append(
            [
                str(group + 1),
                ", ".join(f"{count} {state}" for state, count in states.items()),
                str(flagged) if flagged else _DASH,
                str(min(fact.step or 0 for fact in facts)),
                (" ".join(f"{entry.key}={shown(entry.values[group])}" for entry in differ[:_TOLD]) or _DASH) + more,
            ]
        )
    return [["GROUP", "RUNS", "CRITICAL", "STEPS", "SETTINGS"], *rows]


def contrast_rows(results: Sequence[Contrast]) -> list[list[str]]:
    """The contrasts as rows of words with a heading."""
    rows = [["METRIC", "GROUPS", "STEPS", "FIRST", "SECOND", "DIFFERENCE", "INTERVAL", "RESULT"]]
    return rows + [
        [
            each.metric,
            f"{each.first}, {each.second}",
            steps_words(each),
            *map(number, each.values),
            signed(each.difference),
            interval_words(each),
            "; ".join(filter(None, (each.result, each.hint))),
        ]
        for each in results
    ]


def steps_words(each: Contrast) -> str:
    return f"{each.steps[0]}–{each.steps[1]}" if each.steps[0] <= each.steps[1] else _DASH


def interval_words(each: Contrast) -> str:
    """`-0.002 to +0.031`."""
    return _DASH if each.low is None else f"{signed(each.low)} to {signed(each.high)}"


def signed(value: float | None) -> str:
    return f"+{number(value)}" if value is not None and value > 0 else number(value)


def _covers(setting: str, key: str) -> bool:
    return key.startswith(setting) if setting.endswith((".", "_")) else key == setting


def _contrast(
    measure: Measure, first: Sequence[SeriesStore], second: Sequence[SeriesStore], place: int, level: float
) -> Contrast | None:
    """The contrast of two groups; None if neither logs the metric."""
    ours, theirs = (_all(measure, group) for group in (first, second))
    if not ours and not theirs:
        return None
    window = _window([*first, *second])
    a, b = ([mean for series in group if (mean := _mean(series, window)) is not None] for group in (ours, theirs))
    values = (statistics.fmean(a) if a else None, statistics.fmean(b) if b else None)
    contrast = Contrast(measure.title, 1, place, window, values, level=level)
    if values[0] is None or values[1] is None:
        return replace(contrast, reason="not logged by both groups in these steps")
    if len({_key(measure, store) for store in (*first, *second)} - {""}) > 1:
        return replace(contrast, reason="the runs log different metrics")
    if (error := intervals.of_seeds(a, b)) is not None:
        contrast = replace(contrast, difference=values[1] - values[0], over="seeds")
        spread = error.size / math.sqrt(1 / len(a) + 1 / len(b))
        if contrast.difference and not spread:
            return replace(contrast, reason="the runs of a group are identical; use different seeds")
    else:
        pairs = _pairs(ours[0], theirs[0], window)
        if not pairs:
            return replace(contrast, reason="no step in common")
        contrast = replace(contrast, difference=statistics.fmean(pairs), over="steps")
        error = intervals.of_steps(pairs, level)
        if error is None:
            each = "validation" if measure.title == _VALIDATION else "step"
            few = f"{counted(len(pairs), each)} in common"
            return replace(contrast, reason=f"{few}; needs {intervals.FEWEST}, or several seeds")
        spread = error.size / math.sqrt(2)
    return _judged(contrast, measure, error, spread, min(len(a), len(b)))


def _judged(contrast: Contrast, measure: Measure, error: intervals.Error, spread: float, runs: int) -> Contrast:
    """The contrast with its interval and result; `spread`: deviation between runs; `runs`: minimum number per group."""
    difference, reach = contrast.difference or 0.0, error.reach(contrast.level)
    contrast = replace(contrast, low=difference - reach, high=difference + reach)
    if contrast.told:
        return replace(contrast, result=measure.more if difference > 0 else measure.less)
    if not reach:
        return replace(contrast, result="equal", reason="no difference at all")
    if error.loose:
        return replace(contrast, result=_INCONCLUSIVE, reason="steps are strongly autocorrelated; add steps or seeds")
    needed = intervals.seeds_needed(difference, spread, contrast.level)
    return replace(contrast, result=_INCONCLUSIVE, more=needed and max(needed - runs, 1))


def _key(measure: Measure, store: SeriesStore) -> str:
    found = store.first_of(*measure.keys)
    return found[0] if found else ""


def _all(measure: Measure, stores: Sequence[SeriesStore]) -> list[Series]:
    """The metric's series of all runs that log it."""
    if measure.title == _VALIDATION:
        return [series for store in stores if (series := validation(store)) is not None]
    return [found[1] for store in stores if (found := store.first_of(*measure.keys)) is not None]


def _window(stores: Sequence[SeriesStore]) -> tuple[int, int]:
    """First and last step of the second half of their common steps."""
    last = min((store.last_step or 0) for store in stores)
    begin = max((store.steps[0] if store.steps else 0) for store in stores)
    return max(begin + (last - begin + 1) // 2, 1), last


def _finite(series: Series, window: tuple[int, int]) -> dict[int, float]:
    """The finite values by step."""
    begin, end = bisect_left(series.steps, window[0]), bisect_left(series.steps, window[1] + 1)
    pairs = zip(series.steps[begin:end], series.values[begin:end], strict=False)
    return {step: value for step, value in pairs if math.isfinite(value)}


def _mean(series: Series, window: tuple[int, int]) -> float | None:
    values = _finite(series, window)
    return statistics.fmean(values.values()) if values else None


def _pairs(first: Series, second: Series, window: tuple[int, int]) -> list[float]:
    """The second run's value minus the first one's, at each common step."""
    a, b = _finite(first, window), _finite(second, window)
    return [b[step] - value for step, value in a.items() if step in b]
