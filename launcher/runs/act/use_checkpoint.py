"""Merges a checkpoint into a model that transformers and vLLM load, or scores it on the test split."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from launcher.core.errors import UserError, of_writing
from launcher.core.files import make_folder
from launcher.core.text import clean
from launcher.record.layout import RunDir
from launcher.runs.act.start import Narrate, Plan, start
from launcher.runs.watch.checkpoints import checkpoint
from launcher.runs.watch.parent import Parent
from launcher.runs.watch.possible import Verb
from launcher.runs.watch.steps import steps
from launcher.verl import env as verl_env
from launcher.verl import versions

_FIRST = (0, 4, 1)  # the version of veRL that brought the merger into its package
_LAST = 8  # last lines of a merger that failed


class MergeError(Exception):
    """A failure of veRL's merger; the text ends with its last lines."""


def merge(run: RunDir, step: int | None, to: Path | None, narrate: Narrate) -> Path:
    """Writes the actor of a checkpoint in Hugging Face format; returns the folder.

    Default of `to`: `merged/global_step_<k>` of the run. Runs on the CPU; needs memory for twice the model in float32.
    The folder appears when complete. Raises UserError and MergeError.
    """
    parent = Parent(run)
    parent.require(Verb.MERGE)
    step, folder = checkpoint(run, step)
    target = (to or run.path / "merged" / folder.name).expanduser().absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target} already exists", "remove it, or choose another folder with --output")
    env = verl_env.require(parent.restored().preset.python)
    assert env.verl is not None
    if versions.number(env.verl) < _FIRST:
        raise UserError(f"veRL {env.verl} has no model merger", "install veRL 0.4.1 or later")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        make_folder(partial)
    except OSError as error:
        raise of_writing(target, error) from None
    narrate(f"merging the checkpoint of step {step} of run {run.id}; a large model takes minutes")
    try:
        _run(env.python, folder / "actor", partial)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if (target / "lora_adapter").is_dir():
        narrate(f"these are the base model's weights; the trained adapter is in {target / 'lora_adapter'}")
    return target


def _run(python: str, actor: Path, target: Path) -> None:
    command = [python, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(actor), "--target_dir", str(target)]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, cwd=target, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0 or not any(target.glob("*.safetensors")):
        lines = clean(done.stdout.decode(errors="replace")).strip().splitlines()
        output = "\n".join(lines[-_LAST:]) or "no output"
        raise MergeError(f"veRL's merger failed with exit code {done.returncode}:\n{output}")


SCORES = ("val-core/", "val-aux/")  # how veRL's validation figures begin, the headline ones first
_ONLY = ("trainer.val_only=True", "trainer.val_before_train=True")


def evaluate(
    run: RunDir, changes: Sequence[str], step: int | None, narrate: Narrate, *, force: bool, base: bool = False
) -> RunDir:
    """Starts veRL on a checkpoint of `run`, or on its initial model (`base`), with its preset and changes, only to
    validate. Returns when its supervisor runs; `scores` returns the results after the end.
    """
    parent = Parent(run)
    parent.require(Verb.EVALUATE)
    at, folder = ("base", None) if base else checkpoint(run, step)
    words = (*changes, *_ONLY)
    plan = Plan(parent.restored(words, f"{parent.info.name}-eval-{at}"), words, checkpoint=folder)
    what = "model that run {} began with" if base else f"checkpoint of step {at} of run {{}}"
    narrate(f"evaluating the {what.format(run.id)}")
    return start(plan, narrate, force=force)


def scores(run: RunDir) -> dict[str, float]:
    """The metrics of a run's last validation, main ones first."""
    figures: dict[str, float] = {}
    for _, record in steps(run):
        figures.update({key: value for key, value in record.data.items() if key.startswith(SCORES)})
    return dict(sorted(figures.items(), key=lambda item: (not item[0].startswith(SCORES[0]), item[0])))
