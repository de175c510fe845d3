"""A run that others continue, repeat or try to fix: its records, each read once, and its checkpoints for forks."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from launcher.core.errors import UserError
from launcher.metrics.records import StepRecord
from launcher.preset.effective import EffectiveConfig
from launcher.preset.files import LoadedPreset, of_layer, snapshot_layer
from launcher.preset.layers import Layer
from launcher.preset.settle import configured
from launcher.preset.yaml_text import text_of
from launcher.record.check import Check
from launcher.record.events import Action, Event, read_events
from launcher.record.fix import Offer
from launcher.record.info import Origin, RunInfo
from launcher.record.layout import RunDir
from launcher.record.state import RunState, known
from launcher.runs.watch.checkpoints import beginning, checkpoint, checkpoints
from launcher.runs.watch.history import Onset, check_counts, kept_rises, onset_of
from launcher.runs.watch.possible import Verb, require
from launcher.runs.watch.run_settings import preset_edits, with_resume
from launcher.runs.watch.steps import steps
from launcher.verl.config import ACTOR, CRITIC, CRITIC_PATH, ESTIMATOR, GPUS, MODEL, MODEL_PATH, NODES

_ENGINE = "the checkpoint has the format of the engine that wrote it"
_OPTIMIZER = "the optimizer state in the checkpoint is of another type"
_PARTS = "the checkpoint has one part per GPU"
_WEIGHTS = "the weights in the checkpoint belong to another model"
FIXED: Mapping[str, str] = {
    GPUS: _PARTS,
    NODES: _PARTS,
    MODEL_PATH: _WEIGHTS,
    f"{MODEL}.lora_rank": _WEIGHTS,
    f"{MODEL}.lora_alpha": _WEIGHTS,
    f"{MODEL}.lora.rank": _WEIGHTS,
    f"{MODEL}.target_modules": _WEIGHTS,
    CRITIC_PATH: _WEIGHTS,
    f"{CRITIC}.model.lora_rank": _WEIGHTS,
    f"{ACTOR}.strategy": _ENGINE,
    f"{CRITIC}.strategy": _ENGINE,
    **{f"{part}.optim.{name}": _OPTIMIZER for part in (ACTOR, CRITIC) for name in ("optimizer", "optimizer_impl")},
}
"""veRL keys that a checkpoint fixes, with the reason.

veRL: `utils/checkpoint/fsdp_checkpoint_manager.py: FSDPCheckpointManager.load_checkpoint`.
"""


class Parent:
    """A run that others begin from. Reads each record once, on first use: pass the object on."""

    def __init__(self, run: RunDir) -> None:
        self.run, self.id = run, run.id

    @cached_property
    def info(self) -> RunInfo:
        """run.yaml."""
        return self.run.read_info()

    @cached_property
    def state(self) -> RunState:
        """Its state, without damage to other files."""
        return known(self.run)

    @cached_property
    def events(self) -> Sequence[Event]:
        """Its events, oldest first."""
        return tuple(read_events(self.run.events))

    @cached_property
    def latest(self) -> RunInfo:
        """run.yaml with the newest attempt's preset."""
        return with_resume(self.info, [event.what for event in self.events if isinstance(event.what, Action)])[0]

    @cached_property
    def steps(self) -> Sequence[StepRecord]:
        """The steps of all its attempts."""
        return [record for _, record in steps(self.run)]

    @cached_property
    def offers(self) -> Sequence[Offer]:
        """The fixes for its failure."""
        from launcher.runs.watch.run_diagnosis import explained  # imports the catalog of causes, which no start needs

        return explained(self.run).offers

    @cached_property
    def _layer(self) -> Layer:
        return snapshot_layer(self.latest.of_preset, self.latest.preset or {})

    def restored(self, changes: Sequence[str] = (), name: str = "") -> LoadedPreset:
        """The newest attempt's preset with changes, under its own or another name. Raises UserError."""
        return of_layer(self._layer, name or self.latest.of_preset, changes)

    @cached_property
    def config(self) -> EffectiveConfig:
        """The newest attempt's configuration; veRL's if its preset is unreadable."""
        try:
            return configured(self.restored())
        except UserError:
            return EffectiveConfig()

    def require(self, verb: Verb) -> None:
        """Raises UserError if the run refuses this verb."""
        require(self.run, verb, self.state, self.latest)

    def onset(self, rule: str | None = None) -> Onset | None:
        """The onset of the first flag that became CRITICAL or, without one, WARN; with `rule`, of that rule. None
        without one.

        Muted rules and rules about the machine count only if named.
        """
        checks = {check.rule: check for check in self.state.checks}
        first = (self.info.parent.step or 0) + 1 if self.info.parent is not None else 1
        onsets = []
        for change in kept_rises(self.events):
            check = checks.get(change.rule) or Check(change.rule)
            if change.alarming and (change.rule == rule if rule else check_counts(check)):
                onsets.append(onset_of(change, check.debounce, first))
        worst = max((onset.level for onset in onsets), default=None)
        serious = {onset.rule for onset in onsets if onset.level == worst}
        return next((onset for onset in onsets if onset.rule in serious), None)

    @cached_property
    def checkpoints(self) -> Mapping[int, Path]:
        """Steps and folders of possible starts of a fork, oldest first: its checkpoints, and its own start."""
        begun = beginning(self.id, self.info.parent)
        return dict(sorted((checkpoints(self.run) | dict([begun] if begun else ())).items()))

    def fork_step(self, onset: Onset | None = None) -> int:
        """The newest checkpoint before the first flag (or `onset`), the newest one without flags. Raises UserError."""
        onset, kept = onset or self.onset(), list(self.checkpoints)
        if onset is None:
            return kept[-1] if kept else checkpoint(self.run, None)[0]
        before = [step for step in kept if step < onset.step]
        if before:
            return before[-1]
        later = f", or --checkpoint {' or '.join(map(str, kept))} for a later one" if kept else ""
        raise UserError(
            f"run {self.id} has no checkpoint from before step {onset.step}, as this flag requires: {onset.told}",
            f"use --checkpoint 0 for the start of the run{later}",
        )

    def checkpoint(self, step: int) -> Path | None:
        """The checkpoint that a fork begins with, None for the start. Raises UserError if it is missing."""
        return (self.checkpoints.get(step) or checkpoint(self.run, step)[1]) if step else None

    def origin(
        self, now: LoadedPreset, step: int | None = None, trial: str | None = None, undoes: str | None = None
    ) -> Origin:
        """The origin of a run with this preset, with each changed setting; other arguments as in `Origin`."""
        return Origin(self.id, preset_edits(self.latest, RunInfo(preset=now.snapshot())), step, trial, undoes)


def refuse_fixed(before: EffectiveConfig, now: EffectiveConfig) -> None:
    """Raises UserError for a setting that cannot change between a run and its fork."""
    for key, why in FIXED.items():
        old, new = before.get(key), now.get(key)
        there = not key.startswith(f"{CRITIC}.") or (before.has_critic and now.has_critic)
        if there and old != new:
            raise UserError(
                f"{key} cannot change from {text_of(old)} to {text_of(new)} in a fork: {why}",
                "use --checkpoint 0 to start from the beginning",
            )
    if now.has_critic and not before.has_critic:
        raise UserError(
            f"{ESTIMATOR} cannot become {text_of(now.get(ESTIMATOR))} in a fork: the checkpoint has no critic",
            "use --checkpoint 0 to start from the beginning",
        )
