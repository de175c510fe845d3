"""The settings to try against a flag: one list for `try`, `health`, the page of a check and the editor."""

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launcher.check.config.plausible import Unusual, unusual
from launcher.compare.last_change import Change, last_change
from launcher.core.errors import UserError
from launcher.core.format import number
from launcher.health.catalogue import rules
from launcher.health.fixes import together, tried_values
from launcher.preset.effective import EffectiveConfig, Source
from launcher.preset.field_values import where_of
from launcher.preset.remedy import configuration
from launcher.preset.schema import FIELDS
from launcher.preset.yaml_text import text_of, value_of
from launcher.record.info import Edit
from launcher.record.json import Record
from launcher.record.layout import RunDir
from launcher.record.state import current
from launcher.runs.act.fork import fork_step, planned_fork, refuse_parent
from launcher.runs.watch.history import Onset, first_onset
from launcher.verl import hydra
from launcher.verl.config import VerlConfig

_SET: Mapping[Source, str] = {
    "default": "veRL's default",
    "field": "set in the preset",
    "derived": "derived from fields of the preset",
    "override": "set in the preset",
    "ppo-tui": "ppo-tui's default",
}


@dataclass(frozen=True, slots=True)
class Proposal(Record):
    """Settings to try together: KEY=VALUE, and each with its present and new value.

    `reason` is what they undo, why the present value is unusual, or where it was set.
    """

    settings: tuple[str, ...]
    edits: tuple[Edit, ...]
    reason: str

    @property
    def words(self) -> str:
        """`actor.lr 1e-05 → 1e-06 (0.1×); undoes what the fork changed`."""
        return f"{', '.join(map(_edit_words, self.edits))}; {self.reason}"


@dataclass(frozen=True)
class Proposals:
    """All proposals in the order of the trials; `change` is what the first one undoes, if any."""

    found: tuple[Proposal, ...]
    change: Change | None


def proposals(run: RunDir, onset: Onset, step: int, config: EffectiveConfig) -> Proposals:
    """The proposals against a flag, from the checkpoint of `step`; `config` is that of the run.

    First comes undoing the run's own changes, then, for a flag about learning, usual values for unusual settings, which
    no advised fix touches, then the advised fixes.
    """
    change, earlier = _undone(run, onset, step)
    advised = next((check.fixes for check in current(run).checks if check.rule == onset.rule), ())
    keys = [each.key for each in advised if each.key]
    before = {key: earlier.get(key) for key in keys} if earlier else {}
    known = rules().get(onset.rule)
    fixes = tried_values(known.advice if known else (), advised, {key: config.get(key) for key in keys}, step, before)
    reasons: dict[tuple[str, ...], str] = {}
    if change is not None:
        reasons[change.undoing] = f"undoes {change.words}"
        if len(change.edits) == 1:  # which one of the fixes may be, too
            fixes = [(key, value) for key, value in fixes if value != before.get(key)]
    undone = {each.key for each in change.edits} if change is not None else set()
    learning = known is None or known.family not in ("speed", "memory")  # a learning rate slows no step
    strange = [each for each in unusual(config) if learning and undone.isdisjoint((*each.keys, *(each.change or {})))]
    reasons |= _usual_values(strange)
    fixes = [(key, value) for key, value in fixes if not any(key in each.keys for each in strange)]
    for key, value in fixes:
        settings = tuple(f"{each}={hydra.quote(to)}" for each, to in together(key, value, config).items())
        reasons.setdefault(settings, _SET[config.source(key)])
    found = (Proposal(settings, _edits(settings, config), reason) for settings, reason in reasons.items())
    return Proposals(tuple(found), change)


def first_proposal(run: RunDir, rule: str) -> Proposal | None:
    """The first proposal of `ppo-tui try RUN --rule RULE`; None if there is none. Never raises."""
    with contextlib.suppress(OSError, UserError):
        info, onset = refuse_parent(run), first_onset(run, rule)
        if onset is not None:
            found = proposals(run, onset, step_before(run, onset), configuration(info.preset or {})).found
            return found[0] if found else None
    return None


def step_before(run: RunDir, onset: Onset) -> int:
    """The newest checkpoint before a flag; 0, the start, if there is none."""
    try:
        return fork_step(run, onset)
    except UserError:
        return 0


def _edits(settings: Sequence[str], config: EffectiveConfig) -> tuple[Edit, ...]:
    """Each setting with its present value and the one to try."""
    edits = []
    for setting in settings:
        key, _, value = setting.partition("=")
        spec = FIELDS.get(".".join(where_of(key)))
        edits.append(Edit(key, config.get(spec.key if spec else key), value_of(value)))
    return tuple(edits)


def _edit_words(edit: Edit) -> str:
    before, now = edit.before, edit.now
    words = f"{edit.key} {text_of(before)} → {text_of(now)}"
    if all(isinstance(each, int | float) and not isinstance(each, bool) and each > 0 for each in (before, now)):
        words += f" ({number(now / before)}×)"
    return words


def _usual_values(strange: Sequence[Unusual]) -> dict[tuple[str, ...], str]:
    """The trials of usual values, one per check, each with its reason; if there are several, all of them together come
    first.
    """
    reasons: dict[tuple[str, ...], str] = {}
    for _, group in itertools.groupby(strange, lambda finding: finding.id):  # both clip ranges together
        findings = list(group)
        edits = {name: value for each in findings for name, value in (each.change or {}).items()}
        reason = "; ".join(each.now for each in findings)
        reasons[tuple(f"{name}={text_of(value)}" for name, value in edits.items())] = f"now {reason}"
    if len(reasons) > 1:  # each of them may be enough to keep the trouble going
        return {tuple(itertools.chain(*reasons)): "all usual values at once", **reasons}
    return reasons


def _undone(run: RunDir, onset: Onset, step: int) -> tuple[Change | None, VerlConfig | None]:
    """The changes of the run that a trial can undo, and the configuration without them; None for both if there are
    none.
    """
    change = last_change(run, onset)
    if change is not None:
        with contextlib.suppress(UserError):  # the checkpoint cannot be loaded with it
            return change, configuration(planned_fork(run, change.undoing, step=step)[0].snapshot())
    return None, None
