"""A report as one HTML file: without scripts and external fonts or pictures, light and dark, readable when printed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from launcher.compare import comparison, contrast
from launcher.core.errors import UserError, of_writing
from launcher.core.files import write_atomic
from launcher.core.format import counted, duration, number
from launcher.core.secrets import redact
from launcher.core.text import clean
from launcher.export.svg import Marks, chart, main_charts
from launcher.metrics import names
from launcher.preset.yaml_text import text_of
from launcher.record.layout import RunDir
from launcher.report.run_report import Gain, RunReport, gather
from launcher.runs.watch.check_words import shown
from launcher.runs.watch.problems import problems
from launcher.runs.watch.run_settings import differences, differs, foreign, title
from launcher.settings import read_price

_FLAGS = 40  # rows of the table of flags
_TEXT = 4000  # characters of one response
_CHANGED = 5  # prompts gained and lost


def write(runs: Sequence[RunDir], to: Path) -> bool:
    """Writes the report of the runs, replacing the file; returns whether one is live. Raises UserError."""
    check(to)
    target = to.expanduser()
    price = read_price()
    reports = [gather(run, price) for run in runs]
    try:
        write_atomic(target, render(reports).encode(errors="replace"))
    except OSError as error:
        raise of_writing(target, error) from None
    return any(report.reader.state.going for report in reports)


def check(to: Path) -> None:
    """Raises UserError for a name without an HTML extension."""
    if to.suffix not in (".html", ".htm"):
        raise UserError(f"{to}: a report is an HTML file", "use a name that ends in .html")


def render(reports: Sequence[RunReport]) -> str:
    """The page. Text from runs is cleaned, secrets are hidden, and Jinja escapes the result."""
    env = Environment(
        loader=PackageLoader("launcher.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        text=_text,
        number=number,
        duration=duration,
        level=lambda level: f"{level.sign} {level}",
        value=_value,
        percent="{:.0%}".format,
        counted=counted,
    )
    single, first = len(reports) == 1, reports[0]
    return env.get_template("page.html").render(
        title=title(first.facts.name, differs(first.changed)) if single else f"{counted(len(reports), 'run')}",
        made=time.strftime("%Y-%m-%d %H:%M"),
        live=any(report.reader.state.going for report in reports),
        runs=[_run(report) for report in reports],
        together=None if single else _together(reports),
    )


def sentence(report: RunReport) -> str:
    """The verdict first: `OK: the run finished after 60 steps in 2m 43s; the mean reward rose ...`"""
    facts = report.facts
    went = {
        "finished": "the run finished",
        "failed": "the run failed",
        "stopped": "the run was stopped",
        "lost": "the supervisor of the run has ended",
        "ended": "the log of the run ends",
    }.get(facts.outcome or facts.state, "the run continues")
    parts = [f"{shown(facts.state, facts.verdict)}: {went}"]
    if facts.step is not None or facts.line is not None:
        parts.append(f" after {counted(facts.step or facts.line or 0, report.reader.series.unit)}")
        parts.append(f" in {duration(facts.duration)}" if facts.duration else "")
    if report.explanation is not None:
        parts.append(f": {report.explanation.diagnosis.title}")
    if gain := report.gain:
        parts.append(f"; the mean reward of {counted(gain.steps, report.reader.series.unit)} {_moved(gain)}")
    return f"{''.join(parts)}."


def _moved(gain: Gain) -> str:
    ends = f"from {number(gain.before)} at the start to {number(gain.after)} at the end"
    if abs(gain.after - gain.before) <= gain.reach:
        return f"went {ends}, which is within its noise"
    return f"{'rose' if gain.after > gain.before else 'fell'} {ends}"


def _run(report: RunReport) -> Mapping[str, object]:
    reader, facts = report.reader, report.facts
    flags = [(flag.step, flag.rule) for flag in report.marked]
    validated = list(zip(report.validated.steps, report.validated.values, strict=True)) if report.validated else []
    charts = [
        Markup(chart(title, reader.series, keys, Marks(validated if at == 0 else (), flags if at < 2 else ())))
        for at, (title, keys) in enumerate(main_charts(reader.series, names.FEW + 1))
        if reader.series.first_of(*keys)
    ]
    whole = math.fsum(report.seconds.values())
    return {
        "report": report,
        "title": title(facts.name, differs(report.changed)),
        "sentence": sentence(report),
        "charts": charts if reader.series.last_step is not None else [],
        "facts": [row for row in comparison.fact_rows([facts])[1:] if row[1] != "–"],
        "problems": list(problems(reader.dir, reader.state, reader.state.updated, report.explanation)),
        "flags": report.flags[:_FLAGS],
        "more_flags": max(len(report.flags) - _FLAGS, 0),
        "seconds": [(name, value, value / whole) for name, value in report.seconds.items() if whole > 0 and value > 0],
        "preset": _flat(report.preset),
        "whole": not foreign(reader.dir.read_info()),
        "changed": _CHANGED,
    }


def _together(reports: Sequence[RunReport]) -> Mapping[str, object]:
    compared = [comparison.Compared(report.reader.dir) for report in reports]
    for each in compared:
        each.poll()
    runs, infos = [report.reader.dir for report in reports], [each.info for each in compared]
    judged = contrast.contrasts(compared)
    return {
        "facts": comparison.fact_rows([report.facts for report in reports]),
        "differences": comparison.difference_rows(runs, differences(infos)),
        "contrasts": contrast.contrast_rows(judged) if judged else [],
        "notes": [*contrast.assumptions(compared, judged), *comparison.notes(compared)],
    }


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for key, value in values.items():
        rows += _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) and value else [(f"{prefix}{key}", value)]
    return rows


def _text(value: object) -> str:
    text = redact(str(value))
    rest = f" … ({len(text):,} characters in total)" if len(text) > _TEXT else ""
    return "\n".join(map(clean, text[:_TEXT].splitlines())) + rest


def _value(value: object) -> str:
    return "unset" if value is None else redact(clean(text_of(value)))
