"""A case: the facts that another reader needs to find why a run failed or is flagged, as one text of limited size.

Its parts are values. case.md formats each part; case.toml has titles and weights.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from launcher.compare.trial_verdicts import trials_of
from launcher.core.format import counted, duration, number
from launcher.core.tables import read_tables
from launcher.metrics.glossary import meanings
from launcher.preset.effective import EffectiveConfig
from launcher.preset.named import settings_in
from launcher.preset.schema import BY_KEY
from launcher.record.check import Check
from launcher.record.layout import RunDir
from launcher.record.problem import Problem
from launcher.report.case_lines import LONGEST, excerpt, folded
from launcher.report.facts import Facts
from launcher.runs.judge.run_checklist import judged
from launcher.runs.watch.last_change import last_good
from launcher.runs.watch.log import Log
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.problems import fixed_flag, flag
from launcher.runs.watch.reader import ERRORS
from launcher.runs.watch.responses import Sample, dumps, read
from launcher.runs.watch.run_settings import lineage, shown_value
from launcher.runs.watch.stalls import last_standstill, problem_of
from launcher.verl.defaults import NEWEST
from launcher.verl.usual import usual_of

MOST = 24_000
"""Maximum characters of a case file."""
_TABLES = Path(__file__).with_suffix(".toml")
_FLAGS = 8  # maximum number of explained flags
_NOTE = 24  # characters of the line that counts omitted lines


@dataclass(frozen=True)
class Part:
    """A part of a case: lines without names and secrets. `left_out`: number of omitted lines."""

    title: str
    worth: int
    lines: tuple[str, ...]
    left_out: int = 0

    def within(self, room: int) -> "Part":
        """The part with as many of its first lines as fit into `room` characters."""
        kept = sum(size <= room for size in accumulate(len(line) + 1 for line in self.lines))
        return replace(self, lines=self.lines[:kept], left_out=self.left_out + len(self.lines) - kept)

    @property
    def text(self) -> str:
        """The part in Markdown, in a fence that no line closes."""
        more = [f"… {counted(self.left_out, 'more line')}"] if self.left_out else []
        return "\n".join((f"## {self.title}\n\n```text", *self.lines, *more, "```\n"))


@dataclass(frozen=True)
class Case:
    """The question and the parts, in order; `verl`: the version of veRL, the newest if unknown."""

    question: str
    parts: tuple[Part, ...]
    verl: str = NEWEST

    @property
    def text(self) -> str:
        """The case file: Markdown of at most MOST characters."""
        gone = ", ".join(part.title for part in self.parts if not part.lines)
        left = [f"Left out for lack of room: {gone}.\n"] if gone else []
        return "\n".join([self.question, *(part.text for part in self.parts if part.lines), *left])

    def fitted(self) -> "Case":
        """The case within the limit; the least important lines are omitted first."""
        case = self
        for part in sorted(self.parts, key=lambda part: part.worth):
            if (over := len(case.text) - MOST) > 0:
                short = part.within(len("\n".join(part.lines)) - over - _NOTE)
                case = replace(case, parts=tuple(short if each is part else each for each in case.parts))
        return case


class _Setting(NamedTuple):
    """A setting; `near`: named in the reading."""

    key: str
    now: Any
    default: Any
    usual: str
    near: bool


def case_of(
    source: RunDir | Log, config: Sequence[str] = (), *, health: bool = False, facts: Facts | None = None
) -> Case:
    """The case of a run or log; `config` as in `judged`. `health`: about the flags, if any. `facts`: the source's, if
    already read.

    Raises UserError for an unreadable source.
    """
    facts, result = facts or Facts.read(source), judged(source, config)
    flags = [check for check in result.checks if check.on and not check.muted][:_FLAGS]
    trouble, flagged = [*_trouble(facts)], [*_flagged(facts, flags)]
    about_flags = bool(flagged) and (health or not trouble)
    problems = [*flagged, *trouble] if about_flags else [*trouble, *flagged]
    onset = min((check.since for check in flags if check.since is not None), default=None)
    columns = _columns(facts.series.steps, onset)
    values = {
        **_of_run(facts, onset),
        "facts": facts,
        "problems": problems,
        "excerpt": excerpt(facts.lines(), _decisive(trouble)),
        "stacks": [*folded(("", line) for line in facts.stacks())],
        "settings": [*_settings(facts, "\n".join(text for each in problems for text in (each.what, *each.lines())))],
        "onset": onset,
        "columns": columns,
        "curves": _curves(facts, flags, columns),
        "changes": result.changes,
    }
    return _written(facts, values, "flags" if about_flags else "failure").fitted()


def _of_run(facts: Facts, onset: int | None) -> Mapping[str, Any]:
    """Facts that only a run has: the last good run before it, samples, its origin, trials."""
    if (run := facts.run) is None:
        return dict.fromkeys(("good", "samples", "lineage", "trials"), ())
    came, trials = lineage(facts.info.after, "to"), trials_of(run.id)
    return {"good": last_good(Parent(run)), "samples": _samples(run, onset), "lineage": came, "trials": trials}


def _written(facts: Facts, values: Mapping[str, Any], question: str) -> Case:
    """The parts in words, without names of people and machines."""
    env = Environment(
        loader=PackageLoader("launcher.report", ""), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    env.filters |= {"number": number, "duration": duration, "value": shown_value}
    template, tables = env.get_template("case.md"), read_tables(_TABLES)
    texts = {name: "".join(block(template.new_context({**values}))) for name, block in template.blocks.items()}
    hidden, parts = facts.anonymous(texts.values()), list[Part]()
    for name, row in tables["parts"].items():
        lines = hidden.text(texts[name]).replace("```", "'''").splitlines()
        part = Part(row["title"], row["worth"], tuple(line[:LONGEST] for line in lines if line.strip()))
        parts += [part.within(row["most"])] if part.lines else []
    by = facts.framework.title if facts.framework is not None and not facts.framework.own else "veRL"
    asked = tables["question"][question].format(by=by)
    verl = facts.info.versions.get("verl") or facts.diagnosis.versions.get("verl") or NEWEST
    return Case(f"# Question\n\n{asked}\n\n{tables['question']['answer']}\n", tuple(parts), str(verl))


def _trouble(facts: Facts) -> Iterator[Problem]:
    """A current hang; the failure, or the known facts of a log without an end."""
    hang = last_standstill(facts.run) if facts.run is not None else None
    if hang is not None and hang.until is None:
        yield problem_of(hang, None, facts.config)
    if facts.diagnosis.failed or facts.diagnosis.rivals:
        yield facts.found.problem


def _flagged(facts: Facts, flags: Sequence[Check]) -> Iterator[Problem]:
    """The flags, with the first change of a trial; a failure has the errors in the log."""
    parent = Parent(facts.run) if facts.run is not None else None
    for check in flags:
        if check.rule != ERRORS or not facts.diagnosis.failed:
            yield flag(check, facts.config, unit=facts.series.unit) if parent is None else fixed_flag(parent, check)


def _decisive(problems: Sequence[Problem]) -> list[int]:
    """Numbers of the lines that show problems or support their causes."""
    supports = (each for problem in problems for rival in problem.rivals for each in rival.supports)
    seen = (each for problem in problems for each in problem.evidence)
    return [each.line for each in (*seen, *supports) if each.line is not None]


def _settings(facts: Facts, reading: str) -> Iterator[_Setting]:
    """The settings named in the reading, then others that differ from veRL's defaults, first preset fields."""
    config, defaults, quiet = facts.config, EffectiveConfig(), re.compile(read_tables(_TABLES)["settings"]["quiet"])
    if config is None:
        return
    near = dict.fromkeys(key for _, key in settings_in(reading) if key)
    others = sorted(config.settings.keys() - near, key=lambda key: (key not in BY_KEY, key))
    for key in (*near, *others):
        now, default, usual = config.get(key), defaults.get(key), usual_of(config, key)
        if key in near or (now != default and not quiet.search(key)):
            yield _Setting(key, now, default, usual.words if usual is not None else "", key in near)


def _columns(steps: Sequence[int], onset: int | None) -> list[int]:
    """Some steps: before the first flag, at it, and after it."""
    last = len(steps) - 1
    at = max(bisect_right(steps, onset) - 1, 0) if onset is not None else last
    after = (at + (last - at) * part // 4 for part in range(5))
    return [steps[each] for each in sorted({0, at // 3, 2 * at // 3, at - 1, at + 1, *after}) if 0 <= each <= last]


def _curves(facts: Facts, flags: Sequence[Check], columns: Sequence[int]) -> Mapping[tuple[str, ...], str]:
    """The newest values at these steps, with their metrics; metrics of the flags come first."""
    found: dict[tuple[str, ...], str] = {}
    for key in (*(key for check in flags for key in check.keys), *meanings(facts.series.keys())):
        if (series := facts.series.get(key)) is not None:
            places = (bisect_right(series.steps, step) for step in columns)
            found.setdefault(tuple(number(series.values[each - 1] if each else None) for each in places), key)
    return found


def _samples(run: RunDir, onset: int | None) -> list[tuple[int, Sample]]:
    """Steps with their best response: before the first flag, at it, and at the end."""
    found = [dump for dump in dumps(run) if dump.kind == "rollout"]
    at = bisect_right([dump.step for dump in found], onset or 0)
    picked = [found[place] for place in sorted({at // 2, max(at - 1, 0), len(found) - 1})] if found else []

    def rank(sample: Sample) -> tuple[bool, float]:
        return math.isfinite(sample.score), sample.score

    return [(dump.step, max(samples, key=rank)) for dump in picked if (samples := read(dump)[0])]
