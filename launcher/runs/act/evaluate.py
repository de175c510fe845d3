"""Scoring a checkpoint: a run of its own that validates once and trains nothing."""

from collections.abc import Callable, Sequence

from launcher.core.errors import UserError
from launcher.preset.files import restore
from launcher.record.layout import RunDir
from launcher.runs.act.start import start
from launcher.runs.watch.checkpoints import checkpoint
from launcher.runs.watch.run_settings import last_settings
from launcher.runs.watch.steps import steps

SCORES = ("val-core/", "val-aux/")  # how veRL's validation figures begin, the headline ones first
_ONLY = ("trainer.val_only=True", "trainer.val_before_train=True")


def evaluate(
    run: RunDir, settings: Sequence[str], step: int | None, narrate: Callable[[str], None], *, force: bool
) -> RunDir:
    """Starts veRL on a checkpoint of `run` with its preset and further settings, for the validation alone.

    Returns when its supervisor lives; `scores` has the figures when it has finished.
    """
    info, _ = last_settings(run)
    if info.preset is None or info.from_log:
        raise UserError(f"run {run.id} was made elsewhere and has no checkpoint to evaluate")
    found, folder = checkpoint(run, step)
    loaded = restore(f"{info.name}-eval-{found}", info.preset, [*settings, *_ONLY])
    narrate(f"evaluating the checkpoint of step {found} of run {run.id}")
    return start(loaded, [*settings, *_ONLY], narrate, force=force, resume_from=folder)


def scores(run: RunDir) -> dict[str, float]:
    """The validation figures of a run's last validation, the headline ones first."""
    found: dict[str, float] = {}
    for _, record in steps(run):
        found.update({key: value for key, value in record.data.items() if key.startswith(SCORES)})
    return dict(sorted(found.items(), key=lambda item: (not item[0].startswith(SCORES[0]), item[0])))
