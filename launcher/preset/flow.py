"""The way of a batch: prompts, responses, mini- and micro-batches, optimizer steps; what a run comes to.

Counted as veRL counts (rules P6 to P13 of docs/preflight.md): batch sizes are prompts, `rollout.n` makes
responses of them, and only then are they shared out to GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.preset.effective import Effective

_ACTOR, _ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


@dataclass(frozen=True)
class Updates:
    """How one model is updated in a step.

    `mini` prompts make one optimizer step, of `mini_batches` in each of `epochs` passes; `per_gpu` responses
    of it (a fraction where they cannot be shared out) come in `micro_batches` of `micro` responses. With
    dynamic batches `tokens` fill one instead, and `micro_batches` is the number when all are of full length.
    """

    mini: int
    mini_batches: int
    epochs: int
    per_gpu: float
    micro: int | None
    tokens: int | None
    micro_batches: int | None

    @property
    def steps(self) -> int:
        """Optimizer steps in one training step."""
        return self.mini_batches * self.epochs


@dataclass(frozen=True)
class Flow:
    """What a preset makes of its data. None where it depends on the number of rows, which is not known.

    `gpus` share the prompts as `ranks` (a sequence may take several GPUs). `padding` counts the responses
    that veRL makes up so that mini-batches come out even. `early`: the epochs end before the wanted `steps`.
    """

    prompts: int
    n: int
    gpus: int
    ranks: int
    longest: int
    actor: Updates
    critic: Updates | None
    padding: int
    rows: int | None
    steps_an_epoch: int | None
    unused_rows: int | None
    epochs: int
    steps: int | None
    early: bool
    critic_warmup: int
    validations: int | None
    checkpoints: int | None
    kept: int | None

    @property
    def responses(self) -> int:
        """Responses in one step."""
        return self.prompts * self.n

    @property
    def actor_updates(self) -> int | None:
        """Optimizer steps of the actor in the whole run."""
        return None if self.steps is None else max(0, self.steps - self.critic_warmup) * self.actor.steps


def flow(seen: Effective, rows: int | None = None) -> Flow:
    """The flow of a preset; `rows` are those of its training files."""
    prompts, n = seen.whole("data.train_batch_size", 1024), seen.whole(f"{_ROLLOUT}.n")
    gpus = seen.whole("trainer.n_gpus_per_node", 8) * seen.whole("trainer.nnodes")
    ranks = max(1, gpus // seen.whole(f"{_ACTOR}.ulysses_sequence_parallel_size"))
    longest = seen.whole("data.max_prompt_length", 512) + seen.whole("data.max_response_length", 512)
    actor = _updates(seen, _ACTOR, prompts, n, ranks, longest)
    critic = _updates(seen, "critic", prompts, n, ranks, longest) if _has_critic(seen) else None
    most = seen("data.train_max_samples")
    if rows is not None and isinstance(most, int) and most > 0:
        rows = min(rows, most)
    steps_an_epoch = None if rows is None else rows // prompts
    epochs, wanted = seen.whole("trainer.total_epochs", 30), seen("trainer.total_training_steps")
    by_epochs = None if steps_an_epoch is None else steps_an_epoch * epochs
    wanted = wanted if isinstance(wanted, int) else None
    steps = min((each for each in (by_epochs, wanted) if each is not None), default=None)
    early = wanted is not None and by_epochs is not None and by_epochs < wanted
    saves = _times(steps, seen("trainer.save_freq"), last=not early)
    most_kept = seen("trainer.max_actor_ckpt_to_keep")
    first = int(seen("trainer.val_before_train") is not False)
    validations = _times(steps, seen("trainer.test_freq"), last=not early)
    return Flow(
        prompts=prompts,
        n=n,
        gpus=gpus,
        ranks=ranks,
        longest=longest,
        actor=actor,
        critic=critic,
        padding=-(-prompts // actor.mini) * actor.mini * n - prompts * n,
        rows=rows,
        steps_an_epoch=steps_an_epoch,
        unused_rows=None if rows is None else rows % prompts,
        epochs=epochs,
        steps=steps,
        early=early,
        critic_warmup=seen.whole("trainer.critic_warmup", 0) if critic else 0,
        validations=None if validations is None else validations + first,
        checkpoints=saves,
        kept=saves if saves is None or not isinstance(most_kept, int) else min(saves, most_kept),
    )


def rows_of(files: Any) -> int | None:
    """Rows of parquet files together, from their last kilobytes; None when one cannot be read so."""
    names: Iterable[Any] = files if isinstance(files, list) else [files] if files else []
    try:
        from pyarrow.parquet import read_metadata

        counts = [int(read_metadata(Path(str(name)).expanduser()).num_rows) for name in names]
    except (ImportError, OSError, ValueError):  # pyarrow's own errors are ValueErrors
        return None
    return sum(counts) if counts else None


def _has_critic(seen: Effective) -> bool:
    enabled = seen("critic.enable")
    return enabled if isinstance(enabled, bool) else seen("algorithm.adv_estimator") == "gae"


def _updates(seen: Effective, model: str, prompts: int, n: int, ranks: int, longest: int) -> Updates:
    mini = seen.whole(f"{model}.ppo_mini_batch_size", prompts)
    per_gpu = mini * n / ranks
    # From 0.8 on the critic fills its micro-batches by tokens, whatever is set.
    if model == "critic":
        tokens: int | None = seen.whole("critic.ppo_infer_max_token_len_per_gpu", 32768)
    else:
        dynamic = seen(f"{model}.use_dynamic_bsz") is True
        tokens = seen.whole(f"{model}.ppo_max_token_len_per_gpu", 16384) if dynamic else None
    micro = None if tokens else seen.whole(f"{model}.ppo_micro_batch_size_per_gpu", 0) or None
    size = max(1, tokens // longest) if tokens else micro
    return Updates(
        mini=mini,
        mini_batches=-(-prompts // mini),
        epochs=seen.whole(f"{model}.ppo_epochs"),
        per_gpu=per_gpu,
        micro=micro,
        tokens=tokens,
        micro_batches=None if size is None else int(-(-per_gpu // size)),
    )


def _times(steps: int | None, every: Any, *, last: bool) -> int | None:
    """How often something happens every so many steps and after the last one."""
    if not isinstance(every, int) or every <= 0:
        return 0
    if steps is None:
        return None
    return steps // every + (1 if last and steps % every else 0)
