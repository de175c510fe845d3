"""The settings to try against a flag: one list for `try`, `health`, the rule page and the editor."""

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from launcher.check.config.plausible import Unusual, unusual
from launcher.core.errors import UserError
from launcher.core.format import number
from launcher.health.catalogue import rules
from launcher.preset.effective import EffectiveConfig
from launcher.preset.settle import configured, harms, origin_words, setting_name, settings_of, settle, value_now
from launcher.preset.yaml_text import text_of
from launcher.record.fix import Fix, Offer
from launcher.record.info import Edit, RunInfo
from launcher.record.json import Record
from launcher.runs.watch.history import Onset
from launcher.runs.watch.last_change import Change, last_change
from launcher.runs.watch.parent import Parent, refuse_fixed
from launcher.runs.watch.possible import Verb
from launcher.verl.config import VerlConfig

_FROM_THE_START = ("trainer.critic_warmup", "lr_warmup_steps")  # counted from step 0: past at a checkpoint


@dataclass(frozen=True, slots=True)
class Proposal(Record):
    """KEY=VALUE settings to try together, with old and new values; `reason`: effect, unusual value, or place."""

    settings: tuple[str, ...]
    edits: tuple[Edit, ...]
    reason: str

    @property
    def words(self) -> str:
        """`actor.lr 1e-05 → 1e-06 (0.1×); undoes what the fork changed`."""
        return f"{', '.join(map(_edit_words, self.edits))}; {self.reason}"

    @property
    def offer(self) -> Offer:
        """The proposal as a fix."""
        return Offer(Fix(self.words), self.words, self.edits[0].key, self.edits)


def proposals(run: Parent, onset: Onset, step: int) -> tuple[list[Proposal], Change | None]:
    """The proposals against a flag, from the checkpoint of `step`, and the change that the first one undoes, if any.

    Order: undoing the run's own changes; for flags about learning, usual values for unusual settings that no advised
    fix changes; advised fixes. None makes the flag worse.
    """
    config, (change, earlier) = run.config, _undone(run, onset, step)
    undone = {} if change is None else {each.key: each.before for each in change.edits}
    known, check = rules().get(onset.rule), next((each for each in run.state.checks if each.rule == onset.rule), None)
    learning = known is None or known.family not in ("speed", "memory")  # a learning rate slows no step
    suspects = unusual(config) if learning else ()
    strange = [each for each in suspects if undone.keys().isdisjoint((*each.keys, *(each.change or {})))]
    usual = {key for each in strange for key in each.keys}
    advised, wanted = list[Proposal](), dict[str, object]()
    for fix in check.fixes if check else ():
        key = fix.key
        if key is None or (step and key.endswith(_FROM_THE_START)):
            continue
        before = earlier.get(key) if earlier is not None else None
        edits = settle(fix, config, {**computed(run.info), **({} if before is None else {setting_name(key): before})})
        if key in usual:
            wanted |= {edit.key: edit.now for edit in edits}
        elif edits and not (len(undone) == 1 and edits[0].now == before):  # would also undo the change
            advised.append(_proposal(edits, origin_words(key, config)))
    undoing = [] if change is None else [_proposal(change.undone, f"undoes {change.words}")]
    against = (onset.rule, *((check.cause,) if check and check.cause else ()))
    found: dict[tuple[str, ...], Proposal] = {}
    for each in (*undoing, *_usual_values(strange, config, wanted, against), *advised):
        if not harms(against, each.edits, config):
            found.setdefault(each.settings, each)
    return [*found.values()], change if undoing and undoing[0].settings in found else None


def computed(info: RunInfo) -> Mapping[str, object]:
    """The values that `check` computed before the run, by setting."""
    changes = (each.get("change") for each in info.preflight.findings) if info.preflight else ()
    return {key: value for change in changes for key, value in (change or {}).items()}


def _proposal(edits: Iterable[Edit], reason: str) -> Proposal:
    kept = tuple(edits)
    return Proposal(settings_of(kept), kept, reason)


def first_proposal(run: Parent, rule: str) -> Proposal | None:
    """The first proposal of `ppo-tui try RUN --rule RULE`; None without one. Never raises."""
    with contextlib.suppress(OSError, UserError):
        run.require(Verb.FORK)
        if (onset := run.onset(rule)) is not None:
            step = max((step for step in run.checkpoints if step < onset.step), default=0)
            return next(iter(proposals(run, onset, step)[0]), None)
    return None


def _edit_words(edit: Edit) -> str:
    before, now = edit.before, edit.now
    words = f"{edit.key} {text_of(before)} → {text_of(now)}"
    if all(isinstance(each, int | float) and not isinstance(each, bool) and each > 0 for each in (before, now)):
        words += f" ({number(now / before)}×)"
    return words


def _usual_values(
    strange: Sequence[Unusual], config: EffectiveConfig, wanted: Mapping[str, object], against: Sequence[str]
) -> list[Proposal]:
    """Usual values, or the values of the rule's own fixes (`wanted`), one proposal per finding, without any that makes
    the flag worse; several are first proposed together.
    """
    found = []
    for _, group in itertools.groupby(strange, lambda finding: finding.id):  # both clip ranges together
        findings = list(group)
        values = {name: value for each in findings for name, value in (each.change or {}).items()}
        edits = [Edit(name, value_now(name, config), wanted.get(name, value)) for name, value in values.items()]
        if not harms(against, edits, config):
            found.append(_proposal(edits, f"now {'; '.join(each.now for each in findings)}"))
    if len(found) > 1:  # each of them may be enough to keep the trouble going
        together = itertools.chain.from_iterable(each.edits for each in found)
        found.insert(0, _proposal(together, "all usual values together"))
    return found


def _undone(run: Parent, onset: Onset, step: int) -> tuple[Change | None, VerlConfig | None]:
    """The run's changes that a trial can undo, and the configuration without them; both None without any."""
    change = last_change(run, onset)
    if change is not None:
        with contextlib.suppress(UserError):  # the checkpoint cannot be loaded with it
            earlier = configured(run.restored(settings_of(change.undone)))
            if step:
                refuse_fixed(run.config, earlier)
            return change, earlier
    return None, None
