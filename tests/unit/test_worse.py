"""No advice, from whichever source, moves a setting to where it makes its flag worse."""

import shutil
from dataclasses import replace

import health_bank
import pytest
from ended_runs import ran

from launcher.health import rivals
from launcher.health.catalogue import rules
from launcher.health.worse import worse, worsens
from launcher.preset.effective import EffectiveConfig
from launcher.preset.schema import BY_KEY, FIELDS
from launcher.preset.settle import of_log, offers, value_now
from launcher.preset.yaml_text import text_of
from launcher.record.check import Check
from launcher.record.events import EventLog, LevelChange
from launcher.record.info import Edit
from launcher.record.layout import RunDir
from launcher.record.levels import Level
from launcher.record.state import StateFile, current
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.problems import fixed_flag
from launcher.runs.watch.proposals import proposals
from launcher.verl.usual import BY_VERL_KEY

_SIDE = {"lower": -1, "raise": 1}


def wrong(rule: str, edits: tuple[Edit, ...], config: EffectiveConfig) -> list[Edit]:
    """The edits that go the wrong way; null is veRL's own value."""
    keys = {BY_KEY[key].name: key for key in worse()[rule] if key in BY_KEY}
    pairs = ((each, each.now if each.now is not None else value_now(each.key, EffectiveConfig())) for each in edits)
    return [each for each, now in pairs if worsens(rule, keys.get(each.key, ""), value_now(each.key, config), now)]


def test_every_rule_has_a_row_of_known_settings() -> None:
    assert worse().keys() == rules().keys()
    unknown = object()
    assert not [key for row in worse().values() for key in row if EffectiveConfig().get(key, unknown) is unknown]


def _causes(rule: str) -> list[rivals.FlagRow]:
    return [each for each in rivals.rows() if rule in each.explains]


def test_no_rule_advises_what_makes_it_worse() -> None:
    found = [
        (rule, change.key)
        for rule in rules()
        for fix in (*rules()[rule].advice, *(fix for each in _causes(rule) for fix in each.fixes))
        for change in fix.changes
        if worse()[rule].get(change.key, 0) * _SIDE.get(change.operation, 0) > 0
    ]
    assert not found


def _ends() -> dict[str, tuple[str, str]]:
    """The ends of what works for each setting, and of the lengths, which have no range."""
    ends: dict[str, tuple[float, float]] = {"data.max_response_length": (8, 4096), "data.max_prompt_length": (8, 4096)}
    ends |= {BY_KEY[key].name: (found[0].low, found[0].high) for key, found in BY_VERL_KEY.items()}
    whole = {spec.name: float not in spec.types for spec in BY_KEY.values()}
    return {name: tuple(text_of(int(end) if whole[name] else end) for end in each) for name, each in ends.items()}  # type: ignore[misc]


def flagged(run: RunDir, causes: dict[str, rivals.FlagRow]) -> Parent:
    """A run with a flag of every rule, some with a cause."""
    checks = []
    for rule in rules():
        cause = causes.get(rule)
        root = cause.entry if cause else ""
        fixes = (cause.fixes if cause else ()) or rules()[root or rule].advice
        checks.append(Check(rule, level=Level.WARN, since=7, cause=root, fixes=fixes))
    StateFile(run).write(replace(current(run), verdict="WARN", checks=tuple(checks)))
    for rule in rules():
        EventLog(run.events).add(LevelChange(7, rule, Level.OK, Level.WARN))
    return Parent(run)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.nightly(
    "launcher/health/", "launcher/preset/settle.py", "launcher/runs/watch/", "launcher/verl/usual.toml"
)
def test_no_source_of_advice_makes_a_flag_worse(at: int) -> None:
    """Each setting at an end of its range after a run at the other end; all at once with each possible cause."""
    ends, undone = _ends(), 0
    for name, each in ends.items():
        earlier = ran(1.0, [f"{name}={each[1 - at]}"])
        parent = flagged(ran(200.0, [f"{name}={each[at]}"]), {})
        key = FIELDS[name].key
        undone += sum(_all_right(parent, rule) for rule in rules() if key in worse()[rule])
        for run in (earlier, parent.run):
            shutil.rmtree(run.path)
    assert undone > 10
    causes = {rule: _causes(rule) for rule in rules()}
    for number in range(max(map(len, causes.values()))):
        run = ran(200.0, [f"{name}={each[at]}" for name, each in ends.items()])
        some = {rule: each[number] for rule, each in causes.items() if number < len(each)}
        parent = flagged(run, some)
        for rule in some:
            _all_right(parent, rule)
        shutil.rmtree(run.path)


def _all_right(parent: Parent, rule: str) -> bool:
    """Whether a change is undone; no proposal and no other fix goes the wrong way."""
    onset = parent.onset(rule)
    assert onset is not None
    found, change = proposals(parent, onset, 0)
    check = next(each for each in parent.state.checks if each.rule == rule)
    for edits in (*(each.edits for each in found), *(each.edits for each in fixed_flag(parent, check).offers)):
        assert not wrong(rule, edits, parent.config), (rule, edits)
    return change is not None


@pytest.mark.nightly("launcher/health/", "launcher/preset/settle.py", "launcher/verl/usual.toml")
def test_no_advice_for_a_recorded_run_makes_a_flag_worse() -> None:
    count = 0
    for run in (each for half in ("judged", "gpu") for each in health_bank.runs(half)):
        checklist, config = run.checklist(), of_log({key: str(value) for key, value in run.config.items()})
        assert config is not None
        for step, t, data in run.known:
            if checklist.step(step, data, t=t):
                for check in (each for each in checklist.checks() if each.on):
                    against = (check.rule, *filter(None, [check.cause]))
                    for offer in offers(check.fixes, config, rules=against):
                        assert not any(wrong(rule, offer.edits, config) for rule in against)
                        count += bool(offer.edits)
    assert count > 1000
