"""Pages about judgements: health rules, findings of the preflight, and their corpus."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpus import Case, cases
from page_words import code, sentence, table

import launcher.health
from launcher.check.finding import TABLE, levels, variants
from launcher.core.format import number
from launcher.core.tables import read_tables
from launcher.health.catalogue import RuleData, families
from launcher.health.catalogue import rules as health_rules
from launcher.health.rules import ALL
from launcher.preset.settle import shown_name
from launcher.record.levels import FLAGS
from launcher.topics import debounce_sentence

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "docs" / "evidence" / "health.md"
LIMITS = Path(launcher.health.__path__[0]) / "limits.toml"
UNJUDGED = {"KL-3", "HACK-2", "VAL-1", "DISC-1", "WAIT-1", "TURN-1", "MEM-1", "STALL-1"}
"""Rules without a metric or setting in the healthy runs of the unseen half of the bank."""
_HEALTHY = re.compile(r"^\| (?P<rule>[A-Z]+-\d) (?:\([^|]*\) )?\| (\d+): [^|]*\| (\d+): [^|]*\| (\d+): ", re.MULTILINE)
_SPEC = re.compile(r"\{(\w+)[:!][^}]*\}")
_STEPS = re.compile(r"^(\d+) healthy runs, (\d+) steps", re.MULTILINE)
_FAULT = re.compile(r"^\| ([^|]+) \| ([A-Z]+-\d)[^|]* \| (\d+/\d+) \| \d+ \| ([\d.]+|–) \|", re.MULTILINE)


def rules() -> str:
    """Every health rule: meaning, metrics, limits, advice, and how often it is wrong."""
    words, evidence, lines = read_tables(LIMITS), EVIDENCE.read_text("utf-8"), []
    needs = {rule.id: rule.needs for rule in ALL}
    for family, about in families().items():
        lines += [f"## {'KL' if family == 'kl' else family.capitalize()}\n", about.meaning, ""]
        lines += [f"* Healthy: {_lower(about.healthy)}", f"* Bad: {_lower(about.bad)}", ""]
        for rule in (each for each in health_rules().values() if each.family == family):
            lines += [f"### {rule.id}\n", f"**{rule.title}.** {rule.meaning}\n"]
            if needs[rule.id]:
                lines += ["Judges " + "; ".join(" or ".join(map(code, names)) for names in needs[rule.id]) + ".", ""]
            lines += [_limits(rule, words[rule.id]), debounce_sentence(rule), ""]
            lines += [
                "What to try:",
                "",
                *(
                    f"* {line}"
                    for line in dict.fromkeys(sentence(fix.sentence(shown_name, mark="`")) for fix in rule.advice)
                ),
                "",
            ]
            lines += [*_measured(rule.id, evidence), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _lower(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text  # NaN and KL stay


def _limits(rule: RuleData, words: dict[str, str]) -> str:
    rows = []
    for name in dict.fromkeys(name.partition(".")[2] for name in rule.limits):
        values = (rule.limits.get(f"{level}.{name}") for _, level in FLAGS)
        rows.append((code(name), words[name], *("" if each is None else number(each.value) for each in values)))
    return table(("limit", "what it is", *(name.upper() for _, name in FLAGS)), rows)


def _measured(rule: str, evidence: str) -> Iterator[str]:
    """The error rate of the rule, and the faults that it found, from the evidence's tables."""
    steps = _STEPS.search(evidence)
    healthy = next((found for found in _HEALTHY.finditer(evidence) if found["rule"] == rule), None)
    if rule in UNJUDGED:
        yield "False positives were not measured: no healthy run of the bank has what this rule judges."
    elif steps:
        counts = healthy.groups()[1:] if healthy else ("0", "0", "0")
        flags = ", ".join(f"{n} {level}" for n, level in zip(counts, ("CRITICAL", "WARN", "NOTICE"), strict=True))
        yield f"False positives in {int(steps[2]):,} [healthy steps](../evidence/health.md#healthy-runs): {flags}."
    found = [
        f"{name} ({share}, after {_steps(delay)})" for name, of, share, delay in _FAULT.findall(evidence) if of == rule
    ]
    if found:
        yield f"Found [planted faults](../evidence/health.md#injected-faults): {'; '.join(found)}."


def _steps(delay: str) -> str:
    return f"{delay} step" if delay == "1" else f"{delay} steps"


def findings() -> str:
    """Every finding of the preflight by group: its requirement, severity, messages and fixes."""
    lines = []
    for group, section in read_tables(TABLE).items():
        lines += [f"## {group.capitalize()}\n", section["about"], ""]
        for id in (id for id in section if id in variants()):
            lines += [
                f"### {id}\n",
                f"{levels(id)} · {variants()[id][0]['text']}\n",
                *map(_variant, variants()[id]),
                "",
            ]
    return "\n".join(lines)


def _variant(row: dict[str, Any]) -> str:
    """A message with its fixes; values appear as their names."""
    words = ", ".join(f"`{fix.text}`" for fix in row["fix"])
    return _SPEC.sub(r"{\1}", f"* `{row['message']}`{words and f': {words}'}")


def corpus() -> str:
    """The broken presets per group of findings: the source of veRL's answer, and an example."""
    group = {id: name for name, section in read_tables(TABLE).items() for id in section if id in variants()}
    broken: dict[str, list[Case]] = {}
    for case in cases():
        broken.setdefault(group[case.finds[0]] if case.finds else "no errors", []).append(case)
    head = ("findings", "presets", "veRL asked", "run", "by its source or once", "one of them", "where veRL stops")
    return table(head, ((name, *_answers(found), *_example(found)) for name, found in broken.items()))


def _answers(found: list[Case]) -> tuple[str, ...]:
    known = [case.by for case in found]
    probed, ran = known.count("probe"), known.count("run")
    return tuple(map(str, (len(found), probed, ran, len(found) - probed - ran)))


def _example(found: list[Case]) -> tuple[str, str]:
    case = min(found, key=lambda case: (bool(case.says) != bool(case.finds), len(" ".join(case.set))))
    return (" ".join(map(code, case.set)), f"{case.stage}: {code(case.says)}" if case.says else case.stage or "–")
