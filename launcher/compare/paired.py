"""Two models on the same prompts: gains and losses of training, with an interval for the difference."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from launcher.core.errors import UserError
from launcher.metrics.intervals import LEVEL, quantile
from launcher.metrics.records import jsonable
from launcher.record.layout import RunDir
from launcher.runs.watch.responses import Dump, Sample, dumps, read

_LEAST = 2  # prompts


class Change(NamedTuple):
    """A prompt with a changed mean score, and a response of each model."""

    prompt: str
    before: float
    after: float
    first: Sample
    second: Sample


class Paired(NamedTuple):
    """Mean scores before and after over `prompts`, the interval of their difference, and the changed prompts, largest
    change first. Student's interval over the differences per prompt: the prompts are a sample of all possible ones.
    """

    prompts: int
    before: float
    after: float
    low: float
    high: float
    gained: list[Change]
    lost: list[Change]
    around: tuple[int, int]

    def question(self, change: Change) -> str:
        """The prompt without the lines that all prompts share (`around`), such as a system prompt."""
        lines = change.prompt.splitlines()
        before, after = self.around
        return " ".join(lines[before : len(lines) - after] or lines)

    def to_json(self) -> Mapping[str, object]:
        """The comparison with the changed prompts, without their responses."""
        changed = {
            name: [{"prompt": each.prompt, "before": each.before, "after": each.after} for each in listed]
            for name, listed in (("gained", self.gained), ("lost", self.lost))
        }
        means = {"before": self.before, "after": self.after, "difference": self.after - self.before}
        return jsonable({"prompts": self.prompts, **means, "low": self.low, "high": self.high}) | changed


def last_validation(run: RunDir, step: int | None = None) -> Dump | None:
    """The responses of a run's last validation, or of the validation at `step`."""
    found = [dump for dump in dumps(run) if dump.kind == "validation" and step in (None, dump.step)]
    return found[-1] if found else None


def paired(before: Dump, after: Dump) -> Paired:
    """Compares two validations by prompt. Raises UserError for too few common prompts, and OSError."""
    first, second = _by_prompt(before), _by_prompt(after)
    common = [prompt for prompt in first if prompt in second]
    if len(common) < _LEAST:
        raise UserError("the two validations have no prompts in common", "use the same validation data for both")
    changes = [
        Change(prompt[0], _mean(first[prompt]), _mean(second[prompt]), first[prompt][0], second[prompt][0])
        for prompt in common
    ]
    differences = [each.after - each.before for each in changes]
    middle, freedom = statistics.fmean(differences), len(changes) - 1
    reach = statistics.stdev(differences) / math.sqrt(len(changes)) * quantile((1 + LEVEL) / 2, freedom)
    lines = [prompt.splitlines() for prompt, _ in common]
    ordered = sorted(changes, key=lambda each: each.before - each.after)
    return Paired(
        len(changes),
        statistics.fmean(each.before for each in changes),
        statistics.fmean(each.after for each in changes),
        middle - reach,
        middle + reach,
        [each for each in ordered if each.after > each.before],
        [each for each in reversed(ordered) if each.after < each.before],
        (_shared(lines), _shared([each[::-1] for each in lines])),
    )


def _shared(prompts: Sequence[list[str]]) -> int:
    """The number of first lines shared by all prompts."""
    return sum(1 for _ in takewhile(lambda lines: len(set(lines)) == 1, zip(*prompts, strict=False)))


def _by_prompt(dump: Dump) -> dict[tuple[str, str], list[Sample]]:
    """Scored responses by prompt and ground truth."""
    found = defaultdict[tuple[str, str], list[Sample]](list)
    for sample in read(dump)[0]:
        if math.isfinite(sample.score):
            found[sample.prompt, sample.truth].append(sample)
    return found


def _mean(samples: Sequence[Sample]) -> float:
    return statistics.fmean(sample.score for sample in samples)
